#!/usr/bin/env python3
"""Embeds WGSL files in C++ as they are, and turns the `struct Params` of each kernel into the C++ struct of the same layout.

Writes OUT/STEM.h for every file outside of common/, and all texts to OUT/kernel_files.cpp, or with --packed to OUT/kernels.txt for the web build;
touches only what changes.
"""

import argparse
import dataclasses
import pathlib
import re
import sys

INCLUDE = re.compile(r'^\s*#\s*include\b\s*(.*?)\s*$')
QUOTED = re.compile(r'^"([^"]+)"(\s+[a-z_]+=.*)?$')
PARAMS = re.compile(r"\bstruct\s+Params\s*\{")
MEMBER = re.compile(r"^(\w+)\s*:\s*(.+)$", re.DOTALL)
ARRAY = re.compile(r"^array<(vec4<[uif]32>),(\d+)>$")
IDENTIFIER = re.compile(r"^[a-z][a-z0-9_]*$")
# Spaces beside a bracket or separator, or on one side of an operator: between two operators, and before a value that is filled in, they
# keep `- -` from being `--`.
BRACKET = r"[(){}\[\],;:]"
OPERATOR = r"-+*/%<>=!&|^"
SPACE = re.compile(
    rf"(?<={BRACKET})[ \t]+|[ \t]+(?={BRACKET})|(?<=[{OPERATOR}])[ \t]+(?![{OPERATOR}$ \t])|(?<![{OPERATOR} \t])[ \t]+(?=[{OPERATOR}])"
)

PIECE_CHARS = 8000  # the shortest limit on one string literal among compilers is 16 KB


class Error(Exception):
    """A fault of the shader, with its place: 'file:line: what'."""

    def __init__(self, path, line, text):
        super().__init__(f"{path}:{line}: {text}")


@dataclasses.dataclass
class Line:
    """One line of the expanded shader and where it came from."""

    text: str
    path: pathlib.Path
    number: int


@dataclasses.dataclass
class Type:
    """A member type: its C++ spelling, and its size and alignment in the uniform address space."""

    cpp: str
    size: int
    align: int


@dataclasses.dataclass
class Member:
    name: str
    type: Type
    offset: int


SCALARS = {"u32": "uint32_t", "i32": "int32_t", "f32": "float"}
META = Type("::pteryx::ops::TensorMeta", 64, 16)


def with_includes(path, root, seen=None):
    """The lines of a shader and of the files it includes by a fixed name, each file once: where its Params are."""
    seen = {path.resolve()} if seen is None else seen
    lines = []
    for number, text in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        match = INCLUDE.match(text)
        if not match:
            lines.append(Line(text, path, number))
            continue
        quoted = QUOTED.match(match[1])
        if not quoted:
            raise Error(path, number, f'expected #include "common/x.wgsl", got {text.strip()}')
        if "$" in quoted[1]:
            continue  # chosen by an option
        included = root / quoted[1]
        if not included.is_file():
            raise Error(path, number, f'#include "{quoted[1]}": no such file under {root}')
        if included.resolve() not in seen:
            seen.add(included.resolve())
            lines += with_includes(included, root, seen)
    return lines


def strip_comments(text):
    """The text with comments blanked out; line breaks stay, so positions keep their lines. Block comments nest."""
    out = []
    depth = 0
    i = 0
    while i < len(text):
        pair = text[i : i + 2]
        if depth == 0 and pair == "//":
            end = text.find("\n", i)
            i = len(text) if end < 0 else end
        elif pair == "/*":
            depth += 1
            i += 2
        elif depth and pair == "*/":
            depth -= 1
            i += 2
        else:
            out.append(text[i] if depth == 0 or text[i] == "\n" else "")
            i += 1
    return "".join(out)


def uniform_type(spelling):
    """The Type of a WGSL member type, or None where Params cannot hold it."""
    name = re.sub(r"\s+", "", spelling)
    if name in SCALARS:
        return Type(SCALARS[name], 4, 4)
    if name == "TensorMeta":
        return META
    vec4 = re.fullmatch(r"vec4<([uif]32)>", name)
    if vec4:
        return Type(f"std::array<{SCALARS[vec4[1]]}, 4>", 16, 16)
    array = ARRAY.match(name)
    if array and int(array[2]) > 0:
        count = int(array[2])
        return Type(f"std::array<{SCALARS[array[1][5:8]]}, {4 * count}>", 16 * count, 16)
    return None


def split_members(body):
    """The comma-separated members of a struct body, each with its offset in it; commas inside <> do not separate."""
    start = depth = 0
    for i, c in enumerate(body + ","):
        if c == "<":
            depth += 1
        elif c == ">":
            depth -= 1
        elif c == "," and depth == 0:
            text = body[start:i]
            if text.strip():
                yield text.strip(), start + len(text) - len(text.lstrip())
            start = i + 1


