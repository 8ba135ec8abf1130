#!/usr/bin/env python3
"""Tests of tidy.py: when a file counts as changed."""

import json
import os
import pathlib
import shutil
import sys
import tempfile
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import tidy  # noqa: E402


class Keys(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name).resolve()
        self.write(".clang-tidy", "Checks: '*'\n")
        self.write("pteryx/a.cpp", '#include "pteryx/a.h"\n')
        self.write("pteryx/a.h", '#include "pteryx/b.h"\n#include <vector>\n')
        self.write("pteryx/b.h", '#include "made.h"\n#include "pteryx/a.h"\n')
        self.write("build/generated/made.h", "// made\n")

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def key(self, flags="c++ -c a.cpp"):
        # `true` answers any --version.
        return tidy.Project(self.root, self.root / "build", "true").key(self.root / "pteryx/a.cpp", flags)

    def test_nothing_changed_gives_the_same_key(self):
        self.assertEqual(self.key(), self.key())

    def test_the_file_any_header_the_flags_and_the_configuration_count(self):
        keys = {self.key(), self.key("c++ -O2 -c a.cpp")}
        for number, name in enumerate(["pteryx/a.cpp", "pteryx/a.h", "pteryx/b.h", "build/generated/made.h", ".clang-tidy"], 3):
            path = self.root / name
            path.write_text(path.read_text() + "// more\n")
            keys.add(self.key())
            self.assertEqual(len(keys), number, name)

    def test_where_a_clone_lies_does_not_count(self):
        flags = "c++ -I{0} -c {0}/pteryx/a.cpp"
        before = self.key(flags.format(self.root))
        with tempfile.TemporaryDirectory() as other:
            shutil.copytree(self.root, pathlib.Path(other).resolve() / "clone")
            self.root = pathlib.Path(other).resolve() / "clone"
            self.assertEqual(before, self.key(flags.format(self.root)))

    def test_what_was_not_asked_for_is_forgotten(self):
        for name, days in (("new", 1), ("old", 40)):
            os.utime(self.write(f"cache/{name}", ""), (time.time() - days * 24 * 3600,) * 2)
        tidy.forget_old(self.root / "cache")
        self.assertEqual([path.name for path in (self.root / "cache").iterdir()], ["new"])

    def test_other_headers_do_not_count(self):
        before = self.key()
        self.write("pteryx/other.h", "// other\n")
        self.assertEqual(before, self.key())

    def test_tests_and_other_folders_are_left_out(self):
        names = ["pteryx/a.cpp", "pteryx/a_test.cpp", "cli/main.cpp"]
        entries = [{"directory": str(self.root), "file": name, "command": f"c++ {name}"} for name in names]
        self.write("build/compile_commands.json", json.dumps(entries))
        project = tidy.Project(self.root, self.root / "build", "true")
        self.assertEqual(list(tidy.sources(project, [self.root / "pteryx"])), [(self.root / "pteryx/a.cpp", "c++ pteryx/a.cpp")])


if __name__ == "__main__":
    unittest.main()
