"""pteryx run: one call."""
# SPDX-License-Identifier: BSD-3-Clause
import shutil
import unittest

import npy
from cli import BAD_FILE, FAILED, LLM, NO_GPU, OPS, STATE, USAGE, VALUES, TestCase, case, tensor, tool

ADD = OPS / "add.pte"
EXTERNAL = OPS / "external_weights.pte"


class Run(TestCase):
    def inputs(self, folder, name, run=0):
        """--input for each input of a case."""
        args = []
        for i, entry in enumerate(case(folder, name)["runs"][run]["inputs"]):
            args += ["--input", self.value(folder, entry, f"in{i}.npy")]
        return args

    def check(self, folder, name, *args, run=0):
        """Runs a case and compares what it writes; gives what it says."""
        c = case(folder, name)
        out = self.folder / "deep" / "out"
        text = self.succeed("run", folder / c["pte"], "--method", c["method"], "--output-dir", out,
                            *(args or self.inputs(folder, name, run)))
        wanted = c["runs"][run]["outputs"]
        self.assertEqual(sorted(p.name for p in out.iterdir()), [f"{i}.npy" for i in range(len(wanted))])
        for i, entry in enumerate(wanted):
            self.assert_value(npy.read(out / f"{i}.npy"), folder, entry)
        return text

    def test_writes_its_outputs(self):
        text = self.check(OPS, "add")
        self.assertIn(f"output 0: f32 [7, 33] -> {self.folder}/deep/out/0.npy\n", text)
        self.assertRegex(text, r"forward: \d+\.\d+ ms on .*llvmpipe")

    def test_without_an_output_folder_says_what_came_out(self):
        text = self.succeed("run", ADD, *self.inputs(OPS, "add"))
        self.assertIn("output 0: f32 [7, 33]\n", text)

    def test_int64(self):
        self.check(OPS, "embedding")

    def test_several_outputs(self):
        self.check(STATE, "accumulate")

    def test_other_methods(self):
        self.check(VALUES, "methods.decode")

    def test_smaller_sizes(self):
        self.check(OPS, "dyn_add", run=1)

    def test_scalar_input(self):
        self.check(VALUES, "int_input")

    def test_scalar_outputs(self):
        self.check(VALUES, "int_output")
        shutil.rmtree(self.folder / "deep")
        text = self.check(VALUES, "size_output", run=1)
        self.assertRegex(text, r"output 1: \d+ ->")

    def test_metadata(self):
        text = self.succeed("run", VALUES / "methods.pte", "--method", "get_vocab_size", "--output-dir", self.folder)
        self.assertIn("output 0: 32000", text)
        self.assertEqual(npy.read(self.folder / "0.npy"), npy.array("int64", (), 32000))

    def test_fortran_order(self):
        entries = case(OPS, "add")["runs"][0]["inputs"]
        files = [self.npy(f"f{i}.npy", tensor(OPS, e), fortran=True) for i, e in enumerate(entries)]
        self.check(OPS, "add", "--input", files[0], "--input", files[1])
        self.assertNotEqual(npy.fortran_values(tensor(OPS, entries[0])), tensor(OPS, entries[0]).values)

    def test_other_float_types_are_converted(self):
        args = []
        for i, entry in enumerate(case(OPS, "add")["runs"][0]["inputs"]):
            a = tensor(OPS, entry)
            args += ["--input", self.npy(f"d{i}.npy", npy.Array("float64", a.shape, a.values), version=2)]
        self.check(OPS, "add", *args)

    def test_int32_for_int64(self):
        a = tensor(OPS, case(OPS, "embedding")["runs"][0]["inputs"][0])
        self.check(OPS, "embedding", "--input", self.npy("i.npy", npy.Array("int32", a.shape, a.values)))

    def test_every_adapter_option(self):
        self.check(OPS, "add", *self.inputs(OPS, "add"), "--device", "gpu", "--adapter", "software", "--memory-limit", 64)


