"""What becomes of output that nobody can take: for every command, an exit code and a sentence."""
# SPDX-License-Identifier: BSD-3-Clause
import json
import os
import subprocess
import unittest

from cli import FAILED, LLM, OK, OPS, TOOL, VALUES, TestCase, environment, tool

MODEL = LLM / "qwen3_like_q4.pte"
WITHOUT_GPU = (["ops"], ["ops", "--json"], ["inspect", OPS / "add.pte"], ["inspect", OPS / "add.pte", "--json"], ["--help"],
               ["generate", "--help"], ["--version"], ["completion", "bash"], ["man"], ["cache", "list"])
WITH_GPU = (["doctor"], ["verify", VALUES, "--only", "int_input"], ["run", VALUES / "methods.pte", "-m", "get_vocab_size"],
            ["generate", MODEL, "--prompt-ids", "1,2", "-n", "2"], ["eval", MODEL, "--ids", "1,2,3"],
            ["bench", MODEL, "-p", "4", "-n", "0", "-r", "1"], ["profile", MODEL, "-p", "4", "-n", "0"])


class Streams(TestCase):
    def start(self, command, redirections):
        """The exit code and stderr of a command as a shell starts it."""
        words = " ".join(f"'{part}'" for part in [TOOL, *command])
        return subprocess.run(["bash", "-c", f"{words} {redirections}"], env=environment({"PTERYX_CACHE": str(self.folder / "cache")}),
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=600, check=False)

    def commands(self):
        convert = ["synth", "-o", self.folder / "m.pte"]
        return [*WITHOUT_GPU, convert, *WITH_GPU]

    def test_full(self):
        for command in self.commands():
            with self.subTest(command):
                result = self.start(command, ">/dev/full")
                self.assertEqual(result.returncode, FAILED, result.stderr)
                self.assertIn("pteryx: cannot write to stdout: No space left on device\n", result.stderr)

    def test_closed(self):
        for command in [*WITHOUT_GPU, WITH_GPU[2], WITH_GPU[3]]:
            with self.subTest(command):
                result = self.start(command, ">&-")
                self.assertEqual(result.returncode, FAILED, result.stderr)
                self.assertIn("pteryx: cannot write to stdout: Bad file descriptor\n", result.stderr)

    def test_closed_pipe_is_silent(self):
        for command in [*WITHOUT_GPU, WITH_GPU[2], WITH_GPU[3]]:
            with self.subTest(command):
                ours, theirs = os.pipe()
                os.close(ours)
                result = subprocess.run([TOOL, *map(str, command)], env=environment({"PTERYX_CACHE": str(self.folder / "cache")}),
                                        stdout=theirs, stderr=subprocess.PIPE, text=True, timeout=600, check=False)
                os.close(theirs)
                self.assertEqual((result.returncode, result.stderr), (FAILED, ""))

    def test_no_stderr(self):
        for command in [*WITHOUT_GPU, WITH_GPU[3]]:
            with self.subTest(command):
                result = self.start(command, "2>&-")
                self.assertEqual(result.returncode, OK)
                self.assertNotEqual(result.stdout, "")
        self.assertEqual(self.start(["inspect", "/nonexistent"], "2>&- <&- >&-").returncode, 3)

    def test_no_stdin(self):
        self.assertEqual(self.start(WITH_GPU[3], "<&-").returncode, OK)
        result = self.start(["generate", MODEL], "<&-")
        self.assertEqual(result.returncode, 3)
        self.assertIn("pteryx: stdin: Bad file descriptor", result.stderr)

    def test_a_model_is_not_written_to(self):
        """A closed stream's number must not become a file's."""
        before = MODEL.read_bytes()
        self.start(["inspect", MODEL], ">&- 2>&- <&-")
        self.assertEqual(MODEL.read_bytes(), before)


class Json(TestCase):
    """After --json an error is JSON as well, on stdout, and a sentence on stderr."""

    def test_errors(self):
        for code, args in ((3, ["inspect", "/nonexistent", "--json"]), (2, ["inspect", "--json"]), (2, ["eval", MODEL, "--ids", "1", "300", "--json"]),
                           (2, ["generate", MODEL, "--prompt-ids", "1", "--top-p", "2", "--json"]), (3, ["convert", MODEL.parent, "-o", "x", "--json"]),
                           (2, ["verify", OPS, "--only", "nothing", "--json"]), (3, ["run", "/nonexistent", "--json"]), (2, ["dance", "--json"])):
            with self.subTest(args):
                result = tool(*args)
                self.assertEqual(result.returncode, code, result.stderr)
                error = json.loads(result.stdout)["error"]
                self.assertEqual((set(error), error["exit"]), ({"message", "code", "exit"}, code))
                self.assertEqual(result.stderr, f"pteryx: {error['message']}\n")

    def test_control_characters_are_spelled_out(self):
        message = self.fail_with(3, "inspect", "/tmp/\033[31mred\nbell\a")
        self.assertIn("/tmp/\\x1b[31mred\\x0abell\\x07: No such file", message)

    def test_long_names_are_cut(self):
        message = self.fail_with(3, "inspect", "/" + "x/" * 1900)
        self.assertLess(len(message), 500)


if __name__ == "__main__":
    unittest.main()
