"""GGUF files whose counts, sizes, types and values are wrong, for pteryx convert."""
# SPDX-License-Identifier: BSD-3-Clause
import dataclasses
import functools
import struct

from .case import ANY, CONVERT, NO_LIBRARY, OK, REFUSED, Case, patched, sparse

U8, I8, U16, I16, U32, I32, F32, BOOL, STRING, ARRAY, U64, I64, F64 = range(13)
SCALARS = {U8: "B", I8: "b", U16: "H", I16: "h", U32: "I", I32: "i", F32: "f", BOOL: "?", U64: "Q", I64: "q", F64: "d"}
TENSOR_F32, TENSOR_F16, TENSOR_Q4_0, TENSOR_Q8_0 = 0, 1, 2, 8
BLOCKS = {TENSOR_F32: (1, 4), TENSOR_F16: (1, 2), TENSOR_Q4_0: (32, 18), TENSOR_Q8_0: (32, 34)}


@dataclasses.dataclass
class Gguf:
    """A file as its parts. What is left as None is written as it should be."""
    entries: list  # [key, type, value]; the value of an array is (type, items)
    tensors: list  # [name, dims (innermost first), type, data, offset or None]
    magic: bytes = b"GGUF"
    version: int = 3
    entry_count: int = None
    tensor_count: int = None
    alignment: int = 32
    tail: bytes = b""

    def find(self, key):
        return next(e for e in self.entries if e[0] == key)

    def tensor(self, name):
        return next(t for t in self.tensors if t[0] == name)

    def set(self, key, kind, value):
        self.drop(key)
        self.entries.append([key, kind, value])
        return self

    def drop(self, key):
        self.entries = [e for e in self.entries if e[0] != key]
        return self


class Raw(bytes):
    """Bytes that stand in the file as they are, where a string or a value would."""


def text(s):
    if isinstance(s, Raw):
        return s
    data = s if isinstance(s, bytes) else s.encode("utf-8", "surrogateescape")
    return struct.pack("<Q", len(data)) + data


def value(kind, v):
    if isinstance(v, Raw):
        return v
    if kind == STRING:
        return text(v)
    if kind == ARRAY:
        item, items = v
        return struct.pack("<IQ", item, len(items)) + b"".join(value(item, i) for i in items)
    return struct.pack("<" + SCALARS[kind], v)


def write(g):
    head = g.magic + struct.pack("<IQQ", g.version, len(g.tensors) if g.tensor_count is None else g.tensor_count,
                                 len(g.entries) if g.entry_count is None else g.entry_count)
    head += b"".join(text(key) + struct.pack("<I", kind) + value(kind, v) for key, kind, v in g.entries)
    data = b""
    for name, dims, kind, content, offset in g.tensors:
        data += bytes(-len(data) % max(g.alignment, 1))
        head += text(name) + struct.pack("<I", len(dims)) + b"".join(struct.pack("<Q", d % 2**64) for d in dims)
        head += struct.pack("<IQ", kind, (len(data) if offset is None else offset) % 2**64)
        data += content
    return head + bytes(-len(head) % max(g.alignment, 1)) + data + g.tail


class Cursor:
    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, code):
        v = struct.unpack_from("<" + code, self.data, self.at)[0]
        self.at += struct.calcsize(code)
        return v

    def text(self):
        size = self.take("Q")
        self.at += size
        return self.data[self.at - size:self.at].decode()

    def value(self, kind):
        if kind == STRING:
            return self.text()
        if kind == ARRAY:
            item, count = self.take("I"), self.take("Q")
            return item, [self.value(item) for _ in range(count)]
        return self.take(SCALARS[kind])