def parse_params(lines):
    """The members of `struct Params`, laid out as WGSL lays out a uniform; None where the shader has no Params."""
    text = strip_comments("\n".join(line.text for line in lines))

    def place(position):
        line = lines[text.count("\n", 0, position)]
        return line.path, line.number

    match = PARAMS.search(text)
    if not match:
        return None
    end = text.find("}", match.end())
    if end < 0:
        raise Error(*place(match.start()), "struct Params has no closing brace")
    members = []
    offset = 0
    for declaration, position in split_members(text[match.end() : end]):
        where = place(match.end() + position)
        member = MEMBER.match(declaration)
        if not member:
            raise Error(*where, f"struct Params: expected 'name: type', got '{declaration}'")
        type_ = uniform_type(member[2])
        if type_ is None:
            raise Error(*where, f"struct Params: member '{member[1]}' has type '{member[2]}', which Params cannot hold")
        if member[1].startswith("pad_"):
            raise Error(*where, f"struct Params: '{member[1]}' is written by the generator; leave padding to it")
        offset = -(-offset // type_.align) * type_.align
        members.append(Member(member[1], type_, offset))
        offset += type_.size
    if not members:
        raise Error(*place(match.start()), "struct Params is empty")
    return members


def pascal(stem):
    return "".join(word.capitalize() for word in stem.split("_"))


def params_struct(stem, members):
    """The C++ twin of Params: explicit padding, everything initialised, the layout asserted."""
    name = f"{pascal(stem)}Params"
    fields = []
    pads = 0
    offset = 0

    def pad_to(target):
        nonlocal pads, offset
        while offset < target:
            fields.append(f"  uint32_t pad_{pads} = 0;")
            pads += 1
            offset += 4

    for member in members:
        pad_to(member.offset)
        initializer = " = 0" if member.type.size == 4 else "{}"
        fields.append(f"  {member.type.cpp} {member.name}{initializer};")
        offset += member.type.size
    pad_to(-(-offset // 16) * 16)
    asserts = [f"static_assert(sizeof({name}) == {offset});"]
    asserts += [f"static_assert(offsetof({name}, {m.name}) == {m.offset});" for m in members]
    return "\n".join(["", f"struct {name} {{", *fields, "};", *asserts, ""])


def header_text(stem, file, members):
    struct = params_struct(stem, members) if members else ""
    return f"""// Generated from {file} by embed_wgsl.py.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "pteryx/ops/shader.h"

namespace pteryx::ops::shaders {{

inline constexpr ::pteryx::ops::Shader {stem}{{.name = "{stem}", .file = "{file}"}};
{struct}
}}  // namespace pteryx::ops::shaders
"""


def raw_pieces(text):
    """The text as adjacent raw string literals, cut between lines."""
    pieces = [""]
    for line in text.splitlines(keepends=True):
        if pieces[-1] and len(pieces[-1]) + len(line) > PIECE_CHARS:
            pieces.append("")
        pieces[-1] += line
    return "\n".join(f'R"wgsl({piece})wgsl"' for piece in pieces) + "sv"


def table_text(texts):
    """texts: name of a file -> its text."""
    entries = "".join(f'    {{"{name}", {raw_pieces(texts[name])}}},\n' for name in sorted(texts))
    return f"""// Generated from the kernel files by embed_wgsl.py.
#include "pteryx/ops/kernel/files.h"

#include <algorithm>
#include <array>

namespace pteryx::ops {{
namespace {{

using namespace std::string_view_literals;

// By name.
constexpr std::array<KernelFile, {len(texts)}> kFiles = {{{{
{entries}}}}};

}}  // namespace

std::span<const KernelFile> kernel_files() {{ return kFiles; }}

std::optional<std::string_view> kernel_file(std::string_view name) {{
  const auto it = std::ranges::lower_bound(kFiles, name, {{}}, &KernelFile::name);
  if (it == kFiles.end() || it->name != name) return std::nullopt;
  return it->text;
}}

}}  // namespace pteryx::ops
"""


def squeezed(line):
    """A line without the spaces that WGSL does without; directives stay as they are."""
    line = line.strip()
    return line if line.startswith("#") else SPACE.sub("", line)


def packed_text(texts):
    """Names and texts by turns, each ended by a zero, without what shaders do not need: comments, indentation, spaces and empty lines."""
    parts = []
    for name in sorted(texts):
        lines = (squeezed(line) for line in strip_comments(texts[name]).splitlines())
        parts.append(f"{name}\0" + "".join(f"{line}\n" for line in lines if line) + "\0")
    return "".join(parts)


def write_if_changed(path, text):
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def embed(files, root, out, packed=False):
    texts = {}
    stems = {}
    for path in files:
        name = path.relative_to(root).as_posix()
        texts[name] = path.read_text(encoding="utf-8")
        if ')wgsl"' in texts[name]:
            raise Error(path, 1, """the text holds )wgsl", which ends the C++ literal""")
        if "common" in path.relative_to(root).parts[:-1]:
            continue
        if not IDENTIFIER.match(path.stem):
            raise Error(path, 1, f"the file's name becomes a C++ name, and '{path.stem}' is not snake_case")
        if path.stem in stems:
            raise Error(path, 1, f"{stems[path.stem]} has the same name, and both would be shaders::{path.stem}")
        stems[path.stem] = name
        write_if_changed(out / f"{path.stem}.h", header_text(path.stem, name, parse_params(with_includes(path, root))))
    if packed:
        write_if_changed(out / "kernels.txt", packed_text(texts))
    else:
        write_if_changed(out / "kernel_files.cpp", table_text(texts))


def main(argv):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", type=pathlib.Path, required=True, help="folder that names and includes are relative to")
    parser.add_argument("--out", type=pathlib.Path, required=True, help="folder for the generated files")
    parser.add_argument("--packed", action="store_true", help="write the texts to one file that is read at run time")
    parser.add_argument("files", type=pathlib.Path, nargs="+")
    args = parser.parse_args(argv)
    try:
        embed(args.files, args.root, args.out, args.packed)
    except Error as error:
        sys.exit(f"{error}")


if __name__ == "__main__":
    main(sys.argv[1:])
