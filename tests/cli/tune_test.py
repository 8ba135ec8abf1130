"""pteryx tune: what it measures is what later runs go by."""
# SPDX-License-Identifier: BSD-3-Clause
import json
import unittest

from cli import BAD_FILE, TestCase, environment, tool


class Tune(TestCase):
    def setUp(self):
        super().setUp()
        self.env = {"PTERYX_CACHE": str(self.folder / "cache")}

    def sizes(self):
        return self.succeed_json("doctor", "--json", env=self.env)["default"]["sizes"]

    def test_kept_for_later_runs(self):
        usual = self.sizes()
        report = self.succeed_json("tune", "--json", env=self.env)
        self.assertEqual(report["file"], str(self.folder / "cache" / "gpus.json"))
        measured = {name: report[name] for name in ("processors", "invocations")}
        self.assertEqual(json.loads((self.folder / "cache" / "gpus.json").read_text()), {report["adapter"]: measured})
        self.assertEqual(self.sizes(), measured)
        self.assertIn(f"size          {measured['processors']} processors of {measured['invocations']} invocations",
                      self.succeed("doctor", env=self.env))
        self.assertIn("is forgotten", self.succeed("tune", "--reset", env=self.env))
        self.assertIn("nothing was kept", self.succeed("tune", "--reset", env=self.env))
        self.assertEqual(self.sizes(), usual)

    def test_text(self):
        text = self.succeed("tune", env=self.env)
        self.assertRegex(text, r"(?m)^processors +\d+  that run workgroups at the same time$")
        self.assertRegex(text, r"(?m)^invocations +\d+  that each of them holds$")

    def test_no_folder(self):
        self.assertIn("/proc/none", self.fail_with(BAD_FILE, "tune", env={"PTERYX_CACHE": "/proc/none"}))
        env = {k: v for k, v in environment().items() if k not in ("HOME", "XDG_CACHE_HOME", "PTERYX_CACHE")}
        self.assertIn("set PTERYX_CACHE, XDG_CACHE_HOME or HOME", self.fail_with(BAD_FILE, "tune", env={**env, "HOME": "", "XDG_CACHE_HOME": ""}))


if __name__ == "__main__":
    unittest.main()
