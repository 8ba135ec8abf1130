"""Streams that are closed, full or gone, for every command: lost output is a failure, and said."""
# SPDX-License-Identifier: BSD-3-Clause
import signal

import npy

from .case import ANY, LLM, NO_LIBRARY, OK, OPS, REFUSED, Case
from .gguf import sound

X = npy.to_file(npy.ramp("float32", (7, 33)))
# Command, files, whether it needs a GPU.
COMMANDS = {
    "help": (["--help"], {}, False),
    "version": (["--version"], {}, False),
    "help of a command": (["run", "--help"], {}, False),
    "ops": (["ops"], {}, False),
    "ops as JSON": (["ops", "--json"], {}, False),
    "inspect": (["inspect", "m.pte"], {"m.pte": OPS / "add.pte"}, False),
    "inspect as JSON": (["inspect", "m.pte", "--json"], {"m.pte": OPS / "add.pte"}, False),
    "inspect a language model": (["inspect", "m.pte", "--json"], {"m.pte": LLM / "qwen2_like_fp32.pte"}, False),
    "convert": (["convert", "m.gguf", "-o", "out.pte"], {"m.gguf": sound}, False),
    "convert as JSON": (["convert", "m.gguf", "-o", "out.pte", "--json"], {"m.gguf": sound}, False),
    "synth": (["synth", "-o", "out.pte"], {}, False),
    "a usage error": (["run"], {}, False),
    "a bad file": (["inspect", "m.pte"], {"m.pte": "not a program"}, False),
    "doctor": (["doctor"], {}, True),
    "doctor as JSON": (["doctor", "--json"], {}, True),
    "run": (["run", "m.pte", "-m", "forward", "-i", "x.npy", "-i", "x.npy"], {"m.pte": OPS / "add.pte", "x.npy": X}, True),
    "verify": (["verify", str(OPS), "--only", "add"], {}, True),
    "verify as JSON": (["verify", str(OPS), "--only", "add", "--json"], {}, True),
    "generate": (["generate", "m.pte", "--prompt-ids", "1", "-n", "2", "--ignore-end"], {"m.pte": LLM / "qwen3_like_q4.pte"}, True),
    "generate as JSON": (["generate", "m.pte", "--prompt-ids", "1", "-n", "2", "--ignore-end", "--json"],
                         {"m.pte": LLM / "qwen3_like_q4.pte"}, True),
    "bench": (["bench", "m.pte", "-p", "2", "-n", "2", "-r", "1"], {"m.pte": LLM / "qwen3_like_q4.pte"}, True),
    "bench of a program": (["bench", "m.pte", "-r", "1"], {"m.pte": OPS / "add.pte"}, True),
    "profile": (["profile", "m.pte", "-p", "2", "-n", "2"], {"m.pte": LLM / "qwen3_like_q4.pte"}, True),
    "eval": (["eval", "m.pte", "--ids", "1", "2", "3"], {"m.pte": LLM / "qwen3_like_q4.pte"}, True),
}
FAILS = ("a usage error", "a bad file")
KINDS = {
    "stdout full": (">/dev/full", REFUSED),
    "stdout closed": (">&-", REFUSED),
    "stderr closed": ("2>&-", ANY),
    "stderr full": ("2>/dev/full", ANY),
    "stdin closed": ("<&-", ANY),
    "everything closed": ("<&- >&- 2>&-", REFUSED),
    "everything full": (">/dev/full 2>/dev/full", REFUSED),
    "stdin a folder": ("<.", ANY),
    "stdout a pipe without a reader": ("> >(exec true)", ANY),
}


def cases(_tool, _rng):
    for command, (args, files, gpu) in COMMANDS.items():
        for kind, (streams, codes) in KINDS.items():
            if command not in FAILS and codes == ANY and "pipe" not in kind:
                codes = {OK}
            # A filter whose reader is gone may end as filters do.
            yield Case("streams", f"{command}, {kind}", args, files, {} if gpu else NO_LIBRARY, streams=streams, gpu=gpu, codes=codes,
                       keeps=("out.pte",), may_end_by=(signal.SIGPIPE,) if "pipe" in kind else ())
