"""pteryx doctor and pteryx ops: what there is to run on, and what can be run."""
# SPDX-License-Identifier: BSD-3-Clause
import json
import os
import unittest

from cli import NO_GPU, NO_LIBRARY, OPS, TestCase, tool

PROVIDER = os.environ.get("PTERYX_PROVIDER", "dawn")


class Doctor(TestCase):
    def test_text(self):
        text = self.succeed("doctor")
        self.assertRegex(text, rf"(?m)^{PROVIDER}.*\.so$")
        self.assertRegex(text, r"(?m)^  \[0\] llvmpipe .*\(software, vulkan\)$")
        self.assertRegex(text, r"(?m)^      capabilities  .*subgroups of \d+")
        self.assertRegex(text, rf"\n\nPTERYX_ADAPTER asks for 'software'\.\nPteryx would use llvmpipe .* through {PROVIDER}\.\n$")

    def test_json(self):
        report = self.succeed_json("doctor", "--json")
        self.assertEqual(report["default"]["provider"], PROVIDER)
        [provider] = [p for p in report["providers"] if p["provider"] == PROVIDER]
        self.assertEqual(provider["problem"], "")
        self.assertTrue(os.path.exists(provider["library"]))
        usable = [a for a in provider["adapters"] if not a["problem"]]
        self.assertIn(report["default"]["adapter"], [a["name"] for a in usable])
        for adapter in usable:
            self.assertTrue(adapter["capabilities"]["software"])
            self.assertFalse(adapter["capabilities"]["bounds_checks"])
            self.assertGreaterEqual(adapter["limits"]["max_storage_buffers"], 8)
            self.assertGreaterEqual(adapter["limits"]["max_binding_bytes"], 128 << 20)
            self.assertEqual(adapter["masked"], "")

    def test_bounds_checks(self):
        report = self.succeed_json("doctor", "--json", env={"PTERYX_BOUNDS_CHECKS": "1"})
        self.assertTrue(report["default"]["capabilities"]["bounds_checks"])

    def test_masked(self):
        report = self.succeed_json("doctor", "--json", env={"PTERYX_DISABLE": "f16,subgroups"})
        [provider] = [p for p in report["providers"] if p["provider"] == PROVIDER]
        for adapter in (a for a in provider["adapters"] if not a["problem"]):
            self.assertFalse(adapter["capabilities"]["f16"] or adapter["capabilities"]["subgroups"])
            self.assertIn("subgroups", adapter["masked"])
        lowered = "max_binding_bytes=4MiB,max_invocations=128"
        report = self.succeed_json("doctor", "--json", env={"PTERYX_DISABLE": lowered})
        [provider] = [p for p in report["providers"] if p["provider"] == PROVIDER]
        for adapter in (a for a in provider["adapters"] if not a["problem"]):
            self.assertEqual(adapter["limits"]["max_binding_bytes"], 4 << 20)
            self.assertEqual(adapter["limits"]["max_invocations"], 128)
            self.assertEqual(adapter["masked"], "max_binding_bytes=4194304,max_invocations=128")
        self.assertIn("subgroups (PTERYX_DISABLE)", self.succeed("doctor", env={"PTERYX_DISABLE": "subgroups"}))

    def test_every_adapter_whatever_is_asked_for(self):
        asked = self.succeed_json("doctor", "--json", env={"PTERYX_ADAPTER": "software"})
        free = self.succeed_json("doctor", "--json", env={"PTERYX_ADAPTER": ""})
        self.assertEqual(asked["providers"], free["providers"])
        for provider in free["providers"]:
            self.assertTrue([a for a in provider["adapters"] if a["capabilities"]["software"] and not a["problem"]], provider)

    def test_drivers_that_the_user_chose(self):
        for variable in ("VK_ICD_FILENAMES", "VK_DRIVER_FILES"):
            result = tool("doctor", env={variable: "/nonexistent/driver.json"})
            self.assertEqual(result.returncode, NO_GPU)
            self.assertNotIn("llvmpipe", result.stdout)
            self.assertIn(f"{PROVIDER}: no adapter", result.stderr)

    def test_without_a_library(self):
        result = tool("doctor", "--json", env=NO_LIBRARY)
        self.assertEqual(result.returncode, NO_GPU)
        report = json.loads(result.stdout)
        self.assertIn("/nonexistent", report["problem"])
        self.assertEqual([p["adapters"] for p in report["providers"]], [[]])
        self.assert_paragraph(result.stderr)

    def test_library_that_is_none(self):
        result = tool("doctor", env={"PTERYX_WEBGPU_LIBRARY": str(OPS / "add.pte")})
        self.assertEqual(result.returncode, NO_GPU)
        self.assertIn("add.pte", result.stdout)
        self.assert_paragraph(result.stderr)


class Ops(TestCase):
    def test_json(self):
        ops = self.succeed_json("ops", "--json", env=NO_LIBRARY)
        by_name = {op["name"]: op for op in ops}
        self.assertEqual(len(by_name), len(ops))
        self.assertEqual(by_name["aten.add.Tensor"]["runs_on"], "GPU, CPU")
        self.assertIn("aten::add.out", by_name["aten.add.Tensor"]["spellings"])
        for op in ops:
            self.assertEqual(set(op), {"name", "spellings", "arguments", "runs_on", "routes"})
            self.assertIn(op["runs_on"], ("GPU", "CPU", "GPU, CPU", "no work", "host scalar"))
            self.assertEqual(len(set(op["routes"])), len(op["routes"]), op)

    def test_no_spelling_twice(self):
        seen = {}
        for op in self.succeed_json("ops", "--json", env=NO_LIBRARY):
            for spelling in {op["name"], *op["spellings"]}:
                self.assertNotIn(spelling, seen)
                seen[spelling] = op["name"]

    def test_text(self):
        self.assertRegex(self.succeed("ops", env=NO_LIBRARY), r"(?m)^aten\.add\.Tensor +GPU, CPU$")


if __name__ == "__main__":
    unittest.main()
