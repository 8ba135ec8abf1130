"""pteryx generate and pteryx bench: text from language models, and how fast it comes."""
# SPDX-License-Identifier: BSD-3-Clause
import json
import math
import shutil
import signal
import struct
import subprocess
import unittest

from cli import BAD_FILE, DECODERS, FIXTURES, INTERRUPTED, LLM, OK, OPS, STATE, TOOL, USAGE, TestCase, case, environment, tool
from tokenizers import letter_tokenizer

MODEL = LLM / "qwen3_like_q4.pte"
FOLDER = FIXTURES / "convert" / "qwen2"


def letter_model(folder):
    """A Hugging Face folder whose tokens are letters, with a chat template."""
    model = folder / "model"
    shutil.copytree(FIXTURES / "convert" / "qwen3", model)
    (model / "tokenizer.json").write_text(letter_tokenizer())
    (model / "chat_template.jinja").write_text(
        "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}{% if add_generation_prompt %}<answer>{% endif %}")
    return model


def ids(values):
    return [str(v) for v in values]


def damaged(model):
    """The bytes of a program with NaN for every constant."""
    data = bytearray(model.read_bytes())
    (blob,) = struct.unpack_from("<Q", data, 24)
    (constants,) = struct.unpack_from("<I", data, blob + 18)
    words = (len(data) - blob - constants) // 4
    data[blob + constants:] = struct.pack("<f", math.nan) * words
    return bytes(data)


class Generate(TestCase):
    def generate(self, model, *args, env=None):
        return self.succeed_json("generate", model, "--json", *args, env=env)

    def test_greedy_ids_are_the_exporters(self):
        for folder, name in ((LLM, "qwen3_like_q4"), (LLM, "qwen2_like_fp32"), (DECODERS, "llama_fp32"), (DECODERS, "llama_static"),
                             (DECODERS, "llama_full")):
            wanted = case(folder, name)
            with self.subTest(name):
                report = self.generate(folder / f"{name}.pte", "--temperature", "0", "--ignore-end", "-n", len(wanted["greedy_ids"]),
                                       "--prompt-ids", *ids(wanted["prompt_ids"]))
                self.assertEqual(report["ids"], wanted["greedy_ids"])
                self.assertEqual(report["stopped_by"], "length")

    def test_equal_seeds_give_equal_text(self):
        def text(seed):
            return self.generate(MODEL, "--prompt-ids", "1", "2", "-n", "16", "--temperature", "2", "--seed", seed)["ids"]
        self.assertEqual(text(7), text(7))
        self.assertNotEqual(text(7), text(8))

    def test_ids_without_a_tokenizer(self):
        result = tool("generate", MODEL, "--prompt-ids", "1", "2", "3", "-n", "4", "--temperature", "0")
        self.assertEqual(result.returncode, OK, result.stderr)
        self.assertRegex(result.stdout, r"^\d+ \d+ \d+ \d+\n$")
        self.assertRegex(result.stderr, r"\nprompt +[\d.]+ ms +3 tokens +[\d.]+ tokens/s\ntext +[\d.]+ ms +4 tokens .*stopped by: length")

    def test_log_probabilities(self):
        report = self.generate(MODEL, "--prompt-ids", "1", "-n", "5", "--log-probabilities", "--ignore-end")
        self.assertEqual(len(report["log_probabilities"]), 5)
        self.assertTrue(all(p <= 0 for p in report["log_probabilities"]))

    def test_a_folder_is_converted_once(self):
        env = {"PTERYX_CACHE": str(self.folder / "cache")}
        first = tool("generate", FOLDER, "--prompt-ids", "1", "2", "-n", "3", "--json", env=env)
        self.assertEqual(first.returncode, 0, first.stderr)
        self.assertIn("converting", first.stderr)
        second = tool("generate", FOLDER, "--prompt-ids", "1", "2", "-n", "3", "--json", env=env)
        self.assertNotIn("converting", second.stderr)
        self.assertEqual(len(list((self.folder / "cache").glob("*.pte"))), 1)

    def test_refusals(self):
        self.assertIn("has no tokenizer: give one with --tokenizer", self.fail_with(USAGE, "generate", MODEL, "-p", "hello"))
        self.assertIn("token 1 is 300: expected an id from 0 to 299",
                      self.fail_with(USAGE, "generate", MODEL, "--prompt-ids", "1", "300"))
        self.assertIn("is not a language model with a KV cache",
                      self.fail_with(BAD_FILE, "generate", OPS / "add.pte", "-p", "hello"))
        self.assertEqual(tool("generate", MODEL).returncode, USAGE)
        self.assertIn("belongs to another", self.fail_with(BAD_FILE, "generate", MODEL, "-p", "hello", "--tokenizer",
                                                           FIXTURES / "tokenizers" / "gpt2.json"))

    def test_logits_that_are_not_finite(self):
        model = self.folder / "damaged.pte"
        model.write_bytes(damaged(MODEL))
        wanted = "the model's logits are not finite at position 2"
        for options in ([], ["--temperature", "0"], ["--log-probabilities"]):
            self.assertIn(wanted, self.fail_with(BAD_FILE, "generate", model, "--prompt-ids", "1", "2", "3", "-n", "8", *options))
        self.assertIn("the model's logits are not finite at position 0",
                      self.fail_with(BAD_FILE, "eval", model, "--ids", "1", "2", "3", "4"))


