"""pteryx chat: conversations through a pipe."""
# SPDX-License-Identifier: BSD-3-Clause
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import unittest

from cli import BAD_FILE, FAILED, FIXTURES, LLM, OK, TOOL, USAGE, TestCase, tool
from tokenizers import byte_tokenizer, letter_tokenizer

MODEL = LLM / "qwen3_like_q4.pte"
NOTE = "has no chat template"


class Chat(TestCase):
    answers = []

    def setUp(self):
        super().setUp()
        self.tokenizer = self.write("tokenizer.json", byte_tokenizer())
        self.greedy = ["chat", MODEL, "--tokenizer", self.tokenizer, "--temperature", "0", "--ignore-end", "-n", "6"]
        self.path = self.folder / "saved.json"
        self.save = f"/save {self.path}"

    def say(self, *lines, args=(), command=None, code=OK):
        """What came out, and what was said on stderr besides the missing template."""
        result = tool(*(command or self.greedy), *args, stdin="".join(line + "\n" for line in lines))
        self.assertEqual(result.returncode, code, result.stderr)
        return result.stdout, [line for line in result.stderr.splitlines() if NOTE not in line]

    def answer(self):
        """To "hi", alone."""
        if not Chat.answers:
            Chat.answers.append(self.say("hi")[0])
        return Chat.answers[0]

    def saved(self):
        return json.loads(self.path.read_text())

    def asked(self):
        return [m["content"] for m in self.saved() if m["role"] == "user"]

    def test_an_answer_for_each_line(self):
        out, notes = self.say("hi", "", "  ", "you?", self.save)
        self.assertEqual(notes, [f"(saved 4 messages to {self.path})"])
        messages = self.saved()
        self.assertEqual([m["role"] for m in messages], ["user", "assistant", "user", "assistant"])
        self.assertEqual(self.asked(), ["hi", "you?"])
        self.assertTrue(all(m["content"] for m in messages))
        self.assertEqual(out, "".join(m["content"] + "\n" for m in messages[1::2]))
        self.assertEqual(self.say("hi", "you?", self.save)[0], out)

    def test_answers_are_those_of_the_whole_conversation(self):
        """Caches kept from turn to turn change nothing: the same prompt, read at once, is continued alike."""
        self.say("hi", "you?", self.save)
        first, second = (m["content"] for m in self.saved()[1::2])
        prompt = "User: hi\nAssistant:" + ("" if first.startswith(" ") else " ") + first + "\nUser: you?\nAssistant:"
        report = self.succeed_json("generate", *self.greedy[1:], "--json", "-p", prompt)
        self.assertEqual(report["text"], second)

    def test_reset_begins_a_new_conversation(self):
        once = self.answer()
        out, notes = self.say("hi", "/reset", "hi", "/new", "hi", "/clear", self.save, args=["--system", ""])
        self.assertEqual((out, notes[:-1]), (once * 3, ["(a new conversation)"] * 3))
        self.assertEqual(self.saved(), [])

    def test_system_message(self):
        told, _ = self.say("hi", self.save, args=["--system", "Be brief."])
        self.assertEqual(self.saved()[0], {"role": "system", "content": "Be brief."})
        out, notes = self.say("/system", "/system Be brief.", "/system", "hi", "/reset", self.save, "/system -", "/system")
        self.assertEqual(out, "(no system message)\nBe brief.\n" + told + "(no system message)\n")
        self.assertEqual(notes, ["(system message set)", "(a new conversation)", f"(saved 1 message to {self.path})", "(no system message)"])
        self.assertEqual(self.saved(), [{"role": "system", "content": "Be brief."}])

    def test_a_loaded_conversation_is_continued(self):
        out, _ = self.say("hi", self.save, "you?", args=["--system", "Hm."])
        first = self.saved()[1:][1]["content"] + "\n"
        self.assertEqual(self.say(f"/load {self.path}", "you?"),
                         (out.removeprefix(first), [f"(loaded 3 messages from {self.path})"]))

    def test_names_and_tool_calls_stay_with_a_conversation(self):
        messages = [{"role": "user", "content": "Rain?", "name": "ada"},
                    {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "weather", "arguments": {"city": "Oslo"}}}]},
                    {"role": "tool", "content": "yes", "tool_call_id": "7"}]
        loaded = self.write("tools.json", json.dumps(messages).replace('"content": "", "tool', '"content": null, "tool'))
        self.say(f"/load {loaded}", self.save)
        self.assertEqual(self.saved(), messages)

    def test_files_that_are_no_conversations(self):
        bad = {"{": "not JSON at byte 2", "[" * 100000: "JSON is nested deeper than 64 levels",
               "{}": "expected a JSON list of messages, got object", "[1]": "message 0: role: expected text, got nothing",
               '[{"role": "user", "content": 1}]': "message 0: content: expected text, got number",
               '[{"role": "assistant", "tool_calls": 1}]': "message 0: tool_calls: expected a list, got number",
               '[{"role": "user", "content": "", "name": 1}]': "message 0: name: expected text, got number",
               '[{"role": "king", "content": ""}]': "role: expected system, user, assistant, tool, got 'king'"}
        paths = [self.write(f"bad{i}.json", text) for i, text in enumerate(bad)]
        _, notes = self.say("hi", *(f"/load {p}" for p in paths), "/load /nonexistent/file", "/save /nonexistent/file", f"/load {self.folder}",
                            self.save, code=BAD_FILE)
        complaints = " ".join(notes).split("pteryx: ")[1:]
        for path, expected, complaint in zip(paths, bad.values(), complaints, strict=False):
            self.assertIn(expected, complaint)
            self.assertIn(str(path), complaint)
            self.assertLess(len(complaint), 250)
        self.assertIn("/nonexistent/file", complaints[-3])
        self.assertIn("cannot write /nonexistent/file", complaints[-2])
        self.assertIn("Is a directory", complaints[-1])
        self.assertEqual(self.asked(), ["hi"])  # as it was

    def test_save_spares_the_model_and_what_it_cannot_replace(self):
        model = shutil.copy(MODEL, self.folder / "model.pte")
        link = self.folder / "link"
        link.symlink_to(model)
        before = pathlib.Path(model).read_bytes(), self.tokenizer.read_bytes()
        command = ["chat", model, *self.greedy[2:]]
        _, notes = self.say(f"/save {model}", f"/save {self.tokenizer}", f"/save {link}", "/save /dev/full", command=command, code=USAGE)
        self.assertEqual(len(notes), 4)
        self.assertTrue(all("is a file of the model" in n for n in notes[:3]), notes)
        self.assertEqual((pathlib.Path(model).read_bytes(), self.tokenizer.read_bytes()), before)

    def test_commands(self):
        out, notes = self.say("/help", "/dance", "/rest", "/reset now", "/save", "/quit", "not read any more", code=USAGE)
        for word in ("/reset", "/regenerate", "/undo", "/system [TEXT]", "/set [NAME VALUE]", "/info", "/save FILE", "/load FILE", "/quit"):
            self.assertIn(word, out)
        self.assertEqual([n for n in notes if not n.startswith("  ")],
                         ["pteryx: there is no command '/dance'", "pteryx: there is no command '/rest'; did you mean /reset?",
                          "pteryx: /reset takes no argument, got 'now'", "pteryx: /save: expected a file, got none"])
        self.assertIn("/help lists the commands", notes[1])
        self.assertEqual(self.say("/bye", "hi"), ("", []))

    def test_several_lines_are_one_message(self):
        self.say('"""one', " two", '"""', '"""x"""', '"""', "/a", 'b"""', "c\\", "d\\", "e", "f\\\\", self.save, args=["--shift"])
        self.assertEqual(self.asked(), ["one\n two", "x", "/a\nb", "c\nd\ne", "f\\"])
        self.assertEqual(self.say("hi\\"), (self.answer(), []))  # the end of the input ends it
        self.assertEqual(self.say('"""hi'), (self.answer(), []))

    def test_messages_that_begin_with_a_slash(self):
        self.say("//etc", " /usr", "a/b", self.save)
        self.assertEqual(self.asked(), ["/etc", "/usr", "a/b"])

    def test_regenerate_and_undo(self):
        once = self.answer()
        out, notes = self.say("hi", "/regenerate", "/regen", self.save, "you?", "/undo", "/undo", "hi")
        self.assertEqual(out.count(once), 4)
        self.assertEqual(self.asked(), ["hi"])
        self.assertEqual(notes[1:], ["(taken back: you?)", "(taken back: hi)"])
        _, notes = self.say("/undo", "/regenerate", code=USAGE)
        self.assertEqual(notes, ["pteryx: there is no message to take back", "pteryx: there is no message to answer again"])

    def test_settings(self):
        drawn, _ = self.say("hi", command=[*self.greedy[:4], "--ignore-end", "--temperature", "2", "--seed", "7", "-n", "3"])
        out, _ = self.say("/set temperature 2", "/set seed 7", "/set max-new-tokens 3", "hi", "/set")
        shown, _, listed = out.partition(drawn)
        self.assertEqual(shown, "temperature 2\nseed 7\nmax-new-tokens 3\n")
        self.assertEqual(dict(line.split() for line in listed.splitlines()),
                         {"temperature": "2", "top-k": "40", "top-p": "0.95", "min-p": "0", "repetition-penalty": "1", "presence-penalty": "0",
                          "frequency-penalty": "0", "max-new-tokens": "3", "seed": "8"})
        names = ("top_k 5", "top-p 0.5", "min-p 0.1", "repetition-penalty 1.5", "presence-penalty 0.25", "frequency-penalty -1", "min-p")
        out, notes = self.say(*(f"/set {n}" for n in names), "/set temprature 1", "/set temperature hot", "/set top-p 2", code=USAGE)
        self.assertEqual(out, "".join(f"{n}\n" for n in names[:-1]).replace("_", "-") + "min-p 0.1\n")
        self.assertIn("there is no setting 'temprature': expected temperature, top-k", notes[0])
        self.assertIn("did you mean temperature?", notes[0])
        self.assertEqual(notes[1:], ["pteryx: temperature: expected a number from 0 to 100, got 'hot'",
                                     "pteryx: top-p: expected a number from 0 to 1, got '2'"])

    def test_info(self):
        out, _ = self.say("/info", "hi", "/info")
        lines = [line.split(None, 1) for line in out.splitlines() if re.match(r"(model|GPU|context|messages|temperature) ", line)]
        self.assertEqual(lines[0], ["model", str(MODEL)])
        self.assertIn("llvmpipe", lines[1][1])
        self.assertEqual(lines[2:5], [["context", "0 of 160 tokens used"], ["messages", "0"], ["temperature", "0"]])
        self.assertRegex(lines[7][1], r"^[1-9]\d+ of 160 tokens used$")
        self.assertEqual(lines[8], ["messages", "2"])

    def test_a_turn_that_does_not_fit_is_taken_back(self):
        alone = self.answer()
        out, notes = self.say("x" * 100000, "hi", code=USAGE)
        self.assertEqual(out, alone)
        self.assertRegex(notes[0], r"^pteryx: the conversation has 100\d\d\d tokens with this message, the context has room for 160$")
        self.assertEqual(notes[1], "  /undo and /reset make room; --shift forgets the oldest messages instead; "
                                   "`pteryx convert --max-context` makes a larger context")
        self.assertIn("taken back", notes[2])

    def test_a_full_context_is_told(self):
        _, notes = self.say("hi", command=self.greedy[:-2])
        self.assertEqual(notes[0], "pteryx: the context of 160 tokens is full")
        self.assertIn("/undo and /reset make room", notes[1])

    def test_shift_forgets_the_oldest_messages(self):
        said = [str(i) * 20 for i in range(5)]
        _, notes = self.say(*said, self.save, args=["--shift"])
        self.assertTrue(any(re.match(r"\(the context is full: the model forgets the \d oldest messages\)", n) for n in notes), notes)
        self.assertEqual(self.asked(), said)

    def test_timings_tell_what_the_caches_had(self):
        _, notes = self.say("hi", "you?", args=["--timings"])
        self.assertRegex(notes[0], r"^prompt 19 tokens, 0 of them cached, .* answer 6 tokens, .*stopped by: length")
        cached = int(notes[1].split(", ")[1].split()[0])
        self.assertGreaterEqual(cached, 19)

    def test_the_models_template(self):
        model = self.folder / "model"
        shutil.copytree(FIXTURES / "convert" / "qwen3", model)
        (model / "tokenizer.json").write_text(letter_tokenizer())
        (model / "chat_template.jinja").write_text(
            "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}{% if add_generation_prompt %}<answer>{% endif %}")
        rest = ["--temperature", "0", "--ignore-end", "-n", "6"]
        env = {"PTERYX_CACHE": str(self.folder / "cache")}
        result = tool("chat", model, *rest, "--system", "hm", env=env, stdin=f"hi\n/save {model}/tokenizer.json\n")
        self.assertEqual(result.returncode, USAGE, result.stderr)
        self.assertIn("is a file of the model", result.stderr)
        self.assertNotIn(NOTE, result.stderr)
        report = self.succeed_json("generate", model, *rest, "--json", "-p", "<system>hm<user>hi<answer>", env=env)
        self.assertEqual(result.stdout, report["text"] + "\n")

    def test_one_answer(self):
        answer = self.answer()
        prompt = self.write("prompt.txt", "hi\n")
        for args in (["-p", "hi"], ["-f", prompt], ["-f", "-"]):
            result = tool(*self.greedy, *args, stdin="hi\n")
            self.assertEqual((result.returncode, result.stdout), (OK, answer), result.stderr)
        report = self.succeed_json(*self.greedy, "-p", "hi", "--json", "--seed", "3")
        self.assertEqual([m["role"] for m in report["messages"]], ["user", "assistant"])
        self.assertEqual(report["messages"][1]["content"] + "\n", answer)
        self.assertEqual((report["prompt_tokens"], report["new_tokens"], report["stopped_by"], report["seed"]), (19, 6, "length", 3))
        self.assertTrue(all(report[key] > 0 for key in ("load_ms", "prompt_ms", "decode_ms")))

    def test_one_answer_that_fails(self):
        result = tool(*self.greedy, "-p", "x" * 1000)
        self.assertEqual((result.returncode, result.stdout), (USAGE, ""))
        self.assertNotIn("/reset", result.stderr)
        self.assertIn("the message is empty", self.fail_with(USAGE, *self.greedy, "-p", " "))
        self.assertIn("No such file", self.fail_with(BAD_FILE, *self.greedy, "-f", "/nonexistent"))
        result = tool(*self.greedy, "--json", stdin="hi\n")
        self.assertEqual(result.returncode, USAGE)
        self.assertIn("--json: expected --prompt or --prompt-file", json.loads(result.stdout)["error"]["message"])

    def test_no_tokenizer(self):
        self.assertIn("has no tokenizer: give one with --tokenizer", self.fail_with(USAGE, "chat", MODEL))

    def test_any_bytes(self):
        result = subprocess.run([TOOL, *map(str, self.greedy), "--shift"], capture_output=True, check=False,
                                input=b"a\x00b\r\n\xff\xfe\n\x1b[31m\xc3\n" + self.save.encode() + b"\n")
        self.assertEqual(result.returncode, OK, result.stderr)
        self.assertEqual(self.asked(), ["a\0b", "\ufffd\ufffd", "\x1b[31m\ufffd"])

    def test_output_that_cannot_be_written_ends_it(self):
        with open("/dev/full", "w") as full:
            result = subprocess.run([TOOL, *map(str, self.greedy)], input=f"hi\nhi\n{self.save}\n", text=True, stdout=full, stderr=subprocess.PIPE,
                                    check=False, timeout=120)
        self.assertEqual(result.returncode, FAILED)
        self.assertEqual(result.stderr.splitlines()[-1], "pteryx: cannot write to stdout: No space left on device")
        self.assertEqual(len(result.stderr.splitlines()), 2)
        self.assertFalse(self.path.exists())

    def test_input_that_cannot_be_read(self):
        with open("/dev/null", "wb") as unreadable:
            result = subprocess.run([TOOL, *map(str, self.greedy)], stdin=unreadable, capture_output=True, text=True, check=False)
        self.assertEqual(result.returncode, BAD_FILE)
        self.assertIn("pteryx: stdin: Bad file descriptor", result.stderr)


