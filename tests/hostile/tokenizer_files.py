"""Damaged tokenizers for `convert --tokenizer`: one that could not be loaded again must be refused."""
# SPDX-License-Identifier: BSD-3-Clause
import functools
import json
import struct

from . import gguf
from .case import ANY, NO_LIBRARY, OK, REFUSED, TOKENIZERS, Case, patched, replaced

SOURCE = {"m.gguf": gguf.sound}
NAN = float("nan")


def small(size=64):
    """A tokenizer that fits a vocabulary."""
    end = {"id": size - 1, "content": "<|end|>", "special": True, "single_word": False, "lstrip": False, "rstrip": False,
        "normalized": False}
    return {"added_tokens": [end], "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "use_regex": False},
            "decoder": {"type": "ByteLevel"},
            "model": {"type": "BPE", "vocab": {chr(48 + i): i for i in range(size - 1)}, "merges": []}}


def changed(path, v):
    """The small tokenizer with one place replaced; `path` leads there."""
    return json.dumps(replaced(small(), path, v))


DEEP = json.loads("[" * 500 + "]" * 500)
PLACES = [
    *((("model",), v) for v in (..., None, 1, [], {}, {"type": "BPE"}, {"type": "Quantum"}, {"type": "\x1b[31m"}, {"type": "Unigram"},
                                {"type": "Unigram", "vocab": []}, {"type": "Unigram", "vocab": [["a"]]},
                                {"type": "Unigram", "vocab": [["a", "b"]]},
                                {"type": "Unigram", "unk_id": 99, "vocab": [["a", 0.0]]}, {"type": "WordPiece", "vocab": {}})),
    *((("model", "vocab"), v) for v in (..., None, [], {}, {"a": -1}, {"a": 2**32}, {"a": 2**63}, {"a": 1e300}, {"a": "0"},
        {"a": 0, "b": 0},
                                        {"a": 0, "b": 2**31}, {"": 0}, {"a": None}, {"a": [0]}, {"\udcff": 0}, {"日本": 0})),
    *((("model", "merges"), v) for v in (..., None, 1, {}, [1], ["a"], ["a b c"], [["a"]], [["a", "b", "c"]], ["0 1", "0 1"],
        ["zz yy"], [""], [" "],
                                         ["0 1"] * 10_000, DEEP)),
    *((("added_tokens",), v) for v in (None, 1, {}, [1], [{}], [{"id": -1, "content": "x"}], [{"id": 2**40, "content": "x"}],
                                       [{"id": 0, "content": ""}], [{"id": 0, "content": 1}], [{"id": "0", "content": "x"}],
                                       [{"id": 0, "content": "x"}] * 2000, [{"id": i, "content": "x" * 5000} for i in range(63)],
                                       [{"id": 1e300, "content": "x"}])),
    *((("pre_tokenizer",), v) for v in (1, [], {}, {"type": 1}, {"type": "Quantum"}, {"type": "Sequence"},
        {"type": "Sequence", "pretokenizers": 1},
                                        {"type": "Split"}, {"type": "Split", "pattern": {"Regex": "("}, "behavior": "Isolated",
                                            "invert": False},
                                        {"type": "Split", "pattern": {"Regex": "(a+)+$"}, "behavior": "Isolated", "invert": False},
                                        {"type": "Split", "pattern": {"Regex": "(" * 5000 + ")" * 5000}, "behavior": "Isolated",
                                            "invert": False},
                                        {"type": "Split", "pattern": {"Regex": "a{1,60000}{1,60000}"}, "behavior": "Isolated",
                                            "invert": False},
                                        {"type": "Split", "pattern": {"String": ""}, "behavior": "Isolated", "invert": False},
                                        {"type": "Split", "pattern": {"Regex": "(?R)"}, "behavior": "Isolated", "invert": False},
                                        {"type": "Split", "pattern": {"Regex": "a"}, "behavior": "Sideways", "invert": False})),
    *((("decoder",), v) for v in (1, [], {}, {"type": "Quantum"}, {"type": "Sequence", "decoders": [{"type": "Replace"}]},
                                  {"type": "Replace", "pattern": {"String": ""}, "content": "x"})),
    *((("normalizer",), v) for v in (1, [], {"type": "Quantum"}, {"type": "Sequence", "normalizers": [1]}, {"type": "Precompiled"},
                                     {"type": "Precompiled", "precompiled_charsmap": "!!!!"},
                                     {"type": "Precompiled", "precompiled_charsmap": "AAAA/////w=="},
                                     {"type": "Replace", "pattern": {"String": ""}, "content": "x"})),
    *((("post_processor",), v) for v in (1, [], {"type": "Quantum"}, {"type": "TemplateProcessing", "single": [1]},
        {"type": "TemplateProcessing"})),
    *((("model", "unk_token"), v) for v in (1, "absent", "\x1b[31m")), *((("model", "byte_fallback"), v) for v in (1, "yes")),
    *((("truncation",), v) for v in (1, "x", {"max_length": -1})),
]


