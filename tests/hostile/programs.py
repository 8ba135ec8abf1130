""".pte files with damage that knows its place: header, vtables, offsets, lengths, ids, sizes and segments."""
# SPDX-License-Identifier: BSD-3-Clause
import functools
import json
import struct

import cli
import npy

from .case import ANY, LLM, NO_LIBRARY, OK, OPS, REFUSED, STATE, VALUES, Case, patched, sparse

# The schema as far as it is needed: of each table its fields by number. A letter is a number, a name a table, "*" a vector, "s" text,
# "|" a union's tables by tag; None is left alone.
TABLES = {
    "Program": ["I", "*Plan", "*Buffer", "*Buffer", "*Segment", "Offsets", "*Offsets", "*Named"],
    "Plan": ["s", None, "*EValue", "*i", "*i", "*Chain", "*Operator", "*Delegate", "*q"],
    "EValue": ["B", "|Null Int Bool Double Tensor s_ List_q List_d List_B List_i List_i"],
    "Null": [], "Int": ["q"], "Bool": ["B"], "Double": ["d"], "s_": ["s"], "List_q": ["*q"], "List_d": ["*d"], "List_B": ["*B"],
    "List_i": ["*i"],
    "Tensor": ["b", "i", "*i", "*B", "B", "I", "Allocation", "b", "b", "Extra"],
    "Allocation": ["I", "I", "I"], "Extra": ["Q", "s", "b", "b", "b"],
    "Chain": ["*i", "*i", "*Instruction"],
    "Instruction": ["B", "|Kernel Call Move Jump Free"],
    "Kernel": ["i", "*i"], "Call": ["i", "*i"], "Move": ["i", "i"], "Jump": ["i", "i"], "Free": ["i"],
    "Operator": ["s", "s"], "Delegate": ["s", "Reference", "*Spec"], "Reference": ["b", "I"], "Spec": ["s", "*B"],
    "Buffer": ["*B"], "Segment": ["Q", "Q"], "Offsets": ["I", "*Q"], "Named": ["s", "I"],
    # Of the graph inside a delegate.
    "Graph": ["s", "*OperatorCall", "*VkValue", "*I", "*I", "*VkBytes", "*VkBytes", "B", "B"],
    "OperatorCall": ["I", "s", "*i"], "VkBytes": ["Q", "Q", "s"],
    "VkValue": ["B", "|Null Int Double Bool VkTensor List_q List_d List_B List_i s_ SymInt"],
    "VkTensor": ["b", "*I", "i", "i", "B", "B", "b"], "SymInt": ["i"],
}


class Walker:
    """Finds every place of a FlatBuffer that says something: (what, offset, size in bytes)."""

    def __init__(self, data, base=0):
        self.data, self.base, self.places, self.seen = data, base, [], set()

    def number(self, at, code="I"):
        return struct.unpack_from("<" + code, self.data, at)[0]

    def add(self, what, at, size):
        self.places.append((what, at, size))

    def table(self, name, at):
        if (name, at) in self.seen:
            return
        self.seen.add((name, at))
        vtable = at - self.number(at, "i")
        self.add(f"{name}'s vtable", at, 4)
        self.add(f"size of {name}'s vtable", vtable, 2)
        self.add(f"size of {name}", vtable + 2, 2)
        tag = 0
        for i, field in enumerate(TABLES[name]):
            if 4 + 2 * i + 2 > self.number(vtable, "H"):
                break
            slot = self.number(vtable + 4 + 2 * i, "H")
            if slot == 0 or field is None:
                continue
            self.add(f"slot of {name}.{i}", vtable + 4 + 2 * i, 2)
            if field.startswith("|"):
                options = field[1:].split()
                self.add(f"offset of {name}.{i}", at + slot, 4)
                if 0 < tag <= len(options):
                    self.table(options[tag - 1], at + slot + self.number(at + slot))
            else:
                if field == "B":
                    tag = self.number(at + slot, "B")
                self.field(f"{name}.{i}", field, at + slot)

    def field(self, what, field, at):
        if field in "bBhHiIqQdf":
            self.add(what, at, struct.calcsize(field))
            return
        self.add(f"offset of {what}", at, 4)
        target = at + self.number(at)
        if field == "s":
            self.add(f"length of {what}", target, 4)
        elif field.startswith("*"):
            self.vector(what, field[1:], target)
        else:
            self.table(field, target)

    def vector(self, what, item, at):
        count = self.number(at)
        self.add(f"length of {what}", at, 4)
        size = struct.calcsize(item) if len(item) == 1 and item != "s" else 4
        for i in range(min(count, 64)):
            place = at + 4 + i * size
            if size != 4 or item in "iI":
                self.add(f"item of {what}", place, size)
            else:
                self.add(f"offset of {what}[{i}]", place, 4)
                self.table(item, place + self.number(place))


