"""SmolLM2-135M from its GGUF file: a conversion and a text, against the same weights in double precision."""
# SPDX-License-Identifier: BSD-3-Clause
import json
import math
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
FIXTURES = ROOT / "tests" / "fixtures" / "smollm2"


def targets():
    """Sets of instructions that this processor has; the one without any would take minutes."""
    refused = subprocess.run([os.environ["PTERYX_CLI"], "ops"], env={**os.environ, "PTERYX_CPU_TARGET": "none"}, capture_output=True, text=True, check=False)
    return [t for t in re.search(r"\((.*)\)", refused.stderr)[1].split(", ") if t != "EMU128"]


class SmolLM2(unittest.TestCase):
    def test_knows_a_text_as_well_as_the_reference(self):
        self.check()

    def test_on_the_cpu(self):
        for target in targets():
            with self.subTest(target):
                self.check("--device", "cpu", PTERYX_CPU_TARGET=target)

    def check(self, *args, **environment):
        model = subprocess.run([ROOT / "tools" / "models" / "fetch"], stdout=subprocess.PIPE, text=True, check=True).stdout.split()[-1]
        expected = json.loads((FIXTURES / "expected.json").read_text())
        with tempfile.TemporaryDirectory() as cache:
            command = [os.environ["PTERYX_CLI"], "eval", model, "--text", FIXTURES / "text.txt", "--json", *args]
            got = json.loads(subprocess.run(command, env={**os.environ, **environment, "PTERYX_CACHE": cache}, stdout=subprocess.PIPE, check=True).stdout)
        self.assertEqual(got["ids"], expected["ids"])
        count = len(expected["top1"])
        self.assertGreaterEqual(count, 1000)
        agreement = sum(a == b for a, b in zip(got["top1"], expected["top1"], strict=True)) / count
        perplexity = math.exp(sum(expected["nll"]) / count)
        print(f"{count} tokens: {agreement:.1%} of the likeliest agree, perplexity {got['perplexity']:.3f}, reference {perplexity:.3f}")
        self.assertGreaterEqual(agreement, 0.95)
        self.assertLess(abs(got["perplexity"] / perplexity - 1), 0.01)


if __name__ == "__main__":
    unittest.main()
