"""What the fuzz targets of weight files start from; the NAME_seeds.py of each calls seeds()."""
# SPDX-License-Identifier: BSD-3-Clause
import pathlib
import struct
import sys

FIXTURES = pathlib.Path(__file__).resolve().parents[1] / "fixtures" / "convert"


def text(s):
    return struct.pack("<I", len(s)) + s


def vocabulary():
    numbers = struct.pack("<I", 1) + text(b"bos_token_id") + struct.pack("<q", 1)
    tokens = struct.pack("<I", 2) + text(b"a") + text(b"bc")
    return b"PTVOCAB1" + text(b"gpt2") + text(b"smollm") + numbers + tokens + struct.pack("<I2f", 2, 0.5, 1) + struct.pack(
        "<I2i", 2, 1, 3) + struct.pack("<I", 1) + text(b"a bc")


def llama2c(output):
    hidden, ffn, layers, heads, kv_heads, words, context = 8, 4, 1, 2, 1, 3, 4
    values = words * hidden + layers * (2 * hidden + 2 * hidden * hidden + 2 * hidden * hidden // 2 + 3 * hidden * ffn)
    values += hidden + context * hidden // heads + (words * hidden if output else 0)
    return struct.pack("<7i", hidden, ffn, layers, heads, kv_heads, -words if output else words, context) + bytes(4 * values)


def seeds(kind):
    """Names and contents."""
    if kind == "gguf":
        return {"llama.gguf": (FIXTURES / "llama.gguf").read_bytes()}
    if kind == "safetensors":
        return {str(i): p.read_bytes() for i, p in enumerate(sorted(FIXTURES.rglob("*.safetensors")))}
    if kind == "config":
        return {p.parent.name: p.read_bytes() for p in FIXTURES.rglob("config.json")}
    if kind == "llama2c":
        return {"tied": llama2c(False), "untied": llama2c(True)}
    return {"small": vocabulary()}


def main():
    """NAME_seeds.py FOLDER"""
    kind = pathlib.Path(sys.argv[0]).name.removesuffix("_seeds.py")
    for name, content in seeds(kind).items():
        (pathlib.Path(sys.argv[1]) / name).write_bytes(content)