@functools.cache
def parts():
    c = Cursor((CONVERT / "llama.gguf").read_bytes())
    c.at = 8
    tensor_count, entry_count = c.take("Q"), c.take("Q")
    entries = []
    for _ in range(entry_count):
        key, kind = c.text(), c.take("I")
        entries.append((key, kind, c.value(kind)))
    described = []
    for _ in range(tensor_count):
        name, rank = c.text(), c.take("I")
        described.append((name, [c.take("Q") for _ in range(rank)], c.take("I"), c.take("Q")))
    start = c.at + -c.at % 32
    tensors = []
    for name, dims, kind, offset in described:
        elems, size = BLOCKS[kind]
        count = functools.reduce(lambda a, b: a * b, dims, 1) // elems * size
        tensors.append((name, dims, kind, c.data[start + offset:start + offset + count]))
    return entries, tensors


def model():
    """The parts of a sound file, anew; without the merges of the fixture, whose parts are no tokens."""
    entries, tensors = parts()
    entries = [e for e in entries if e[0] != "tokenizer.ggml.merges"]
    return Gguf([list(e) for e in entries], [[n, list(d), k, data, None] for n, d, k, data in tensors])


def changed(change):
    """A function that writes the file with a change made to its parts."""
    def make(path):
        g = model()
        path.write_bytes(write(change(g) or g))
    return make


def vocabulary(g, tokens, model_name="gpt2", **arrays):
    g.set("tokenizer.ggml.model", STRING, model_name)
    g.set("tokenizer.ggml.tokens", ARRAY, (STRING, tokens))
    for key, (kind, items) in arrays.items():
        g.set(f"tokenizer.ggml.{key}", ARRAY, (kind, items))
    return g


def sound(path):
    path.write_bytes(write(model()))


def attribute(**fields):
    def change(g):
        for key, v in fields.items():
            setattr(g, key, v)
    return change


def tensor_field(name, index, v):
    def change(g):
        g.tensor(name)[index] = v
    return change


def poisoned(name, pattern, every=None):
    """Blocks of a tensor that begin with a pattern, such as a scale that is not a number."""
    def change(g):
        t = g.tensor(name)
        step = BLOCKS[t[2]][1] if every is None else every
        data = bytearray(t[3])
        for at in range(0, len(data) - len(pattern) + 1, step):
            data[at:at + len(pattern)] = pattern
        t[3] = bytes(data)
    return change


HUGE = (2**31 - 1, 2**31, 2**32, 2**40, 2**61, 2**63 - 1, 2**63, 2**64 - 1)
F16_NAN, F16_INF, F32_NAN, F32_INF = b"\x00\x7e", b"\x00\x7c", b"\x00\x00\xc0\x7f", b"\x00\x00\x80\x7f"