class Mistakes(TestCase):
    def add(self, x, y=None, **options):
        """Runs add.pte on the wrong inputs."""
        files = [self.npy(f"x{i}.npy", a) for i, a in enumerate((x, y)) if a is not None]
        args = [part for f in files for part in ("--input", f)]
        return self.fail_with(USAGE, "run", ADD, *args, **options)

    def test_shape(self):
        good = npy.ramp("float32", (7, 33))
        self.assertEqual(self.add(good, npy.ramp("float32", (7, 32))),
                         "pteryx: input 1 of 'forward' dim 1: expected 33, got 32 ([7, 32])\n")
        self.assertEqual(self.add(npy.ramp("float32", (33,)), good),
                         "pteryx: input 0 of 'forward' rank: expected 2 ([7, 33]), got 1 ([33])\n")

    def test_size_above_the_bound(self):
        x, y = self.npy("x.npy", npy.ramp("float32", (65, 24))), self.npy("y.npy", npy.ramp("float32", (24,)))
        self.assertEqual(self.fail_with(USAGE, "run", OPS / "dyn_add.pte", "--input", x, "--input", y),
                         "pteryx: input 0 of 'forward' dim 0: expected 1 to 64, got 65 ([65, 24])\n")

    def test_type(self):
        self.assertEqual(self.add(npy.ramp("int64", (7, 33)), npy.ramp("float32", (7, 33))),
                         "pteryx: input 0 of 'forward' type: expected f32, got i64\n")
        x = self.npy("x.npy", npy.ramp("float32", (1, 9)))
        self.assertEqual(self.fail_with(USAGE, "run", OPS / "embedding.pte", "--input", x),
                         "pteryx: input 0 of 'forward' type: expected i64, got f32\n")

    def test_count(self):
        self.assertEqual(self.add(npy.ramp("float32", (7, 33))), "pteryx: method 'forward' takes 2 inputs, got 1\n")
        self.assertEqual(self.fail_with(USAGE, "run", ADD), "pteryx: method 'forward' takes 2 inputs, got 0\n")

    def test_number_for_a_tensor(self):
        message = self.fail_with(USAGE, "run", ADD, "--input", "3", "--input", "4.5")
        self.assertEqual(message, "pteryx: input 0 of 'forward': expected a tensor, got 3\n")

    def test_fixed_scalar(self):
        x = self.npy("x.npy", npy.ramp("float32", (3, 4)))
        message = self.fail_with(USAGE, "run", VALUES / "int_input.pte", "--input", x, "--input", "4")
        self.assertIn("input 1 of 'forward' was fixed to 3 when the program was exported, got 4", message)

    def test_neither_file_nor_number(self):
        message = self.fail_with(USAGE, "run", ADD, "--input", "x.txt")
        self.assertIn("input 'x.txt': expected a .npy file, a number, true, false or none", message)

    def test_missing_input_file(self):
        message = self.fail_with(BAD_FILE, "run", ADD, "--input", self.folder / "x.npy")
        self.assertIn(f"{self.folder}/x.npy", message)
        self.assertIn("No such file", message)

    def test_bad_npy(self):
        good = npy.to_file(npy.ramp("float32", (7, 33)))
        header = "{'descr': '%s', 'fortran_order': False, 'shape': %s, }"
        wrong = {
            b"PK\x03\x04 a zip file": "not a .npy file",
            b"": "not a .npy file",
            good[:-1]: "f32 [7, 33] needs 924 bytes of data, the file has 923",
            good[:20]: "header of",
            npy.to_file(npy.ramp("float32", (7, 33)), header=header % (">f4", "(7, 33)")): "little endian",
            npy.to_file(npy.ramp("float32", (7, 33)), header=header % ("<c8", "(7, 33)")): "'<c8'",
            npy.to_file(npy.ramp("float32", (7, 33)), header=header % ("<f4", "(9223372036854775807, 33)")): "overflows",
            npy.to_file(npy.ramp("float32", (7, 33)), header="{'descr': '<f4'}"): "lacks",
        }
        for data, text in wrong.items():
            with self.subTest(text=text):
                (self.folder / "bad.npy").write_bytes(data)
                message = self.fail_with(BAD_FILE, "run", ADD, "--input", self.folder / "bad.npy")
                self.assertIn(text, message)
                self.assertIn(f"\n  while reading {self.folder}/bad.npy\n", message)

    def test_unknown_method(self):
        message = self.fail_with(USAGE, "run", ADD, "--method", "backward")
        self.assertEqual(message, f"pteryx: {ADD} has no method 'backward'\n")

    def test_output_folder_that_is_a_file(self):
        x = self.npy("x.npy", npy.ramp("float32", (7, 33)))
        message = self.fail_with(BAD_FILE, "run", ADD, "--input", x, "--input", x, "--output-dir", x)
        self.assertIn(f"cannot create {x}", message)


