"""--device and PTERYX_DEVICE: a GPU, the CPU, or whichever there is."""
# SPDX-License-Identifier: BSD-3-Clause
import json
import os
import resource
import subprocess
import unittest

import npy
from cli import BAD_FILE, LLM, NO_GPU, NO_LIBRARY, OPS, STATE, TOOL, USAGE, TestCase, case, environment, tool

ADD = OPS / "add.pte"
MODEL = LLM / "qwen3_like_q4.pte"
# What a machine without a GPU has: no library, or libraries that find no driver.
FREE = {"PTERYX_ADAPTER": "", "PTERYX_PROVIDER": ""}
BARE = {**FREE, "PTERYX_WEBGPU_LIBRARY": "none"}
NO_DRIVER = {**FREE, "VK_ICD_FILENAMES": "/nonexistent/driver.json"}
COMMANDS = (["run", ADD], ["generate", MODEL, "--prompt-ids", "1"], ["chat", MODEL], ["bench", MODEL], ["profile", MODEL],
            ["eval", MODEL, "--ids", "1", "2"], ["verify", OPS])


class Device(TestCase):
    def add(self, *args, env=None):
        """Runs add.pte, compares the result and gives the report."""
        c = case(OPS, "add")["runs"][0]
        inputs = [part for i, entry in enumerate(c["inputs"]) for part in ("-i", self.value(OPS, entry, f"in{i}.npy"))]
        report = self.succeed_json("run", ADD, *inputs, "-o", self.folder / "out", "--json", *args, env=env)
        self.assert_value(npy.read(self.folder / "out" / "0.npy"), OPS, c["outputs"][0])
        return report


