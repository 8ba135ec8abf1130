"""What holds for every run, however hostile its arguments and files."""
# SPDX-License-Identifier: BSD-3-Clause
import fnmatch
import re
import signal

from .case import INTERRUPTED, NO_GPU, OK
from .runner import FOLDER

LONGEST_MESSAGE = 2048
LONGEST_LINE = 400
MOST_CPU_S = 10
MOST_RSS_MB = 1024

CONTROL = re.compile(rb"[\x00-\x08\x0b-\x1f\x7f]")
NONSENSE = re.compile(rb"(?<![\w/.-])-?(nan|inf|infinity)(?![\w/.-])", re.IGNORECASE)
REPORTS = (b"Sanitizer: ", b"runtime error: ")
NO_MEMORY = re.compile(rb"==\d+==WARNING: AddressSanitizer failed to allocate .*\n")  # before the tool says so
TRACE = re.compile(rb"terminate called|what\(\):|Assertion|\.cpp:\d|json\.exception|basic_string|std::|panicked at")
# What these commands print comes from the model or its author.
FREE_TEXT = ("generate", "chat")
# These may have something to say about each line they read.
MANY_MESSAGES = ("chat", "bench")
CACHE = "home/.cache/pteryx/*"  # conversions are kept, whatever comes of the run
PARTIAL = ("*.part", "*.partial", "*.tmp", "*.part.*")


def problems(case, run, before, after, asan):
    """Everything that is wrong with a run; nothing where it kept the rules."""
    for report in REPORTS:
        if report in run.stderr:
            return [f"sanitizer: {text(line_with(report, run.stderr))}"]
    if run.hung:
        return [f"hangs: killed after {run.wall_s:.0f} s"]
    if run.code < 0 and -run.code not in case.may_end_by:
        return [f"signal {signal.Signals(-run.code).name}: {text(run.stderr)[-120:].strip()}"]
    return [p for p in (*exit_code(case, run), *limits(run, asan), *message(case, run), *output(case, run),
                        *leftovers(case, run, before, after), case.check and case.check(case, run)) if p]


def exit_code(case, run):
    if run.code < 0:
        return
    if run.code not in (OK, 1, 2, 3, NO_GPU, INTERRUPTED):
        yield f"exit code {run.code}"
    elif run.code not in case.codes:
        yield f"exit code {run.code}, expected one of {sorted(case.codes)}: {text(run.stderr)[:160].strip()}"


def limits(run, asan):
    factor = 4 if asan else 1
    if run.cpu_s > MOST_CPU_S * factor:
        yield f"took {run.cpu_s:.1f} s"
    if run.rss_mb > MOST_RSS_MB * factor:
        yield f"took {run.rss_mb:.0f} MB"


def message(case, run):
    """A failure says why: a short paragraph, without anything that a terminal would act on."""
    said = NO_MEMORY.sub(b"", run.stderr)
    closed = "2>" in case.streams
    if CONTROL.search(said):
        yield f"control characters on stderr: {text(said)[:120]!r}"
    if TRACE.search(said):
        yield f"talks of its insides: {text(TRACE.search(said)[0])}"
    if case.says and not re.search(case.says.encode(), run.stdout + said):
        yield f"does not say {case.says!r}"
    if run.code in (OK, INTERRUPTED) or run.code < 0 or closed:
        return
    if run.code == NO_GPU and b"pteryx: " in said:  # what the libraries themselves had to say stands in front
        said = said[said.index(b"pteryx: "):]
    several = case.args[:1] and case.args[0] in MANY_MESSAGES or "--keep-going" in case.args
    verified = case.args[:1] == ["verify"] and run.code == 1 and b"FAILED" in run.stdout + run.stderr
    reader_gone = ">(exec true)" in case.streams  # which is no failure worth a word
    if not said.strip() and not verified and not reader_gone and b'"failed"' not in run.stdout:
        yield f"exit code {run.code} without a word"
    elif said and not several and case.args and not said.startswith((b"pteryx: ", b"converting ")):  # no arguments: the help
        yield f"a message that does not start with 'pteryx: ': {text(said)[:100]!r}"
    if len(said) > LONGEST_MESSAGE and not several:
        yield f"a message of {len(said)} bytes"
    longest = max((len(line.decode(errors="replace")) for line in said.splitlines()), default=0)
    if longest > LONGEST_LINE:
        yield f"a line of {longest} characters in a message"


def output(case, run):
    command = case.args[0] if case.args else ""
    if command not in FREE_TEXT and CONTROL.search(run.stdout):
        yield f"control characters on stdout: {text(CONTROL.search(run.stdout)[0])!r}"
    if run.code != OK:
        return
    if command in ("eval", "bench", "profile", "convert", "verify", "run") and NONSENSE.search(run.stdout):
        yield f"succeeds with {text(NONSENSE.search(run.stdout)[0])} in its output"
    quiet = (">" in case.streams.replace("2>", "").replace("<", "")) or command == "chat" or case.silent
    said = run.stdout if command in FREE_TEXT else run.stdout.strip()  # sampled tokens may be blank; the line they end is not
    if not said and not quiet:
        yield "succeeds without output"


def leftovers(case, run, before, after):
    """Inputs are as they were; a failed run leaves nothing behind, and no run half a file."""
    for name, was in before.items():
        if after.get(name) != was and not any(fnmatch.fnmatch(name, p) for p in case.changes):
            yield f"{'removed' if name not in after else 'changed'} its input {name}"
    new = [n for n in after if n not in before and not n.startswith(("home/.cache/mesa", "home/.config"))]
    left = [n for n in new if any(fnmatch.fnmatch(n, p) for p in PARTIAL)]
    if run.code != OK:
        left = [n for n in new if not any(fnmatch.fnmatch(n, p) for p in case.keeps)]
    left = [n for n in left if after[n] != FOLDER and not fnmatch.fnmatch(n, CACHE)]
    if left:
        yield f"leaves {', '.join(sorted(left)[:4])} behind"


def line_with(words, data):
    return next(line for line in data.splitlines() if words in line)


def text(data):
    return data.decode(errors="replace")
