"""pteryx run --batch: many calls on one session."""
# SPDX-License-Identifier: BSD-3-Clause
import json
import unittest

import npy
from cli import BAD_FILE, FAILED, OK, OPS, STATE, VALUES, TestCase, case, manifest, tensor, tool

COUNTER = STATE / "counter.pte"


class Batch(TestCase):
    def calls(self, folder, c, prefix=""):
        """One call for each run of a case, and the files it will write."""
        calls = []
        for r, run in enumerate(c["runs"]):
            inputs = [self.value(folder, entry, f"{prefix}in{r}_{i}.npy") for i, entry in enumerate(run["inputs"])]
            outputs = [str(self.folder / f"{prefix}out{r}_{i}.npy") for i in range(len(run["outputs"]))]
            calls.append({"method": c["method"], "inputs": inputs, "outputs": outputs})
        return calls

    def batch(self, calls):
        """A file of calls; text is taken as it is."""
        lines = [call if isinstance(call, str) else json.dumps(call) for call in calls]
        return self.write("calls.jsonl", "\n".join(lines) + "\n")

    def report(self):
        return [json.loads(line) for line in (self.folder / "report.jsonl").read_text().splitlines()]

    def assert_goldens(self, folder, c, calls):
        for call, run in zip(calls, c["runs"], strict=True):
            for path, entry in zip(call["outputs"], run["outputs"], strict=True):
                with self.subTest(path):
                    self.assert_value(npy.read(path), folder, entry, c["atol"], c["rtol"])


class Goldens(Batch):
    def test_every_case(self):
        for folder in (OPS, STATE, VALUES):
            for c in manifest(folder)["cases"]:
                with self.subTest(f"{folder.name}/{c['name']}"):
                    calls = self.calls(folder, c)
                    data = [part for name in c.get("ptd", []) for part in ("--data", folder / name)]
                    text = self.succeed("run", folder / c["pte"], "--batch", self.batch(calls), *data)
                    self.assertIn(f"{len(calls)} calls ran on ", text)
                    self.assert_goldens(folder, c, calls)

    def test_methods_of_one_program(self):
        encode, decode = case(VALUES, "methods.encode"), case(VALUES, "methods.decode")
        calls = self.calls(VALUES, encode, "e"), self.calls(VALUES, decode, "d")
        number = self.folder / "n.npy"
        meta = {"method": "get_vocab_size", "outputs": [str(number)]}
        self.succeed("run", VALUES / "methods.pte", "--batch", self.batch([*calls[0], meta, *calls[1], *calls[0]]))
        self.assert_goldens(VALUES, encode, calls[0])
        self.assert_goldens(VALUES, decode, calls[1])
        self.assertEqual(npy.read(number), npy.array("int64", (), 32000))