class Limits(TestCase):
    """Weights that are larger than a binding of the GPU."""
    def tokens(self, model, disable, *options):
        report = self.succeed_json("generate", model, "--json", "--precision", "f32", "--temperature", "0", "-n", 12, "--ignore-end",
                                   "--log-probabilities", "--prompt-ids", *ids([1, 5, 7, 200, 255, 31]), *options,
                                   env={"PTERYX_DISABLE": disable})
        return report["ids"], report["log_probabilities"]

    def test_every_format_of_weights(self):
        for quantize in ("q4", "q8", "f16", "none"):
            model = self.folder / f"{quantize}.pte"
            self.succeed("synth", "-o", model, "--quantize", quantize, "--max-context", 32, "--max-tokens", 4)
            # Caches take 4 KiB, activations less, the largest weight 8 (q4) to 64 KiB; two layers joined, more.
            limits = self.write("limits.json", json.dumps({"max_binding_bytes": 4096}))
            method = self.succeed_json("inspect", model, "--json", "--limits", limits)["methods"][0]
            self.assertTrue(method["limits"]["fits"], method["limits"]["excess"])
            self.assertGreaterEqual(len(method["limits"]["splits"]), 2)
            wanted, probabilities = self.tokens(model, "")
            for disable in ("max_binding_bytes=4KiB", "max_buffer_bytes=16KiB", "max_binding_bytes=6000,subgroups",
                            "max_weight_bytes=1KiB,max_binding_bytes=4KiB"):
                with self.subTest(f"{quantize} {disable}"):
                    got, close = self.tokens(model, disable)
                    self.assertEqual(got, wanted)
                    for a, b in zip(close, probabilities):
                        self.assertAlmostEqual(a, b, delta=1e-3)

    def test_ids_of_the_exporter(self):
        for name in ("qwen3_like_q4", "qwen2_like_fp32"):
            wanted = case(LLM, name)
            report = self.succeed_json("generate", LLM / f"{name}.pte", "--json", "--temperature", "0", "--ignore-end",
                                       "-n", len(wanted["greedy_ids"]), "--prompt-ids", *ids(wanted["prompt_ids"]),
                                       env={"PTERYX_DISABLE": "max_weight_bytes=1KiB"})
            self.assertEqual(report["ids"], wanted["greedy_ids"])

    def test_perplexity(self):
        def perplexity(disable):
            return self.succeed_json("eval", MODEL, "--json", "--ids", *ids(range(1, 40)), env={"PTERYX_DISABLE": disable})["perplexity"]
        self.assertAlmostEqual(perplexity("max_weight_bytes=1KiB") / perplexity(""), 1, delta=1e-3)

    def test_what_cannot_be_split(self):
        message = self.fail_with(BAD_FILE, "generate", MODEL, "--kv", "f32", "--prompt-ids", "1", env={"PTERYX_DISABLE": "max_binding_bytes=36KiB"})
        self.assertRegex(message, r"[\w ]+, f32 \[.*\]: \d+ bytes, max_binding_bytes of the device is 36864; export or convert it with ")
        self.assertIn("while loading method 'forward'", message)


