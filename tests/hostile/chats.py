"""Conversations through a pipe: hostile lines, files to load and places to save to."""
# SPDX-License-Identifier: BSD-3-Clause
import json
import os

from .case import ANY, LLM, OK, REFUSED, Case, hard_link_to, link_to, sparse

END = {"id": 256, "content": "<|endoftext|>", "special": True, "single_word": False, "lstrip": False, "rstrip": False,
    "normalized": False}
PLAIN = [*range(33, 127), *range(161, 173), *range(174, 256)]
OTHERS = [b for b in range(256) if b not in PLAIN]
BYTES = {chr(b if b in PLAIN else 256 + OTHERS.index(b)): b for b in range(256)}
TOKENIZER = json.dumps({"added_tokens": [END], "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "use_regex": False},
                        "decoder": {"type": "ByteLevel"}, "model": {"type": "BPE", "vocab": {**BYTES, "<|endoftext|>": 256},
                            "merges": []}})
FILES = {"m.pte": LLM / "qwen3_like_q4.pte", "t.json": TOKENIZER}
ARGS = ["chat", "m.pte", "--tokenizer", "t.json", "--temperature", "0", "--ignore-end", "-n", "2"]

LOADS = {
    "200,000 brackets": "[" * 200_000 + "]" * 200_000, "200,000 open brackets": "[" * 200_000,
    "200,000 braces": '{"a":' * 200_000 + "1" + "}" * 200_000,
    "a message of 200,000 brackets": '[{"role": "user", "content": ' + "[" * 200_000 + "]" * 200_000 + "}]", "nothing": "",
    "no list": "{}", "numbers": "[1]",
    "a king": '[{"role": "king", "content": "x"}]', "a role of escapes": '[{"role": "\\u001b[31m", "content": "x"}]',
    "a role of 10 KB": json.dumps([{"role": "k" * 10_240, "content": "x"}]),
    "invalid UTF-8": '[{"role": "user", "content": "\udcff"}]', "half a pair": '[{"role": "user", "content": "\\ud800"}]',
    "1 MB of text": json.dumps([{"role": "user", "content": "x" * 10**6}]),
    "100,000 messages": json.dumps([{"role": "user", "content": "x"}] * 100_000),
}
LINES = {
    "a line of 1 MB": b"x" * 10**6, "a line of 10 MB": b"x" * 10**7, "invalid UTF-8": b"\xff\xfe\x80", "a zero": b"a\0b",
    "escapes": b"\x1b[31m\x07", "half a character": b"\xe6\x97",
    "only spaces": b"   ", "a carriage return": b"a\r", "the end token": b"<|endoftext|>",
    "an unknown command of 10 KB": b"/" + b"x" * 10_240, "an unknown command of escapes": b"/\x1b[31m\x07",
    "a slash": b"/", "a command with more": b"/reset now " + b"x" * 10_240, "/save of nothing": b"/save",
    "/load of nothing": b"/load", "/load of spaces": b"/load    ",
    "/load of a folder": b"/load .", "/load of a fifo": b"/load fifo", "/load of a device": b"/load /dev/zero",
    "/load of escapes": b"/load \x1b[31m", "/load of a zero": b"/load a\0b",
    "/load of 1 TB": b"/load big", "/load of a name of 10 KB": b"/load " + b"x" * 10_240,
    "/save onto the model": b"/save m.pte", "/save onto the model, spelled otherwise": b"/save ./m.pte",
    "/save onto the model through a link": b"/save link",
    "/save onto the model through a hard link": b"/save hard", "/save onto the tokenizer": b"/save t.json",
    "/save onto a folder": b"/save .", "/save into a folder that is not there": b"/save absent/x",
    "/save onto a full disk": b"/save full", "/save to a name of escapes": b"/save absent/\x1b[31m",
    "/save of a name of 10 KB": b"/save " + b"x" * 10_240, "/save into a file": b"/save m.pte/x",
}
MAY_SUCCEED = ("only spaces", "a carriage return", "the end token", "a slash", "invalid UTF-8", "a zero", "escapes", "half a character")

EXTRA = {"link": link_to("m.pte"), "hard": hard_link_to("m.pte"), "full": link_to("/dev/full"), "fifo": os.mkfifo,
    "big": sparse(1 << 40)}


def cases(_tool, rng):
    def case(name, lines, codes=REFUSED, files=None, args=(), **more):
        return Case("chats", name, [*ARGS, *args], {**FILES, **(files or {})}, stdin=lines, gpu=True, codes=codes, **more)

    yield case("nobody", b"", {OK})
    yield case("a turn without a newline", b"hi", {OK})
    yield case("100 turns", b"a\n" * 100, ANY)
    yield case("10,000 commands", b"/reset\n" * 10_000, {OK})
    for name, text in LOADS.items():
        yield case(f"/load of {name}", b"/load c.json\nhi\n/quit\n", ANY, {"c.json": text})
    for name, line in LINES.items():
        yield case(name, line + b"\n", ANY if name in MAY_SUCCEED or line.startswith(b"/") else REFUSED, EXTRA)
        if name.startswith("/save onto the model"):
            yield case(f"{name}, and on", line + b"\nhi\nhi\n", ANY, EXTRA)
    yield case("a failed turn, then a good one", b"x" * 5000 + b"\nhi\n", ANY)
    yield case("a good turn, then a failed one", b"hi\n" + b"x" * 5000 + b"\n", REFUSED)
    for what, value in (("10 KB", "x" * 10_240), ("invalid UTF-8", "\udcff"), ("escapes", "\x1b[31m"), ("nothing", "")):
        yield case(f"--system of {what}", b"hi\n", ANY, args=["--system", value])
