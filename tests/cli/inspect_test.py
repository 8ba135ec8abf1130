"""pteryx inspect: what a program holds, told without a GPU."""
# SPDX-License-Identifier: BSD-3-Clause
import json
import re
import unittest

from cli import BAD_FILE, DECODERS, FIXTURES, LLM, NO_GPU, NO_LIBRARY, OPS, STATE, USAGE, VALUES, TestCase, case, manifest


class Inspect(TestCase):
    def text(self, *args):
        return self.succeed("inspect", *args, env=NO_LIBRARY)

    def json(self, *args):
        return self.succeed_json("inspect", *args, "--json", env=NO_LIBRARY)


class Text(Inspect):
    def test_delegated(self):
        text = self.text(OPS / "add.pte")
        self.assertTrue(text.startswith(f"{OPS / 'add.pte'}: 1.6 KiB, 1 method, 0 named blobs\n"), text)
        for line in ("method forward", "  input 0   f32 [7, 33]", "  input 1   f32 [7, 33]", "  output 0  f32 [7, 33]",
                     "  1 delegate, 1 nodes"):
            self.assertIn(line + "\n", text)
        self.assertRegex(text, r"\n  aten\.add\.Tensor +1  GPU\n")
        self.assertRegex(text, r"peak GPU memory 3\.8 KiB \(weights 0 B, .*\); host 2\.7 KiB\n"
                               r"  on the CPU +2\.7 KiB \(state 0 B, activations 2\.7 KiB, temporaries 0 B, copies of weights 0 B\); weights in the file 0 B\n$")

    def test_mixed(self):
        text = self.text(OPS / "mixed_cumsum.pte")
        self.assertIn("  2 delegates, ", text)
        self.assertRegex(text, r"\n  aten\.cumsum\.default +1  GPU\n")

    def test_dynamic(self):
        text = self.text(OPS / "dyn_add.pte")
        self.assertIn("  input 0   f32 up to [64, 24]\n  input 1   f32 [24]\n  output 0  f32 up to [64, 24]\n", text)

    def test_metadata(self):
        text = self.text(VALUES / "methods.pte")
        self.assertIn("7 methods", text)
        self.assertIn("\nmethod encode\n", text)
        self.assertIn("\nmethod decode\n", text)
        self.assertNotIn("method get_", text)
        for name, value in (("get_vocab_size", "32000"), ("get_name", '"abc"'), ("use_kv_cache", "true"), ("get_scale", "0.25"),
                            ("get_eos_ids", "1, 2, 3")):
            self.assertRegex(text.split("\nmetadata\n")[1], rf"  {name} +{value}\n")

    def test_scalars(self):
        self.assertIn("  input 1   int 3\n", self.text(VALUES / "int_input.pte"))
        self.assertIn("  output 1  int\n", self.text(VALUES / "size_output.pte"))

    def test_weights_and_state(self):
        self.assertIn("largest: value 0 i64 [1], 8 B, state\n", self.text(STATE / "counter.pte"))
        self.assertRegex(self.text(LLM / "qwen3_like_q4.pte"), r"\n    u8 +\d+ tensors  [\d.]+ KiB\n")


