"""The documents that the tool makes are those in docs/."""
# SPDX-License-Identifier: BSD-3-Clause
import ast
import re
import unittest

from cli import NO_LIBRARY, ROOT, TestCase


class Docs(TestCase):
    def test_operators(self):
        text = self.succeed("ops", "--markdown", env=NO_LIBRARY)
        self.assertTrue((ROOT / "docs" / "ops.md").read_text() == text,
                        "docs/ops.md is out of date: pteryx ops --markdown >docs/ops.md")

    def test_named_tests_exist(self):
        known = gtests() | python_tests()
        self.assertGreater(len(known), 300)
        named = 0
        for name in ("requirements.md", "design.md"):
            for test in re.findall(r"`([A-Za-z]\w*\.[A-Z]\w*|\w+_test\.\w+\.test_\w+)`", (ROOT / "docs" / name).read_text()):
                named += 1
                self.assertTrue(test in known, f"docs/{name} names {test}, which is not there")
        self.assertGreater(named, 100)

    def test_every_requirement_has_its_line(self):
        text = (ROOT / "docs" / "requirements.md").read_text()
        for kind, count in (("R", 54), ("U", 24)):
            lines = re.findall(rf"^\| {kind}(\d+) \|[^|]+\| (?:`|reviewed)", text, flags=re.MULTILINE)
            self.assertEqual([int(n) for n in lines], list(range(1, count + 1)))


def gtests():
    """Suite.Name of every GoogleTest in the tree."""
    pattern = re.compile(r"^TEST(?:_P|_F)?\((\w+),\s*(\w+)\)", re.MULTILINE)
    return {f"{suite}.{name}" for folder in ("pteryx", "cli", "tests") for file in (ROOT / folder).rglob("*_test.cpp")
            for suite, name in pattern.findall(file.read_text())}


def python_tests():
    """file.Class.test of every Python test."""
    found = set()
    for folder in ("tests/cli", "tools"):
        for file in (ROOT / folder).glob("*_test.py"):
            for c in ast.parse(file.read_text()).body:
                if isinstance(c, ast.ClassDef):
                    found |= {f"{file.stem}.{c.name}.{f.name}" for f in c.body
                              if isinstance(f, ast.FunctionDef) and f.name.startswith("test_")}
    return found


if __name__ == "__main__":
    unittest.main()
