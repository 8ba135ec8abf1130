"""One run of the tool: its files, its command line, and what is asked of it beyond the rules that hold for every run."""
# SPDX-License-Identifier: BSD-3-Clause
import dataclasses
import pathlib
import shutil
import typing

FIXTURES = pathlib.Path(__file__).resolve().parents[1] / "fixtures"
OPS, STATE, VALUES, LLM, CONVERT, TOKENIZERS = (FIXTURES / n for n in ("ops", "state", "values", "llm", "convert", "tokenizers"))

# The exit codes of the tool.
OK, FAILED, USAGE, BAD_FILE, NO_GPU, INTERRUPTED = 0, 1, 2, 3, 4, 130
ANY = frozenset({OK, FAILED, USAGE, BAD_FILE, NO_GPU})
REFUSED = ANY - {OK}

# A run that must not get as far as a GPU, or may only find that there is none.
NO_LIBRARY = {"PTERYX_WEBGPU_LIBRARY": "/nonexistent"}


@dataclasses.dataclass
class Case:
    """Runs in a folder of its own that holds `files`; paths on the command line are relative to it."""
    category: str
    name: str
    args: list
    files: dict = dataclasses.field(default_factory=dict)  # name -> bytes, text, a path to copy, or a function of the path
    env: dict = dataclasses.field(default_factory=dict)  # None takes a variable away
    stdin: bytes = b""
    streams: str = ""  # shell redirections, in addition to those of the runner
    gpu: bool = False
    codes: frozenset = ANY
    says: str = ""  # a pattern that stdout or stderr must match
    keeps: tuple = ()  # what a failed run may leave behind, as patterns of names in the folder
    changes: tuple = ()  # what any run may change, likewise
    silent: bool = False  # may succeed without output
    may_end_by: tuple = ()  # signals
    check: typing.Callable = None  # (folder, run) -> what is wrong, or None

    def __post_init__(self):
        self.args = [str(a) for a in self.args]

    def prepare(self, folder):
        for name, content in self.files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            put(path, content)


def put(path, content):
    if callable(content):
        content(path)
    elif isinstance(content, pathlib.Path):
        shutil.copytree(content, path) if content.is_dir() else shutil.copy(content, path)
    else:
        path.write_bytes(content.encode("utf-8", "surrogateescape") if isinstance(content, str) else content)


def replaced(document, path, v):
    """A document with another value at the place that `path` leads to, or without it where that is `...`."""
    at = document
    for key in path[:-1]:
        at = at[key]
    if v is ...:
        del at[path[-1]]
    else:
        at[path[-1]] = v
    return document


def link_to(target):
    """A symbolic link."""
    return lambda path: path.symlink_to(target)


def hard_link_to(name):
    return lambda path: path.hardlink_to(path.parent / name)


def sparse(size, head=b""):
    """A file that is large only in name."""
    def make(path):
        with open(path, "wb") as f:
            f.write(head)
            f.truncate(size)
    return make


def patched(data, changes):
    """What writes `data` with other bytes at some places, given as (offset, bytes)."""
    def make(path):
        damaged = bytearray(data)
        for at, new in changes:
            damaged[at:at + len(new)] = new
        path.write_bytes(damaged)
    return make


@dataclasses.dataclass
class Run:
    """What came of a case."""
    code: int  # negative: the signal that ended it
    stdout: bytes
    stderr: bytes
    wall_s: float
    cpu_s: float
    rss_mb: float
    hung: bool = False
