#!/usr/bin/env python3
"""Tests of wasm_imports.py."""

import unittest

import wasm_imports


def module(*imports):
    """A module whose imports are (module, name, the rest as bytes)."""
    text = lambda s: bytes([len(s)]) + s.encode()  # noqa: E731
    content = bytes([len(imports)]) + b"".join(text(m) + text(n) + rest for m, n, rest in imports)
    types = b"\x01\x04\x01\x60\x00\x00"  # a section in front: one type, () -> ()
    return b"\0asm\1\0\0\0" + types + b"\x02" + bytes([len(content)]) + content


class WasmImports(unittest.TestCase):
    def test_reads_imports_of_every_kind(self):
        data = module(("env", "open", b"\0\0"), ("env", "table", b"\1\x70\1\1\2"), ("js", "memory", b"\2\0\x80\1"), ("js", "base", b"\3\x7f\0"))
        self.assertEqual(wasm_imports.imports_of(data), ["env.open", "env.table", "js.memory", "js.base"])

    def test_refuses_what_is_no_module(self):
        with self.assertRaisesRegex(ValueError, "not a WebAssembly module"):
            wasm_imports.imports_of(b"\x7fELF")

    def test_reads_a_list(self):
        text = "# comment\n\nenv.open   opens a file\njs.now  the clock # not env\n"
        self.assertEqual(wasm_imports.read_list(text), {"env.open": "opens a file", "js.now": "the clock"})

    def test_a_line_says_what_it_is_and_is_there_once(self):
        with self.assertRaisesRegex(ValueError, "line 2: env.b: expected what it is"):
            wasm_imports.read_list("env.a first\nenv.b\n")
        with self.assertRaisesRegex(ValueError, "line 2: env.a is there twice"):
            wasm_imports.read_list("env.a first\nenv.a second\n")

    def test_complains_about_both_directions(self):
        complaints = wasm_imports.compare(["env.a", "env.b"], {"env.a": "", "env.c": ""})
        self.assertEqual(complaints, ["imports 'env.b', which is not declared", "does not import 'env.c' any more: take it off the list"])
        self.assertEqual(wasm_imports.compare(["env.a"], {"env.a": ""}), [])


if __name__ == "__main__":
    unittest.main()