class Programs(TestCase):
    def test_missing(self):
        message = self.fail_with(BAD_FILE, "run", self.folder / "none.pte")
        self.assertIn(f"{self.folder}/none.pte", message)

    def test_not_a_program(self):
        message = self.fail_with(BAD_FILE, "run", self.write("text.pte", "this is no program, but long enough to be one\n" * 8))
        self.assertIn("text.pte", message)

    def test_truncated(self):
        (self.folder / "short.pte").write_bytes(ADD.read_bytes()[:-200])
        self.assertIn("short.pte", self.fail_with(BAD_FILE, "run", self.folder / "short.pte"))

    def test_every_unknown_operator_is_named(self):
        data = (STATE / "counter.pte").read_bytes()
        self.assertEqual(data.count(b"aten::add"), 1)
        (self.folder / "new.pte").write_bytes(data.replace(b"aten::add", b"aten::new").replace(b"aten::copy_", b"aten::cope_"))
        message = self.fail_with(BAD_FILE, "run", self.folder / "new.pte")
        self.assertIn("method 'forward' has 3 calls that Pteryx cannot run:\n", message)
        self.assertRegex(message, r"\n  2 calls of aten::new.out: unknown operator aten::new.out \(.*\n  1 call of aten::cope_: unknown operator aten::cope_ ")
        self.assertEqual(message.count("unknown operator"), 2)
        self.assertTrue(message.endswith(f"\n  while loading method 'forward' of {self.folder}/new.pte\n"), message)

    def test_memory_limit(self):
        message = self.fail_with(FAILED, "run", LLM / "qwen2_like_fp32.pte", "--memory-limit", 1)
        self.assertRegex(message, r"qwen2_like_fp32.pte needs \d{7} bytes of GPU memory, the limit is 1048576")


class ExternalData(TestCase):
    def setUp(self):
        super().setUp()
        entry = case(OPS, "external_weights")["runs"][0]["inputs"][0]
        self.x = self.npy("x.npy", tensor(OPS, entry))
        self.data = [OPS / name for name in case(OPS, "external_weights")["ptd"]]

    def test_given(self):
        args = [part for d in self.data for part in ("--data", d)]
        self.succeed("run", EXTERNAL, *args, "--input", self.x, "--output-dir", self.folder / "out")
        self.assert_value(npy.read(self.folder / "out" / "0.npy"), OPS, case(OPS, "external_weights")["runs"][0]["outputs"][0])

    def test_missing(self):
        message = self.fail_with(BAD_FILE, "run", EXTERNAL, "--data", self.data[0], "--input", self.x)
        self.assertRegex(message, "[0-9a-f]{16}")
        self.assertIn(".ptd", message)

    def test_file_that_is_not_there(self):
        message = self.fail_with(BAD_FILE, "run", EXTERNAL, "--data", self.folder / "none.ptd", "--input", self.x)
        self.assertIn("none.ptd", message)