class State(Batch):
    """counter.pte adds to its input how often it has been called."""

    def setUp(self):
        super().setUp()
        self.case = case(STATE, "counter")
        self.good = self.calls(STATE, self.case)
        self.x = tensor(STATE, self.case["runs"][0]["inputs"][0])

    def count(self, path):
        """How many calls an output saw."""
        y = npy.read(path)
        counts = {round(b - a, 3) for a, b in zip(self.x.values, y.values, strict=True)}
        self.assertEqual(len(counts), 1, counts)
        return counts.pop()

    def test_is_kept_over_lines(self):
        same = [{**self.good[0], "outputs": [str(self.folder / f"y{i}.npy")]} for i in range(3)]
        self.succeed("run", COUNTER, "--batch", self.batch(same))
        first, second, third = (self.count(call["outputs"][0]) for call in same)
        self.assertEqual((second - first, third - second), (1, 1))

    def test_starts_anew_with_the_process(self):
        for name in ("a.npy", "b.npy"):
            call = {**self.good[0], "outputs": [str(self.folder / name)]}
            self.succeed("run", COUNTER, "--batch", self.batch([call]))
        self.assertEqual(self.count(self.folder / "a.npy"), self.count(self.folder / "b.npy"))

    def test_stops_at_the_first_error(self):
        bad = {"inputs": [self.npy("bad.npy", npy.ramp("float32", (5,)))]}
        calls = self.batch([self.good[0], "", bad, self.good[1]])
        result = tool("run", COUNTER, "--batch", calls)
        self.assertEqual(result.returncode, FAILED)
        self.assertIn("1 calls ran on ", result.stdout)
        self.assertEqual(result.stderr, f"pteryx: {calls} line 3: input 0 of 'forward' dim 0: expected 4, got 5 ([5])\n")
        self.assertTrue((self.folder / "out0_0.npy").exists())
        self.assertFalse((self.folder / "out1_0.npy").exists())

    def test_keep_going_leaves_the_state_alone(self):
        wrong = ["{not json", "[1, 2]", {"inputs": []}, {"inputs": [self.npy("i.npy", npy.ramp("int64", (4,)))]},
                 {"inputs": ["none.npy"]}, {"method": "backward", "inputs": self.good[0]["inputs"]}, {"method": 3},
                 {"inputs": [[1]]}, {"inputs": [None]}, {"inputs": [2.5]}]
        calls = self.batch([self.good[0], *wrong, *self.good[1:]])
        result = tool("run", COUNTER, "--batch", calls, "--keep-going", "--report", self.folder / "report.jsonl")
        self.assertEqual(result.returncode, FAILED)
        self.assertEqual(len(result.stderr.splitlines()), len(wrong), result.stderr)
        self.assert_goldens(STATE, self.case, self.good)

        lines = self.report()
        self.assertEqual([line["line"] for line in lines], list(range(1, len(self.good) + len(wrong) + 1)))
        failed = lines[1:len(wrong) + 1]
        for line in [lines[0], *lines[len(wrong) + 1:]]:
            self.assertEqual(line["outputs"], ["f32 [4]"])
            self.assertGreaterEqual(line["ms"], 0)
        for line in failed:
            self.assertEqual(set(line), {"line", "error", "code"})
            self.assertIn(f"line {line['line']}: {line['error']}", result.stderr)
        self.assertEqual([line["error"] for line in failed[:4]],
                         ["the call: not JSON at byte 2", "expected a JSON object", "method 'forward' takes 1 inputs, got 0",
                          "input 0 of 'forward' type: expected f32, got i64"])
        self.assertIn("none.npy", failed[4]["error"])
        self.assertEqual(failed[5]["error"], "there is no method 'backward'")
        self.assertEqual(failed[1]["code"], "invalid argument")
        self.assertEqual(failed[0]["code"], "invalid program")
        self.assertEqual(failed[4]["code"], "i/o error")

    def test_deep_nesting_is_refused_in_a_line(self):
        for depth in (100, 20_000, 200_000):
            with self.subTest(depth):
                result = tool("run", COUNTER, "--batch", self.batch(['{"inputs": ' + "[" * depth + "]" * depth + "}"]))
                self.assertEqual(result.returncode, FAILED)
                self.assertIn("line 1: the call: JSON is nested deeper than 64 levels", result.stderr)
                self.assertLess(len(result.stderr), 400)

    def test_from_a_pipe(self):
        result = tool("run", COUNTER, "--batch", "-", stdin=self.batch([]).read_text() + json.dumps(self.good[0]) + "\n")
        self.assertEqual(result.returncode, OK, result.stderr)
        self.assertIn("1 calls ran on ", result.stdout)

    def test_too_many_outputs(self):
        call = {**self.good[0], "outputs": ["a.npy", "b.npy"]}
        result = tool("run", COUNTER, "--batch", self.batch([call]))
        self.assertEqual(result.returncode, FAILED)
        self.assertIn("outputs: expected at most 1 file names, got 2", result.stderr)

    def test_outputs_nobody_names_are_not_written(self):
        c = case(STATE, "accumulate")
        call = self.calls(STATE, c)[0]
        call["outputs"][0] = None
        self.succeed("run", STATE / "accumulate.pte", "--batch", self.batch([call]))
        self.assertEqual(sorted(p.name for p in self.folder.glob("out*")), ["out0_1.npy"])
        self.assert_value(npy.read(call["outputs"][1]), STATE, c["runs"][0]["outputs"][1])


class Files(Batch):
    def test_no_calls(self):
        self.assertIn("0 calls ran on ", self.succeed("run", COUNTER, "--batch", self.write("calls.jsonl", "\n \n")))

    def test_missing_calls(self):
        message = self.fail_with(BAD_FILE, "run", COUNTER, "--batch", self.folder / "none.jsonl")
        self.assertIn("none.jsonl", message)

    def test_report_that_cannot_be_written(self):
        message = self.fail_with(BAD_FILE, "run", COUNTER, "--batch", self.batch([]), "--report", "/nonexistent/report")
        self.assertIn("cannot write /nonexistent/report", message)

    def test_scalars(self):
        c = case(VALUES, "int_input")
        call = self.calls(VALUES, c)[0]
        result = tool("run", VALUES / "int_input.pte", "--batch", self.batch([call, {**call, "inputs": [call["inputs"][0], 4]}]))
        self.assertEqual(result.returncode, FAILED)
        self.assertIn("line 2: input 1 of 'forward' was fixed to 3", result.stderr)
        self.assert_goldens(VALUES, c, [call])
        self.assertNotEqual(result.returncode, OK)


if __name__ == "__main__":
    unittest.main()