class Json(Inspect):
    def test_delegated(self):
        report = self.json(OPS / "add.pte")
        self.assertEqual(report["file_bytes"], (OPS / "add.pte").stat().st_size)
        self.assertEqual(report["named_data"], 0)
        [method] = report["methods"]
        self.assertEqual((method["name"], method["delegates"], method["nodes"], method["metadata"]), ("forward", 1, 1, False))
        dims = [{"min": 7, "max": 7}, {"min": 33, "max": 33}]
        value = {"kind": "tensor", "dtype": "f32", "dims": dims, "dynamic": False}
        self.assertEqual((method["inputs"], method["outputs"]), ([value, value], [value]))
        self.assertEqual(method["operators"],
                         [{"name": "aten.add.Tensor", "count": 1, "gpu": 1, "cpu": 0, "free": 0, "unsupported": 0}])
        memory = method["memory"]
        self.assertEqual(memory["gpu_total"], sum(memory[k] for k in ("constants", "state", "activations", "scratch", "transfer")))
        self.assertGreaterEqual(memory["activations"], 3 * 7 * 33 * 4)
        self.assertNotIn("problem", method)

    def test_dynamic(self):
        [method] = self.json(OPS / "dyn_add.pte")["methods"]
        self.assertEqual(method["inputs"][0]["dims"][0], {"min": 1, "max": 64})
        self.assertTrue(method["inputs"][0]["dynamic"])
        self.assertFalse(method["inputs"][1]["dynamic"])

    def test_metadata(self):
        methods = {m["name"]: m for m in self.json(VALUES / "methods.pte")["methods"]}
        values = {name: m["values"] for name, m in methods.items() if m["metadata"]}
        self.assertEqual(values, {"get_vocab_size": [32000], "get_name": ["abc"], "use_kv_cache": [True], "get_scale": [0.25],
                                  "get_eos_ids": [1, 2, 3]})
        self.assertEqual(methods["decode"]["inputs"][1]["dtype"], "i64")

    def test_state(self):
        [method] = self.json(STATE / "ema.pte")["methods"]
        state = [w for w in method["weights"] if w["state"]]
        self.assertEqual([(w["dtype"], w["dims"], w["bytes"]) for w in state], [("f32", [4], 16)])
        self.assertEqual(method["memory"]["state"], 16)

    def test_every_program_can_run(self):
        for folder in (OPS, STATE, VALUES, LLM, DECODERS):
            for c in manifest(folder)["cases"]:
                data = [part for name in c.get("ptd", []) for part in ("--data", folder / name)]
                for method in self.json(folder / c["pte"], *data)["methods"]:
                    with self.subTest(f"{c['pte']} {method['name']}"):
                        self.assertEqual(method.get("problem", ""), "")
                        for use in method["operators"]:
                            self.assertEqual(use["count"], use["gpu"] + use["cpu"] + use["free"], use)

    def test_operators_on_the_cpu_are_the_expected_ones(self):
        for c in manifest(OPS)["cases"]:
            [method] = [m for m in self.json(OPS / c["pte"], *self.data(c))["methods"] if m["name"] == c["method"]]
            cpu = {use["name"] for use in method["operators"] if use["cpu"]}
            with self.subTest(c["name"]):  # pteryx.copy: i64 indices become i32 on the way in
                self.assertLessEqual(cpu, {*c.get("cpu_operators", []), "pteryx.copy"})

    @staticmethod
    def data(c):
        return [part for name in c.get("ptd", []) for part in ("--data", OPS / name)]


