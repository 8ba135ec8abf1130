"""The cache of conversions: kept by content, private, repaired, limited."""
# SPDX-License-Identifier: BSD-3-Clause
import contextlib
import json
import os
import pathlib
import shutil
import signal
import stat
import subprocess
import time
import unittest

from cli import BAD_FILE, FIXTURES, INTERRUPTED, LLM, OK, TOOL, USAGE, TestCase, environment, tool

GGUF = FIXTURES / "convert" / "llama.gguf"
FOLDER = FIXTURES / "convert" / "qwen2"
GENERATE = ["--prompt-ids", "1", "2", "-n", "2", "--temperature", "0", "--json"]


class Cache(TestCase):
    def setUp(self):
        super().setUp()
        self.cache = self.folder / "cache"
        self.model = self.folder / "model.gguf"
        shutil.copy(GGUF, self.model)

    def generate(self, model=None, env=None):
        """What a run said on stderr, and its ids."""
        result = tool("generate", model or self.model, *GENERATE, env=env or {"PTERYX_CACHE": str(self.cache)})
        self.assertEqual(result.returncode, OK, result.stderr)
        return result.stderr, json.loads(result.stdout)["ids"]

    def entries(self):
        return sorted(self.cache.glob("*.pte"))


class Keys(Cache):
    def test_content_counts_and_nothing_else(self):
        said, ids = self.generate()
        self.assertIn(f"converting {self.model}", said)
        os.utime(self.model, (1, 1))
        moved = self.folder / "a blob without extension"
        self.model.rename(moved)
        self.assertEqual(self.generate(moved), ("", ids))
        self.assertEqual(len(self.entries()), 1)

    def test_another_content_is_another_entry(self):
        self.generate()
        data = bytearray(self.model.read_bytes())
        data[-3] ^= 1
        self.model.write_bytes(data)
        self.assertIn("converting", self.generate()[0])
        self.assertEqual(len(self.entries()), 2)

    def test_a_folder(self):
        said, ids = self.generate(FOLDER)
        self.assertIn("converting", said)
        copy = self.folder / "qwen2"
        shutil.copytree(FOLDER, copy)
        self.assertEqual(self.generate(copy), ("", ids))


class Damage(Cache):
    def test_is_repaired(self):
        _, ids = self.generate()
        [entry] = self.entries()
        whole = entry.read_bytes()
        flipped = bytearray(whole)
        flipped[len(whole) // 2] ^= 0xFF
        for damaged in (b"", whole[:1000], b"\0" * len(whole), bytes(flipped)):
            entry.write_bytes(damaged)
            said, again = self.generate()
            self.assertIn(f"pteryx: the kept conversion of {self.model} is damaged: converting again\n", said)
            self.assertEqual((again, entry.read_bytes()), (ids, whole))
        entry.with_suffix(".json").unlink()
        self.assertIn("damaged", self.generate()[0])
        self.assertEqual(self.generate()[0], "")

    def test_leftovers_go(self):
        self.cache.mkdir()
        old, new, orphan = (self.cache / name for name in ("x.pte.0123.partial", "y.pte.0123.partial", "0" * 32 + ".json"))
        for path in (old, new, orphan):
            path.write_bytes(b"x")
        os.utime(old, (1, 1))
        self.generate()
        self.assertEqual([p.exists() for p in (old, new, orphan)], [False, True, False])

    def test_what_tune_measured_stays(self):
        self.cache.mkdir()
        measured = self.cache / "gpus.json"
        measured.write_text("{}")
        self.generate()
        self.assertTrue(measured.exists())
        self.succeed("cache", "clear", env={"PTERYX_CACHE": str(self.cache)})
        self.assertEqual(list(self.cache.iterdir()), [measured])

    def test_ended_while_converting(self):
        """No signal leaves anything behind; SIGINT has an exit code and a sentence of its own."""
        big = self.folder / "big.pte"
        self.succeed("synth", "--preset", "tiny", "-o", big)
        for end in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL):
            with self.subTest(end):
                process = subprocess.Popen([TOOL, "synth", "--preset", "llama-3.2-1b", "--quantize", "none", "-o", self.folder / "m.pte"],
                                           stderr=subprocess.PIPE, env=environment(), text=True)
                while not self.is_writing(process):
                    self.assertIsNone(process.poll())
                    time.sleep(0.01)
                process.send_signal(end)
                _, said = process.communicate(timeout=60)
                if end != signal.SIGKILL:
                    self.assertEqual((process.returncode, said), (INTERRUPTED, "pteryx: interrupted\n"))
                self.assertEqual(sorted(self.folder.iterdir()), [big, self.model])

    def is_writing(self, process):
        with contextlib.suppress(OSError):
            return any(os.readlink(link).startswith(str(self.folder)) for link in pathlib.Path(f"/proc/{process.pid}/fd").iterdir())
        return False