class Choice(Device):
    def test_cpu_opens_no_library(self):
        for args, env in ((["--device", "cpu"], {}), (["--device", "cpu"], NO_LIBRARY), ([], {**NO_LIBRARY, "PTERYX_DEVICE": "cpu"}),
                          (["--device", "cpu", "--memory-limit", "1"], {"PTERYX_ADAPTER": "voodoo2", "PTERYX_DISABLE": "f17"})):
            with self.subTest(args=args, env=env):
                report = self.add(*args, env=env)
                self.assertTrue(report["cpu"])
                self.assertNotIn("gpu", report)

    def test_auto_takes_the_cpu_where_there_is_no_gpu(self):
        for env in (BARE, NO_DRIVER, {**NO_DRIVER, "PTERYX_PROVIDER": "wgpu"}, {**BARE, "PTERYX_DEVICE": "auto"}):
            with self.subTest(env=env):
                self.assertIn("cpu", self.add(env=env))
                self.assertIn("cpu", self.add("--device", "auto", env=env))

    def test_software_only_where_it_is_asked_for(self):
        for args, env in ((["--adapter", "software"], FREE), (["--adapter", "llvmpipe"], FREE), (["--device", "gpu"], {}),
                          (["--adapter", "software", "--device", "gpu"], FREE), (["--adapter", "software"], {**FREE, "PTERYX_DEVICE": "cpu"})):
            with self.subTest(args=args, env=env):
                self.assertIn("llvmpipe", self.add(*args, env=env)["gpu"])

    def test_gpu_is_one_or_an_error(self):
        for args, env in ((["--device", "gpu"], NO_DRIVER), ([], {**NO_DRIVER, "PTERYX_DEVICE": "gpu"})):
            message = self.fail_with(NO_GPU, "run", ADD, *args, env=env)
            self.assertIn("no GPU adapter can be used; tried:\n  dawn: no adapter\n", message)
            self.assertIn("\n  --device cpu runs on the CPU, --adapter software on a software GPU\n", message)
        self.assertIn("/nonexistent", self.fail_with(NO_GPU, "run", ADD, "--device", "gpu", env={**FREE, **NO_LIBRARY}))
        self.assertIn("the WebGPU library to use is 'none'", self.fail_with(NO_GPU, "run", ADD, "--device", "gpu", env=BARE))

    def test_a_library_that_is_named_is_opened_or_an_error(self):
        for library in ("/nonexistent", str(ADD)):
            for args in ([], ["--device", "auto"]):
                message = self.fail_with(NO_GPU, "run", ADD, *args, env={**FREE, "PTERYX_WEBGPU_LIBRARY": library})
                self.assertIn(library, message)
                self.assertIn("using the library that PTERYX_WEBGPU_LIBRARY names", message)
            self.assertIn("cpu", self.add("--device", "cpu", env={**FREE, "PTERYX_WEBGPU_LIBRARY": library}))

    def test_a_library_that_is_there_and_cannot_be_opened_is_named(self):
        """With five files open at most, of which the tool has all while it looks for a GPU."""
        few = lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (5, 5))
        result = subprocess.run([TOOL, "inspect", ADD], env=environment(FREE), capture_output=True, text=True, check=False, preexec_fn=few)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        result = subprocess.run([TOOL, "bench", ADD, "-r", "1"], env=environment(FREE), capture_output=True, text=True, check=False, preexec_fn=few)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertRegex(result.stderr, r"^pteryx: running on the CPU: WebGPU libraries cannot be opened:\n  dawn: .*libwebgpu_dawn\.so.*\n  wgpu: .*\n$")
        self.assertRegex(result.stdout, r"^CPU: ")

    def test_an_adapter_that_is_not_there_is_an_error(self):
        for adapter in ("voodoo2", "17"):
            self.assertIn(f"'{adapter}'", self.fail_with(NO_GPU, "run", ADD, "--adapter", adapter, env=FREE))
        self.fail_with(NO_GPU, "run", ADD, "--adapter", "software", env=NO_LIBRARY)
        self.assertIn("f17", self.fail_with(NO_GPU, "run", ADD, env={**FREE, "PTERYX_DISABLE": "f17"}))

    def test_contradictions(self):
        for command in COMMANDS:
            for option in (["--adapter", "software"], ["--provider", "dawn"]):
                with self.subTest(command[0], option=option):
                    message = self.fail_with(USAGE, *command, "--device", "cpu", *option, env=NO_LIBRARY)
                    self.assertIn(f"pteryx: {command[0]}: --device cpu: expected neither --adapter nor --provider, which choose a GPU\n",
                                  message)

    def test_unknown(self):
        for command in COMMANDS:
            self.assertIn("--device: expected auto, gpu or cpu, got 'tpu'", self.fail_with(USAGE, *command, "--device", "tpu", env=NO_LIBRARY))
            self.assertIn("PTERYX_DEVICE: expected auto, gpu or cpu, got 'tpu'",
                          self.fail_with(USAGE, *command, env={**NO_LIBRARY, "PTERYX_DEVICE": "tpu"}))

    def test_what_needs_a_gpu(self):
        self.fail_with(NO_GPU, "tune", env={**BARE, "PTERYX_CACHE": str(self.folder)})
        self.fail_with(NO_GPU, "inspect", ADD, "--kernels", self.folder / "kernels", env=BARE)


