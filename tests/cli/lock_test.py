"""--lock: weights that stay in memory."""
# SPDX-License-Identifier: BSD-3-Clause
import ctypes
import os
import re
import resource
import subprocess
import unittest

from cli import FAILED, LLM, TOOL, TestCase, environment

MODEL = LLM / "qwen3_like_q4.pte"
GENERATE = ["generate", MODEL, "-n", "2", "--temperature", "0", "--prompt-ids", "1,2,3"]
BARE = {"PTERYX_ADAPTER": "", "PTERYX_PROVIDER": "", "PTERYX_WEBGPU_LIBRARY": "none"}
PR_CAPBSET_DROP = 24
CAP_IPC_LOCK = 14


def allow(size):
    """Lets a child lock so many bytes; root, whom the limit does not bind, loses the right to exceed it."""
    def limit():
        if os.getuid() == 0:
            ctypes.CDLL(None).prctl(PR_CAPBSET_DROP, CAP_IPC_LOCK, 0, 0, 0)
        resource.setrlimit(resource.RLIMIT_MEMLOCK, (size, size))
    return limit


class Lock(TestCase):
    def tool(self, *args, size):
        return subprocess.run([TOOL, *map(str, args)], env=environment(BARE), capture_output=True, text=True, check=False,
                              stdin=subprocess.DEVNULL, preexec_fn=allow(size))

    def test_allowed(self):
        plain = self.tool(*GENERATE, size=0)
        locked = self.tool(*GENERATE, "--lock", size=8 << 20)
        self.assertEqual((locked.returncode, locked.stdout), (0, plain.stdout), locked.stderr)

    def test_refused(self):
        size = MODEL.stat().st_size
        result = self.tool(*GENERATE, "--lock", size=16384)
        self.assertEqual((result.returncode, result.stdout), (FAILED, ""))
        self.assert_paragraph(result.stderr)
        self.assertRegex(result.stderr, rf"{re.escape(str(MODEL))}: cannot lock its {size} bytes in memory: .*; this process may lock 16384 "
                                        rf"\(RLIMIT_MEMLOCK\): allow it more, such as with `ulimit -l {-(-size // 1024)}`, or do not lock")

    def test_limit_of_memory_counts_it(self):
        model = LLM / "qwen2_like_fp32.pte"
        run = ["generate", model, "-n", "1", "--prompt-ids", "1", "--memory-limit", "1"]
        self.assertEqual(self.tool(*run, size=8 << 20).returncode, 0)
        result = self.tool(*run, "--lock", size=8 << 20)
        self.assertEqual(result.returncode, FAILED)
        self.assertIn(f", {model.stat().st_size} for locked files\n", result.stderr)

    def test_without_effect_on_a_gpu(self):
        result = subprocess.run([TOOL, *map(str, GENERATE), "--lock"], env=environment(), capture_output=True, text=True, check=False)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("pteryx: --lock changes nothing: the weights are in the memory of the GPU\n", result.stderr)


if __name__ == "__main__":
    unittest.main()
