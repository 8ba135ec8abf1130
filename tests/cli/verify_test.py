"""pteryx verify: recorded cases, whole and in part, on every route."""
# SPDX-License-Identifier: BSD-3-Clause
import json
import shutil
import struct
import unittest

from cli import (BAD_FILE, DECODERS, FAILED, LLM, NO_LIBRARY, OK, OPS, STATE, USAGE, VALUES, TestCase, case, manifest, tensor,
                 tool)

MANIFEST = OPS / "manifest.json"
NAMES = [c["name"] for c in manifest(OPS)["cases"]]


class Verify(TestCase):
    def check(self, folder, *args, env=None):
        """Runs a manifest; gives the results by name."""
        result = tool("verify", folder / "manifest.json", "--json", *args, env=env)
        report = json.loads(result.stdout)
        for c in report["cases"]:
            with self.subTest(c["name"]):
                self.assertTrue(c["ok"], c["problem"])
        self.assertEqual((result.returncode, result.stderr), (OK, ""))
        self.assertEqual((report["passed"], report["failed"]), (len(report["cases"]), 0))
        return {c["name"]: c for c in report["cases"]}


class Whole(Verify):
    def test_operators(self):
        results = self.check(OPS)
        self.assertEqual(list(results), NAMES)
        for c in manifest(OPS)["cases"]:
            self.assertEqual(results[c["name"]]["runs"], len(c["runs"]))

    def test_language_models(self):
        self.check(LLM)

    def test_decoders(self):
        results = self.check(DECODERS)
        self.assertEqual(list(results), [c["name"] for c in manifest(DECODERS)["cases"]])

    def test_state_and_values(self):
        self.check(STATE)
        self.check(VALUES)

    def test_without_optional_capabilities(self):
        masked = {"PTERYX_DISABLE": "f16,subgroups"}
        self.assertEqual(list(self.check(OPS, env=masked)), NAMES)
        self.check(DECODERS, env=masked)

    def test_on_the_cpu(self):
        for folder in (OPS, STATE, VALUES, DECODERS):
            self.check(folder, "--device", "cpu")

    def test_with_weights_in_parts(self):
        for most in ("1KiB", "256"):
            masked = {"PTERYX_DISABLE": f"max_weight_bytes={most}"}
            self.assertEqual(list(self.check(OPS, env=masked)), NAMES)
            for folder in (STATE, VALUES, DECODERS):
                self.check(folder, env=masked)


class Routes(Verify):
    def test_each(self):
        """Each route of each family, on the cases that hold an operator of the family."""
        users = {}  # route -> operators
        for op in self.succeed_json("ops", "--json"):
            for route in op["routes"]:
                users.setdefault(route, set()).add(op["name"])
        self.assertGreater(len(users), 10)
        operators = {(folder, c["name"]): self.operators(folder, c)
                     for folder in (OPS, LLM) for c in manifest(folder)["cases"]}
        operators[DECODERS, "llama_8da4w"] = self.operators(DECODERS, case(DECODERS, "llama_8da4w"))
        for route, names in users.items():
            cases = [case for case, used in operators.items() if used & names]
            with self.subTest(route):
                self.assertNotEqual(cases, [])
                for folder in {folder for folder, _ in cases}:
                    only = [part for where, name in cases if where == folder for part in ("--only", name)]
                    self.check(folder, "--route", route, *only)

    def operators(self, folder, c):
        data = [part for name in c.get("ptd", []) for part in ("--data", folder / name)]
        report = self.succeed_json("inspect", folder / c["pte"], *data, "--json", env=NO_LIBRARY)
        return {use["name"] for method in report["methods"] for use in method["operators"]}


class Choice(TestCase):
    def names(self, *args):
        return [c["name"] for c in self.succeed_json("verify", MANIFEST, "--json", *args)["cases"]]

    def test_only(self):
        self.assertEqual(self.names("--only", "relu"), ["relu"])
        self.assertEqual(self.names("--only", "add*", "--only", "relu"),
                         [n for n in NAMES if n.startswith("add") or n == "relu"])

    def test_suite(self):
        wanted = [c["name"] for c in manifest(OPS)["cases"] if c["suite"] in ("net", "ptd")]
        self.assertEqual(self.names("--suite", "net", "--suite", "ptd"), wanted)
        self.assertEqual(self.names("--suite", "dynamic", "--only", "dyn_add"), ["dyn_add"])

    def test_nothing_matches(self):
        result = tool("verify", MANIFEST, "--only", "nothing")
        self.assertEqual(result.returncode, USAGE)
        self.assertEqual(result.stderr, "pteryx: no case of the manifest matches\n")

    def test_a_case_without_runs_fails(self):
        manifest_file = self.write("manifest.json", json.dumps({"cases": [{"name": "a", "pte": str(OPS / "add.pte"), "runs": []}]}))
        result = tool("verify", manifest_file)
        self.assertEqual(result.returncode, FAILED)
        self.assertIn("expected at least one run, got none", result.stdout)

    def test_takes_the_folder_of_a_manifest(self):
        self.assertEqual(tool("verify", LLM, "--only", "qwen2_like_fp32").returncode, OK)

    def test_refuses_a_folder_without_a_manifest(self):
        result = tool("verify", self.folder)
        self.assertEqual(result.returncode, BAD_FILE)
        self.assertIn("manifest.json", result.stderr)

    def test_table(self):
        text = self.succeed("verify", MANIFEST, "--only", "add", "--only", "dyn_add")
        self.assertRegex(text, r"^GPU: .*llvmpipe.* \((dawn|wgpu)\)\n")
        self.assertRegex(text, r"\nprogram +operators +runs +largest error +ms\n")
        self.assertRegex(text, r"\ndyn_add +1 GPU +4 +\S+ +\S+  ok\n")
        self.assertRegex(text, r"\n2 passed, 0 failed on .*\n$")


