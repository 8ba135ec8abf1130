#!/usr/bin/env python3
"""Tests of embed_wgsl.py."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import embed_wgsl  # noqa: E402

META = "struct TensorMeta { dims: array<vec4<u32>, 2>, strides: array<vec4<u32>, 2> }\n"


class EmbedTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        self.out = self.root / "out"
        self.write("common/index.wgsl", META)

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def embed(self, text, name="some_op.wgsl"):
        path = self.write(name, text)
        embed_wgsl.embed(sorted(self.root.rglob("*.wgsl")), self.root, self.out)
        return (self.out / f"{path.stem}.h").read_text(), (self.out / "kernel_files.cpp").read_text()

    def members(self, body):
        header, _ = self.embed(f"struct Params {{ {body} }}\n")
        inside = header.split("struct SomeOpParams {\n")[1].split("\n};")[0]
        return [line.strip() for line in inside.splitlines()]

    def expect_error(self, text, *parts):
        with self.assertRaises(embed_wgsl.Error) as caught:
            self.embed(text)
        for part in parts:
            self.assertIn(part, str(caught.exception))


class Files(EmbedTest):
    def test_are_embedded_as_they_are_by_name(self):
        text = '// first\n#include "common/index.wgsl"\n#if x\n// last\n#end\n'
        header, source = self.embed(text, "quant/some_op.wgsl")
        self.assertIn(f'{{"quant/some_op.wgsl", R"wgsl({text})wgsl"sv}}', source)
        self.assertIn(f'{{"common/index.wgsl", R"wgsl({META})wgsl"sv}}', source)
        self.assertIn('Shader some_op{.name = "some_op", .file = "quant/some_op.wgsl"};', header)
        self.assertFalse((self.out / "index.h").exists())

    def test_are_packed_without_what_shaders_do_not_need(self):
        self.write("common/index.wgsl", "// nothing\n")
        self.write("some_op.wgsl", "// first\n#option x 1..2  // of something\n\nfn main() {\n  let a = 1u; /* why */\n}\n")
        embed_wgsl.embed(sorted(self.root.rglob("*.wgsl")), self.root, self.out, packed=True)
        packed = (self.out / "kernels.txt").read_text()
        self.assertEqual(packed, "common/index.wgsl\0\0some_op.wgsl\0#option x 1..2\nfn main(){\nlet a=1u;\n}\n\0")

    def test_spaces_stay_where_they_part_tokens(self):
        for line, expected in (
            ("let x = a - -b;", "let x=a- -b;"),
            ("let x = a - $b + $(c + 1);", "let x=a- $b+ $(c+1);"),
            ("var p: array<u32, 4> = array<u32, 4>();", "var p:array<u32,4> =array<u32,4>();"),
            ("  let q = a / *p;", "let q=a/ *p;"),
            ("fn f(a: u32) -> u32 { return a & b; }", "fn f(a:u32)->u32{return a&b;}"),
            ("#if a == 1 && !b", "#if a == 1 && !b"),
        ):
            self.assertEqual(embed_wgsl.squeezed(line), expected)
        self.assertFalse((self.out / "kernel_files.cpp").exists())

    def test_of_one_name_are_an_error(self):
        self.write("quant/some_op.wgsl", "")
        self.expect_error("", "both would be shaders::some_op")


class Includes(EmbedTest):
    def test_may_hold_the_params(self):
        self.write("common/reduce.wgsl", '#include "common/index.wgsl"\nstruct Params { x: TensorMeta }\n')
        header, _ = self.embed('#include "common/reduce.wgsl"\n#include "common/index.wgsl"\nfn main() {}\n')
        self.assertIn("struct SomeOpParams", header)

    def test_that_go_in_a_circle_end(self):
        self.write("common/a.wgsl", '#include "common/b.wgsl"\n// a\n')
        self.write("common/b.wgsl", '#include "common/a.wgsl"\nstruct Params { n: u32 }\n')
        self.assertIn("struct SomeOpParams", self.embed('#include "common/a.wgsl"\n')[0])

    def test_with_values_or_chosen_by_options_are_fine(self):
        header, _ = self.embed('#include "x_$(x).wgsl"\n#include "common/index.wgsl" name=x type=f32\nstruct Params { n: u32 }\n')
        self.assertIn("struct SomeOpParams", header)

    def test_missing_file_names_the_place(self):
        self.expect_error('// x\n#include "common/no.wgsl"\n', "some_op.wgsl:2:", '"common/no.wgsl": no such file')

    def test_missing_file_in_an_include_names_the_include(self):
        self.write("common/a.wgsl", '\n\n#include "common/no.wgsl"\n')
        self.expect_error('#include "common/a.wgsl"\n', "common/a.wgsl:3:")

    def test_malformed_include_is_an_error(self):
        self.expect_error("#include <common/index.wgsl>\n", "some_op.wgsl:1:", "expected #include")


class Params(EmbedTest):
    def test_absent_gives_no_struct(self):
        header, _ = self.embed("fn main() {}\n")
        self.assertNotIn("struct", header)
        self.assertIn("inline constexpr ::pteryx::ops::Shader some_op{", header)

    def test_scalars_are_packed_and_padded_to_sixteen(self):
        self.assertEqual(
            self.members("rows: u32, delta: i32, eps: f32"),
            ["uint32_t rows = 0;", "int32_t delta = 0;", "float eps = 0;", "uint32_t pad_0 = 0;"],
        )

    def test_vectors_start_at_multiples_of_sixteen(self):
        self.assertEqual(
            self.members("n: u32, v: vec4<f32>"),
            ["uint32_t n = 0;", *(f"uint32_t pad_{i} = 0;" for i in range(3)), "std::array<float, 4> v{};"],
        )

    def test_arrays_become_flat_arrays(self):
        self.assertEqual(
            self.members("a: array<vec4<u32>, 2>, b: array< vec4<i32> , 1>, c: array<vec4<f32>,3>"),
            ["std::array<uint32_t, 8> a{};", "std::array<int32_t, 4> b{};", "std::array<float, 12> c{};"],
        )

    def test_tensor_meta_keeps_its_name(self):
        self.assertIn("::pteryx::ops::TensorMeta x{};", self.members("x: TensorMeta"))

    def test_trailing_comma_comments_and_lines_are_fine(self):
        text = "struct Params {\n  // rows, not: columns\n  rows: u32,  /* of } x */\n  width: u32,\n}\n"
        header, _ = self.embed(text)
        self.assertIn("static_assert(offsetof(SomeOpParams, width) == 4);", header)
        self.assertIn("static_assert(sizeof(SomeOpParams) == 16);", header)

    def test_unknown_type_names_file_line_and_member(self):
        self.expect_error(
            "// x\nstruct Params {\n  n: u32,\n  s: vec2<f32>,\n}\n", "some_op.wgsl:4:", "'s'", "'vec2<f32>'"
        )

    def test_unknown_type_behind_an_include_keeps_its_line(self):
        self.expect_error('#include "common/index.wgsl"\n\nstruct Params { s: f16 }\n', "some_op.wgsl:3:", "'f16'")

    def test_attributes_are_an_error(self):
        self.expect_error("struct Params { @align(16) n: u32 }\n", "some_op.wgsl:1:", "expected 'name: type'")

    def test_hand_written_padding_is_an_error(self):
        self.expect_error("struct Params { n: u32, pad_0: u32 }\n", "leave padding to it")

    def test_empty_or_unclosed_is_an_error(self):
        self.expect_error("struct Params { }\n", "some_op.wgsl:1:", "empty")
        self.expect_error("\nstruct Params { n: u32\n", "some_op.wgsl:2:", "closing brace")

    def test_other_structs_do_not_count(self):
        header, _ = self.embed("struct ParamsOfOther { s: vec2<f32> }\n")
        self.assertNotIn("struct", header)

    def test_layout_matches_what_the_compiler_does(self):
        """Compiles the header against stand-ins, so that its static_asserts speak."""
        self.embed(
            '#include "common/index.wgsl"\nstruct Params { a: u32, x: TensorMeta, b: f32, y: TensorMeta,'
            " v: vec4<i32>, c: array<vec4<f32>, 5>, d: i32 }\n"
        )
        self.write(
            "pteryx/ops/shader.h",
            "#pragma once\n#include <array>\n#include <cstdint>\n#include <string_view>\nnamespace pteryx::ops {\n"
            "struct Shader { std::string_view name; std::string_view file; };\n"
            "struct TensorMeta { std::array<uint32_t, 8> dims{}; std::array<uint32_t, 8> strides{}; };\n}\n",
        )
        self.write("some_op.cpp", (self.out / "some_op.h").read_text().replace("#pragma once", ""))
        flags = ["-std=c++20", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", f"-I{self.root}"]
        run = subprocess.run(["c++", *flags, self.root / "some_op.cpp"], capture_output=True, text=True, check=False)
        self.assertEqual(run.returncode, 0, run.stderr)


class Output(EmbedTest):
    def test_long_text_is_cut_into_pieces_that_add_up(self):
        text = "".join(f"// line {i}\n" for i in range(4000))
        _, source = self.embed(text)
        source = source.split('{"some_op.wgsl", ')[1]
        pieces = [piece.split(')wgsl"')[0] for piece in source.split('R"wgsl(')[1:]]
        self.assertGreater(len(pieces), 1)
        self.assertLessEqual(max(map(len, pieces)), embed_wgsl.PIECE_CHARS)
        self.assertEqual("".join(pieces), text)

    def test_unchanged_files_keep_their_time(self):
        self.embed("fn main() {}\n")
        before = (self.out / "some_op.h").stat().st_mtime_ns, (self.out / "kernel_files.cpp").stat().st_mtime_ns
        self.embed("fn main() {}\n")
        after = (self.out / "some_op.h").stat().st_mtime_ns, (self.out / "kernel_files.cpp").stat().st_mtime_ns
        self.assertEqual(before, after)

    def test_text_that_would_end_the_literal_is_an_error(self):
        self.expect_error('// )wgsl"\n', "ends the C++ literal")

    def test_file_name_must_be_a_name(self):
        path = self.write("Bad-Name.wgsl", "")
        with self.assertRaises(embed_wgsl.Error):
            embed_wgsl.embed([path], self.root, self.out)

    def test_command_line_reports_on_stderr_and_fails(self):
        path = self.write("some_op.wgsl", '#include "common/no.wgsl"\n')
        tool = pathlib.Path(embed_wgsl.__file__)
        command = [sys.executable, tool, "--root", self.root, "--out", self.out, path]
        run = subprocess.run(command, capture_output=True, text=True, check=False)
        self.assertEqual(run.returncode, 1)
        self.assertIn("some_op.wgsl:1:", run.stderr)


if __name__ == "__main__":
    unittest.main()
