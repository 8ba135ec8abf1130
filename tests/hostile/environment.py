"""Homes, temporary folders and caches that cannot be used, and cached programs that somebody damaged."""
# SPDX-License-Identifier: BSD-3-Clause
import os
import subprocess

from .case import OK, REFUSED, Case, link_to
from .gguf import sound

SOURCE = {"m.gguf": sound}
GENERATE = ["generate", "m.gguf", "--prompt-ids", "1", "-n", "2", "--ignore-end"]


def mode(bits):
    def make(path):
        path.mkdir()
        path.chmod(bits)
    return make


def owned_by_another(path):
    path.mkdir()
    os.chmod(path, 0o777)
    os.chown(path, 12345, 12345)


HOMES = {
    "no HOME": ({"HOME": None}, {}),
    "no HOME and a TMPDIR that is not there": ({"HOME": None, "TMPDIR": "/proc/nonexistent"}, {}),
    "an empty HOME": ({"HOME": "", "TMPDIR": ""}, {}),
    "HOME that is not there": ({"HOME": "/proc/nonexistent/home"}, {}),
    "HOME a file": ({"HOME": "{folder}/file"}, {"file": "x"}),
    "HOME /proc": ({"HOME": "/proc"}, {}),
    "a relative HOME": ({"HOME": "relative"}, {}),
    "HOME of 10 KB": ({"HOME": "/" + "x" * 10_000}, {}),
    "XDG_CACHE_HOME relative": ({"XDG_CACHE_HOME": "relative/cache"}, {}),
    "XDG_CACHE_HOME a file": ({"XDG_CACHE_HOME": "{folder}/file"}, {"file": "x"}),
    "XDG_CACHE_HOME of escapes": ({"XDG_CACHE_HOME": "{folder}/\x1b[31m\n"}, {}),
    "XDG_CACHE_HOME /dev/null": ({"XDG_CACHE_HOME": "{folder}/null/x"}, {"null": link_to("/dev/null")}),
    "a cache that is a file": ({"PTERYX_CACHE": "{folder}/cache"}, {"cache": "x"}),
    "a cache that is a dangling link": ({"PTERYX_CACHE": "{folder}/cache"}, {"cache": link_to("/proc/nonexistent/x")}),
    "a cache in /proc": ({"PTERYX_CACHE": "/proc/pteryx"}, {}),
    "a cache that is a device": ({"PTERYX_CACHE": "/dev/full"}, {}),
    "a cache that all may write": ({"PTERYX_CACHE": "{folder}/cache"}, {"cache": mode(0o777)}),
    "a cache of another user": ({"PTERYX_CACHE": "{folder}/cache"}, {"cache": owned_by_another}),
    "a cache nobody may write": ({"PTERYX_CACHE": "{folder}/cache"}, {"cache": mode(0o500)}),
    "shaders kept in a file": ({"PTERYX_PIPELINE_CACHE": "{folder}/cache"}, {"cache": "x"}),
    "shaders kept in a device": ({"PTERYX_PIPELINE_CACHE": "/dev/full"}, {}),
    "shaders kept in a folder of another user": ({"PTERYX_PIPELINE_CACHE": "{folder}/cache"}, {"cache": owned_by_another}),
}
CACHES = ("*/m-*.pte",)  # conversions are kept for the next run, whatever comes of this one

DAMAGES = {
    "empty": lambda data: b"",
    "of one byte": lambda data: data[:1],
    "cut in half": lambda data: data[:len(data) // 2],
    "short of its last byte": lambda data: data[:-1],
    "of zeros": lambda data: bytes(len(data)),
    "with a damaged header": lambda data: data[:16] + b"\xff" * 16 + data[32:],
    "that is text": lambda data: b"hello\n",
}


def cases(tool, rng):
    for name, (env, files) in HOMES.items():
        yield Case("environment", f"generate with {name}", GENERATE, {**SOURCE, **files}, env, gpu=True, keeps=CACHES)
        yield Case("environment", f"chat with {name}", ["chat", "m.gguf"], {"m.gguf": b"GGUF", **files}, env, codes=REFUSED, keeps=CACHES)
        yield Case("environment", f"convert with {name}", ["convert", "m.gguf", "-o", "out.pte"], {**SOURCE, **files}, env, codes={OK})
        yield Case("environment", f"inspect with {name}", ["inspect", "m.pte"], {"m.pte": b"x", **files}, env, codes=REFUSED)
    for name, damage in DAMAGES.items():
        yield Case("environment", f"a cached program {name}", GENERATE,
                   {**SOURCE, "cache": cached(tool, damage)}, {"PTERYX_CACHE": "{folder}/cache"}, gpu=True,
                   codes={OK}, changes=("cache/*",))
    yield Case("environment", "a cached program that is a folder", GENERATE, {**SOURCE, "cache": cached(tool, None)},
               {"PTERYX_CACHE": "{folder}/cache"}, gpu=True, changes=("cache/*",))


def cached(tool, damage):
    """A cache that holds the conversion of m.gguf beside it, damaged."""
    def make(path):
        path.mkdir(mode=0o700)
        env = {"PATH": os.environ["PATH"], "PTERYX_CACHE": str(path), "PTERYX_WEBGPU_LIBRARY": "/nonexistent"}
        subprocess.run([tool, "generate", "m.gguf", "--prompt-ids", "1"], cwd=path.parent, env=env, capture_output=True, check=False)
        for entry in path.glob("*.pte"):
            data = entry.read_bytes()
            entry.unlink()
            if damage is None:
                entry.mkdir()
            else:
                entry.write_bytes(damage(data))
    return make
