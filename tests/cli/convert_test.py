"""pteryx convert and pteryx synth: programs from weights, told in tables and in JSON."""
# SPDX-License-Identifier: BSD-3-Clause
import contextlib
import json
import os
import pathlib
import signal
import struct
import subprocess
import time
import unittest

from cli import BAD_FILE, FIXTURES, INTERRUPTED, NO_LIBRARY, OK, TOOL, USAGE, TestCase, tool

CONVERT = FIXTURES / "convert"


class Convert(TestCase):
    def convert(self, source, *args):
        """The report of a conversion, which needs no GPU."""
        return self.succeed_json("convert", source, "-o", self.folder / "m.pte", "--json", *args, env=NO_LIBRARY)

    def refused(self, code, *args):
        """The message, and nothing left behind."""
        message = self.fail_with(code, *args, "-o", self.folder / "m.pte", env=NO_LIBRARY)
        self.assertEqual(list(self.folder.glob("m.pte*")), [])
        return message


class Report(Convert):
    def test_table(self):
        text = self.succeed("convert", CONVERT / "llama.gguf", "-o", self.folder / "m.pte", env=NO_LIBRARY)
        self.assertRegex(text, r"\nblk\.0\.attn_q\.weight +\[64, 64\] +Q4_0 +q4/32 +2560  0\.000 %\n")
        self.assertRegex(text, r"\ntoken_embd\.weight +\[64, 64\] +Q8_0 +q8 +4352  0\.\d+ %\n")
        self.assertRegex(text, r"\nQ4_0 to q4/32 +14 tensors +\d+ bytes, error at most 0\.000 %\n")
        self.assertIn(f"{self.folder / 'm.pte'}: {(self.folder / 'm.pte').stat().st_size} bytes, context 128, 128 tokens a call\n", text)

    def test_json(self):
        report = self.convert(CONVERT / "qwen3")
        self.assertEqual((report["architecture"], report["max_context"]), ("qwen3", 128))
        self.assertEqual(len(report["tensors"]), 2 * 7 + 2)
        for t in report["tensors"]:
            self.assertEqual((t["source"], t["target"]), ("F32", "q8"), t)
            self.assertTrue(0 < t["error"] < 0.02, t)

    def test_formats_and_options(self):
        sizes = {}
        for kind in ("none", "f16", "q8", "q4"):
            report = self.convert(CONVERT / "qwen2", "--quantize", kind, "--group-size", "16", "--max-context", "64", "--max-tokens", "8")
            self.assertEqual((report["max_context"], report["max_tokens"]), (64, 8))
            sizes[kind] = sum(t["bytes"] for t in report["tensors"])
        self.assertEqual(sorted(sizes, key=sizes.get), ["q4", "q8", "f16", "none"])
        self.assertEqual({t["target"] for t in report["tensors"]}, {"q4/16"})

    def test_program_can_be_inspected(self):
        table = self.folder / "tokenizer"
        table.write_bytes(struct.pack("<i", 3) + b"".join(struct.pack("<fi", 0, 3) + b"%03d" % i for i in range(64)))
        self.convert(CONVERT / "llama.gguf", "--kv", "f16", "--tokenizer", table)
        report = self.succeed_json("inspect", self.folder / "m.pte", "--json", env=NO_LIBRARY)
        methods = {m["name"]: m for m in report["methods"]}
        self.assertNotIn("problem", methods["forward"])
        self.assertEqual(methods["get_vocab_size"]["values"], [64])
        self.assertEqual(methods["get_eos_ids"]["values"], [2])
        self.assertEqual([d["max"] for d in methods["forward"]["inputs"][0]["dims"]], [1, 128])
        self.assertEqual({w["dtype"] for w in methods["forward"]["weights"] if w["state"]}, {"f16"})


