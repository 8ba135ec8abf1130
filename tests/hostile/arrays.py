""".npy files with hostile headers, as inputs of a run."""
# SPDX-License-Identifier: BSD-3-Clause
import struct

import npy

from .case import OPS, Case, sparse

X = npy.ramp("float32", (7, 33))
DATA = npy.to_file(X)[128:]


def file(header, data=DATA, version=1, size=None):
    text = header.encode("utf-8", "surrogateescape")
    length = len(text) if size is None else size
    return b"\x93NUMPY" + bytes([version, 0]) + struct.pack("<H" if version == 1 else "<I",
        length % (2**16 if version == 1 else 2**32)) + text + data


def header(descr="'<f4'", order="False", shape="(7, 33)"):
    return f"{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}\n"


CRAFTED = {
    **{f"shape {s[:30]}": file(header(shape=s)) for s in (
        "()", "(", ")", "(,)", "(7 33)", "(7,33,)", "(33, 7)", "(231,)", "(-7, -33)", "(0,)", "(7, 33, 0)",
        "(4294967296, 4294967296)", "(9223372036854775807,)",
        "(9223372036854775808,)", "(18446744073709551616,)", "(4611686018427387904, 4)", "(1e3,)", "('7', 33)", "[7, 33]", "7",
        "None", "(7, (33,))", "(" + "1, " * 100 + ")",
        "(" + "9" * 5000 + ",)", "(7L, 33L)", "(7, 33", "(0x7, 33)", "(True, 33)", "(0, 9223372036854775807)", "(\x1b[31m)",
        "(" + "\x1b[31m" * 1000 + ")")},
    **{f"descr {d[:30]}": file(header(descr=d)) for d in (
        "'>f4'", "'<f8'", "'<f2'", "'<c8'", "'|O'", "'|S4'", "'<U1'", "'<M8[ns]'", "''", "'f4'", "[('a', '<f4')]", "'<f16'",
        "'\x1b[31m'", "'" + "x" * 10_240 + "'", "1", "None",
        "'|b1'", "'<i8'", "'<u8'", "'|V4'")},
    **{f"order {o[:30]}": file(header(order=o)) for o in ("True", "1", "'False'", "None", "false", "\x1b[31m", "x" * 10_240)},
    **{f"version {v}": file(header(), version=v) for v in (0, 2, 3, 4, 255)},
    **{f"a header of {n}": file(header(), size=n) for n in (0, 1, 10, 65535)},
    **{f"a long header of {n}": file(header(), version=2, size=n) for n in (0, 2**31, 2**32 - 1)},
    "no header": file(""), "a header without a brace": file("'descr': '<f4', 'fortran_order': False, 'shape': (7, 33)"),
    "code": file("__import__('os').system('true')\n"),
    "deep brackets": file("(" * 60_000), "every key twice": file(header() * 2),
    "no descr": file("{'fortran_order': False, 'shape': (7, 33)}"),
    "keys in texts": file("{'x': \"'descr': '<f4'\", 'descr': '<f8', 'fortran_order': False, 'shape': (7, 33)}"),
    "no colons": file("{'descr' 'fortran_order' 'shape'}"),
    "short data": file(header(), DATA[:-1]), "no data": file(header(), b""), "long data": file(header(), DATA * 2),
    "only the magic": b"\x93NUMPY", "nine bytes": b"\x93NUMPY\1\0\0",
    "an .npz": b"PK\3\4" + bytes(100), "infinite values": file(header(), struct.pack("<f", float("inf")) * 231),
    "values that are no numbers": file(header(), struct.pack("<f", float("nan")) * 231),
    "1 TB of bytes": sparse((1 << 40) + 4096, file(header(descr="'|u1'", shape="(1099511627776,)"), b"")),
    "64 GB of the wrong rank": sparse(1 << 37, file(header(descr="'<f4'", shape="(17179869184,)"), b"")),
}


def cases(_tool, rng):
    for name, content in CRAFTED.items():
        yield Case("arrays", name, ["run", "m.pte", "-i", "x.npy", "-i", "y.npy", "-o", "out"],
                   {"m.pte": OPS / "add.pte", "x.npy": content, "y.npy": npy.to_file(X)}, gpu=True)