class Live(TestCase):
    """With someone who sends signals while the program reads from a pipe."""

    def start(self, *args):
        tokenizer = self.write("tokenizer.json", byte_tokenizer())
        process = subprocess.Popen([TOOL, "chat", MODEL, "--tokenizer", tokenizer, *args], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   stderr=subprocess.DEVNULL)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def test_an_interrupt_stops_the_answer_only(self):
        # Without end, were it not interrupted.
        with self.start("--ignore-end", "--shift", "--seed", "1") as process:
            for _ in range(2):
                process.stdin.write(b"hi\n")
                process.stdin.flush()
                self.assertTrue(os.read(process.stdout.fileno(), 1))
                process.send_signal(signal.SIGINT)
                process.stdin.write(b"/help\n/reset\n")
                process.stdin.flush()
                seen = b""
                while b"//etc/hosts\n" not in seen:
                    part = os.read(process.stdout.fileno(), 4096)
                    self.assertTrue(part)
                    seen += part
            process.stdin.close()
            self.assertEqual(process.wait(timeout=60), OK)

    def test_a_termination_ends_it(self):
        with self.start("--ignore-end", "--shift", "--seed", "1") as process:
            process.stdin.write(b"hi\nhi\n")
            process.stdin.flush()
            self.assertTrue(os.read(process.stdout.fileno(), 1))
            process.send_signal(signal.SIGTERM)
            process.stdout.read()
            self.assertEqual(process.wait(timeout=60), -signal.SIGTERM)


if __name__ == "__main__":
    unittest.main()
