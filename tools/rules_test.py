#!/usr/bin/env python3
"""Rules about the source that no compiler checks: what may stand where. Each is a pattern, the files it is looked for in, and the
files that may have it."""
# SPDX-License-Identifier: BSD-3-Clause
import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent
SOURCES = ("*.cpp", "*.h")
ONE_WORKGROUP = {"advance.wgsl", "sample_pick.wgsl"}  # of a single workgroup, whatever the sizes
THREE_DIMS = {"attention_decode.wgsl"}  # a grid by heads, splits and rows, which the route's limits keep small

MOST_LINES = 400
CODE = ("*.cpp", "*.h", "*.wgsl", "*.py", "*.cmake", "*.ts", "*.mjs", "*.css", "CMakeLists.txt")
FOLDERS = ("bench", "cli", "cmake", "examples", "pteryx", "scripts", "tests", "tools", "web/convert", "web/module", "web/page/src", "web/src", "web/tests")
TABLES = {}  # file: why it is long and stays in one piece

# fn.BufferRelease(...), wgpuBufferRelease(...)
RELEASES = r"\b\w*[a-z]Release\b"
# A function called numel, a loop over all dims that multiplies them, the library's way to say the same.
MULTIPLIES = (r"\b(int64_t|uint64_t|size_t|uint32_t)\s+(checked_)?numel\s*\(\s*(const|std::span)",
              r"\bfor\s*\([^;{}]*:[^;{}]*\)\s*\{?\s*[\w.]+\s*\*=",
              r"\bfor\s*\([^;]*=\s*0;\s*\w+\s*<\s*[\w.]+(rank|size)\(\);[^;)]*\)\s*\{?\s*[\w.]+\s*\*=\s*[\w.]+\[\w+\];",
              r"\bstd::multiplies\b")
# getenv, setenv, unsetenv, putenv, secure_getenv, environ, and the header that has them for mains.
VARIABLES = r"\b(secure_)?getenv(_s)?\b|\b_?(un)?(set|put)env(_s)?\b|\benviron\b|#\s*include\s*\"pteryx/gpu/environment\.h\""


def files(folder, patterns=SOURCES):
    return sorted(f for p in patterns for f in (ROOT / folder).rglob(p))


def too_long(name, text):
    return [f"{name}: {n} lines"] if (n := text.count("\n")) > MOST_LINES else []


def is_test(file):
    return "testing" in file.parts or file.name.endswith("_test.cpp")


def matches(pattern, text):
    """The lines where the pattern begins, comments left out; it may go on over line ends."""
    code = "\n".join(line.split("//")[0] for line in text.splitlines())
    lines = text.splitlines()
    found = (code.count("\n", 0, m.start()) for m in re.finditer(pattern, code))
    return [f"{n + 1}: {lines[n].strip()}" for n in found]


def unsaid(shader):
    """What the comment that opens a shader leaves out of a formula and what the host guarantees."""
    opening = re.match(r"(//.*\n)*", shader)[0]
    return [what for what, pattern in (("formula", r"\w[\])]? ?= ?[\w(]"), ("guarantees", r"[Hh]ost guarantees"))
            if not re.search(pattern, opening)]