class Gpus(TestCase):
    def test_library_that_is_none(self):
        message = self.fail_with(NO_GPU, "run", ADD, env={"PTERYX_WEBGPU_LIBRARY": str(ADD)})
        self.assertIn("PTERYX_WEBGPU_LIBRARY", message)
        self.assertIn(str(ADD), message)

    def test_library_that_is_not_there(self):
        self.assertIn("/nonexistent", self.fail_with(NO_GPU, "run", ADD, env={"PTERYX_WEBGPU_LIBRARY": "/nonexistent"}))

    def test_adapter_that_is_not_there(self):
        message = self.fail_with(NO_GPU, "run", ADD, env={"PTERYX_ADAPTER": "voodoo2"})
        self.assertIn("'voodoo2'", message)
        self.assertIn("llvmpipe", message)

    def test_option_beats_the_environment(self):
        self.assertIn("'voodoo2'", self.fail_with(NO_GPU, "run", ADD, "--adapter", "voodoo2"))

    def test_unknown_capability(self):
        message = self.fail_with(NO_GPU, "run", ADD, env={"PTERYX_DISABLE": "f17"})
        self.assertIn("f17", message)


class Overwrite(TestCase):
    """What is read is never written over."""

    def setUp(self):
        super().setUp()
        self.model = self.folder / "m.pte"
        shutil.copy(ADD, self.model)
        self.x = self.npy("0.npy", npy.ramp("float32", (7, 33)))

    def assert_refused(self, *args):
        before = {p: p.read_bytes() for p in self.folder.iterdir() if p.is_file()}
        self.assertIn("same file as the input" if "link" in str(args) else "also an input", self.fail_with(USAGE, *args))
        self.assertEqual(before, {p: p.read_bytes() for p in self.folder.iterdir() if p.is_file()})

    def test_outputs(self):
        self.assert_refused("run", self.model, "-i", self.x, self.x, "-o", self.folder)
        (self.folder / "out_link").mkdir()
        (self.folder / "out_link" / "0.npy").symlink_to(self.x)
        self.assert_refused("run", self.model, "-i", self.x, self.x, "-o", self.folder / "out_link")
        (self.folder / "hard_link").mkdir()
        (self.folder / "hard_link" / "0.npy").hardlink_to(self.model)
        self.assert_refused("run", self.model, "-i", self.x, self.x, "-o", self.folder / "hard_link")

    def test_graph(self):
        self.assert_refused("inspect", self.model, "--graph", self.model)

    def test_report_and_batch(self):
        calls = self.write("calls.jsonl", f'{{"inputs": ["{self.x}", "{self.x}"], "outputs": ["{self.x}"]}}\n')
        self.assert_refused("run", self.model, "--batch", calls, "--report", calls)
        self.assert_refused("run", self.model, "--batch", calls, "--report", self.x)
        result = tool("run", self.model, "--batch", calls)
        self.assertEqual(result.returncode, FAILED)
        self.assertIn(f"the output {self.x} is also an input", result.stderr)


class Json(TestCase):
    def test_outputs(self):
        x = self.npy("x.npy", npy.ramp("float32", (7, 33)))
        report = self.succeed_json("run", ADD, "--json", "-i", x, x)
        self.assertEqual((report["method"], report["outputs"]), ("forward", [{"dtype": "f32", "shape": [7, 33]}]))
        report = self.succeed_json("run", ADD, "--json", "-o", self.folder / "out", "-i", f"{x},{x}")
        self.assertEqual(report["outputs"][0]["path"], f"{self.folder}/out/0.npy")
        report = self.succeed_json("run", VALUES / "methods.pte", "--method", "get_vocab_size", "--json")
        self.assertEqual(report["outputs"], [{"value": 32000}])


if __name__ == "__main__":
    unittest.main()
