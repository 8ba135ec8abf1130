"""pteryx profile: what kernels and nodes take on the GPU, and the host besides."""
# SPDX-License-Identifier: BSD-3-Clause
import json
import unittest
from collections import Counter

from cli import BAD_FILE, LLM, OPS, USAGE, TestCase

MODEL = LLM / "qwen3_like_q4.pte"
NO_TIMESTAMPS = {"PTERYX_DISABLE": "timestamps"}
PHASES = {"shapes", "writes", "encode", "submit", "CPU operators", "wait", "read"}


class Profile(TestCase):
    def parts(self, *args, env=None):
        report = self.succeed_json("profile", *args, "--json", env=env)
        return report, {p["name"]: p for p in report["parts"]}

    def test_program(self):
        report, parts = self.parts(OPS / "net_vit.pte", "-r", "2")
        self.assertTrue(report["timestamps"])
        self.assertGreater(report["peaks"]["bytes_per_s"], 0)
        self.assertGreater(report["peaks"]["flops_per_s"], 0)
        part = parts["forward"]
        self.assertEqual((part["unit"], part["units"]), ("call", 2))
        self.assertLess(part["gpu_us"], part["wall_us"])
        self.assertEqual(set(part["host_us"]), PHASES)
        self.assertLess(sum(part["host_us"].values()), part["wall_us"])
        for rows in (part["kernels"], part["nodes"]):
            self.assertAlmostEqual(sum(r["us"] for r in rows), part["gpu_us"], delta=part["gpu_us"] * 1e-6)
            self.assertAlmostEqual(sum(r["share"] for r in rows), 1, places=6)
            self.assertEqual([r["us"] for r in rows], sorted((r["us"] for r in rows), reverse=True))
        products = [n for n in part["nodes"] if n["op"] == "aten.linear.default"]
        self.assertTrue(products)
        for n in products:
            self.assertGreater(n["flops"], 0)
            self.assertAlmostEqual(n["flops_per_s"], n["flops"] / n["us"] * 1e6, delta=n["flops_per_s"] * 1e-6)
        self.assertFalse(any(n["flops"] for n in part["nodes"] if n["op"] == "aten.gelu.default"))
        self.assertTrue(all(n["bytes"] > 0 for n in part["nodes"]))

    def test_language_model(self):
        _, parts = self.parts(MODEL, "-p", "8", "-n", "4")
        self.assertEqual(list(parts), ["prompt 8", "text 4"])
        text = parts["text 4"]
        self.assertEqual((text["unit"], text["units"]), ("token", 4))
        self.assertEqual([k["count"] for k in text["kernels"] if k["kernel"].startswith("sample/") and k["kernel"].endswith("/feeding")], [1])
        self.assertTrue(any(n["op"] == "llama.custom_sdpa.default" and n["flops"] > 0 for n in text["nodes"]))
        # Two layers of five nodes, the logits, and what draws a token and embeds it for the next step.
        self.assertEqual(Counter(n["op"] for n in text["nodes"] if n["op"]), {
            "pteryx.linear_q4gsw_rope": 2, "llama.custom_sdpa.default": 2, "pteryx.linear_q4gsw": 7, "pteryx.sample": 1})
        self.assertEqual(list(self.parts(MODEL, "-p", "0", "-n", "2")[1]), ["text 2"])
        self.assertIn("the context holds 160 tokens", self.fail_with(USAGE, "profile", MODEL, "-n", "1000"))

    def test_tokens_are_of_language_models(self):
        self.assertIn("-p, -n and -c count tokens of a language model", self.fail_with(USAGE, "profile", OPS / "add.pte", "-n", "4"))

    def test_table(self):
        text = self.succeed("profile", MODEL, "-p", "4", "-n", "2")
        self.assertRegex(text, r"^GPU: .*: [\d.]+ GB/s copied, [\d.]+ TFLOP/s of f32; percentages are of these\n")
        self.assertRegex(text, r"\n\ntext 2: per token [\d.]+ us, GPU [\d.]+ us\n  host us: shapes [\d.]+, writes [\d.]+, encode ")
        self.assertRegex(text, r"\n +1 +[\d.]+ +[\d.]+ % +[\de.-]+ \(\d+ %\) +embedding_q4/u8,f32,i32,f32\n")

    def test_without_timestamps(self):
        report, parts = self.parts(MODEL, "-p", "4", "-n", "2", env=NO_TIMESTAMPS)
        self.assertEqual((report["timestamps"], report["peaks"]), (False, None))
        for part in parts.values():
            self.assertEqual((part["gpu_us"], part["kernels"], part["nodes"]), (None, [], []))
            self.assertGreater(part["host_us"]["submit"], 0)
        text = self.succeed("profile", MODEL, "-p", "4", "-n", "2", env=NO_TIMESTAMPS)
        self.assertIn("\nIt has no timestamps, so that only the host's times are known.\n", text)

    def test_trace(self):
        trace = self.folder / "trace.json"
        _, parts = self.parts(MODEL, "-p", "4", "-n", "3", "--trace", trace)
        events = json.loads(trace.read_text())["traceEvents"]
        names = {e["tid"]: e["args"]["name"] for e in events if e["name"] == "thread_name"}
        self.assertEqual(names[1], "host")
        self.assertTrue(names[2].startswith("GPU: "))
        spans = {tid: [e for e in events if e["ph"] == "X" and e["tid"] == tid] for tid in (1, 2)}
        self.assertLessEqual({e["name"] for e in spans[1]}, PHASES)
        dispatches = sum(k["count"] * p["units"] for p in parts.values() for k in p["kernels"])
        self.assertEqual(len(spans[2]), dispatches)
        for e in spans[1] + spans[2]:
            self.assertGreaterEqual(e["dur"], 0)
        # On one time line: the GPU works behind the first submit and before the end of the last wait, one dispatch after the other.
        self.assertGreaterEqual(spans[2][0]["ts"], min(e["ts"] for e in spans[1] if e["name"] == "submit") - 1)
        self.assertLessEqual(spans[2][-1]["ts"], max(e["ts"] + e["dur"] for e in spans[1]))
        for before, after in zip(spans[2], spans[2][1:]):
            self.assertGreaterEqual(after["ts"], before["ts"] + before["dur"] - 1)

    def test_trace_that_cannot_be_written(self):
        self.assertIn("cannot write /nonexistent/t.json",
                      self.fail_with(BAD_FILE, "profile", OPS / "add.pte", "--trace", "/nonexistent/t.json"))
        model = self.folder / "m.pte"
        model.write_bytes((OPS / "add.pte").read_bytes())
        self.assertIn("also an input", self.fail_with(USAGE, "profile", model, "--trace", model))


if __name__ == "__main__":
    unittest.main()