@functools.cache
def places(path):
    """What a program has where, its delegates' graphs included."""
    data = path.read_bytes()
    w = Walker(data)
    for what, at, size in (("root", 0, 4), ("header length", 12, 4), ("program size", 16, 8), ("segment base", 24, 8),
                           ("segment size", 32, 8)):
        w.add(what, at, size)
    w.table("Program", w.number(0))
    at = data.find(b"VH00")
    while at >= 0:  # length of the header, then where the graph and the bytes are
        for i in range(-4, 32, 4):
            w.add(f"delegate header at {i}", at + i, 4)
        graph = at - 4 + w.number(at + 6) if at + 10 <= len(data) else 0
        if data[graph + 4:graph + 8] == b"VK00":
            w.add("delegate root", graph, 4)
            w.table("Graph", graph + w.number(graph))
        at = data.find(b"VH00", at + 4)
    return data, w.places


EDGES = (0, 1, 2, 3, 4, 7, 8, 0x7F, 0x80, 0xFF, 0x7FFF, 0x8000, 0xFFFF, 2**31 - 1, 2**31, 2**31 + 4, 2**32 - 8, 2**32 - 4, 2**32 - 1,
    2**32,
         2**32 + 4, 2**62, 2**63 - 1, 2**63, 2**64 - 16, 2**64 - 1)


def damage(rng, path):
    """What writes a program with one to three of its places changed, and what was done."""
    data, found = places(path)
    changes, done = [], []
    for _ in range(rng.choice((1, 1, 1, 1, 2, 3))):
        what, at, size = rng.choice(found)
        old = int.from_bytes(data[at:at + size], "little")
        new = rng.choice((*EDGES, old + 1, old - 1, old ^ 1, old * 2, -old, at, len(data), len(data) - at,
            rng.getrandbits(64))) % 256**size
        changes.append((at, new.to_bytes(size, "little")))
        done.append(f"{what} = {new}")
    return patched(data, changes), f"{path.stem}: {', '.join(done)}"


def cycles(path):
    """Every offset of a program, turned back on its own table or vector."""
    data, found = places(path)
    for what, at, size in found:
        if not what.startswith("offset of ") or size != 4:
            continue
        for name, target in (("itself", 0), ("what is in front of it", 2**32 - 8),
            ("the root", (struct.unpack_from("<I", data)[0] - at) % 2**32)):
            yield f"{what} leads to {name}", data[:at] + target.to_bytes(4, "little") + data[at + 4:]


def header(data, **fields):
    """With fields of the extended header replaced."""
    at = {"root": (0, 4), "identifier": (4, 4), "magic": (8, 4), "length": (12, 4), "program": (16, 8), "base": (24, 8),
        "size": (32, 8)}
    data = bytearray(data)
    for name, v in fields.items():
        start, size = at[name]
        data[start:start + size] = v if isinstance(v, bytes) else (v % 256**size).to_bytes(size, "little")
    return bytes(data)


ADD, MIXED, LANGUAGE, LIST, COUNTER = (OPS / "add.pte", OPS / "dyn_transformer.pte", LLM / "qwen3_like_q4.pte",
    VALUES / "int_input.pte",
                                       STATE / "counter.pte")


