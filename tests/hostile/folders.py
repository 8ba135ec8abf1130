"""Hugging Face folders: hostile safetensors, config.json, index and the files beside them, for pteryx convert."""
# SPDX-License-Identifier: BSD-3-Clause
import functools
import json
import shutil
import struct

from .case import ANY, CONVERT, NO_LIBRARY, OK, REFUSED, Case, link_to, patched, put, sparse

QWEN2, QWEN3 = CONVERT / "qwen2", CONVERT / "qwen3"
INDEX = "model.safetensors.index.json"
HUGE = (2**31, 2**32, 2**53, 2**63 - 1, 2**63, 2**64 - 1, 2**64, 10**30)
NAN, INF = float("nan"), float("inf")


def with_files(source, **files):
    """A copy of a folder with files replaced, added or (None) removed; names use two underscores for a point."""
    def make(path):
        shutil.copytree(source, path)
        for name, content in files.items():
            target = path / name.replace("__", ".")
            target.unlink(missing_ok=True)
            if content is not None:
                put(target, content)
    return make


@functools.cache
def safetensors():
    data = (QWEN2 / "model.safetensors").read_bytes()
    size = struct.unpack_from("<Q", data)[0]
    return json.loads(data[8:8 + size]), data[8 + size:]


def pack(header, data, length=None):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text) if length is None else length % 2**64) + text + data


def config_with(**fields):
    config = json.loads((QWEN2 / "config.json").read_text())
    config.pop("rope_parameters", None)  # would have the last word
    config.update(fields)
    return json.dumps({k: v for k, v in config.items() if v is not Ellipsis})


def weights(change):
    """model.safetensors with a change made to its header."""
    header, data = safetensors()
    header = json.loads(json.dumps(header))
    return pack(change(header) or header, data)


