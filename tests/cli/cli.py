"""What the command line tests share: running the tool, the fixtures, comparing."""
# SPDX-License-Identifier: BSD-3-Clause
import functools
import json
import math
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

import npy

TOOL = os.environ.get("PTERYX_CLI", "pteryx")
ROOT = pathlib.Path(__file__).resolve().parents[2]
FIXTURES = ROOT / "tests" / "fixtures"
OPS, STATE, VALUES, LLM, DECODERS = (FIXTURES / name for name in ("ops", "state", "values", "llm", "decoders"))

OK, FAILED, USAGE, BAD_FILE, NO_GPU = range(5)
INTERRUPTED = 130
# Of a build with sanitizers: their reports end a run with an exit code that is none of the tool's. WebGPU libraries and drivers keep
# memory until the end, so leaks are not reported; that memory is not there, the tool says itself.
SANITIZER = 99
os.environ["ASAN_OPTIONS"] = f"exitcode={SANITIZER}:detect_leaks=0:strict_string_checks=1:allocator_may_return_null=1"
os.environ["UBSAN_OPTIONS"] = f"exitcode={SANITIZER}:halt_on_error=1:print_stacktrace=1"
REPORTS = ("Sanitizer: ", "runtime error: ")
NO_LIBRARY = {"PTERYX_WEBGPU_LIBRARY": "/nonexistent"}  # nothing that needs a GPU works with it


def environment(more=None):
    """The variables that the tool is started with: of its own only those that choose the GPU or instructions of the CPU, none that keeps
    shaders, and `more`."""
    kept = ("PTERYX_ADAPTER", "PTERYX_PROVIDER", "PTERYX_CPU_TARGET")
    variables = {k: v for k, v in os.environ.items() if not k.startswith("PTERYX_") or k in kept}
    return {**variables, "PTERYX_PIPELINE_CACHE": "0", **(more or {})}


def tool(*args, env=None, stdin=""):
    """Runs the tool; its result has returncode, stdout and stderr."""
    result = subprocess.run([TOOL, *map(str, args)], env=environment(env), input=stdin, capture_output=True, text=True, timeout=600,
                            check=False)
    crashed = result.returncode < 0 or result.returncode == SANITIZER or any(report in result.stderr for report in REPORTS)
    assert not crashed, f"{result.args} ended with {result.returncode}:\n{result.stderr}"
    return result


@functools.cache
def manifest(folder):
    return json.loads((folder / "manifest.json").read_text())


def case(folder, name):
    return next(c for c in manifest(folder)["cases"] if c["name"] == name)


def tensor(folder, entry):
    """A tensor of a manifest."""
    size = math.prod(entry["shape"]) * npy.element(entry["dtype"])
    with open(folder / entry["file"], "rb") as f:
        f.seek(entry["offset"])
        return npy.from_bytes(entry["dtype"], entry["shape"], f.read(size))


def close(got, want, atol, rtol):
    if math.isnan(want) or math.isinf(want):
        return got == want or (math.isnan(got) and math.isnan(want))
    return abs(got - want) <= atol + rtol * abs(want)


class TestCase(unittest.TestCase):
    """A test with a folder of its own."""
    maxDiff = None

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="pteryx_"))
        self.addCleanup(shutil.rmtree, self.folder)

    def write(self, name, text):
        (self.folder / name).write_text(text)
        return self.folder / name

    def npy(self, name, a, **options):
        return npy.write(self.folder / name, a, **options)

    def value(self, folder, entry, name):
        """What stands for a value of a manifest on the command line and in a batch."""
        if not isinstance(entry, dict):
            return entry
        return entry["scalar"] if "scalar" in entry else self.npy(name, tensor(folder, entry))

    def succeed(self, *args, env=None):
        """The output of a command that must succeed and have nothing to complain about."""
        result = tool(*args, env=env)
        self.assertEqual((result.returncode, result.stderr), (OK, ""), result.stdout)
        return result.stdout

    def succeed_json(self, *args, env=None):
        return json.loads(self.succeed(*args, env=env))

    def fail_with(self, code, *args, env=None):
        """The message of a command that must fail: one paragraph on stderr, and nothing on stdout."""
        result = tool(*args, env=env)
        self.assertEqual(result.returncode, code, result.stdout + result.stderr)
        self.assertEqual(result.stdout, "")
        message = result.stderr
        if code == NO_GPU:  # what the libraries themselves had to say stands in front
            message = message[message.index("pteryx: "):]
        self.assert_paragraph(message)
        return message

    def assert_paragraph(self, text):
        self.assertTrue(text.startswith("pteryx: ") and text.endswith("\n"), repr(text))
        for line in text.splitlines()[1:]:
            self.assertRegex(line, r"^  \S")
        self.assertEqual(text.count("pteryx: "), 1, text)
        for trace in ("terminate called", "what():", "AddressSanitizer", ".cpp:", "Assertion"):
            self.assertNotIn(trace, text)

    def assert_value(self, got, folder, entry, atol=1e-4, rtol=1e-4):
        """Compares an array with a value of a manifest; a number came back as an array without dims."""
        scalar = entry["scalar"] if isinstance(entry, dict) and "scalar" in entry else None
        want = npy.array(got.dtype, (), scalar) if scalar is not None else tensor(folder, entry)
        self.assertEqual((got.dtype, got.shape), (want.dtype, want.shape))
        for i, (g, w) in enumerate(zip(got.values, want.values, strict=True)):
            self.assertTrue(close(g, w, atol, rtol), f"element {i}: expected {w}, got {g}")
