"""Recorded cases and language models' goldens on the CPU. tests/each_target.py runs this once for each set of instructions that kernels
are compiled for."""
# SPDX-License-Identifier: BSD-3-Clause
import json
import os
import unittest

from cli import DECODERS, LLM, NO_LIBRARY, OK, OPS, STATE, USAGE, VALUES, TestCase, case, manifest, tool

ON_CPU = ("--device", "cpu")


class Fixtures(TestCase):
    def check(self, folder, *args):
        result = tool("verify", folder / "manifest.json", "--json", *ON_CPU, *args, env=NO_LIBRARY)
        report = json.loads(result.stdout)
        for c in report["cases"]:
            with self.subTest(c["name"]):
                self.assertTrue(c["ok"], c["problem"])
        self.assertEqual((result.returncode, result.stderr), (OK, ""))
        self.assertEqual([c["name"] for c in report["cases"]], [c["name"] for c in manifest(folder)["cases"]])

    def test_verify(self):
        for folder in (OPS, LLM, STATE, VALUES, DECODERS):
            with self.subTest(folder.name):
                self.check(folder)

    def test_greedy_ids_are_the_exporters(self):
        for folder, name in ((LLM, "qwen3_like_q4"), (LLM, "qwen2_like_fp32"), (DECODERS, "llama_fp32"), (DECODERS, "llama_static"),
                             (DECODERS, "llama_full")):
            for precision in ("f32", "f16"):
                wanted = case(folder, name)
                with self.subTest(f"{name} {precision}"):
                    report = self.succeed_json("generate", folder / f"{name}.pte", "--json", *ON_CPU, "--precision", precision,
                                               "--temperature", "0", "--ignore-end", "-n", len(wanted["greedy_ids"]),
                                               "--prompt-ids", *map(str, wanted["prompt_ids"]), env=NO_LIBRARY)
                    self.assertEqual(report["ids"], wanted["greedy_ids"])

    def test_refuses_other_targets(self):
        message = self.fail_with(USAGE, "verify", OPS, *ON_CPU, env={**NO_LIBRARY, "PTERYX_CPU_TARGET": "AVX9"})
        self.assertRegex(message, r"^pteryx: PTERYX_CPU_TARGET: expected a target of this processor \([\w, ]+\), got 'AVX9'\n$")
        self.assertIn(os.environ["PTERYX_CPU_TARGET"], message)


if __name__ == "__main__":
    unittest.main()