class Rules(unittest.TestCase):
    def forbid(self, pattern, where, allowed=(), why=""):
        found = []
        for file in where:
            name = str(file.relative_to(ROOT))
            if name.startswith(tuple(allowed)):
                continue
            found += [f"{name}:{line}" for line in matches(pattern, file.read_text())]
        self.assertEqual(found, [], why)

    def test_handles_are_released_in_one_place(self):
        owner = ROOT / "pteryx/gpu/native/handle.h"
        self.assertTrue(matches(RELEASES, owner.read_text()), "the owners call these")
        self.forbid(RELEASES, files("pteryx"), ["pteryx/gpu/native/handle.h", "pteryx/gpu/native/functions.h"],
                    "an owner in handle.h releases them")

    def test_operators_leave_the_device_alone(self):
        where = [f for f in files("pteryx/ops") if not is_test(f)]
        self.forbid(r"\bgpu::Device\b|create_buffer|create_pipeline|create_bindings|\.submit\(|->submit\(", where,
                    ["pteryx/ops/bind.h", "pteryx/ops/bind.cpp"],
                    why="plan() only describes; bind() makes a dispatch of what it described, for the session")

    def test_one_folder_waits(self):
        where = [f for f in files("pteryx") if not is_test(f)]
        self.forbid(r"sleep_for|sleep_until|condition_variable|WaitAny", where, ["pteryx/gpu/native/", "pteryx/convert/program_file.cpp", "pteryx/convert/parallel.cpp"],
                    why="gpu/native/blocking.h has the loop that waits; a conversion, which no page makes, waits for another and its threads")
        where = [f for f in where if "native" not in f.parts and not f.name.endswith("_native.cpp")]
        self.forbid(r"include \"pteryx/\w+/native/", [f for f in where if "testing" not in f.parts],
                    why="only what a page does not have may wait")

    def test_sizes_are_multiplied_by_one_helper(self):
        where = [f for f in files("pteryx") if not is_test(f)]
        for pattern in MULTIPLIES:
            self.forbid(pattern, where, ["pteryx/base/dims"], "numel and checked_numel are in base/dims")
        self.forbid(r"\bnormalize_dim\s*\(\s*int64_t", where, ["pteryx/base/dims"], "normalize_dim is in base/dims")

    def test_the_library_leaves_the_environment_alone(self):
        where = [f for f in files("pteryx") + files("examples") if not is_test(f)]
        self.assertTrue(matches(VARIABLES, (ROOT / "pteryx/gpu/environment.h").read_text()), "the mains read them here")
        self.forbid(VARIABLES, where, ["pteryx/gpu/environment.h"], "mains read variables and pass them as options")
        self.forbid(VARIABLES.split("|#")[0], files("bench"), why="pteryx/gpu/environment.h reads variables for mains")

    def test_nothing_throws(self):
        where = [f for f in files("pteryx") if not is_test(f)]
        self.forbid(r"\bthrow\b|\bcatch\s*\(|\btry\s*\{", where, why="errors are values")

    def test_the_platform_is_known_in_few_files(self):
        where = [f for f in files("pteryx") if not is_test(f) and not f.name.endswith(("_posix.cpp", "_portable.cpp"))]
        self.forbid(r"#\s*if.*(_WIN32|__APPLE__|__linux__|__EMSCRIPTEN__|__wasm)", where, ["pteryx/gpu/native", "pteryx/gpu/web"],
                    "files are chosen by CMake")

    def test_shaders_have_no_infinite_constants(self):
        shaders = files("pteryx/ops", ("*.wgsl",))
        self.assertGreater(len(shaders), 20)
        self.forbid(r"/\s*0\.0|0x[fF]{2}800000|\binf\b", shaders, why="WGSL need not know infinity: mask with a finite value")

    def test_shaders_say_what_they_compute(self):
        shaders = [s for s in files("pteryx/ops", ("*.wgsl",)) if "@compute" in s.read_text()]
        self.assertGreater(len(shaders), 40)
        for shader in shaders:
            with self.subTest(shader.name):
                self.assertEqual(unsaid(shader.read_text()), [])

    def test_files_are_short(self):
        code = [f for folder in FOLDERS for f in files(folder, CODE)]
        self.assertGreater(len(code), 500)
        found = [line for f in code if (name := str(f.relative_to(ROOT))) not in TABLES for line in too_long(name, f.read_text())]
        self.assertEqual(found, [], "cut a file by what its parts are for; a table that must be long is named with its reason")

    def test_shaders_fold_their_grids(self):
        """An index from workgroup_id.x alone dies at 65,535 workgroups."""
        for shader in files("pteryx/ops", ("*.wgsl",)):
            text = self.whole(shader)
            if "@compute" not in text or "common" in shader.parts or shader.name in ONE_WORKGROUP | THREE_DIMS:
                continue
            with self.subTest(shader.name):
                self.assertRegex(text.split("@compute", 1)[1], r"flat_group\(|flat_id\(")

    def whole(self, shader):
        """The text with what it includes."""
        def included(match):
            return self.whole(ROOT / "pteryx/ops" / match[1])
        return re.sub(r'^#include "([^"]+)"$', included, shader.read_text(), flags=re.MULTILINE)


class Examples(unittest.TestCase):
    """Each rule finds what it is there for, and only that."""

    def test_releases(self):
        for text in ("fn.BufferRelease(b);", "wgpuDeviceRelease(device);", "fn_->BindGroupRelease(g);"):
            self.assertEqual(len(matches(RELEASES, text)), 1, text)
        for text in ("// fn.BufferRelease(b);", "idle_release_s", "Releaser<Impl>", "release();"):
            self.assertEqual(matches(RELEASES, text), [], text)

    def test_products_of_dims(self):
        found = ("int64_t numel(const Dims& d) {", "for (const int64_t v : dims) n *= v;", "for (int64_t d : t.dims) {\n  total *= d;\n}",
                 "for (size_t i = 0; i < x.rank(); ++i) n *= x.dims[i];", "std::accumulate(a, b, 1, std::multiplies<int64_t>())")
        for text in found:
            self.assertTrue(any(matches(p, text) for p in MULTIPLIES), text)
        free = ("for (size_t i = 2; i < x.rank(); ++i) n *= x.dims[i];", "for (const int64_t v : dims) n += v;", "numel(x.dims)")
        for text in free:
            self.assertFalse(any(matches(p, text) for p in MULTIPLIES), text)

    def test_variables(self):
        for text in ('std::getenv("HOME")', 'setenv("A", "1", 1);', "unsetenv(name)", "extern char** environ;", "_putenv_s(a, b)",
                     'secure_getenv("A")', '#include "pteryx/gpu/environment.h"'):
            self.assertEqual(len(matches(VARIABLES, text)), 1, text)
        for text in ('// getenv("HOME")', "options_from_environment()", "environment", '#include "pteryx/gpu/device.h"'):
            self.assertEqual(matches(VARIABLES, text), [], text)

    def test_lengths(self):
        self.assertEqual(too_long("a.h", "x\n" * 400), [])
        self.assertEqual(too_long("a.h", "x\n" * 401), ["a.h: 401 lines"])

    def test_openings(self):
        good = "// y[i] = x[i] + 1. One word per invocation.\n// Host guarantees: n elements.\n#include \"common/index.wgsl\"\n"
        self.assertEqual(unsaid(good), [])
        self.assertEqual(unsaid("// Adds.\n// Host guarantees: n elements.\n"), ["formula"])
        self.assertEqual(unsaid("// y[i] = x[i] + 1.\n\n// Host guarantees: n elements.\n"), ["guarantees"])
        self.assertEqual(unsaid("// SPDX-License-Identifier: BSD-3-Clause\n"), ["formula", "guarantees"])


if __name__ == "__main__":
    unittest.main()
