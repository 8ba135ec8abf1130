"""pteryx bench of programs that are no language models; generate_test.py has those."""
# SPDX-License-Identifier: BSD-3-Clause
import unittest

from cli import LLM, OPS, STATE, USAGE, VALUES, TestCase, manifest, tool

MODEL = LLM / "qwen3_like_q4.pte"
NO_TIMESTAMPS = {"PTERYX_DISABLE": "timestamps"}


class Bench(TestCase):
    def test_all_methods(self):
        report = self.succeed_json("bench", VALUES / "methods.pte", "-r", "3", "--json")
        self.assertEqual([r["method"] for r in report["rows"]], ["decode", "encode"])  # and no metadata
        for row in report["rows"]:
            self.assertEqual(len(row["repeats_ms"]), 3)
            self.assertEqual(row["median_ms"], sorted(row["repeats_ms"])[1])
            self.assertEqual(row["best_ms"], min(row["repeats_ms"]))
            self.assertGreater(row["gpu_ms"], 0)
            self.assertGreaterEqual(row["host_ms"], 0)
        self.assertEqual(report["rows"][0]["inputs"], "f32 [2, 4], i64 [2]")

    def test_one_method(self):
        [row] = self.succeed_json("bench", VALUES / "methods.pte", "--method", "encode", "-r", "1", "--json")["rows"]
        self.assertEqual(row["method"], "encode")
        self.assertIn("has no method 'dance'", self.fail_with(USAGE, "bench", VALUES / "methods.pte", "--method", "dance"))

    def test_shapes(self):
        def inputs(*args):
            return self.succeed_json("bench", OPS / "dyn_add.pte", "-r", "1", "--json", *args)["rows"][0]["inputs"]
        self.assertEqual(inputs(), "f32 [64, 24], f32 [24]")
        self.assertEqual(inputs("--shape", "0=3x24"), "f32 [3, 24], f32 [24]")
        for shape, text in (("0=65x24", "input 0 of 'forward': expected up to [64, 24], got [65, 24]"), ("1=25", "expected [24], got [25]"),
                            ("0=64", "expected up to [64, 24], got [64]"), ("2=1", "'forward' has no tensor as its input 2"),
                            ("0=x", "expected a number and sizes such as 0=1x3x224x224, got '0=x'")):
            with self.subTest(shape):
                self.assertIn(text, self.fail_with(USAGE, "bench", OPS / "dyn_add.pte", "--shape", shape))

    def test_table(self):
        text = self.succeed("bench", OPS / "add.pte", "-r", "2")
        self.assertRegex(text, r"^GPU: .*llvmpipe")
        self.assertRegex(text, r"\n +forward +[\d.]+ +[\d.]+ +[\d.]+ \(\d+ %\) +[\d.]+  f32 \[7, 33\], f32 \[7, 33\]\n$")
        text = tool("bench", OPS / "add.pte", "-r", "1", env=NO_TIMESTAMPS).stdout
        self.assertTrue(text.endswith("The GPU has no timestamps: its share is not known.\n"), text)

    def test_every_program_takes_random_inputs(self):
        """Indices are within their bounds, and numbers are ones that programs take."""
        def has_integers(c):
            return any(isinstance(x, dict) and x.get("dtype", "f32")[0] in "iu" for run in c["runs"] for x in run["inputs"])
        names = sorted({(folder, c["pte"]) for folder in (OPS, STATE, VALUES) for c in manifest(folder)["cases"] if has_integers(c)})
        self.assertGreater(len(names), 4)
        for folder, name in names:
            result = tool("bench", folder / name, "-r", "1")
            with self.subTest(name):
                self.assertEqual(result.returncode, 0, result.stderr)

    def test_a_method_of_a_language_model(self):
        [row] = self.succeed_json("bench", MODEL, "--method", "forward", "--shape", "0=1x4", "-r", "1", "--json")["rows"]
        self.assertTrue(row["inputs"].startswith("i64 [1, 4], i64 [1]"), row)

    def test_tokens_are_of_language_models(self):
        for args in (["bench", OPS / "add.pte", "-p", "4"], ["bench", MODEL, "--method", "forward", "-c", "1"]):
            self.assertIn("-p, -n and -c count tokens of a language model", self.fail_with(USAGE, *args))


if __name__ == "__main__":
    unittest.main()
