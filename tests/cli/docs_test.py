"""The documents that the tool makes are those in docs/."""
# SPDX-License-Identifier: BSD-3-Clause
import unittest

from cli import NO_LIBRARY, ROOT, TestCase


class Docs(TestCase):
    def test_operators(self):
        text = self.succeed("ops", "--markdown", env=NO_LIBRARY)
        self.assertTrue((ROOT / "docs" / "ops.md").read_text() == text,
                        "docs/ops.md is out of date: pteryx ops --markdown >docs/ops.md")


if __name__ == "__main__":
    unittest.main()
