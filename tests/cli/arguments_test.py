"""Arguments: strict numbers, lists, near names, help, completion and manual."""
# SPDX-License-Identifier: BSD-3-Clause
import re
import subprocess
import unittest

from cli import LLM, NO_LIBRARY, OPS, USAGE, TestCase, tool

MODEL = LLM / "qwen3_like_q4.pte"
COMMANDS = ("generate", "chat", "convert", "bench", "profile", "eval", "run", "inspect", "verify", "synth", "cache", "tune", "doctor", "ops", "completion",
            "man")


class Arguments(TestCase):
    def usage(self, *args, env=None):
        """What is said of wrong arguments, before a GPU is looked for."""
        return self.fail_with(USAGE, *args, env={**NO_LIBRARY, **(env or {})})


class Numbers(Arguments):
    def test_not_numbers(self):
        for option in ("--temperature", "--top-p", "--min-p", "--repetition-penalty", "--presence-penalty", "--frequency-penalty"):
            for value in ("nan", "NaN", "-nan", "inf", "-inf", "1e999", "x", "1x", "0x1", " 1", "1,5"):
                with self.subTest(option=option, value=value):
                    message = self.usage("generate", MODEL, "-p", "x", f"{option}={value}")
                    self.assertIn(f"pteryx: generate: {option}: expected a number from ", message)
                    self.assertIn(f", got '{value}'\n", message)

    def test_missing(self):
        self.assertIn("generate: --top-p: expected a value, got none", self.usage("generate", MODEL, "-p", "x", "--top-p="))
        self.assertIn("run: --method: expected a value, got none", self.usage("run", MODEL, "--method"))

    def test_empty_names(self):
        for args in (["inspect", MODEL, "--graph", ""], ["convert", MODEL, "-o", ""], ["run", MODEL, "-o", ""], ["generate", MODEL, "-f", ""],
                     ["inspect", ""]):
            self.assertRegex(self.usage(*args), "expected the name of a file, got none|expected a value, got none")

    def test_out_of_range(self):
        for option, value, text in (("-n", "-7", "--max-new-tokens: expected an integer from -1 to 2147483647, got '-7'"),
                                    ("--memory-limit", "-1", "--memory-limit: expected an integer from 0 to 1073741824, got '-1'"),
                                    ("--memory-limit", "17592186044416", "got '17592186044416'"), ("--top-k", "-1", "--top-k: expected"),
                                    ("--temperature", "-0.1", "from 0 to 100"), ("--seed", "-1", "--seed: expected an integer from 0"),
                                    ("--seed", "18446744073709551616", "got '18446744073709551616'"), ("--ahead", "0", "from 1 to 64")):
            with self.subTest(option=option, value=value):
                self.assertIn(text, self.usage("generate", MODEL, "-p", "x", option, value))

    def test_choices(self):
        self.assertIn("--provider: expected dawn or wgpu, got 'angle'", self.usage("run", MODEL, "--provider", "angle"))
        self.assertIn("--precision: expected f32 or f16, got 'f8'", self.usage("run", MODEL, "--precision", "f8"))
        self.assertIn("--quantize: expected auto, q4, q8, f16 or none, got 'q5'", self.usage("convert", MODEL, "-o", "x", "--quantize", "q5"))

    def test_routes(self):
        message = self.fail_with(USAGE, "run", OPS / "add.pte", "--route", "softmax:quantum")
        self.assertEqual(message, "pteryx: there is no route 'softmax:quantum': expected one of softmax:subgroup, softmax:workgroup, "
                                  "softmax:serial\n")
        self.assertIn("there is no route 'dance': expected one of attention:..., ", self.fail_with(USAGE, "run", OPS / "add.pte", "--route", "dance"))

    def test_routes_of_the_environment(self):
        env = {"PTERYX_ROUTE": "dance"}
        for command in ("run", "inspect"):
            self.assertIn("there is no route 'dance'", self.fail_with(USAGE, command, OPS / "add.pte", env=env))
        self.assertNotIn("route", self.fail_with(USAGE, "run", OPS / "add.pte", "--route", "softmax:serial", env=env))

    def test_precision_of_the_environment(self):
        for command in (["generate", MODEL, "-p", "x"], ["chat", MODEL], ["bench", MODEL], ["eval", MODEL, "--ids", "1", "2"], ["run", MODEL],
                        ["inspect", MODEL]):
            with self.subTest(command[0]):
                message = self.usage(*command, env={"PTERYX_PRECISION": "f99"})
                self.assertIn("PTERYX_PRECISION: expected f32 or f16, got 'f99'", message)
        self.succeed("ops", env={"PTERYX_PRECISION": "f99"})  # which has no use for it


class Precision(Arguments):
    def test_the_environment_counts(self):
        """f16 is the default of language models; f32 from the environment gives other logits than that, those of --precision f32."""
        def scores(*args, env=None):
            return self.succeed_json("eval", MODEL, "--ids", "1,2,3,4,5,6,7,8", "--json", *args, env=env)["nll"]
        exact = scores("--precision", "f32")
        self.assertEqual(scores(env={"PTERYX_PRECISION": "f32"}), exact)
        self.assertEqual(scores("--precision", "f16", env={"PTERYX_PRECISION": "f32"}), scores())