class Limits(Inspect):
    """Of a model whose weights are larger than everything else; the largest is that of its first and its last layer."""
    def setUp(self):
        super().setUp()
        self.model = self.folder / "model.pte"
        self.succeed("synth", "-o", self.model, "--quantize", "none", "--max-context", 128, "--max-tokens", 4, env=NO_LIBRARY)

    def method(self, limits):
        return next(m for m in self.json(self.model, "--limits", self.write("limits.json", json.dumps(limits)))["methods"]
                    if m["name"] == "forward")

    def test_default(self):
        method = next(m for m in self.json(self.model, "--limits", "default")["methods"] if m["name"] == "forward")
        self.assertEqual(method["limits"], {"fits": True, "splits": [], "excess": []})
        self.assertTrue(self.text(self.model, "--limits", "default").count("\n  limits\n    everything fits\n"))
        self.assertNotIn("limits", self.json(self.model)["methods"][0])
        self.assertNotIn("everything fits", self.text(self.model))

    def test_split(self):
        largest = max(w["bytes"] for w in self.method({})["weights"] if not w["state"])
        method = self.method({"max_binding_bytes": largest - 1})
        self.assertTrue(method["limits"]["fits"], method["limits"])
        [split] = method["limits"]["splits"]
        self.assertEqual((split["bytes"], split["parts"]), (largest, 2))
        self.assertIn(split["name"], [w["name"] for w in method["weights"]])
        self.assertIn("pteryx.embedding_parts", [u["name"] for u in method["operators"]])
        text = self.text(self.model, "--limits", self.folder / "limits.json")
        self.assertRegex(text, rf"    split in 2 parts: {split['name']} f32 .* KiB\n    everything fits\n")

    def test_what_does_not_fit(self):
        method = self.method({"max_buffer_bytes": 4096, "max_binding_bytes": 4096})
        self.assertFalse(method["limits"]["fits"])
        self.assertNotIn("problem", method)
        state = [e for e in method["limits"]["excess"] if e["what"].startswith("state ")]
        caches = sum(w["state"] and w["bytes"] / 2 > 4096 for w in method["weights"])  # in the file f32, held as f16
        self.assertGreater(caches, 0)
        self.assertEqual(len(state), caches)
        for e in method["limits"]["excess"]:
            self.assertEqual((e["limit"], e["allowed"]), ("max_buffer_bytes", 4096))
            self.assertGreater(e["amount"], 4096)
        self.assertIn("shorter context", state[0]["remedy"])
        text = self.text(self.model, "--limits", self.folder / "limits.json")
        self.assertIn(f"    does not fit: {state[0]['what']}: {state[0]['amount']} bytes, max_buffer_bytes of the device is 4096; ", text)
        self.assertNotIn("everything fits", text)

    def test_report_of_doctor(self):
        limits = {"max_binding_bytes": 8192}
        other = {"max_binding_bytes": 4096}
        report = {"providers": [{"adapters": [{"limits": other}]}], "default": {"adapter": "x", "provider": "dawn", "limits": limits}}
        self.assertEqual(self.method(report)["limits"], self.method(limits)["limits"])
        self.assertNotEqual(self.method(report)["limits"], self.method(other)["limits"])

    def test_wrong_files(self):
        known = ("max_buffer_bytes, max_binding_bytes, max_storage_buffers, max_workgroups_per_dim, max_invocations, "
                 "max_workgroup_size_x, max_workgroup_bytes")
        for content, text in (("[]", "expected a JSON object of limits, got array"),
                              ('{"max_binding": 1}', f"limit 'max_binding' is unknown: expected some of {known}"),
                              ('{"max_binding_bytes": "4MiB"}', "max_binding_bytes: expected a whole number from 256 on, got string"),
                              ('{"max_binding_bytes": -1}', "max_binding_bytes: expected a whole number from 256 on, got -1"),
                              ('{"max_binding_bytes": 1.5}', "max_binding_bytes: expected a whole number from 256 on, got 1.5"),
                              ('{"max_binding_bytes": 255}', "max_binding_bytes: expected a whole number from 256 on, got 255"),
                              ('{"providers": [], "problem": "none"}',
                               "expected the report of a machine with a GPU that can be used, got one without 'default'")):
            with self.subTest(content):
                path = self.write("limits.json", content)
                message = self.fail_with(BAD_FILE, "inspect", self.model, "--limits", path, env=NO_LIBRARY)
                self.assertIn(text, message)
                self.assertIn(f"reading limits from {path}", message)
        path = self.write("limits.json", "{")
        self.assertIn(str(path), self.fail_with(BAD_FILE, "inspect", self.model, "--limits", path, env=NO_LIBRARY))
        self.assertIn("No such file", self.fail_with(BAD_FILE, "inspect", self.model, "--limits", "/nonexistent", env=NO_LIBRARY))
        self.fail_with(BAD_FILE, "inspect", self.model, "--limits", "", env=NO_LIBRARY)


class Graph(Inspect):
    def test_every_node_and_tensor(self):
        dot = self.folder / "graph.dot"
        self.text(OPS / "mixed_cumsum.pte", "--graph", dot)
        [method] = self.json(OPS / "mixed_cumsum.pte")["methods"]
        text = dot.read_text()
        self.assertTrue(text.startswith('digraph "forward" {\n') and text.endswith("}\n"), text)
        self.assertEqual(text.count("fillcolor=lightgrey"), method["nodes"])
        self.assertIn('[label="aten.cumsum.default"', text)
        self.assertEqual(text.count("{"), text.count("}"))
        for end in {name for line in text.splitlines() if "->" in line for name in line.strip(" ;").split(" -> ")}:
            self.assertIn(f"  {end} [", text)

    def test_that_cannot_be_written(self):
        message = self.fail_with(BAD_FILE, "inspect", OPS / "add.pte", "--graph", "/nonexistent/graph.dot", env=NO_LIBRARY)
        self.assertIn("cannot write /nonexistent/graph.dot", message)