class Commands(Device):
    """Everything on a machine without any WebGPU library."""
    def test_programs(self):
        for folder, only in ((OPS, ["--only", "add", "--only", "net_vit", "--only", "softmax*"]), (STATE, [])):
            report = self.succeed_json("verify", folder, *only, "--json", env=BARE)
            self.assertEqual(report["failed"], 0)
            self.assertTrue(report["cpu"])
            for c in report["cases"]:
                self.assertRegex(c["operators"], r"^\d+ CPU$")
        text = self.succeed("verify", OPS, "--only", "add", env=BARE)
        self.assertRegex(text, r"^CPU: .+\nprogram ")
        self.assertRegex(text, r"\n1 passed, 0 failed on .+\n$")

    def test_text(self):
        wanted = case(LLM, "qwen3_like_q4")
        prompt = ",".join(map(str, wanted["prompt_ids"]))
        args = ["generate", MODEL, "--temperature", "0", "--ignore-end", "-n", "6", "--prompt-ids", prompt]
        report = self.succeed_json(*args, "--json", env=BARE)
        self.assertEqual(report["ids"], wanted["greedy_ids"][:6])
        self.assertTrue(report["cpu"])
        result = tool(*args, env=BARE)
        self.assertTrue(result.stderr.startswith(f"\n{report['cpu']}\nload "), result.stderr)
        for precision in ("f32", "f16"):
            again = self.succeed_json(*args, "--json", "--precision", precision, env=BARE)
            self.assertEqual(again["ids"], report["ids"])
        def perplexity(*args, env=None):
            return self.succeed_json("eval", MODEL, "--ids", prompt, "--json", *args, env=env)["perplexity"]
        self.assertAlmostEqual(perplexity("--precision", "f32", env=BARE) / perplexity("--precision", "f32"), 1, delta=1e-4)

    def test_measuring(self):
        text = self.succeed("bench", MODEL, "-p", "4", "-n", "2", "-r", "1", env=BARE)
        self.assertRegex(text, r"^CPU: .+, loaded in \d+ ms\n +test ")
        text = self.succeed("bench", ADD, "-r", "1", env=BARE)
        self.assertRegex(text, r"^CPU: .+, loaded in \d+ ms\n +method .*\n +forward .*\n$")
        self.assertEqual(self.succeed_json("bench", ADD, "-r", "1", "--json", env=BARE)["gpu_bytes"] // 4096, 0)
        text = self.succeed("profile", MODEL, "-p", "4", "-n", "2", env=BARE)
        self.assertRegex(text, r"^CPU: .+\n\nprompt 4: per prompt [\d.]+ us\n  host us: .*CPU operators [\d.]+")
        trace = self.folder / "trace.json"
        self.succeed("profile", ADD, "--trace", trace, env=BARE)
        events = json.loads(trace.read_text())["traceEvents"]
        self.assertEqual([e["args"]["name"] for e in events if e["name"] == "thread_name"], ["host"])


class Threads(Device):
    GENERATE = ["generate", MODEL, "--temperature", "0", "--ignore-end", "-n", "4", "--prompt-ids", "1,2,3"]

    def test_how_many(self):
        usual = self.succeed_json(*self.GENERATE, "--json", env=BARE)
        doctor = self.succeed_json("doctor", "--json", env=BARE)
        self.assertEqual(usual["threads"], doctor["cpu"]["threads"])
        self.assertEqual(self.succeed_json(*self.GENERATE, "--json", "--threads", "0", env=BARE)["threads"], usual["threads"])
        for threads in (1, 2, 5):
            report = self.succeed_json(*self.GENERATE, "--json", "--threads", threads, env=BARE)
            self.assertEqual((report["threads"], report["ids"]), (threads, usual["ids"]))
        self.assertIn(", 3 threads, ", self.succeed("bench", ADD, "-r", "1", "--threads", "3", env=BARE))
        self.assertIn(", 1 thread, ", self.succeed("bench", MODEL, "-p", "4", "-n", "2", "-r", "1", "--threads", "1", env=BARE))

    def test_one_for_each_core_that_may_be_used(self):
        one = {min(os.sched_getaffinity(0))}
        report = subprocess.run([TOOL, "doctor", "--json"], env=environment(BARE), capture_output=True, text=True, check=True,
                                preexec_fn=lambda: os.sched_setaffinity(0, one))
        cpu = json.loads(report.stdout)["cpu"]
        self.assertEqual((cpu["threads"], cpu["processors"]["allowed"], cpu["processors"]["cores"]), (1, 1, 1))
        self.assertEqual(cpu["processors"]["online"], os.sysconf("SC_NPROCESSORS_ONLN"))

    def test_absurd(self):
        for command in (*COMMANDS, ["convert", MODEL, "-o", "x.pte"], ["synth", "-o", "x.pte"]):
            for threads in ("-1", "1025", "4294967297", "2.5", "many", ""):
                with self.subTest(command[0], threads=threads):
                    self.assertIn(f"pteryx: {command[0]}: --threads: expected ", self.fail_with(USAGE, *command, f"--threads={threads}", env=BARE))


class Memory(Device):
    def test_weights_stay_in_the_file(self):
        size = MODEL.stat().st_size
        report = self.succeed_json("bench", MODEL, "-p", "4", "-n", "2", "-r", "1", "--json", env=BARE)
        memory = report["memory"]
        self.assertTrue(size / 2 < memory["weights_in_place"] <= size, memory)
        # Of a model with 4-bit weights, the scales: an eighth of the codes in the file, half of that as f16.
        self.assertLess(memory["weights_copied"], size / 12)
        self.assertGreater(memory["host"], 0)
        generated = self.succeed_json("generate", MODEL, "-n", "1", "--prompt-ids", "1", "--json", env=BARE)
        self.assertEqual(generated["memory"]["weights_in_place"], memory["weights_in_place"])
        inspected = self.succeed_json("inspect", MODEL, "--json", env=BARE)["methods"]
        forward = next(m for m in inspected if m["name"] == "forward")["cpu_memory"]
        self.assertEqual(forward["weights_in_place"], memory["weights_in_place"])
        self.assertEqual(forward["weights_copied"], memory["weights_copied"])
        self.assertEqual(forward["total"], sum(forward[k] for k in ("state", "activations", "temporaries", "weights_copied")))
        self.assertEqual(forward["temporaries"], memory["temporaries"])
        text = self.succeed("inspect", MODEL, env=BARE)
        self.assertRegex(text, r"\n  on the CPU +[\d.]+ \wi?B \(state [\d.]+ \wi?B, activations .*, temporaries .*, copies of weights .*\); weights in the file [\d.]+ KiB\n")


class Doctor(Device):
    def test_the_cpu(self):
        cpu = self.succeed_json("doctor", "--json", env=BARE)["cpu"]
        self.assertEqual(cpu["name"], self.succeed_json("bench", ADD, "-r", "1", "--json", env=BARE)["cpu"])
        self.assertRegex(cpu["target"], r"^(AVX|SSE|SSSE|NEON|EMU|WASM)")
        self.assertTrue(1 <= cpu["threads"] <= cpu["processors"]["cores"] <= cpu["processors"]["allowed"] <= cpu["processors"]["online"])
        for env in (BARE, FREE, {}):
            text = self.succeed("doctor", env=env)
            self.assertIn(f"\nCPU  {cpu['name']}\n      kernels       {cpu['target']}\n      threads       {cpu['threads']}: {cpu['threads_reason']}\n",
                          "\n" + text)

    def test_the_reason(self):
        self.assertEqual(self.succeed_json("doctor", "--json", env=BARE)["reason"], "no GPU can be used")
        self.assertEqual(self.succeed_json("doctor", "--json", env={"PTERYX_DEVICE": "cpu"})["reason"], "PTERYX_DEVICE asks for the CPU")
        self.assertEqual(self.succeed_json("doctor", "--json", env={"PTERYX_ADAPTER": "software"})["reason"], "PTERYX_ADAPTER asks for 'software'")

    def test_why(self):
        text = self.succeed("doctor", env=NO_DRIVER)
        self.assertRegex(text, r"(?m)^no GPU adapter can be used; tried:\n  dawn: no adapter\n")
        self.assertRegex(text, r"\nPteryx would use the CPU: .+\.\n$")
        report = self.succeed_json("doctor", "--json", env=NO_DRIVER)
        self.assertEqual(list(report["default"]), ["cpu"])
        self.assertIn("no GPU adapter can be used", report["problem"])

    def test_software_is_shown_and_not_taken(self):
        text = self.succeed("doctor", env=FREE)
        self.assertIn("llvmpipe", text)
        self.assertNotRegex(text, "would use llvmpipe")

    def test_asked_for(self):
        text = self.succeed("doctor", env={"PTERYX_DEVICE": "cpu"})
        self.assertRegex(text, r"\n\nPTERYX_DEVICE asks for the CPU\.\nPteryx would use the CPU: .+\.\n$")
        self.assertNotIn("problem", self.succeed_json("doctor", "--json", env={"PTERYX_DEVICE": "cpu"}))
        result = tool("doctor", env={**NO_DRIVER, "PTERYX_DEVICE": "gpu"})
        self.assertEqual(result.returncode, NO_GPU)
        self.assertNotIn("would use", result.stdout)
        self.assertIn("PTERYX_DEVICE: expected auto, gpu or cpu, got 'tpu'", self.fail_with(USAGE, "doctor", env={"PTERYX_DEVICE": "tpu"}))

    def test_its_report_is_none_of_limits(self):
        report = self.write("cpu.json", self.succeed("doctor", "--json", env=BARE))
        self.assertIn("expected the report of a machine with a GPU", self.fail_with(BAD_FILE, "inspect", ADD, "--limits", report, env=BARE))


if __name__ == "__main__":
    unittest.main()