class Lists(Arguments):
    def test_spellings(self):
        for ids in (["1", "2", "3"], ["1,2,3"], ["1 2 3"], ["1,", "2", ",3"], ["1", "--ids", "2,3"]):
            for args in (["eval", MODEL, "--ids", *ids], ["eval", "--ids", *ids, MODEL], ["eval", f"--ids={ids[0]}", *ids[1:], MODEL]):
                with self.subTest(args[1:]):
                    # Read whole, the list has an id that is refused, by its place.
                    message = self.fail_with(USAGE, *args, "--ids", "300")
                    self.assertIn("token 3 is 300: expected an id from 0 to 299", message)

    def test_negative_ids(self):
        self.assertIn("token 2 is -5: expected an id from 0 to 299", self.fail_with(USAGE, "eval", MODEL, "--ids", "1", "2", "-5"))

    def test_the_last_id_is_checked(self):
        for last in ("999999999", "300", "-5"):
            self.assertIn(f"token 2 is {last}: ", self.fail_with(USAGE, "eval", MODEL, "--ids", "1", "2", last))

    def test_nothing_is_swallowed(self):
        self.assertIn("no tokenizer", self.fail_with(USAGE, "generate", "--stop", "park", MODEL, "-p", "Once"))
        x = "/nonexistent/x.npy"
        self.assertIn(f"{x}: No such file", self.fail_with(3, "run", "-i", x, x, OPS / "add.pte"))
        self.assertIn("no case of the manifest matches", self.fail_with(USAGE, "verify", "--only", "none1", "none2", OPS / "manifest.json"))

    def test_names(self):
        report = self.succeed_json("verify", OPS, "--only", "relu,add", "--json")
        self.assertEqual(sorted(c["name"] for c in report["cases"]), ["add", "relu"])


class Names(Arguments):
    def test_no_command(self):
        result = tool()
        self.assertEqual((result.returncode, result.stdout), (USAGE, ""))
        for command in COMMANDS:
            self.assertRegex(result.stderr, rf"\n  {command} +[A-Z]")

    def test_near_commands(self):
        for typed, meant in (("generte", "generate"), ("caht", "chat"), ("gen", "generate"), ("inspct", "inspect"), ("benchmark", "bench")):
            self.assertIn(f"there is no command '{typed}'; did you mean '{meant}'?\n  commands: generate, ", self.usage(typed))
        self.assertIn("there is no command 'foo'\n  commands: generate, chat, ", self.usage("foo"))

    def test_near_options(self):
        for typed, meant in (("--temperatur", "--temperature"), ("--topk", "--top-k"), ("--max-tokens", "--max-new-tokens"), ("--jsn", "--json")):
            self.assertIn(f"generate: there is no option '{typed}'; did you mean '{meant}'?\n  `pteryx generate --help` lists the options\n",
                          self.usage("generate", MODEL, "-p", "x", typed, "1"))
        self.assertIn("run: there is no option '--frobnicate'\n", self.usage("run", MODEL, "--frobnicate"))

    def test_missing_and_extra(self):
        self.assertIn("generate: model is required", self.usage("generate"))
        self.assertIn("inspect: unexpected argument 'b.pte'", self.usage("inspect", MODEL, "b.pte"))
        self.assertIn("eval: --text or --ids is required", self.usage("eval", MODEL))
        self.assertIn("--batch", self.usage("run", MODEL, "--keep-going"))
        self.assertIn("excludes", self.usage("generate", MODEL, "-p", "x", "-f", "y"))


class Texts(Arguments):
    def test_help_fits(self):
        self.assertRegex(self.succeed("--version"), r"^pteryx \d+\.\d+\.\d+\n$")
        whole = self.succeed("--help")
        for command in COMMANDS:
            self.assertIn(f"\n  {command} ", whole)
            text = self.succeed(command, "--help")
            self.assertTrue(text.split("\n\n")[1].startswith(f"Usage: pteryx {command} [OPTIONS]"), text)
            self.assertEqual(text, self.succeed(command, "-h"))
            self.assertLessEqual(max(map(len, text.splitlines())), 80)
            self.assertNotIn("\033", text)

    def test_completion(self):
        for shell in ("bash", "zsh", "fish"):
            script = self.succeed("completion", shell)
            for command in COMMANDS:
                self.assertIn(command, script)
            for option in ("temperature", "max-new-tokens", "keep-going", "markdown"):
                self.assertIn(option, script)
        self.assertIn("expected bash, zsh or fish, got 'cmd'", self.usage("completion", "cmd"))

    def test_completion_in_bash(self):
        script = self.write("pteryx.bash", self.succeed("completion", "bash"))

        def complete(*words):
            line = " ".join(f"'{w}'" for w in words)
            result = subprocess.run(["bash", "-c", f"source {script}; COMP_WORDS=({line}); COMP_CWORD={len(words) - 1}; _pteryx; "
                                     "printf '%s\\n' \"${COMPREPLY[@]}\""], capture_output=True, text=True, check=True, cwd=self.folder)
            return result.stdout.split()
        self.assertEqual(complete("pteryx", "ge"), ["generate"])
        self.assertEqual(complete("pteryx", "generate", "--temp"), ["--temperature"])
        self.assertEqual(complete("pteryx", "run", "m.pte", "--provider", ""), ["dawn", "wgpu"])
        self.assertEqual(complete("pteryx", "completion", "f"), ["fish"])
        self.assertEqual(complete("pteryx", "inspect", "pter"), ["pteryx.bash"])
        self.assertEqual(complete("pteryx", "generate", "-n", ""), [])

    def test_manual(self):
        page = self.succeed("man")
        self.assertTrue(page.startswith(".TH PTERYX 1"))
        for command in COMMANDS:
            self.assertIn(f"\n.SS {command}\n", page)
            for option in re.findall(r"(?m)^  (?:-\w, )?(--[\w-]+)", self.succeed(command, "--help")):
                self.assertIn(option.replace("-", "\\-"), page)


if __name__ == "__main__":
    unittest.main()