class Kernels(Inspect):
    MARK = "// A kernel as Pteryx compiles it, written by `pteryx inspect --kernels`."
    LARGE = {"max_invocations": 1024, "max_workgroup_size_x": 1024, "max_workgroup_bytes": 49152}
    CAPABLE = {"f16": True, "subgroups": True, "subgroup_min": 32, "subgroup_max": 32, "subgroup_matrix": True, "dot4": True}

    def setUp(self):
        super().setUp()
        self.kernels = self.folder / "kernels"

    def files(self):
        return {path.name: path.read_text() for path in self.kernels.iterdir()}

    def test_one_file_for_each_kernel(self):
        text = self.text(OPS / "add.pte", "--kernels", self.kernels, "--limits", "default")
        self.assertTrue(text.endswith(f"\n1 kernel in {self.kernels}\n"), text)
        [(name, text)] = self.files().items()
        self.assertRegex(name, r"^[A-Za-z0-9_-]+\.wgsl$")
        self.assertTrue(name.startswith("binary-"), name)
        self.assertEqual(text.splitlines()[0], self.MARK)
        self.assertIn("// forward, at the bound: aten.add.Tensor, node 0\n//   1 x 1 x 1 workgroups, 1 in all\n"
                      "//   binding 0: params, ", text)
        self.assertIn("//   binding 1: f32 [7, 33]\n//   binding 2: f32 [7, 33]\n//   binding 3: f32 [7, 33], written\n", text)
        self.assertIn("fn main(", text)
        self.assertNotIn("#if", text)

    def test_of_the_gpu_that_would_be_used(self):
        report = self.succeed_json("inspect", OPS / "add.pte", "--kernels", self.kernels, "--json")
        self.assertEqual(report["kernels"], {"folder": str(self.kernels), "files": sorted(self.files())})
        self.fail_with(NO_GPU, "inspect", OPS / "add.pte", "--kernels", self.kernels, env=NO_LIBRARY)

    def test_capabilities_of_another_machine(self):
        model = LLM / "qwen3_like_q4.pte"
        default = {"adapter": "x", "provider": "dawn", "limits": self.LARGE}
        self.text(model, "--kernels", self.kernels, "--limits", self.write("plain.json", json.dumps({"providers": [], "default": default})))
        plain = self.files()
        default["capabilities"] = self.CAPABLE
        report = self.write("capable.json", json.dumps({"providers": [], "default": default}))
        self.text(model, "--kernels", self.kernels, "--limits", report)
        self.assertNotEqual(plain, self.files())
        self.assertFalse(any("enable subgroups;" in text for text in plain.values()))
        self.assertTrue(any("enable subgroups;" in text for text in self.files().values()))
        for wrong in ({"f16": 1}, {"f17": True}, {"subgroup_min": -1}, []):
            default["capabilities"] = wrong
            report = self.write("wrong.json", json.dumps({"providers": [], "default": default}))
            with self.subTest(wrong):
                self.assertIn("capabilit", self.fail_with(BAD_FILE, "inspect", model, "--limits", report, env=NO_LIBRARY))

    def test_bounds_checks_of_another_machine(self):
        """With them, no matrix is stored to a buffer; a report that does not say counts as one with them."""
        default = {"adapter": "x", "provider": "dawn", "limits": self.LARGE, "sizes": {"processors": 132, "invocations": 2048}}
        stored = {}
        for checks in (None, True, False):
            default["capabilities"] = self.CAPABLE if checks is None else {**self.CAPABLE, "bounds_checks": checks}
            report = self.write("report.json", json.dumps({"providers": [], "default": default}))
            self.succeed("inspect", LLM / "qwen3_like_q4.pte", "--kernels", self.kernels, "--limits", report,
                         env={**NO_LIBRARY, "PTERYX_PRECISION": "f16"})
            stored[checks] = [name for name, text in self.files().items() if re.search(r"subgroupMatrixStore<row_major>\(&y", text)]
        self.assertEqual((stored[None], stored[True]), ([], []))
        self.assertTrue(stored[False])

    def test_every_program_on_a_gpu_that_can_do_all(self):
        default = {"adapter": "x", "provider": "dawn", "limits": self.LARGE, "capabilities": self.CAPABLE,
                   "sizes": {"processors": 132, "invocations": 2048}}
        report = self.write("capable.json", json.dumps({"providers": [], "default": default}))
        used = set()
        for model in (*LLM.glob("*.pte"), *DECODERS.glob("*.pte"), *OPS.glob("net_*.pte")):
            for precision in ("f32", "f16"):
                with self.subTest(model.name, precision=precision):
                    self.succeed("inspect", model, "--kernels", self.kernels, "--limits", report,
                                 env={**NO_LIBRARY, "PTERYX_PRECISION": precision})
                    used |= set(self.files())
        self.assertTrue(any("subgroup_matrix" in name for name in used), used)

    def test_language_model_at_one_token_and_the_longest_prompt(self):
        model = LLM / "qwen3_like_q4.pte"
        self.text(model, "--kernels", self.kernels, "--limits", "default")
        text = "".join(self.files().values())
        longest = next(m for m in self.json(model)["methods"] if m["name"] == "forward")["inputs"][0]["dims"][1]["max"]
        self.assertGreater(longest, 1)
        for sizes in ("1 token at position 0", f"{longest} tokens at position 0"):
            self.assertIn(f"// forward, {sizes}: pteryx.linear_q4gsw, node", text)
        self.assertRegex(text, r"// forward, 1 token at position [1-9]\d*: ")
        self.assertIn(": pteryx.sample, node", text)
        self.assertIn("sample-f32_i32_i32_i32-feeding.wgsl", self.files())

    def test_a_folder_of_its_own(self):
        self.kernels.mkdir()
        (self.kernels / "mine.wgsl").write_text("fn main() {}\n")
        message = self.fail_with(USAGE, "inspect", OPS / "add.pte", "--kernels", self.kernels, "--limits", "default", env=NO_LIBRARY)
        self.assertIn(f"expected a folder that is empty or holds kernels written before, got {self.kernels} with 'mine.wgsl' in it", message)
        self.assertEqual(list(self.files()), ["mine.wgsl"])
        (self.kernels / "mine.wgsl").unlink()
        self.text(LLM / "qwen3_like_q4.pte", "--kernels", self.kernels, "--limits", "default")
        self.assertGreater(len(self.files()), 5)
        self.text(OPS / "add.pte", "--kernels", self.kernels, "--limits", "default")  # those of the other model go
        self.assertEqual(len(self.files()), 1)

    def test_that_cannot_be_written(self):
        (self.folder / "file").write_text("")
        for folder in (self.folder / "file", "/proc/nonexistent/kernels"):
            with self.subTest(folder):
                message = self.fail_with(BAD_FILE, "inspect", OPS / "add.pte", "--kernels", folder, "--limits", "default", env=NO_LIBRARY)
                self.assertIn(str(folder), message)


