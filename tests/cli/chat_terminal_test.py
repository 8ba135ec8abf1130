"""pteryx chat at a terminal."""
# SPDX-License-Identifier: BSD-3-Clause
import fcntl
import json
import os
import pathlib
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time
import unittest

from cli import INTERRUPTED, LLM, OK, TOOL, TestCase
from tokenizers import byte_tokenizer

MODEL = LLM / "qwen3_like_q4.pte"


PROMPT = b"\x1b[1m>\x1b[0m "
CONTINUATION = b"\x1b[1m...\x1b[0m "
EDITED = b"\x1b[?2004l"  # behind every line; editing may draw the prompt again
PASTE, PASTE_END = b"\x1b[200~", b"\x1b[201~"
ENTER, CTRL_C, CTRL_D, TAB, RUBOUT, UP, LEFT = b"\r", b"\x03", b"\x04", b"\t", b"\x7f", b"\x1b[A", b"\x1b[D"
PROGRESS = re.compile(rb"\r[^\r\n\x1b]*(\x1b\[K|\x1b?\[?$)")
NOTICE = re.compile(rb"(\([^\n]*\n?)?")  # that messages are forgotten, or nothing yet
HINT = b"Ctrl-C again or Ctrl-D quits"


class Terminal:
    """The program at a terminal of its own. Keys are typed when a prompt is there; the prompt is bold, which no model's text can be."""

    def __init__(self, test, *args, **variables):
        self.test = test
        self.ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 100, 0, 0))
        environment = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "LC_ALL", "LANG")}
        self.process = subprocess.Popen([TOOL, "chat", MODEL, *map(str, args)], preexec_fn=lambda: os.login_tty(theirs), close_fds=False,
                                        env={**environment, "TERM": "xterm", "EDITRC": "/dev/null", "PTERYX_PIPELINE_CACHE": "0",
                                             **variables})
        os.close(theirs)
        self.seen = b""  # and not yet looked at
        test.addCleanup(self.close)

    def close(self):
        self.process.kill()
        self.process.wait()
        os.close(self.ours)

    def type(self, *keys):
        """Reads while it types: the program may have to write before it can read on."""
        rest = b"".join(keys)
        while rest:
            readable, writable, _ = select.select([self.ours], [self.ours], [], 120)
            self.test.assertTrue(readable or writable)
            if readable:
                self.seen += self.read()
            if writable:
                rest = rest[os.write(self.ours, rest[:256]):]

    def read(self):
        try:
            return os.read(self.ours, 65536)
        except OSError:  # the other side is closed
            return b""

    def wait_for(self, *wanted):
        """What came up to these, one behind the other."""
        pattern = re.compile(b".*?".join(map(re.escape, wanted)), re.DOTALL)
        end = time.monotonic() + 120
        while not (found := pattern.search(self.seen)):
            self.test.assertTrue(select.select([self.ours], [], [], max(0, end - time.monotonic()))[0], f"{wanted} not in {self.seen}")
            part = self.read()
            self.test.assertTrue(part, f"{wanted} not in {self.seen}")
            self.seen += part
        text, self.seen = self.seen[:found.end()], self.seen[found.end():]
        return text

    def line(self, *keys, prompt=PROMPT):
        """Types a line and waits for the next prompt."""
        self.type(*keys, ENTER)
        return self.wait_for(EDITED, prompt)

    def wait(self):
        """The exit code, and what was printed until then."""
        while part := self.read():
            self.seen += part
        return self.process.wait(timeout=60), self.seen