class Lock(Cache):
    def test_is_held_for_the_conversion_only(self):
        """A chat that goes on for hours keeps nobody from converting something else."""
        env = {"PTERYX_CACHE": str(self.cache)}
        with subprocess.Popen([TOOL, "chat", self.model], env=environment(env), stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL) as chat:
            self.addCleanup(chat.kill)
            while not list(self.cache.glob("*.json")) if self.cache.exists() else True:
                self.assertIsNone(chat.poll())
                time.sleep(0.05)
            said, _ = self.generate(FOLDER)
            self.assertNotIn("waiting", said.split("converting")[-1])
            self.assertIsNone(chat.poll())
            chat.stdin.close()
            chat.wait(timeout=60)


class Pipelines(Cache):
    """Compiled shaders, which Dawn can keep and wgpu-native cannot."""
    MODEL = LLM / "qwen3_like_q4.pte"

    def run_with(self, **variables):
        env = {"PTERYX_CACHE": str(self.cache), **variables}
        return self.succeed("generate", self.MODEL, "--prompt-ids", "1", "2", "-n", "2", "--temperature", "0", "--json", env=env)

    def blobs(self, folder):
        return {path: path.read_bytes() for path in folder.glob("*")} if folder.exists() else {}

    def test_are_kept_and_repaired(self):
        folder = self.cache / "pipelines"
        ids = json.loads(self.run_with(PTERYX_PIPELINE_CACHE=""))["ids"]
        kept = self.blobs(folder)
        self.assertEqual(bool(kept), os.environ.get("PTERYX_PROVIDER") != "wgpu")
        for path, data in kept.items():
            path.write_bytes(data[:len(data) // 2])
        for _ in range(2):
            self.assertEqual(json.loads(self.run_with(PTERYX_PIPELINE_CACHE=""))["ids"], ids)
            self.assertEqual(self.blobs(folder).keys(), kept.keys())
        self.assertIn("0 conversions", self.succeed("cache", env={"PTERYX_CACHE": str(self.cache)}))

    def test_are_listed_and_cleared(self):
        folder = self.cache / "pipelines"
        folder.mkdir(parents=True)
        for name, size in (("0.blob", 1 << 20), ("1.blob", 1 << 19), ("2.blob.0123.partial", 7), ("theirs.txt", 9)):
            (folder / name).write_bytes(b"x" * size)
        env = {"PTERYX_CACHE": str(self.cache), "PTERYX_PIPELINE_CACHE": ""}
        self.assertTrue(self.succeed("cache", env=env).endswith(f"\n2 compiled shaders, 1.5 MiB, in {folder}\n"))
        self.assertEqual(json.loads(self.succeed("cache", "--json", env=env))["shaders"],
                         {"folder": str(folder), "entries": 2, "bytes": 3 << 19})
        self.assertEqual(self.succeed("cache", "clear", env=env), f"removed 0 conversions, 0.0 MiB, from {self.cache}\n"
                                                                  f"removed 2 compiled shaders, 1.5 MiB, from {folder}\n")
        self.assertEqual([path.name for path in folder.iterdir()], ["theirs.txt"])
        own = self.folder / "own"
        own.mkdir()
        (own / "0.blob").write_bytes(b"x")
        report = json.loads(self.succeed("cache", "clear", "--json", env={**env, "PTERYX_PIPELINE_CACHE": str(own)}))
        self.assertEqual(report["shaders"], {"folder": str(own), "removed": 1, "bytes": 1})
        self.assertEqual(list(own.iterdir()), [])
        self.assertIsNone(json.loads(self.succeed("cache", "--json", env={**env, "PTERYX_PIPELINE_CACHE": "0"}))["shaders"])

    def test_need_no_folder(self):
        self.run_with(PTERYX_PIPELINE_CACHE="0")
        self.assertFalse((self.cache / "pipelines").exists())
        self.run_with(PTERYX_PIPELINE_CACHE=str(self.write("file", "x")))


class Private(Cache):
    def test_modes(self):
        self.generate()
        self.assertEqual(stat.S_IMODE(self.cache.stat().st_mode), 0o700)
        self.cache.chmod(0o777)
        self.generate()
        self.assertEqual(stat.S_IMODE(self.cache.stat().st_mode), 0o700)

    def test_a_folder_of_somebody_else(self):
        if os.geteuid() != 0:
            return  # only root can give a folder away
        self.cache.mkdir()
        os.chown(self.cache, 12345, 12345)
        said, _ = self.generate()
        self.assertIn(f"pteryx: no cache ({self.cache}: belongs to user 12345, not to user 0): the conversion is not kept\n", said)
        self.assertEqual(list(self.cache.iterdir()), [])

    def test_a_file_in_its_place(self):
        self.cache.write_text("x")
        said, _ = self.generate()
        self.assertIn(f"pteryx: no cache ({self.cache}: Not a directory): the conversion is not kept\n", said)


class Places(Cache):
    def run_in(self, **variables):
        env = {k: v for k, v in environment().items() if k not in ("HOME", "XDG_CACHE_HOME", "PTERYX_CACHE", "TMPDIR")}
        return subprocess.run([TOOL, "generate", self.model, *GENERATE], env={**env, **{k: str(v) for k, v in variables.items()}},
                              capture_output=True, text=True, timeout=600, check=False)

    def test_order(self):
        home, xdg = self.folder / "home", self.folder / "xdg"
        home.mkdir()
        self.assertEqual(self.run_in(HOME=home).returncode, OK)
        self.assertEqual(len(list((home / ".cache" / "pteryx").glob("*.pte"))), 1)
        self.assertEqual(self.run_in(HOME=home, XDG_CACHE_HOME=xdg).returncode, OK)
        self.assertEqual(len(list((xdg / "pteryx").glob("*.pte"))), 1)

    def test_neither(self):
        scratch = self.folder / "scratch"
        scratch.mkdir()
        result = self.run_in(TMPDIR=scratch)
        self.assertEqual(result.returncode, OK, result.stderr)
        self.assertIn("pteryx: no cache (neither XDG_CACHE_HOME nor HOME names a folder): the conversion is not kept\n", result.stderr)
        self.assertEqual(list(scratch.iterdir()), [])

    def test_nowhere(self):
        result = self.run_in(TMPDIR="/nonexistent")
        self.assertEqual(result.returncode, BAD_FILE, result.stderr)
        self.assertIn(f"there is no folder for the conversion of {self.model}: set HOME, XDG_CACHE_HOME or TMPDIR\n", result.stderr)


class Command(Cache):
    def command(self, *args, env=None):
        return self.succeed("cache", *args, env={"PTERYX_CACHE": str(self.cache), **(env or {})})

    def test_list_and_clear(self):
        self.assertEqual(self.command(), f"0 conversions, 0.0 of at most 32768 MiB, in {self.cache}\n")
        self.generate()
        [entry] = self.entries()
        self.assertRegex(self.command("list"), rf"^ +0\.\d MiB  \d{{4}}-\d\d-\d\d \d\d:\d\d  {self.model}\n1 conversion, ")
        report = json.loads(self.command("--json"))
        self.assertEqual((report["folder"], report["bytes"]), (str(self.cache), entry.stat().st_size))
        self.assertEqual([(e["path"], e["source"]) for e in report["entries"]], [(str(entry), str(self.model))])
        self.assertIn("removed 1 conversion, ", self.command("clear"))
        self.assertEqual(list(self.cache.iterdir()), [])
        self.assertIn("expected list or clear, got 'burn'", self.fail_with(USAGE, "cache", "burn"))

    def test_limit(self):
        """The one that was used longest ago goes; the newest stays, even if it is too large alone."""
        env = {"PTERYX_CACHE": str(self.cache), "PTERYX_CACHE_LIMIT": "0"}
        self.generate(self.model, env)
        [first] = self.entries()
        os.utime(first, (1, 1))
        self.generate(FOLDER, env)
        [second] = self.entries()
        self.assertNotEqual(first, second)
        self.generate(self.model)
        self.assertEqual(len(self.entries()), 2)
        self.assertIn("PTERYX_CACHE_LIMIT: expected a number of MiB, got 'x'",
                      self.fail_with(USAGE, "cache", env={"PTERYX_CACHE_LIMIT": "x", "PTERYX_CACHE": str(self.cache)}))


if __name__ == "__main__":
    unittest.main()