class KvCache(TestCase):
    """Caches of another type than the file's."""
    STATE = 4 * 160 * 2 * 32 * 4  # bytes of the fixtures' caches as f32

    def test_greedy_ids_are_the_exporters(self):
        for name, options, env in (("qwen3_like_q4", [], {}), ("qwen2_like_fp32", [], {}), ("qwen2_like_fp32", ["--device", "cpu"], {}),
                                   ("qwen2_like_fp32", [], {"PTERYX_DISABLE": "f16,subgroups"})):
            wanted = case(LLM, name)
            report = self.succeed_json("generate", LLM / f"{name}.pte", "--json", "--kv", "f16", "--temperature", "0", "--ignore-end",
                                       "-n", len(wanted["greedy_ids"]), *options, "--prompt-ids", *ids(wanted["prompt_ids"]), env=env)
            self.assertEqual(report["ids"], wanted["greedy_ids"])

    def test_memory(self):
        def gpu_bytes(model, *options):
            return self.succeed_json("bench", model, "--json", "-p", "8", "-n", "4", "-r", "1", *options)["gpu_bytes"]
        plain = gpu_bytes(MODEL)
        self.assertEqual(gpu_bytes(MODEL, "--kv", "f16"), plain)
        self.assertEqual(gpu_bytes(MODEL, "--kv", "f32") - plain, self.STATE // 2)
        exact = gpu_bytes(MODEL, "--precision", "f32")
        self.assertEqual(exact - gpu_bytes(MODEL, "--precision", "f32", "--kv", "f16"), self.STATE // 2)
        halves = self.folder / "halves.pte"
        self.assertEqual(tool("convert", FOLDER, "--kv", "f16", "-o", halves).returncode, OK)
        self.assertEqual(gpu_bytes(halves, "--kv", "f16"), gpu_bytes(halves))
        self.assertGreater(gpu_bytes(halves, "--kv", "f32"), gpu_bytes(halves))

    def test_perplexity(self):
        def perplexity(*options):
            return self.succeed_json("eval", MODEL, "--json", "--ids", *ids(range(3, 60)), *options)["perplexity"]
        self.assertEqual(perplexity("--kv", "f16"), perplexity())
        self.assertNotEqual(perplexity("--kv", "f16"), perplexity("--kv", "f32"))
        self.assertAlmostEqual(perplexity("--kv", "f16") / perplexity("--kv", "f32"), 1, delta=1e-3)

    def test_refusals(self):
        self.assertIn("cache.pte: no KV cache can be f16: value ",
                      self.fail_with(BAD_FILE, "generate", STATE / "cache.pte", "--kv", "f16", "--prompt-ids", "1"))
        self.assertIn("--kv: expected f32 or f16, got 'q8'", self.fail_with(USAGE, "generate", MODEL, "--kv", "q8", "--prompt-ids", "1"))


class Prompts(TestCase):
    """Where a prompt comes from, with a model and tokenizer whose tokens are letters."""

    def setUp(self):
        super().setUp()
        self.model = letter_model(self.folder)
        self.env = {"PTERYX_CACHE": str(self.folder / "cache")}
        self.rest = ["-n", "3", "--temperature", "0", "--ignore-end"]

    def generate(self, *args, stdin=""):
        result = tool("generate", self.model, *self.rest, *args, env=self.env, stdin=stdin)
        self.assertEqual(result.returncode, OK, result.stderr)
        return result.stdout

    def test_of_every_kind(self):
        wanted = self.generate("-p", "abc")
        file = self.write("prompt.txt", "abc\n")
        self.assertEqual(self.generate(stdin="abc\n"), wanted)
        self.assertEqual(self.generate("-f", "-", stdin="abc"), wanted)
        self.assertEqual(self.generate("-f", file), wanted)
        pipe = subprocess.run(["bash", "-c", f"'{TOOL}' generate '{self.model}' {' '.join(self.rest)} -f <(echo abc)"], text=True,
                              env=environment(self.env), capture_output=True, check=True)
        self.assertEqual(pipe.stdout, wanted)

    def test_echo(self):
        wanted = "abc" + self.generate("-p", "abc")
        self.assertEqual(self.generate("-p", "abc", "--echo"), wanted)
        self.assertEqual(self.generate("-f", self.write("prompt.txt", "abc"), "--echo"), wanted)
        self.assertEqual(self.generate("--prompt-ids", "0,1,2", "--echo"), wanted)
        report = json.loads(self.generate("-p", "abc", "--echo", "--json"))
        self.assertEqual(report["prompt"] + report["text"] + "\n", wanted)

    def test_chat(self):
        wanted = self.generate("-p", "<system>hm<user>hi<answer>")
        self.assertEqual(self.generate("--chat", "-p", "hi", "--system", "hm"), wanted)
        self.assertEqual(self.generate("--chat", "--system", "hm", stdin="hi\n"), wanted)

    def test_no_prompt(self):
        self.assertIn(f"{self.folder}/none: No such file", self.fail_with(BAD_FILE, "generate", self.model, "-f", self.folder / "none"))

    def test_files_are_known_by_content(self):
        self.assertIn("already a program", self.fail_with(USAGE, "convert", MODEL, "-o", self.folder / "m.pte"))
        self.assertIn("is a Hugging Face folder: use `pteryx convert`", self.fail_with(BAD_FILE, "run", self.model))
        gguf = self.folder / "BLOB"
        shutil.copy(FIXTURES / "convert" / "llama.gguf", gguf)
        self.assertIn("is a GGUF file: use `pteryx convert`", self.fail_with(BAD_FILE, "run", gguf))
        self.assertIn("is a GGUF file: use `pteryx convert`", self.fail_with(BAD_FILE, "inspect", gguf))
        result = tool("generate", gguf, "--prompt-ids", "1", "-n", "1", env=self.env)
        self.assertEqual(result.returncode, OK, result.stderr)
        text = self.write("notes.gguf", "These are notes.\n")
        for command in (["generate", text, "-p", "x"], ["eval", text, "--ids", "1,2"], ["chat", text], ["bench", text]):
            self.assertIn("expected a .pte program, a GGUF file, a Hugging Face folder or a llama2.c checkpoint", self.fail_with(BAD_FILE, *command))

    def test_an_interrupt_ends_the_text(self):
        process = subprocess.Popen([TOOL, "generate", self.model, "-p", "abc", "--ignore-end", "--shift"], env=environment(self.env),
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.assertTrue(process.stdout.read(1))
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
        self.assertEqual(process.returncode, INTERRUPTED)
        self.assertIn("stopped by: cancelled", said)


class Eval(TestCase):
    def test_is_what_generate_says_of_its_own_text(self):
        for name in ("qwen3_like_q4", "qwen2_like_fp32"):
            report = self.succeed_json("generate", LLM / f"{name}.pte", "--prompt-ids", "1", "2", "3", "-n", "40", "--temperature", "0",
                                       "--ignore-end", "--log-probabilities", "--precision", "f32", "--json")
            text = [1, 2, 3] + report["ids"]
            for chunk in (64, 7, 1):
                scores = self.succeed_json("eval", LLM / f"{name}.pte", "--ids", *ids(text), "--chunk", chunk, "--precision", "f32", "--json")
                self.assertEqual(scores["ids"], text)
                self.assertEqual(scores["top1"][2:], report["ids"])
                for nll, p in zip(scores["nll"][2:], report["log_probabilities"], strict=True):
                    self.assertAlmostEqual(nll, -p, places=4)
                mean = sum(scores["nll"]) / len(scores["nll"])
                self.assertAlmostEqual(scores["perplexity"], math.exp(mean), places=6)

    def test_texts_longer_than_the_context(self):
        scores = self.succeed_json("eval", MODEL, "--ids", *ids(i % 300 for i in range(300)), "--json")
        self.assertEqual(scores["tokens"], 299)

    def test_refusals(self):
        self.assertIn("has no tokenizer", self.fail_with(USAGE, "eval", MODEL, "--text", self.write("a.txt", "hello")))
        self.assertIn("expected a text of at least two tokens, got 1", self.fail_with(USAGE, "eval", MODEL, "--ids", "1"))
        self.assertIn("token 1 is 300: expected an id from 0 to 299", self.fail_with(USAGE, "eval", MODEL, "--ids", "1", "300", "2"))


class WithoutTokenizer(TestCase):
    """Whoever works on ids needs no tokenizer, not even a good one."""

    def test_bench_and_eval(self):
        broken = self.write("tokenizer.json", "{")
        for args in (["bench", MODEL, "-p", "4", "-n", "2", "-r", "1"], ["eval", MODEL, "--ids", "1,2,3"]):
            self.succeed(*args, "--tokenizer", broken)
        self.assertIn("tokenizer.json", self.fail_with(BAD_FILE, "eval", MODEL, "--text", broken, "--tokenizer", broken))


class Bench(TestCase):
    def test_json(self):
        report = self.succeed_json("bench", MODEL, "-p", "4,16", "-n", "4", "-c", "0,32", "-r", "2", "--json")
        self.assertEqual([(r["test"], r["context"]) for r in report["rows"]],
                         [("prompt 4", 0), ("prompt 16", 0), ("text 4", 0), ("text 4", 32)])
        for row in report["rows"]:
            self.assertEqual(len(row["repeats"]), 2)
            self.assertGreater(row["tokens_per_second"], 0)
        self.assertGreater(report["gpu_bytes"], 0)

    def test_table(self):
        text = self.succeed("bench", MODEL, "-p", "4", "-n", "4", "-r", "1")
        self.assertRegex(text, r"^GPU: .*llvmpipe")
        self.assertRegex(text, r"\n +prompt 4 +0 +[\d.]+ \+- [\d.]+ +[\d.]+ *\n")

    def test_text_may_be_what_is_measured_first(self):
        result = tool("bench", MODEL, "-p", "100000", "-n", "2", "-c", "8", "-r", "1", "--json")
        self.assertEqual([r["test"] for r in json.loads(result.stdout)["rows"]], ["text 2"])

    def test_what_does_not_fit_is_skipped(self):
        result = tool("bench", MODEL, "-p", "4,100000", "-n", "0", "-r", "1")
        self.assertEqual(result.returncode, 0)
        self.assertIn("prompt of 100000 tokens skipped", result.stderr)


if __name__ == "__main__":
    unittest.main()