def crafted(rng):
    data = ADD.read_bytes()
    for edge in EDGES:
        for name in ("root", "length", "program", "base", "size"):
            yield f"{name} of the header = {edge}", header(data, **{name: edge}), ANY
    yield "base and size that wrap around", header(data, base=2**64 - 64, size=128), REFUSED
    yield "program and base at the end", header(data, program=len(data), base=len(data)), ANY
    for identifier in (b"ET11", b"ET13", b"BP08", b"FT01", b"\x1b[3m", b"\0\0\0\0"):
        yield f"identifier {identifier}", header(data, identifier=identifier), REFUSED
    for at in sorted({0, 1, 4, 8, 16, 32, 63, 64, len(data) - 1, len(data) - 16, *(at for _, at, _ in places(ADD)[1][::3])}):
        yield f"cut at byte {at}", data[:at], REFUSED
    yield "twice", data + data, ANY
    yield "with a megabyte behind it", data + bytes(1 << 20), ANY
    yield "1 TB, sparse, without a word in it", sparse(1 << 40), REFUSED
    yield "1 TB, sparse, behind a program", sparse(1 << 40, data), ANY
    yield "1 TB, sparse, that claims all of it", sparse(1 << 40, header(data, program=2**39, base=2**39, size=2**39)), REFUSED
    for path in (ADD, COUNTER):
        turned = list(cycles(path))
        for what, content in rng.sample(turned, min(60, len(turned))):
            yield f"{path.stem}: {what}", content, ANY


def inspect(name, content, codes, *args):
    return Case("programs", name, ["inspect", "m.pte", *args], {"m.pte": content}, NO_LIBRARY, codes=codes)


def grown(path, dim):
    """A program whose tensors are all this large along each dim, and placed where there is room for them."""
    data, found = places(path)
    new = {"item of Tensor.2": dim, "item of VkTensor.1": dim, "item of Plan.8": 2**62}
    return patched(data, [(at, new[what].to_bytes(size, "little")) for what, at, size in found if what in new])


# What the CPU has kernels of its own for.
ON_CPU = ("add", "bmm", "conv2d", "conv2d_depthwise", "conv_transpose2d", "dyn_embedding", "dyn_softmax", "dyn_transformer", "max_pool2d",
          "net_cnn")


def verify_on_cpu(name, content, what, codes=ANY):
    manifest = json.dumps({"cases": [cli.case(OPS, name)]})
    files = {"v/manifest.json": manifest, f"v/{name}.pte": content, f"v/{name}.bin": OPS / f"{name}.bin"}
    return Case("programs", f"verify on the CPU {what}", ["verify", "v/manifest.json", "--device", "cpu"], files, NO_LIBRARY, codes=codes)


def cases(_tool, rng):
    yield inspect("a sound program", ADD, {OK})
    for name, content, codes in crafted(rng):
        yield inspect(name, content, codes)
    x = npy.to_file(npy.ramp("float32", (7, 33)))
    for _ in range(60):
        content, done = damage(rng, rng.choice((ADD, ADD, LIST, COUNTER)))
        yield Case("programs", f"run {done}", ["run", "m.pte", "-i", "x.npy", "-i", "x.npy", "-o", "out"],
                   {"m.pte": content, "x.npy": x}, gpu=True)
    for _ in range(12):
        content, done = damage(rng, LANGUAGE)
        yield Case("programs", f"generate from {done}", ["generate", "m.pte", "--prompt-ids", "1", "-n", "2", "--ignore-end"],
                   {"m.pte": content}, gpu=True)
    for name in ON_CPU:
        yield verify_on_cpu(name, OPS / f"{name}.pte", name, {OK})
        for _ in range(12):
            yield verify_on_cpu(name, *damage(rng, OPS / f"{name}.pte"))
    run_on_cpu = ["run", "m.pte", "-i", "x.npy", "-i", "x.npy", "-o", "out", "--device", "cpu"]
    yield Case("programs", "run on the CPU add of 2^50 bytes", run_on_cpu, {"m.pte": grown(ADD, 2**24), "x.npy": x}, NO_LIBRARY,
               codes=REFUSED, says="no memory left")
    for _ in range(40):
        content, done = damage(rng, rng.choice((ADD, LIST, COUNTER)))
        yield Case("programs", f"run on the CPU {done}", run_on_cpu, {"m.pte": content, "x.npy": x}, NO_LIBRARY)
    for _ in range(20):
        content, done = damage(rng, LANGUAGE)
        yield Case("programs", f"generate on the CPU from {done}",
                   ["generate", "m.pte", "--prompt-ids", "1", "-n", "2", "--ignore-end", "--device", "cpu"], {"m.pte": content}, NO_LIBRARY)


def more(rng):
    """Without end."""
    while True:
        content, done = damage(rng, rng.choice((ADD, MIXED, LANGUAGE, LIST, COUNTER)))
        yield inspect(done, content, ANY, *rng.choice(((), ("--json",), ("--graph", "g.dot"))))