class AtTerminal(TestCase):
    def start(self, *args, **variables):
        self.path = self.folder / "saved.json"
        tokenizer = self.write("tokenizer.json", byte_tokenizer())
        return Terminal(self, "--tokenizer", tokenizer, *args, **variables)

    def open(self, *args, **variables):
        terminal = self.start("--shift", "--seed", "1", *args, **variables)
        terminal.greeting = terminal.wait_for(PROMPT)
        return terminal

    def asked(self, terminal):
        self.assertIn(b"saved", terminal.line(f"/save {self.path}".encode()))
        return [m["content"] for m in json.loads(self.path.read_text()) if m["role"] == "user"]

    def test_greeting_editing_and_the_end_of_the_input(self):
        terminal = self.open("-n", "2")
        self.assertRegex(terminal.greeting, rb"\nqwen3_like_q4.pte on llvmpipe .*, context 160 tokens; /help lists commands\r\n")
        self.assertIn(b"\x1b[?2004h", terminal.greeting)
        self.assertIn(b"//etc/hosts", terminal.line(b"/hexx", RUBOUT, RUBOUT, b"lp"))
        terminal.line("h\u00f6x".encode(), LEFT, RUBOUT, b"o")
        terminal.line(UP, b"!")
        self.assertEqual(self.asked(terminal), ["hox", "hox!"])
        terminal.type(CTRL_D)
        code, rest = terminal.wait()
        self.assertEqual(code, OK)
        self.assertIn(b"\x1b[?2004l", rest)

    def test_tab_completes(self):
        terminal = self.open("-n", "2")
        self.write("conversation.json", '[{"role": "user", "content": "hi"}]')
        self.assertIn(b"loaded 1 message from", terminal.line(b"/lo", TAB, f"{self.folder}/conv".encode(), TAB))
        self.assertIn(b"top-k 3", terminal.line(b"/set to", TAB, b"k 3"))
        terminal.type(b"/s", TAB)
        self.assertIn(b"/system", terminal.wait_for(b"/save"))

    def test_several_lines(self):
        terminal = self.open("-n", "2")
        terminal.type(PASTE, b"one\r\ttwo\x07\n/three", PASTE_END)
        terminal.line(b"!")
        terminal.line(b'"""', prompt=CONTINUATION)
        terminal.line(b"a", prompt=CONTINUATION)
        terminal.line(b'b"""')
        terminal.line(b"c\\", prompt=CONTINUATION)
        terminal.line(b"d")
        terminal.line(b'"""dropped', prompt=CONTINUATION)
        terminal.type(CTRL_C)
        terminal.wait_for(HINT, PROMPT)
        self.assertEqual(self.asked(terminal), ["one\n\ttwo\n/three!", "a\nb", "c\nd"])

    def test_long_lines_and_odd_bytes(self):
        terminal = self.open("-n", "2")
        self.assertIn(b"the conversation has 100", terminal.line(PASTE, b"x" * 100000, PASTE_END))
        self.assertIn(b"the conversation has 20", terminal.line(b"y" * 20000))
        terminal.line(b"a\xff\x00b")
        self.assertEqual(self.asked(terminal), ["a\ufffdb"])

    def test_an_interrupt_at_the_prompt(self):
        terminal = self.open("-n", "2")
        terminal.type(b"dropped")
        terminal.wait_for(b"dropped")
        terminal.type(CTRL_C)
        terminal.wait_for(HINT, PROMPT)
        terminal.line(b"hi")
        terminal.type(CTRL_C)
        terminal.wait_for(HINT, PROMPT)
        terminal.type(b"typed")
        terminal.wait_for(b"typed")
        terminal.type(CTRL_C)  # the second, but there was something to give up
        terminal.wait_for(b"^C", PROMPT)
        self.assertEqual(self.asked(terminal), ["hi"])
        terminal.type(CTRL_C)
        terminal.wait_for(HINT, PROMPT)
        terminal.type(CTRL_C)
        self.assertEqual(terminal.wait()[0], OK)

    def test_an_interrupt_stops_the_answer(self):
        terminal = self.open("--ignore-end")
        for _ in range(2):
            terminal.type(b"hi", ENTER)
            terminal.wait_for(EDITED)
            while NOTICE.fullmatch(PROGRESS.sub(b"", terminal.seen)):  # the answer has not begun
                terminal.seen += terminal.read()
            terminal.type(CTRL_C)
            self.assertNotIn(b"taken back", terminal.wait_for(PROMPT))
        self.assertEqual(self.asked(terminal), ["hi", "hi"])
        self.assertEqual(len(json.loads(self.path.read_text())), 4)

    def test_an_interrupt_while_the_prompt_is_read(self):
        for _ in range(5):  # the prompt may have been read before the key came
            terminal = self.open("--ignore-end")
            terminal.type(b"x" * 120, ENTER)
            terminal.wait_for(EDITED)
            terminal.type(CTRL_C)
            if b"(stopped; the message was taken back)" in terminal.wait_for(PROMPT):
                break
        else:
            self.fail("never stopped in time")
        self.assertEqual(self.asked(terminal), [])

    def test_an_interrupt_while_the_model_loads(self):
        for _ in range(5):  # it may have been loaded before the signal came
            terminal = self.start()
            caught = pathlib.Path("/proc") / str(terminal.process.pid) / "status"
            while not int(re.search(r"SigCgt:\s*(\w+)", caught.read_text())[1], 16) & 1 << signal.SIGINT - 1:
                pass
            terminal.type(CTRL_C)
            while HINT not in terminal.seen and (part := terminal.read()):
                terminal.seen += part
            if HINT not in terminal.seen:
                break
        self.assertEqual(terminal.wait()[0], INTERRUPTED)

    def test_suspending_and_other_sizes(self):
        terminal = self.open("-n", "2")
        terminal.type(b"hel")
        terminal.wait_for(b"hel")
        os.kill(terminal.process.pid, signal.SIGSTOP)
        os.kill(terminal.process.pid, signal.SIGCONT)
        terminal.wait_for(PROMPT, b"hel")
        fcntl.ioctl(terminal.ours, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 50, 0, 0))
        terminal.line(b"lo")
        self.assertEqual(self.asked(terminal), ["hello"])

    def test_terminations(self):
        for number in (signal.SIGTERM, signal.SIGHUP):
            terminal = self.open("-n", "2")
            terminal.process.send_signal(number)
            code, rest = terminal.wait()
            self.assertEqual(code, -number)
            self.assertIn(b"\x1b[?2004l", rest)

    def test_control_characters_of_the_model_are_spelled_out(self):
        terminal = self.open("-n", "100", "--ignore-end", "--temperature", "100", "--top-k", "0", "--top-p", "1")
        answer = terminal.line(b"hi").partition(EDITED)[2].removesuffix(b"\x1b[?2004h" + PROMPT)
        answer = PROGRESS.sub(b"", answer.replace(b"\r\n", b"\n"))
        self.assertRegex(answer, rb"\\x[01]")
        self.assertIsNone(re.search(rb"[\x00-\x08\x0b-\x0c\x0e-\x1f\x7f]|\xc2[\x80-\x9f]", answer), answer)

    def test_plain_terminals(self):
        terminal = self.start("-n", "2", TERM="dumb")
        seen = terminal.wait_for(b"> ")
        self.assertNotIn(b"\x1b", seen)
        terminal.type(b"/info", ENTER)
        terminal.wait_for(b"context", b"> ")
        terminal.type(CTRL_D)
        self.assertEqual(terminal.wait()[0], OK)


if __name__ == "__main__":
    unittest.main()