def crafted():
    """Names, changes and the codes a run with them may end with."""
    for n in HUGE:
        yield f"{n} tensors", attribute(tensor_count=n), REFUSED
        yield f"{n} entries", attribute(entry_count=n), REFUSED
        yield f"a key of {n} bytes", lambda g, n=n: g.set(Raw(struct.pack("<Q", n)), U8, 0), REFUSED
        for item in (U8, U32, F64, STRING, ARRAY):
            yield f"an array of {n} items of type {item}", lambda g, n=n, item=item: g.set(
                "x", ARRAY, Raw(struct.pack("<IQ", item, n))), REFUSED
        yield f"a string of {n} bytes", lambda g, n=n: g.set("x", STRING, Raw(struct.pack("<Q", n))), REFUSED
        yield f"a dim of {n}", lambda g, n=n: g.tensor("token_embd.weight")[1].__setitem__(1, n), REFUSED
        yield f"an offset of {n}", tensor_field("token_embd.weight", 4, n - n % 32), REFUSED
        for key in ("llama.embedding_length", "llama.block_count", "llama.attention.head_count", "llama.feed_forward_length"):
            yield f"{key} of {n}", lambda g, key=key, n=n: g.set(key, U64, n), REFUSED
        yield f"a context of {n}", lambda g, n=n: g.set("llama.context_length", U64, n), ANY
        yield f"an alignment of {n}", lambda g, n=n: g.set("general.alignment", U64, n), REFUSED
    for n in (0, 1, 3, 31, 33, 2**20, 2**20 + 1):
        yield f"an alignment of {n} that nothing keeps", lambda g, n=n: g.set("general.alignment", U32, n), REFUSED if n != 1 else ANY
    for version in (0, 1, 4, 2**16, 2**24, 2**32 - 1):
        yield f"version {version}", attribute(version=version), REFUSED
    yield "no magic", attribute(magic=b"GGUX"), REFUSED
    yield "the magic of another byte order", attribute(magic=b"FUGG"), REFUSED
    yield "nothing but a header", attribute(entries=[], tensors=[]), REFUSED
    yield "no tensors", attribute(tensors=[]), REFUSED
    yield "nested arrays", lambda g: g.set("x", ARRAY, (ARRAY, [(ARRAY, [(U8, [1])])])), REFUSED
    yield "10,000 nested arrays", lambda g: g.set("x", ARRAY, Raw(struct.pack("<IQ", ARRAY, 1) * 10_000)), REFUSED
    yield "a type that is none", lambda g: g.entries.append(["x", 99, Raw(8)]), REFUSED
    yield "a bool of 255", lambda g: g.set("x", BOOL, Raw(b"\xff")), ANY
    for name in ("token_embd.weight", "blk.0.attn_q.weight", "output_norm.weight"):
        for dims in ([], [0], [0, 64], [64, 0], [64], [64, 64, 1], [64, 64, 1, 1, 1], [64] * 9, [2**32, 2**32], [2**62, 4], [-1, 64],
                     [63, 64], [64, 63], [1, 4096], [4096, 1], [2**63, 2]):
            right = name == "output_norm.weight" and dims == [64]
            yield f"{name} with dims {dims}", tensor_field(name, 1, dims), ANY if right else REFUSED
        for kind in (TENSOR_F32, TENSOR_F16, 4, 5, 9, 12, 14, 30, 31, 255, 2**32 - 1):
            yield f"{name} of type {kind}", tensor_field(name, 2, kind), ANY
        yield f"{name} missing", lambda g, name=name: g.tensors.remove(g.tensor(name)), REFUSED
        yield f"{name} twice", lambda g, name=name: g.tensors.append(list(g.tensor(name))), REFUSED
        yield f"{name} at an odd offset", tensor_field(name, 4, 1), REFUSED
        yield f"{name} over another", tensor_field(name, 4, 0), ANY
        yield f"{name} without a name", tensor_field(name, 0, ""), REFUSED
        yield f"{name} with a name of escapes", tensor_field(name, 0, "\x1b[31m\n\x07"), REFUSED
        yield f"{name} with a name of 10 KB", tensor_field(name, 0, "n" * 10_240), REFUSED
        yield f"{name} with a name that is not UTF-8", tensor_field(name, 0, b"\xff\xfe"), REFUSED
    for what, pattern in (("not numbers", F16_NAN), ("infinite", F16_INF), ("infinite and negative", b"\x00\xfc")):
        yield f"scales that are {what} in a layer", poisoned("blk.0.attn_q.weight", pattern), REFUSED
        yield f"scales that are {what} in the embedding", poisoned("token_embd.weight", pattern), REFUSED
    for what, pattern in (("not numbers", F32_NAN), ("infinite", F32_INF)):
        yield f"norms that are {what}", poisoned("output_norm.weight", pattern), REFUSED
    yield "one norm that is not a number", poisoned("blk.1.ffn_norm.weight", F32_NAN, 10**6), REFUSED
    yield "all weights zero", lambda g: [t.__setitem__(3, bytes(len(t[3]))) for t in g.tensors] and None, ANY
    yield "the largest scales", poisoned("blk.0.attn_q.weight", b"\xff\x7b"), ANY
    for key, kind, v in METADATA:
        yield f"{key} = {str(v)[:40]} of type {kind}", lambda g, key=key, kind=kind, v=v: g.set(key, kind, v), REFUSED
    for key in ("general.architecture", "llama.embedding_length", "llama.block_count", "llama.attention.head_count",
                "llama.feed_forward_length"):
        yield f"{key} missing", lambda g, key=key: g.drop(key), REFUSED
        yield f"{key} twice", lambda g, key=key: g.entries.append(list(g.find(key))), REFUSED
        for kind, v in ((STRING, "64"), (F32, 64.0), (ARRAY, (U32, [64])), (BOOL, True), (I64, -64), (F64, float("nan"))):
            yield f"{key} of type {kind}", lambda g, key=key, kind=kind, v=v: g.set(key, kind, v), REFUSED


