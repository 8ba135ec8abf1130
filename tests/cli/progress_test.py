"""What somebody who waits at a terminal sees, and a file does not."""
# SPDX-License-Identifier: BSD-3-Clause
import os
import pty
import re
import select
import signal
import subprocess
import time
import unittest

from cli import FIXTURES, INTERRUPTED, LLM, TOOL, TestCase, environment, tool

MODEL = LLM / "qwen3_like_q4.pte"
ERASE = b"\r\033[K"


class Progress(TestCase):
    def start(self, *args):
        """A process whose stderr is a terminal, and our end of it."""
        ours, theirs = pty.openpty()
        self.addCleanup(os.close, ours)
        process = subprocess.Popen([TOOL, *map(str, args)], stderr=theirs, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL,
                                   env=environment({"PTERYX_CACHE": str(self.folder / "cache")}))
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        os.close(theirs)
        return process, ours

    def read(self, terminal, pattern=None):
        """What the terminal shows, until the pattern is there or the program has ended."""
        seen = b""
        end = time.monotonic() + 120
        while pattern is None or not re.search(pattern, seen):
            self.assertTrue(select.select([terminal], [], [], max(0, end - time.monotonic()))[0], f"{pattern} not in {seen}")
            try:
                part = os.read(terminal, 4096)
            except OSError:  # the other end is closed
                part = b""
            if not part:
                self.assertIsNone(pattern, seen)
                break
            seen += part
        return seen

    def test_writing_a_program(self):
        process, terminal = self.start("synth", "--preset", "llama-3.2-1b", "--quantize", "none", "-o", self.folder / "m.pte")
        seen = self.read(terminal, rb"writing \S+m\.pte \d+ %, \d+ s left\x1b\[K")
        process.send_signal(signal.SIGINT)
        seen += self.read(terminal)
        self.assertTrue(seen.endswith(ERASE + b"pteryx: interrupted\r\n"), seen[-100:])
        process.communicate()
        self.assertEqual(process.returncode, INTERRUPTED)

    def test_nothing_stays_and_the_first_token_is_not_waited_for_in_silence(self):
        process, terminal = self.start("generate", MODEL, "--prompt-ids", ",".join(str(i % 300) for i in range(150)), "-n", "2")
        seen = self.read(terminal)
        process.communicate()
        self.assertEqual(process.returncode, 0, seen)
        lines = re.split(rb"\r(?!\n)", seen)
        for line in lines[1:-1]:
            self.assertTrue(line.endswith(b"\033[K"), line)
        if len(lines) > 1:  # a fast machine shows nothing
            self.assertTrue(lines[-1].startswith(b"\033[K"), seen)

    def test_nothing_in_a_file(self):
        result = tool("synth", "--preset", "tiny", "-o", self.folder / "m.pte")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        result = tool("generate", FIXTURES / "convert" / "qwen2", "--prompt-ids", "1", "-n", "1", "--json",
                      env={"PTERYX_CACHE": str(self.folder / "cache")})
        self.assertNotIn("\033", result.stderr)
        self.assertEqual(len(result.stderr.splitlines()), 1)


if __name__ == "__main__":
    unittest.main()