def crafted_weights():
    header, data = safetensors()
    name = "model.embed_tokens.weight"
    entry = header[name]
    for n in HUGE:
        yield f"a header of {n} bytes", pack(header, data, n), REFUSED
    for length in (0, 1, 2, len(json.dumps(header)) - 1, len(json.dumps(header)) + 1):
        yield f"a header of {length} bytes", pack(header, data, length), REFUSED
    for size in range(0, 17, 4):
        yield f"cut at byte {size}", pack(header, data)[:size], REFUSED
    yield "cut in the data", pack(header, data)[:-1], REFUSED
    yield "data behind the tensors", pack(header, data + bytes(100)), ANY
    for text in (b"", b"{", b"[]", b"null", b"1", b'"x"', b"{}", b'{"a":1}', b'{"a":{}}', b"\xff\xfe", b"{" * 200_000, b"[" * 200_000,
                 b'{"a":' * 200_000 + b"1" + b"}" * 200_000, b'{"__metadata__":' + b"[" * 200_000 + b"]" * 200_000 + b"}",
                 b'{"a":"' + b"x" * 10**6 + b'"}'):
        yield f"a header {text[:20]!r} of {len(text)} bytes", pack(text, data), REFUSED
    for field, v in (("dtype", "F31"), ("dtype", ""), ("dtype", 1), ("dtype", None), ("dtype", "\x1b[31m"), ("dtype", "x" * 10_240),
                     ("dtype", "I64"), ("dtype", "F64"),
                     *(("shape", s) for s in ([], [0, 64], [-1, 64], [64.5, 64], ["64", 64], {}, 64, [2**32, 2**32], [2**63 - 1] * 2,
                         [1] * 100,
                                              [10**30], None, [[64]], [True, False])),
                     *(("data_offsets", o) for o in ([], [0], [0, 1, 2], [4, 0], [-4, 0], [0, 2**63 - 1], [0, 2**64],
                         [2**63 - 1, 2**63 - 1],
                                                     ["0", "4"], [0.5, 1], None, [0, 0], [1, 1 + entry["data_offsets"][1]]))):
        yield f"{field} = {str(v)[:40]}", weights(lambda h, field=field, v=v: h[name].__setitem__(field, v)), REFUSED
    yield "all tensors in one place", weights(lambda h: [e.update(data_offsets=[0, e["data_offsets"][1] - e["data_offsets"][0]])
                                                        for k, e in h.items() if k != "__metadata__"] and None), REFUSED
    yield "a tensor missing", weights(lambda h: h.pop(name) and None), REFUSED
    yield "a tensor twice", pack(json.dumps(header)[:-1].encode() + f', "{name}": {json.dumps(entry)}}}'.encode(), data), REFUSED
    yield "a name of escapes", weights(lambda h: h.__setitem__("\x1b[31m", h.pop(name))), REFUSED
    yield "a name of 10 KB", weights(lambda h: h.__setitem__("n" * 10_240, {**entry, "dtype": 1})), REFUSED
    yield "100,000 tensors of nothing", weights(lambda h: h.update({f"t{i}": {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]}
                                                                   for i in range(100_000)})), ANY
    for what, pattern in (("not a number", b"\x00\x00\xc0\x7f"), ("infinite", b"\x00\x00\x80\x7f"),
        ("the largest", b"\xff\xff\x7f\x7f")):
        yield f"weights that are {what}", pack(header, pattern * (len(data) // 4)), REFUSED
        yield f"one weight that is {what}", pack(header, pattern + data[4:]), REFUSED if "largest" not in what else ANY
    yield "1 TB, sparse", sparse(1 << 40, pack(header, data)), ANY
    yield "1 TB, sparse, without a header", sparse(1 << 40), REFUSED
    yield "a header of 100 MB, sparse", sparse(1 << 40, struct.pack("<Q", 100_000_000) + b"{"), REFUSED


CONFIGS = [
    *((key, v) for key in ("hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size", "vocab_size")
      for v in (0, -1, 1, 3, 2**31, 2**63 - 1, 10**30, 1.5, "64", [64], {}, True, ...)),
    *(("num_key_value_heads", v) for v in (0, -1, 3, 2**40)), *(("head_dim", v) for v in (0, -1, 1, 7, 2**40)),
    *(("rms_norm_eps", v) for v in (-1, 1e30, "x", [], 1e300)), *(("rope_theta", v) for v in (0, -1, 1e-300, 1e300, "x")),
    *(("rope_scaling", v) for v in ({"rope_type": "linear"}, {"rope_type": "linear", "factor": 0},
        {"rope_type": "linear", "factor": 1e-300},
                                    {"rope_type": "linear", "factor": 1e300}, {"rope_type": "linear", "factor": -1},
                                    {"rope_type": "yarn"},
                                    {"rope_type": "\x1b[31m"}, {"type": 5, "factor": 2}, "x", [], 5,
                                    {"rope_type": "llama3", "factor": 8, "low_freq_factor": 4, "high_freq_factor": 1},
                                    {"rope_type": "llama3", "factor": 8, "original_max_position_embeddings": 0},
                                    {"rope_type": "llama3", "factor": 8, "original_max_position_embeddings": 1e300})),
    *(("max_position_embeddings", v) for v in (0, -1, 2**31, 2**63 - 1)),
    *(("bos_token_id", v) for v in (-1, 64, 2**32, 2**63 - 1, 10**30)),
    *(("eos_token_id", v) for v in (-1, 64, [1, 64], 2**32, 2**63 - 1, [10**30], [[1]], list(range(100_000)))),
    *(("architectures", v) for v in ([], "LlamaForCausalLM", [1], ["x" * 10_240], ["\x1b[31m"], {}, None)),
    ("hidden_act", "gelu"), ("hidden_act", "\x1b[31m"), ("use_sliding_window", True), ("tie_word_embeddings", "yes"),
    ("partial_rotary_factor", 0.5),
]
# Nothing is wrong with a file that leaves these to their defaults, or says them in another way.
HARMLESS = {("rope_scaling", "x"), ("rope_scaling", "[]"), ("rope_scaling", "5"), ("eos_token_id", "[1, 64]"),
    ("tie_word_embeddings", "yes"),
            ("num_hidden_layers", "1"), ("rope_scaling", "{'type': 5, 'factor': 2}"), ("rope_scaling", "{'rope_type': 'linear'}")}


def case(name, content, codes=ANY):
    return Case("folders", name, ["convert", "hf", "-o", "out.pte"], {"hf": content}, NO_LIBRARY, codes=codes)


def cases(_tool, rng):
    yield case("a sound folder", with_files(QWEN2), {OK})
    for name, content, codes in crafted_weights():
        yield case(f"weights: {name}", with_files(QWEN2, model__safetensors=content), codes)
    for key, v in CONFIGS:
        yield case(f"config: {key} = {str(v)[:60]}", with_files(QWEN2, config__json=config_with(**{key: v})),
                   ANY if (key, str(v)) in HARMLESS else REFUSED)
    for file in ("config.json", "generation_config.json", "tokenizer_config.json"):
        for text in ("", "{", "[]", "null", "\x00", "\udcff", "[" * 200_000, '{"a":' * 200_000 + "1" + "}" * 200_000, "nan",
                     '{"eos_token_id": NaN}', '{"a": 1, "a": 2}', '{"eos_token_id": 1' + "0" * 5000 + "}"):
            yield case(f"{file}: {text[:20]!r} of {len(text)}", with_files(QWEN2, **{file.replace(".", "__"): text}),
                       REFUSED if file == "config.json" else ANY)
        yield case(f"{file} of 1 TB", with_files(QWEN2, **{file.replace(".", "__"): sparse(1 << 40)}), REFUSED)
        yield case(f"{file} a folder", with_files(QWEN2, **{file.replace(".", "__"): lambda p: p.mkdir()}), REFUSED)
    for file in ("tokenizer.json", "tokenizer.model", "chat_template.jinja"):
        yield case(f"{file} of 1 TB", with_files(QWEN2, **{file.replace(".", "__"): sparse(1 << 40)}), REFUSED)
        yield case(f"{file} a link to itself", with_files(QWEN2, **{file.replace(".", "__"): link_to(file)}), ANY)
        for content in (b"", b"\0" * 100, b"\xff" * 100, b"{}", b"[", b"{{"):
            yield case(f"{file}: {content[:8]!r}", with_files(QWEN2, **{file.replace(".", "__"): content}),
                       ANY if "template" in file and content not in (b"{{", b"\xff" * 100) else REFUSED)
    index = json.loads((QWEN3 / INDEX).read_text())
    shard = "model-00001-of-00003.safetensors"
    for target in ("../../etc/passwd", "/etc/passwd", "..", ".", "", "hf", INDEX, "config.json", "absent.safetensors", "a/b", "a\\b",
                   "\x1b[31m", "x" * 10_240, "model-00001-of-00003.safetensors\0", "./" + shard):
        wrong = {**index, "weight_map": {**index["weight_map"], "model.norm.weight": target}}
        yield case(f"index leads to {target[:40]!r}", with_files(QWEN3, **{INDEX.replace(".", "__"): json.dumps(wrong)}), REFUSED)
    for text in ("", "{}", '{"weight_map": []}', '{"weight_map": {}}', '{"weight_map": {"a": 1}}', '{"weight_map": ' + "[" * 200_000,
                 '{"weight_map": {"a": ' + "[" * 200_000 + "]" * 200_000 + "}}"):
        yield case(f"index {text[:30]!r}", with_files(QWEN3, **{INDEX.replace(".", "__"): text}), REFUSED)
    yield case("a shard missing", with_files(QWEN3, **{shard.replace(".", "__"): None}), REFUSED)
    yield case("a shard twice", with_files(QWEN3, **{shard.replace(".", "__"): QWEN3 / "model-00002-of-00003.safetensors"}), REFUSED)
    yield case("a shard outside through a link", with_files(QWEN3, **{shard.replace(".", "__"): link_to("/etc/passwd")}), REFUSED)
    yield case("no weights", with_files(QWEN2, model__safetensors=None), REFUSED)


def more(rng):
    """Without end: digits, quotes and brackets of the weights' header replaced."""
    data = pack(*safetensors())
    length = struct.unpack_from("<Q", data)[0]
    while True:
        places = [8 + rng.randrange(length) for _ in range(rng.choice((1, 2, 3)))]
        changes = [(at, bytes([rng.choice(b'0123456789-.eE"{}[]:,\\\x00\xff')])) for at in places]
        yield case(f"weights damaged at {places}", with_files(QWEN2, model__safetensors=patched(data, changes)))