NAN, INF = float("nan"), float("inf")
METADATA = [
    ("general.architecture", STRING, ""), ("general.architecture", STRING, "llama\x1b[31m"),
    ("general.architecture", STRING, "x" * 10_240),
    ("general.architecture", STRING, "llama\0"),
    ("llama.attention.head_count", U32, 3), ("llama.attention.head_count", U32, 0), ("llama.attention.head_count", U32, 64),
    ("llama.attention.head_count_kv", U32, 0), ("llama.attention.head_count_kv", U32, 3), ("llama.attention.key_length", U32, 7),
    ("llama.attention.key_length", U32, 0), ("llama.attention.key_length", U32, 2**31),
    ("llama.block_count", U32, 0), ("llama.block_count", U32, 3), ("llama.block_count", I32, -1),
    ("llama.context_length", U32, 0), ("llama.context_length", I32, -5),
    ("llama.attention.layer_norm_rms_epsilon", F32, NAN), ("llama.attention.layer_norm_rms_epsilon", F32, INF),
    ("llama.attention.layer_norm_rms_epsilon", F32, -1.0), ("llama.attention.layer_norm_rms_epsilon", F32, 1e30),
    ("llama.attention.layer_norm_rms_epsilon", STRING, "1e-5"),
    ("llama.rope.freq_base", F32, NAN), ("llama.rope.freq_base", F32, INF), ("llama.rope.freq_base", F32, -1.0),
    ("llama.rope.freq_base", F32, 0.0), ("llama.rope.freq_base", F64, 1e-300), ("llama.rope.freq_base", F64, 1e300),
    ("llama.rope.freq_base", STRING, "x"),
    ("llama.rope.dimension_count", U32, 2), ("llama.rope.dimension_count", U32, 2**31),
    ("llama.rope.scaling.type", STRING, "yarn"), ("llama.rope.scaling.type", STRING, "\x1b[31m"),
    ("llama.expert_count", U32, 8),
]


