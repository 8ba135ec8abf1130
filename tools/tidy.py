#!/usr/bin/env python3
"""Runs clang-tidy over the sources in a compilation database, two at a time, and remembers which were clean.

A file is looked at again when it, a project header it includes (directly or not), its flags or the configuration changes. All clones
of a user share what is remembered, as they share the compiler's cache.
"""

import argparse
import concurrent.futures
import functools
import hashlib
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import time

INCLUDE = re.compile(rb'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)


class Project:
    def __init__(self, root, build, tidy):
        self.root = root
        self.build = build
        self.tidy = tidy
        self.roots = [root, build / "generated"]

    @functools.cached_property
    def configuration(self):
        version = subprocess.run([self.tidy, "--version"], capture_output=True, check=True).stdout
        return hashlib.sha256(version + (self.root / ".clang-tidy").read_bytes()).digest()

    @functools.cache
    def digest_and_includes(self, path):
        content = path.read_bytes()
        names = [name.decode() for name in INCLUDE.findall(content)]
        found = [next((r / n for r in [path.parent, *self.roots] if (r / n).is_file()), None) for n in names]
        return hashlib.sha256(content).digest(), [f for f in found if f]

    def key(self, path, flags):
        """Identifies all that clang-tidy's verdict on a file depends on, less the system's headers."""
        total = hashlib.sha256(self.configuration + flags.replace(str(self.root), ".").encode())
        todo, seen = [path], {path}
        while todo:
            digest, includes = self.digest_and_includes(todo.pop())
            total.update(digest)
            todo += [f for f in includes if f not in seen]
            seen.update(includes)
        return total.hexdigest()

    def check(self, path):
        """The complaints about one file, or an empty string."""
        run = subprocess.run([self.tidy, "--quiet", "-p", self.build, path], capture_output=True, text=True, check=False)
        return "" if run.returncode == 0 else run.stdout + run.stderr


def sources(project, folders):
    """Pairs of a file and its flags: what the database compiles under the folders, less the tests."""
    for entry in json.loads((project.build / "compile_commands.json").read_text()):
        path = pathlib.Path(entry["directory"], entry["file"]).resolve()
        if any(path.is_relative_to(f) for f in folders) and not path.name.endswith("_test.cpp"):
            flags = entry.get("command") or shlex.join(entry["arguments"])
            yield path, flags


def forget_old(cache):
    """Removes what no run has asked for in a month."""
    for old in cache.iterdir():
        if time.time() - old.stat().st_mtime > 30 * 24 * 3600:
            old.unlink(missing_ok=True)


def main(argv):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=pathlib.Path, required=True, help="folder with compile_commands.json")
    parser.add_argument("--tidy", default="clang-tidy-22")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("folders", nargs="+", help="folders of the repository to check")
    args = parser.parse_args(argv)
    root = pathlib.Path(__file__).resolve().parent.parent
    project = Project(root, args.build.resolve(), args.tidy)
    cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "pteryx-tidy"
    cache.mkdir(parents=True, exist_ok=True)

    keys = {path: project.key(path, flags) for path, flags in sources(project, [root / f for f in args.folders])}
    for key in keys.values():
        if (cache / key).exists():
            (cache / key).touch()
    stale = [path for path, key in keys.items() if not (cache / key).exists()]
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        for path, complaints in zip(stale, pool.map(project.check, stale)):
            if complaints:
                failed += 1
                print(complaints, flush=True)
            else:
                (cache / keys[path]).touch()
    forget_old(cache)
    print(f"clang-tidy: {len(stale)} of {len(keys)} files looked at, {failed} with complaints")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