def nested(kind, key, depth):
    step = {"type": "ByteLevel", "add_prefix_space": False, "use_regex": False}
    text = f'{{"type": "Sequence", "{key}": [' * depth + json.dumps(step) + "]}" * depth
    return json.dumps({**small(), kind: "@"}).replace('"@"', text)


def crafted():
    text = json.dumps(small())
    yield "a sound tokenizer", text, {OK}
    for path, v in PLACES:
        yield f"{'.'.join(path)} = {str(v)[:60]} ({len(str(v))})", changed(path, v), ANY
    for kind, key in (("pre_tokenizer", "pretokenizers"), ("normalizer", "normalizers"), ("decoder", "decoders"),
        ("post_processor", "processors")):
        for depth in (100, 10_000, 100_000):
            yield f"{depth} nested {kind}s", nested(kind, key, depth), ANY if depth == 100 else REFUSED
    for bad in ("", " ", "{", "{}", "[]", "null", "[" * 200_000, '{"a":' * 200_000, '{"model":' * 100_000 + "1" + "}" * 100_000,
        "\udcff",
                text[:len(text) // 2], text + "x"):
        yield f"{bad[:20]!r} of {len(bad)}", bad, REFUSED
    yield "100,000 tokens for 64", json.dumps({**small(), "model": {"type": "BPE", "merges": [],
        "vocab": {f"t{i}": i for i in range(100_000)}}}), REFUSED
    yield "a token of 10 MB", json.dumps({**small(), "model": {"type": "BPE", "merges": [], "vocab": {"x" * 10**7: 0}}}), ANY


def binary():
    header = struct.pack("<I", 8)
    entries = b"".join(struct.pack("<fI", 0.0, 1) + bytes([65 + i % 26]) for i in range(64))
    yield "llama2.c, sound or nearly", header + entries, ANY
    for size in (0, 2**31, 2**32 - 1):
        yield f"llama2.c, longest of {size}", struct.pack("<I", size) + entries, ANY
        yield f"llama2.c, a token of {size} bytes", struct.pack("<IfI", 2**32 - 1, 0.0, size), REFUSED
        yield f"llama2.c, a table of {size} tokens", struct.pack("<IIIIfI", size, 1, 2, 8, 0.0, 1) + b"a", REFUSED
    yield "llama2.c, scores that are not numbers", header + struct.pack("<fI", NAN, 1) * 1 + b"a" + entries, ANY
    spm = (TOKENIZERS / "spm_bpe.model").read_bytes()
    for prefix in (b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", b"\x0a\xff\xff\xff\xff\x0f", b"\x0a\x00" * 1000, b"\x0a\x80" * 100,
                   b"\x0a\x05\x0a\x7fabc", b"\x12\x05\x98\x02\xff\xff", b"\x1a\x06\x12\x04\xff\xff\xff\x7f", b"\x0a\x02\x0a\x00" * 64):
        yield f"sentencepiece {prefix[:12].hex()} of {len(prefix)}", prefix + spm[:200], ANY
    tik = (TOKENIZERS / "llama3.tiktoken").read_bytes()
    for extra in (b"IQ== 4294967295\n", b"IQ== -1\n", b"IQ== 99999999999999999999\n", b"IQ==\n", b"!!!! 5\n", b"IQ== 0\n",
        b" \n" * 1000,
                  b"A" * 10**6 + b" 7\n", b"QUFB 1048576000\n"):
        yield f"tiktoken and {extra[:20]!r}", tik + extra, REFUSED
        yield f"tiktoken, {extra[:20]!r} alone", extra, REFUSED


@functools.cache
def sound(name):
    return (TOKENIZERS / name).read_bytes()


def case(name, content, codes, file="t.json"):
    return Case("tokenizers", name, ["convert", "m.gguf", "-o", "out.pte", "--tokenizer", file], {**SOURCE, file: content}, NO_LIBRARY,
                codes=codes)


def cases(_tool, rng):
    for name, content, codes in crafted():
        yield case(name, content, codes)
    for name, content, codes in binary():
        yield case(name, content, codes, "t.bin")
    for name in ("gpt2.json", "llama3.tiktoken", "spm_bpe.model", "spm_unigram.model", "llama2c.bin", "llama3.json", "unigram.json",
        "gemma.json"):
        yield case(f"{name}, of a larger model", sound(name), REFUSED, name)
        for part in (2, 3, 10, 100):
            yield case(f"{name}, the first {part}th", sound(name)[:len(sound(name)) // part], REFUSED, name)


def more(rng):
    """Without end: digits, quotes and brackets replaced."""
    data = json.dumps(small()).encode()
    while True:
        places = [rng.randrange(len(data)) for _ in range(rng.choice((1, 2, 3)))]
        changes = [(at, bytes([rng.choice(b'0123456789-.e"{}[]:,\\\x00\xff')])) for at in places]
        yield case(f"damaged at {places}", patched(data, changes), ANY)
