#!/usr/bin/env python3
"""Compares what a WebAssembly module imports with a declared list, and prints the module's size.

The list has an import per line, MODULE.NAME and behind it what it is; '#' begins a comment. What the module imports must be listed,
and what is listed must be imported: the list shrinks with the module.

    wasm_imports.py MODULE.wasm LIST...      compares with all of the lists together
    wasm_imports.py --symbols LIST FILE      writes the names of the module 'env' to a file for wasm-ld's --allow-undefined-file
"""

import gzip
import pathlib
import sys

IMPORT_SECTION = 2


class Reader:
    def __init__(self, data):
        self.data = data
        self.at = 0

    def byte(self):
        self.at += 1
        return self.data[self.at - 1]

    def number(self):
        """An unsigned LEB128."""
        value = shift = 0
        while True:
            byte = self.byte()
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    def bytes(self, size):
        self.at += size
        return self.data[self.at - size : self.at]

    def name(self):
        return self.bytes(self.number()).decode()

    def limits(self):
        if self.byte() & 1:
            self.number()
        self.number()


def imports_of(data):
    """MODULE.NAME of all that a module imports."""
    if data[:8] != b"\0asm\1\0\0\0":
        raise ValueError("not a WebAssembly module")
    reader = Reader(data)
    reader.at = 8
    found = []
    while reader.at < len(data):
        section = reader.byte()
        content = Reader(reader.bytes(reader.number()))
        if section != IMPORT_SECTION:
            continue
        for _ in range(content.number()):
            found.append(f"{content.name()}.{content.name()}")
            kind = content.byte()
            if kind == 0:
                content.number()
            elif kind == 1:
                content.byte()
                content.limits()
            elif kind == 2:
                content.limits()
            elif kind in (3, 4):
                content.bytes(2)
            else:
                raise ValueError(f"{found[-1]}: import of kind {kind}")
    return found


def read_list(text):
    """A dictionary of MODULE.NAME to what it is."""
    declared = {}
    for number, line in enumerate(text.splitlines(), 1):
        words = line.split("#")[0].strip().split(None, 1)
        if not words:
            continue
        if len(words) == 1:
            raise ValueError(f"line {number}: {words[0]}: expected what it is behind it")
        if words[0] in declared:
            raise ValueError(f"line {number}: {words[0]} is there twice")
        declared[words[0]] = words[1]
    return declared


def compare(found, declared):
    """Complaints."""
    complaints = [f"imports '{name}', which is not declared" for name in found if name not in declared]
    return complaints + [f"does not import '{name}' any more: take it off the list" for name in declared if name not in found]


def main(argv):
    symbols_wanted = argv[:1] == ["--symbols"]
    if len(argv) != 3 if symbols_wanted else len(argv) < 2:
        sys.exit(__doc__)
    lists = argv[1:2] if symbols_wanted else argv[1:]
    declared = read_list("\n".join(pathlib.Path(name).read_text() for name in lists))
    if symbols_wanted:
        symbols = [name.removeprefix("env.") for name in declared if name.startswith("env.")]
        pathlib.Path(argv[2]).write_text("".join(f"{symbol}\n" for symbol in symbols))
        return 0
    data = pathlib.Path(argv[0]).read_bytes()
    complaints = compare(imports_of(data), declared)
    for complaint in complaints:
        print(f"{pathlib.Path(argv[0]).name}: {complaint}")
    if complaints:
        print(f"the list is {' and '.join(lists)}")
    compressed = len(gzip.compress(data, 9))
    print(f"{pathlib.Path(argv[0]).name}: {len(data) / 1024:.0f} KiB, {compressed / 1024:.0f} KiB with gzip; {len(declared)} imports declared")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