def tokenizers():
    """Vocabularies that do not fit the model, or themselves."""
    tokens = [chr(97 + i % 26) * (1 + i // 26) for i in range(64)]

    def with_vocabulary(change=None, count=64, name="gpt2", **arrays):
        def make(g):
            vocabulary(g, tokens[:count], name, **arrays)
            if change:
                change(g)
        return make

    for count in (0, 1, 63):
        yield f"{count} tokens for a vocabulary of 64", with_vocabulary(count=count), ANY if count else REFUSED
    yield "more tokens than the vocabulary", lambda g: vocabulary(g, tokens + ["zz"] * 10) and None, REFUSED
    yield "tokens that are numbers", lambda g: g.set("tokenizer.ggml.model", STRING, "gpt2").set(
        "tokenizer.ggml.tokens", ARRAY, (U32, list(range(64)))), REFUSED
    yield "no tokens", lambda g: g.set("tokenizer.ggml.model", STRING, "gpt2").drop("tokenizer.ggml.tokens"), REFUSED
    yield "tokens that are one string", lambda g: g.set("tokenizer.ggml.model", STRING, "gpt2").set(
        "tokenizer.ggml.tokens", STRING, "a b c"), REFUSED
    yield "a model of no name", with_vocabulary(name=""), REFUSED
    yield "a model of another name", with_vocabulary(name="quantum\x1b[31m"), REFUSED
    for key in ("bos_token_id", "eos_token_id", "eot_token_id", "unknown_token_id"):
        for kind, v in ((I64, -1), (I64, -2**63), (U32, 64), (U32, 2**32 - 1), (U64, 2**32), (U64, 2**63 - 1), (U64, 2**64 - 1),
                        (STRING, "1"), (F32, NAN), (ARRAY, (U32, [1, 2]))):
            outside = kind in (I64, U32, U64) and "unknown" not in key
            yield f"{key} {v} of type {kind}", with_vocabulary(
                lambda g, key=key, kind=kind, v=v: g.set(f"tokenizer.ggml.{key}", kind, v)), REFUSED if outside else ANY
    for name, kind, items in (("scores", F32, [0.0]), ("scores", F32, [NAN] * 64), ("scores", F32, [INF] * 64),
        ("scores", STRING, ["x"] * 64),
                              ("token_type", I32, [1]), ("token_type", I32, [-1] * 64), ("token_type", I32, [99] * 64),
                              ("token_type", F32, [NAN] * 64), ("merges", STRING, ["a"]), ("merges", STRING, ["a b c"]),
                              ("merges", STRING, [""]), ("merges", STRING, ["zzzz yyyy"]), ("merges", STRING, ["a a"] * 1000),
                              ("merges", U8, [1])):
        yield f"{name} {str(items[0])} x {len(items)}", with_vocabulary(**{name: (kind, items)}), ANY
    yield "tokens that are not UTF-8", lambda g: vocabulary(g, [b"\xff%c" % i for i in range(64)], "llama") and None, ANY
    yield "the same token 64 times", lambda g: vocabulary(g, ["a"] * 64) and None, ANY
    yield "empty tokens", lambda g: vocabulary(g, [""] * 64) and None, ANY
    yield "a token of 1 MB", lambda g: vocabulary(g, tokens[:63] + ["x" * 2**20]) and None, ANY


def case(name, content, codes=ANY, args=()):
    return Case("gguf", name, ["convert", "m.gguf", "-o", "out.pte", *args], {"m.gguf": content}, NO_LIBRARY, codes=codes)


def cases(_tool, rng):
    yield case("a sound file", changed(lambda g: None), {OK})
    for name, change, codes in (*crafted(), *tokenizers()):
        yield case(name, changed(change), codes)
    yield case("the longest context it claims", changed(lambda g: g.set("llama.context_length", U32, 2**24)), ANY,
               ["--max-context", str(2**20)])
    array = struct.pack("<IQQ", 3, 0, 1) + text("a") + struct.pack("<IIQ", ARRAY, U8, 2**36)
    yield case("an array of 2^36 bytes in a sparse file", sparse(1 << 40, b"GGUF" + array), REFUSED)
    strings = struct.pack("<IQQ", 3, 0, 1) + text("a") + struct.pack("<IIQ", ARRAY, STRING, 2**32)
    yield case("2^32 empty strings in a sparse file", sparse(1 << 40, b"GGUF" + strings), REFUSED)
    yield case("2^30 tensors in a sparse file", sparse(1 << 40, b"GGUF" + struct.pack("<IQQ", 3, 2**30, 0)), REFUSED)
    yield case("2^30 entries in a sparse file", sparse(1 << 40, b"GGUF" + struct.pack("<IQQ", 3, 0, 2**30)), REFUSED)
    data = write(model())
    boundaries = sorted({*range(0, 64, 4), *(rng.randrange(len(data)) for _ in range(40)), len(data) - 1, len(data) - 32})
    for at in boundaries:
        yield case(f"cut at byte {at}", data[:at], REFUSED)


def more(rng):
    """Without end: numbers of the header replaced."""
    data = write(model())
    while True:
        changes = []
        for _ in range(rng.choice((1, 1, 1, 2, 4))):
            at, size = rng.randrange(4000), rng.choice((1, 2, 4, 8))
            new = rng.choice((0, 1, 2**31, 2**32 - 1, 2**63, 2**64 - 1, rng.getrandbits(64)))
            changes.append((at, (new % 256**size).to_bytes(size, "little")))
        yield case(f"damaged at {', '.join(str(at) for at, _ in changes)}", patched(data, changes))