class Wrong(Inspect):
    def test_truncated_anywhere(self):
        whole = (OPS / "linear.pte").read_bytes()
        short = self.folder / "short.pte"
        for size in (0, 7, 31, 64, 500, len(whole) // 2, len(whole) - 1):
            with self.subTest(size=size):
                short.write_bytes(whole[:size])
                message = self.fail_with(BAD_FILE, "inspect", short, env=NO_LIBRARY)
                self.assertIn(str(short), message)
        self.assertRegex(message, r"file is truncated: header promises \d+ bytes from byte \d+, file has \d+")

    def test_missing(self):
        self.assertIn("No such file", self.fail_with(BAD_FILE, "inspect", self.folder / "none.pte", env=NO_LIBRARY))

    def test_folder(self):
        self.assertIn(str(FIXTURES), self.fail_with(BAD_FILE, "inspect", FIXTURES, env=NO_LIBRARY))

    def test_missing_data_file(self):
        message = self.fail_with(BAD_FILE, "inspect", OPS / "external_weights.pte", env=NO_LIBRARY)
        self.assertIn("(missing .ptd file?)", message)
        data = [part for name in case(OPS, "external_weights")["ptd"] for part in ("--data", OPS / name)]
        self.assertIn(", 4 named blobs\n", self.text(OPS / "external_weights.pte", *data))

    def test_unknown_operator_is_part_of_the_report(self):
        data = (STATE / "counter.pte").read_bytes()
        (self.folder / "new.pte").write_bytes(data.replace(b"aten::copy_", b"aten::cope_"))
        [method] = self.json(self.folder / "new.pte")["methods"]
        [use] = [u for u in method["operators"] if u["unsupported"]]
        self.assertEqual((use["name"], use["count"]), ("aten::cope_", 1))
        self.assertIn("unknown operator aten::cope_", method["problem"])
        self.assertIn("  cannot run: method 'forward' has 1 call", self.text(self.folder / "new.pte"))


if __name__ == "__main__":
    unittest.main()