class Errors(Convert):
    def test_bad_sources(self):
        self.assertIn("No such file or directory", self.refused(BAD_FILE, "convert", self.folder / "absent"))
        gguf = (CONVERT / "llama.gguf").read_bytes()
        (self.folder / "cut.gguf").write_bytes(gguf[:len(gguf) // 2])
        self.assertIn("while reading", self.refused(BAD_FILE, "convert", self.folder / "cut.gguf"))
        config = json.loads((CONVERT / "qwen3" / "config.json").read_text())
        config["num_hidden_layers"] = 3
        (self.folder / "hf").mkdir()
        for file in (CONVERT / "qwen3").iterdir():
            (self.folder / "hf" / file.name).write_bytes(file.read_bytes())
        self.write("hf/config.json", json.dumps(config))
        self.assertIn("tensor 'model.layers.2.input_layernorm.weight' [32] is missing",
                      self.refused(BAD_FILE, "convert", self.folder / "hf"))

    def test_what_generate_would_refuse(self):
        config = CONVERT / "llama3" / "config.json"
        self.assertIn(f"while reading the tokenizer of {config}", self.refused(BAD_FILE, "convert", CONVERT / "llama.gguf", "--tokenizer", config))
        self.assertIn("give the folder that holds config.json", self.refused(USAGE, "convert", CONVERT / "llama3" / "model.safetensors"))
        gguf = (CONVERT / "llama.gguf").read_bytes()
        (self.folder / "none.gguf").write_bytes(gguf.replace(b"tokenizer.ggml.tokens", b"tokenizer.ggml.tokenz"))
        self.assertIn("no vocabulary ('tokenizer.ggml.tokens'): give one with --tokenizer", self.refused(BAD_FILE, "convert", self.folder / "none.gguf"))

    def test_bad_options(self):
        self.assertIn("context: expected 1 to 128, got 4096",
                      self.refused(USAGE, "convert", CONVERT / "qwen2", "--max-context", "4096"))
        for option in (("--quantize", "q3"), ("--kv", "q8"), ("--group-size", "0"), ("--max-tokens", "1")):
            result = tool("convert", CONVERT / "qwen2", "-o", self.folder / "m.pte", *option)
            self.assertEqual(result.returncode, USAGE, option)
            self.assertIn(option[0], result.stderr)

    def test_earlier_output_survives(self):
        path = self.write("m.pte", "precious")
        self.fail_with(BAD_FILE, "convert", self.folder / "absent", "-o", path, env=NO_LIBRARY)
        self.assertEqual(path.read_text(), "precious")


class Synth(Convert):
    def test_deterministic(self):
        contents = []
        for seed in (1, 1, 2):
            self.succeed("synth", "--preset", "tiny", "--seed", seed, "-o", self.folder / "m.pte", env=NO_LIBRARY)
            contents.append((self.folder / "m.pte").read_bytes())
        self.assertEqual(contents[0], contents[1])
        self.assertNotEqual(contents[0], contents[2])

    def test_runs(self):
        self.succeed("synth", "--arch", "llama", "--quantize", "q8", "-o", self.folder / "m.pte", env=NO_LIBRARY)
        result = tool("inspect", self.folder / "m.pte", env=NO_LIBRARY)
        self.assertEqual(result.returncode, OK, result.stderr)
        self.assertNotIn("cannot run", result.stdout)

    def test_interrupted(self):
        process = subprocess.Popen([TOOL, "synth", "--preset", "llama-3.2-1b", "--quantize", "none", "-o", self.folder / "m.pte"],
                                   stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        while not self.is_writing(process):
            self.assertIsNone(process.poll())
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.communicate(timeout=60), ("", "pteryx: interrupted\n"))
        self.assertEqual((process.returncode, list(self.folder.iterdir())), (INTERRUPTED, []))

    def test_killed(self):
        process = subprocess.Popen([TOOL, "synth", "--preset", "llama-3.2-1b", "--quantize", "none", "-o", self.folder / "m.pte"])
        while not self.is_writing(process):
            self.assertIsNone(process.poll())
            time.sleep(0.01)
        process.kill()
        process.wait()
        self.assertEqual(list(self.folder.iterdir()), [])

    def is_writing(self, process):
        """Whether it has a file of the folder open, be it one without a name."""
        for link in pathlib.Path(f"/proc/{process.pid}/fd").iterdir():
            with contextlib.suppress(OSError):
                if os.readlink(link).startswith(str(self.folder)):
                    return True
        return False

    def test_presets(self):
        self.assertIn("preset 'tiny' is not of architecture 'qwen3'",
                      self.refused(USAGE, "synth", "--arch", "qwen3", "--preset", "tiny"))


if __name__ == "__main__":
    unittest.main()