class Wrong(TestCase):
    def copy(self, name):
        """A manifest with one case, in the test's folder, to be changed."""
        c = case(OPS, name)
        for file in {c["pte"], *(t["file"] for run in c["runs"] for t in run["inputs"] + run["outputs"])}:
            shutil.copy(OPS / file, self.folder)
        return json.loads(json.dumps(c))

    def verify(self, *cases):
        return tool("verify", self.write("manifest.json", json.dumps({"cases": cases})))

    def test_golden(self):
        c = self.copy("add")
        golden = c["runs"][0]["outputs"][0]
        at = golden["offset"] + 5 * 4
        data = bytearray((self.folder / golden["file"]).read_bytes())
        data[at:at + 4] = struct.pack("<f", 1000)
        (self.folder / golden["file"]).write_bytes(data)
        good = self.copy("relu")
        result = self.verify(c, good)
        self.assertEqual((result.returncode, result.stderr), (FAILED, ""))
        self.assertRegex(result.stdout, r"\nadd .* FAILED\n    run 0 output 0 element 5: expected 1000, got -?\d[\d.e-]*\n")
        got = float(result.stdout.split("expected 1000, got ")[1].split()[0])
        self.assertAlmostEqual(got, tensor(OPS, golden).values[5], places=3)
        self.assertRegex(result.stdout, r"\nrelu .* ok\n1 passed, 1 failed on ")

    def test_later_run(self):
        c = self.copy("dyn_add")
        c["runs"][2]["outputs"][0]["shape"] = [1, 1]
        self.assertIn("run 2 output 0 shape: expected [1, 1], got [", self.verify(c).stdout)

    def test_type_and_count(self):
        c = self.copy("add")
        c["runs"][0]["outputs"][0]["dtype"] = "int32"
        self.assertIn("run 0 output 0 type: expected i32, got f32", self.verify(c).stdout)
        c["runs"][0]["outputs"] *= 2
        self.assertIn("run 0: expected 2 outputs, got 1", self.verify(c).stdout)

    def test_method(self):
        c = self.copy("add")
        c["runs"][0]["method"] = "backward"
        self.assertIn("'backward'", self.verify(c).stdout)

    def test_case_that_cannot_be_read(self):
        def without(key):
            c = self.copy("add")
            del c[key]
            return c
        far, odd, gone = self.copy("add"), self.copy("add"), self.copy("add")
        far["runs"][0]["inputs"][0]["offset"] = 1 << 40
        odd["runs"][0]["inputs"][0]["dtype"] = "complex64"
        gone["pte"] = "gone.pte"
        result = self.verify(without("pte"), without("runs"), far, odd, gone, 7, self.copy("relu"))
        self.assertEqual((result.returncode, result.stderr), (FAILED, ""))
        self.assertIn("1 passed, 6 failed", result.stdout)
        for text in ("'pte'", "'runs'", "ends before offset 1099511627776", "unknown dtype 'complex64'", "gone.pte"):
            self.assertIn(text, result.stdout)

    def test_manifest(self):
        wrong = ' is not a manifest: expected an object with a list "cases"'
        for text, complaint in (("", ": not JSON at byte 1"), ("{", ": not JSON at byte 2"), ("[]", wrong), ("3", wrong),
                                ('{"case": []}', wrong), ('{"cases": {}}', wrong)):
            with self.subTest(text):
                message = self.fail_with(BAD_FILE, "verify", self.write("broken.json", text))
                self.assertIn(f"{self.folder}/broken.json{complaint}", message)
        self.assertIn("none.json", self.fail_with(BAD_FILE, "verify", self.folder / "none.json"))


if __name__ == "__main__":
    unittest.main()
