#!/usr/bin/env python3
"""Formats kernels: format_wgsl.py [--check] FILE... Lines stay where their author broke them; what is set is the indentation by brackets, the
spaces around operators and beside brackets, comments behind code, blank lines, and directives of the expander at the first column."""
# SPDX-License-Identifier: BSD-3-Clause
import argparse
import pathlib
import re
import sys

STEP = 2
CONTINUATION = 4
FARTHEST = 40  # that lines are set in to stand below what follows a bracket
WIDEST = 130
CLOSERS = {")": "(", "]": "[", "}": "{"}
SPACED = re.compile(r"\s*(<<=|>>=|==|!=|<=|>=|&&|\|\||\+=|-=|\*=|/=|%=|&=|\|=|\^=|->|(?<![<>])=)\s*")
ATTRIBUTES = re.compile(r"(@\w+(\([^()]*\))?\s*)+")


def split_comment(line):
    """Code, and the comment with the spaces before it, two or more to line it up with others; WGSL has no strings that could hold slashes."""
    at = line.find("//")
    if at < 0:
        return line, ""
    code = line[:at].rstrip()
    return code, " " * max(at - len(code), 2 if code else 0) + line[at:]


def spaced(code):
    """One space around operators that are never signs or parts of types, and beside brackets as everywhere here."""
    code = re.sub(r"\s+", " ", code.strip())
    code = SPACED.sub(r" \1 ", code)
    code = re.sub(r"\s+([,;)\]])", r"\1", code)
    code = re.sub(r"([(\[])\s+", r"\1", code)
    code = re.sub(r"([,;])(?=[^\s)\];])", r"\1 ", code)
    code = re.sub(r"(?<=[^\s(\[{])\{", " {", code)
    code = re.sub(r"\{(?=[^\s}])", "{ ", code)
    code = re.sub(r"(?<=[^\s{])\}", " }", code)
    code = re.sub(r"\b(if|for|while|switch)\(", r"\1 (", code)
    return code.strip()


class Layout:
    """Where lines begin: what is open, and whether a statement goes on."""

    def __init__(self, base):
        self.base = base  # of the outermost lines
        self.open = []  # (bracket, column of the lines in it, column of the line that opened it)
        self.goes_on = False

    def column(self, code):
        """Of the next line."""
        if code[:1] in CLOSERS and self.open:
            bracket, inside, outside = self.open[-1]
            return inside if bracket == "(" and not code.startswith((");", ") {", "),")) else outside
        inside = self.open[-1][1] if self.open else self.base
        in_block = not self.open or self.open[-1][0] == "{"
        return inside + (CONTINUATION if self.goes_on and in_block and not code.startswith("{") else 0)

    def add(self, code, column):
        """Takes in a line that begins at that column."""
        # What a block adds is counted from the statement, not from the line of it that opens the block.
        in_block = not self.open or self.open[-1][0] == "{"
        start = column - CONTINUATION if self.goes_on and in_block and not code.startswith("{") else column
        for i, c in enumerate(code):
            if c in "([":
                last = i + 1 == len(code)
                far = column + i + 1 > FARTHEST
                self.open.append((c, column + CONTINUATION if last or far else column + i + 1, column))
            elif c == "{":
                opener = self.statement_column(start)
                self.open.append((c, opener + STEP, opener))
            elif c in CLOSERS and self.open and self.open[-1][0] == CLOSERS[c]:
                self.open.pop()
        self.goes_on = not code.endswith((";", "{", "}", ",")) and not ATTRIBUTES.fullmatch(code)

    def statement_column(self, column):
        """Where the statement of a line within brackets began."""
        for bracket, _, outside in self.open:
            if bracket != "{":
                return outside
        blocks = [inside for bracket, inside, _ in self.open if bracket == "{"]
        return blocks[-1] if blocks else min(column, self.base)


def base_of(text):
    """The column of the outermost lines: files that are included in a function begin where its lines do."""
    first = next((line for line in text.splitlines() if line.strip() and not line.lstrip().startswith(("#", "//"))), "")
    return (len(first) - len(first.lstrip())) // STEP * STEP


def formatted(text):
    """The text as it should be."""
    layout = Layout(base_of(text))
    branches = []  # of each open #if or #for, the layout before it and those behind its branches
    out = []
    for raw in text.splitlines():
        line = raw.strip()
        if not line:
            if out and out[-1]:
                out.append("")
            continue
        if line.startswith("#"):
            code, comment = split_comment(line)
            out.append(re.sub(r"\s+", " ", code) + comment)
            word = line[1:].split(maxsplit=1)[0]
            if word in ("if", "for"):
                branches.append([(list(layout.open), layout.goes_on)])
            elif word in ("elif", "else") and branches:
                branches[-1].append((list(layout.open), layout.goes_on))
                layout.open, layout.goes_on = list(branches[-1][0][0]), branches[-1][0][1]
            elif word == "end" and branches:
                # A block that one branch opens, another #if closes.
                ends = [*branches.pop()[1:], (layout.open, layout.goes_on)]
                layout.open, layout.goes_on = max(ends, key=lambda end: len(end[0]))
            continue
        code, comment = split_comment(line)
        code = spaced(code)
        opening = not code and not any(o and not o.startswith(("#", "//")) for o in out)
        column = 0 if opening else layout.column(code)
        if code:
            layout.add(code, column)
        out.append(" " * column + code + comment)
    while out and not out[-1]:
        out.pop()
    return "\n".join(out) + "\n"


def too_wide(text):
    return [f"{n}: {len(line)} characters, expected at most {WIDEST}" for n, line in enumerate(text.splitlines(), 1) if len(line) > WIDEST]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="change nothing; fail where something would change")
    parser.add_argument("files", nargs="+", type=pathlib.Path)
    options = parser.parse_args()
    problems = []
    for file in options.files:
        text = file.read_text(encoding="utf-8")
        good = formatted(text)
        problems += [f"{file}:{problem}" for problem in too_wide(good)]
        if text == good:
            continue
        if options.check:
            pairs = zip(text.splitlines(), good.splitlines(), strict=False)
            first = next((n for n, (a, b) in enumerate(pairs, 1) if a != b), 1)
            problems.append(f"{file}:{first}: not formatted; `make format` does it")
        else:
            file.write_text(good, encoding="utf-8")
    print("\n".join(problems), end="\n" if problems else "")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
