#!/usr/bin/env python3
"""Tests of check_includes.py."""

import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import check_includes  # noqa: E402


class CheckIncludes(unittest.TestCase):
    def violations(self, text, component, allowed):
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, "a.cpp").write_text(text)
            return list(check_includes.violations(pathlib.Path(folder), component, allowed))

    def test_own_and_lower_headers_are_fine(self):
        text = '#include "pteryx/graph/graph.h"\n#include <vector>\n#include "pteryx/base/status.h"\n'
        self.assertEqual(self.violations(text, "graph", ["program", "base"]), [])

    def test_a_wrong_include_names_its_place(self):
        (found,) = self.violations('\n#include "pteryx/gpu/device.h"\n', "graph", ["base"])
        self.assertIn("a.cpp:2: error: graph must not include gpu", found)

    def test_the_public_header_belongs_to_the_session(self):
        text = '#include "pteryx/pteryx.h"\n'
        self.assertEqual(self.violations(text, "session", []), [])
        self.assertEqual(len(self.violations(text, "ops", ["base"])), 1)


if __name__ == "__main__":
    unittest.main()
