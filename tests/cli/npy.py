"""NumPy's .npy files without NumPy: what the command line tests write and read."""
# SPDX-License-Identifier: BSD-3-Clause
import ast
import dataclasses
import math
import struct

# NumPy's name of a type, its code in a file and in struct. f16 is "e", bool "?".
TYPES = {
    "bool": ("|b1", "?"), "uint8": ("|u1", "B"), "int8": ("|i1", "b"), "int16": ("<i2", "h"), "uint16": ("<u2", "H"),
    "int32": ("<i4", "i"), "uint32": ("<u4", "I"), "int64": ("<i8", "q"), "float16": ("<f2", "e"), "float32": ("<f4", "f"),
    "float64": ("<f8", "d"),
}
NAMES = {code: name for name, (code, _) in TYPES.items()}


@dataclasses.dataclass
class Array:
    """A dense row-major tensor."""
    dtype: str
    shape: tuple
    values: list

    def strides(self):
        """In elements."""
        steps, step = [], 1
        for size in reversed(self.shape):
            steps.insert(0, step)
            step *= size
        return steps


def element(dtype):
    return struct.calcsize(TYPES[dtype][1])


def array(dtype, shape, values):
    """values may be one number, for every element."""
    count = math.prod(shape)
    return Array(dtype, tuple(shape), [values] * count if isinstance(values, (int, float)) else list(values))


def ramp(dtype, shape):
    return array(dtype, shape, range(math.prod(shape)))


def from_bytes(dtype, shape, data):
    return Array(dtype, tuple(shape), list(struct.unpack(f"<{math.prod(shape)}{TYPES[dtype][1]}", data)))


def fortran_values(a):
    """The values in the order in which the first dim is the fastest."""
    values, strides = [], a.strides()
    for k in range(len(a.values)):
        at = 0
        for size, stride in zip(a.shape, strides):
            at += k % size * stride
            k //= size
        values.append(a.values[at])
    return values


def to_file(a, fortran=False, version=1, header=None):
    """The bytes of a file; `header` replaces the dict that would be there."""
    code, letter = TYPES[a.dtype]
    values = fortran_values(a) if fortran else a.values
    text = header or f"{{'descr': '{code}', 'fortran_order': {fortran}, 'shape': {tuple(a.shape)!r}, }}"
    text += " " * (-(len(text) + 11 + (version > 1) * 2) % 64) + "\n"
    size = struct.pack("<H" if version == 1 else "<I", len(text))
    return b"\x93NUMPY" + bytes([version, 0]) + size + text.encode() + struct.pack(f"<{len(values)}{letter}", *values)


def write(path, a, **options):
    with open(path, "wb") as f:
        f.write(to_file(a, **options))
    return str(path)


def read(path):
    with open(path, "rb") as f:
        data = f.read()
    assert data[:8] == b"\x93NUMPY\x01\x00", f"{path}: not a .npy of version 1"
    size = struct.unpack("<H", data[8:10])[0]
    assert (10 + size) % 64 == 0, f"{path}: the data are not aligned to 64"
    header = ast.literal_eval(data[10:10 + size].decode())
    assert header["fortran_order"] is False
    return from_bytes(NAMES[header["descr"]], header["shape"], data[10 + size:])
