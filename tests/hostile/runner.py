"""Runs cases with limits on time, memory and the size of files."""
# SPDX-License-Identifier: BSD-3-Clause
import concurrent.futures
import hashlib
import multiprocessing
import os
import pathlib
import resource
import shlex
import shutil
import signal
import stat
import subprocess
import threading
import time

from .case import Run

PROCESSOR_S = 20
HANGS_AFTER_S = 60  # of waiting, also on a busy machine; a run that uses the processor is stopped by that limit
DATA = 4 << 30  # that a run may allocate; with sanitizers, which reserve more than they use, that it may have in memory
LARGEST_FILE = 2 << 30
FOLDER = "folder"


def launch(command, folder, env, scratch, limits):
    """Runs a command to its end, its streams in files of `scratch`; gives status, resources and whether it had to be killed."""
    with open(scratch / "stdin", "rb") as i, open(scratch / "stdout", "wb") as o, open(scratch / "stderr", "wb") as e:
        process = subprocess.Popen(command, cwd=folder, env=env, stdin=i, stdout=o, stderr=e, start_new_session=True)
        try:
            for kind, most in limits.items():
                resource.prlimit(process.pid, kind, (most, most))
        except ProcessLookupError:
            pass  # it is through already
        killed = threading.Event()
        timer = threading.Timer(HANGS_AFTER_S, lambda: (killed.set(), os.killpg(process.pid, signal.SIGKILL)))
        timer.start()
        _, status, usage = os.wait4(process.pid, 0)
        timer.cancel()
        process.returncode = os.waitstatus_to_exitcode(status)
    return process.returncode, usage.ru_utime + usage.ru_stime, usage.ru_maxrss, killed.is_set()


class Runner:
    """Runs the tool at `tool`; `shaders` keeps compiled shaders from run to run.

    Small processes start it, as many as there are jobs: the memory of a run counts from that of the process that starts it.
    """

    def __init__(self, tool, shaders, asan, jobs):
        self.tool = tool
        self.asan = asan
        self.base = {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", "PTERYX_ADAPTER": "software", "PTERYX_PROVIDER": "dawn",
                     "MESA_SHADER_CACHE_DIR": str(shaders), "PTERYX_PIPELINE_CACHE": f"{shaders}/pipelines",
                     "ASAN_OPTIONS": f"{os.environ['ASAN_OPTIONS']}:hard_rss_limit_mb={DATA >> 20}", "UBSAN_OPTIONS": os.environ["UBSAN_OPTIONS"]}
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        self.starters = concurrent.futures.ProcessPoolExecutor(jobs, multiprocessing.get_context("fork"))
        list(self.starters.map(time.sleep, [0.05] * jobs))

    def environment(self, case, folder):
        env = {**self.base, "HOME": str(folder / "home"), "TMPDIR": str(folder / "tmp")}
        for key, value in case.env.items():
            if value is None:
                env.pop(key, None)
            else:
                env[key] = value.replace("{folder}", str(folder))
        return env

    def command(self, case):
        """A shell puts the streams in place and is then replaced by the tool."""
        words = [self.tool, *case.args]
        return ["/bin/bash", "-c", f"exec {shlex.join(words)} {case.streams}"] if case.streams else words

    def run(self, case, folder, scratch):
        """Runs a case whose files are in `folder`; the streams go through files in `scratch`."""
        limits = {resource.RLIMIT_FSIZE: LARGEST_FILE, resource.RLIMIT_CPU: PROCESSOR_S}
        if not self.asan:
            limits[resource.RLIMIT_DATA] = DATA
        (scratch / "stdin").write_bytes(case.stdin)
        start = time.monotonic()
        words = [os.fsencode(a) for a in self.command(case)]
        code, cpu_s, rss_kb, hung = self.starters.submit(launch, words, folder, self.environment(case, folder), scratch,
            limits).result()
        return Run(code, (scratch / "stdout").read_bytes(), (scratch / "stderr").read_bytes(), time.monotonic() - start, cpu_s,
            rss_kb / 1024, hung)

    def script(self, case, folder):
        """A shell script that does the same."""
        env = self.environment(case, folder)
        assignments = " ".join(shlex.quote(f"{k}={v}") for k, v in env.items())
        command = f"exec env -i {assignments} {shlex.join([self.tool, *case.args])} <stdin {case.streams}"
        return f"#!/bin/bash\n# {case.category}: {case.name}\ncd {shlex.quote(str(folder))} || exit 1\n{command}\n"


def snapshot(folder):
    """What is in a folder: kind and contents of everything, by name."""
    found = {}
    for root, folders, files in os.walk(folder):
        for name in (*folders, *files):
            path = pathlib.Path(root, name)
            found[str(path.relative_to(folder))] = fingerprint(path)
    return found


def fingerprint(path):
    info = path.lstat()
    if stat.S_ISDIR(info.st_mode):
        return FOLDER
    if stat.S_ISLNK(info.st_mode):
        return f"link to {os.readlink(path)}"
    if stat.S_ISREG(info.st_mode):
        with open(path, "rb") as f:  # the beginning will do for a file that is large only in name
            return hashlib.sha256(f.read(64 << 20 if info.st_size < 64 << 20 else 4096)).hexdigest() + f" {info.st_size}"
    return f"{stat.S_IFMT(info.st_mode):o} {info.st_rdev}"


def remove(folder):
    """Also what nobody may read or write."""
    for root, folders, _ in os.walk(folder):
        for name in folders:
            if not os.path.islink(os.path.join(root, name)):
                os.chmod(os.path.join(root, name), 0o700)
    shutil.rmtree(folder, ignore_errors=True)
