"""pteryx chat: conversations, through a pipe and at a terminal."""
# SPDX-License-Identifier: BSD-3-Clause
import json
import os
import pty
import re
import select
import shutil
import signal
import subprocess
import time
import unittest

from cli import FIXTURES, LLM, OK, TOOL, USAGE, TestCase, tool

MODEL = LLM / "qwen3_like_q4.pte"
NOTE = "has no chat template"


def byte_level_tokenizer(vocabulary):
    end = {"id": len(vocabulary), "content": "<|endoftext|>", "special": True, "single_word": False, "lstrip": False, "rstrip": False,
           "normalized": False}
    return json.dumps({"added_tokens": [end],
                       "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "use_regex": False},
                       "decoder": {"type": "ByteLevel"},
                       "model": {"type": "BPE", "vocab": {**vocabulary, "<|endoftext|>": len(vocabulary)}, "merges": []}})


def byte_tokenizer():
    """A token for every byte, spelled as byte-level BPE spells them, and <|endoftext|>."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = iter(range(256, 512))
    return byte_level_tokenizer({chr(b if b in plain else next(others)): b for b in range(256)})


def letter_tokenizer():
    return byte_level_tokenizer({c: i for i, c in enumerate("abcdefghijklmnopqrstuvwxyz<>")})


class Chat(TestCase):
    def setUp(self):
        super().setUp()
        self.tokenizer = self.write("tokenizer.json", byte_tokenizer())
        self.greedy = ["chat", MODEL, "--tokenizer", self.tokenizer, "--temperature", "0", "--ignore-end", "-n", "6"]

    def say(self, *lines, args=(), command=None):
        """What came out, and what was complained about besides the missing template."""
        result = tool(*(command or self.greedy), *args, stdin="".join(line + "\n" for line in lines))
        self.assertEqual(result.returncode, OK, result.stderr)
        return result.stdout, [line for line in result.stderr.splitlines() if NOTE not in line]

    def saved(self):
        return json.loads((self.folder / "saved.json").read_text())

    def test_an_answer_for_each_line(self):
        save = f"/save {self.folder}/saved.json"
        out, complaints = self.say("hi", "", "you?", save)
        self.assertEqual(complaints, [])
        messages = self.saved()
        self.assertEqual([m["role"] for m in messages], ["user", "assistant", "user", "assistant"])
        self.assertEqual([m["content"] for m in messages[::2]], ["hi", "you?"])
        self.assertTrue(all(m["content"] for m in messages))
        self.assertEqual(out, "".join(m["content"] + "\n" for m in messages[1::2]))
        self.assertEqual(self.say("hi", "you?", save)[0], out)

    def test_answers_are_those_of_the_whole_conversation(self):
        """Caches kept from turn to turn change nothing: the same text, read at once, is gone on with alike."""
        self.say("hi", "you?", f"/save {self.folder}/saved.json")
        first, second = (m["content"] for m in self.saved()[1::2])
        prompt = "User: hi\nAssistant:" + ("" if first.startswith(" ") else " ") + first + "\nUser: you?\nAssistant:"
        report = self.succeed_json("generate", *self.greedy[1:], "--json", "-p", prompt)
        self.assertEqual(report["text"], second)

    def test_reset_begins_anew(self):
        once, _ = self.say("hi")
        out, complaints = self.say("hi", "/reset", "hi")
        self.assertEqual((out, complaints), (once * 2, []))
        self.say("hi", "/reset", f"/save {self.folder}/saved.json", args=["--system", "Be brief."])
        self.assertEqual(self.saved(), [{"role": "system", "content": "Be brief."}])

    def test_a_loaded_conversation_goes_on(self):
        path = self.folder / "saved.json"
        out, _ = self.say("hi", f"/save {path}", "you?")
        first = self.saved()[1]["content"] + "\n"
        self.assertEqual(self.say(f"/load {path}", "you?"), (out.removeprefix(first), []))

    def test_files_that_are_no_conversations(self):
        for text, complaint in (("{", "not JSON at byte 2"),
                                ("{}", "expected a JSON list of messages, got object"),
                                ("[1]", "message 0: role: expected text, got nothing"),
                                ('[{"role": "user", "content": 1}]', "message 0: content: expected text, got number"),
                                ('[{"role": "king", "content": ""}]', "role: expected system, user, assistant, got 'king'")):
            path = self.write("bad.json", text)
            _, complaints = self.say(f"/load {path}")
            self.assertIn(complaint, complaints[0])
            self.assertIn(str(path), "".join(complaints))
        _, complaints = self.say("/load /nonexistent/file", "/save /nonexistent/file", "/save")
        self.assertEqual(len(complaints), 3)
        self.assertIn("/nonexistent/file", complaints[0])
        self.assertIn("cannot write /nonexistent/file", complaints[1])
        self.assertIn("/save: expected a file, got none", complaints[2])

    def test_commands(self):
        out, complaints = self.say("/help", "/dance", "/reset now", "/quit", "not read any more")
        for word in ("/reset", "/save FILE", "/load FILE", "/quit"):
            self.assertIn(word, out)
        self.assertEqual(complaints, ["pteryx: no command '/dance'; /help lists them",
                                      "pteryx: /reset: expected nothing behind it, got 'now'"])

    def test_a_turn_that_does_not_fit_is_taken_back(self):
        alone, _ = self.say("hi")
        out, complaints = self.say("x" * 1000, "hi")
        self.assertEqual(out, alone)
        self.assertRegex(complaints[0], r"^pteryx: the prompt has 10\d\d tokens, the context has room for \d+$")
        self.assertIn("taken back", complaints[1])

    def test_a_full_context_is_told(self):
        _, complaints = self.say("hi", command=self.greedy[:-2])
        self.assertEqual(complaints, ["pteryx: the context is full; /reset begins a new conversation"])

    def test_timings_tell_what_the_caches_had(self):
        _, complaints = self.say("hi", "you?", args=["--timings"])
        self.assertRegex(complaints[0], r"^prompt 19 tokens, 0 of them cached, .* answer 6 tokens, .*stopped by: length")
        cached = int(complaints[1].split(", ")[1].split()[0])
        self.assertGreaterEqual(cached, 19)

    def test_the_models_template(self):
        model = self.folder / "model"
        shutil.copytree(FIXTURES / "convert" / "qwen3", model)
        (model / "tokenizer.json").write_text(letter_tokenizer())
        (model / "chat_template.jinja").write_text(
            "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}{% if add_generation_prompt %}<answer>{% endif %}")
        rest = ["--temperature", "0", "--ignore-end", "-n", "6"]
        env = {"PTERYX_CACHE": str(self.folder / "cache")}
        result = tool("chat", model, *rest, "--system", "hm", env=env, stdin="hi\n")
        self.assertEqual(result.returncode, OK, result.stderr)
        self.assertNotIn(NOTE, result.stderr)
        report = self.succeed_json("generate", model, *rest, "--json", "-p", "<system>hm<user>hi<answer>", env=env)
        self.assertEqual(result.stdout, report["text"] + "\n")

    def test_no_tokenizer(self):
        self.assertIn("has no tokenizer: give one with --tokenizer", self.fail_with(USAGE, "chat", MODEL))


class Live(TestCase):
    """With someone who types while the program runs."""

    def start(self, *args, **streams):
        tokenizer = self.write("tokenizer.json", byte_tokenizer())
        process = subprocess.Popen([TOOL, "chat", MODEL, "--tokenizer", tokenizer, *args], stderr=subprocess.DEVNULL, **streams)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def test_an_interrupt_stops_the_answer_only(self):
        # Without end, were it not interrupted.
        with self.start("--ignore-end", "--shift", "--seed", "1", stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
            for _ in range(2):
                process.stdin.write(b"hi\n")
                process.stdin.flush()
                self.assertTrue(os.read(process.stdout.fileno(), 1))
                process.send_signal(signal.SIGINT)
                process.stdin.write(b"/help\n/reset\n")
                process.stdin.flush()
                self.read_until(process.stdout.fileno(), b"Everything else is said to the model.\n")
            process.stdin.close()
            self.assertEqual(process.wait(timeout=60), OK)

    def test_a_terminal_has_a_prompt_and_editing(self):
        ours, theirs = pty.openpty()
        self.addCleanup(os.close, ours)
        process = self.start(stdin=theirs, stdout=theirs)
        os.close(theirs)
        self.read_until(ours, b"> ")
        os.write(ours, b"/hexx\x7f\x7flp\r")  # two characters rubbed out
        self.read_until(ours, b"Everything else is said to the model.", b"> ")
        self.end_input(ours, process)
        self.assertEqual(process.wait(timeout=60), OK)

    def end_input(self, terminal, process):
        """Types Ctrl-D, again if it came before the editor listened: the prompt is there a moment earlier."""
        for _ in range(20):
            os.write(terminal, b"\x04")
            try:
                process.wait(timeout=3)
                return
            except subprocess.TimeoutExpired:
                pass

    def read_until(self, stream, *wanted):
        """Reads until all of it was there, one behind the other."""
        pattern = re.compile(b".*".join(map(re.escape, wanted)), re.DOTALL)
        seen = b""
        end = time.monotonic() + 120
        while not pattern.search(seen):
            self.assertTrue(select.select([stream], [], [], max(0, end - time.monotonic()))[0], f"{wanted} not in {seen}")
            part = os.read(stream, 4096)
            self.assertTrue(part, f"{wanted} not in {seen}")
            seen += part


if __name__ == "__main__":
    unittest.main()
