#!/usr/bin/env python3
"""Runs the command line tool with hostile arguments, files and surroundings, and checks that it keeps its manners.

No crash, no sanitizer report, one of the documented exit codes; time and memory within bounds; a failure says why in one short
paragraph, leaves nothing behind and its inputs as they were; a success has sensible output. The cases follow from --seed alone.
"""
# SPDX-License-Identifier: BSD-3-Clause
import argparse
import collections
import concurrent.futures
import os
import pathlib
import random
import re
import sys
import tempfile

TESTS = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(TESTS), str(TESTS / "cli")]
import cli  # noqa: E402, F401: sets what a sanitizer's report does
from hostile import (arguments, arrays, batch, chats, environment, folders, gguf, kinds, manifests, overwrite, programs,  # noqa: E402
                     streams, templates, tokenizer_files)
from hostile.case import LLM, OPS, Case  # noqa: E402
from hostile.rules import problems  # noqa: E402
from hostile.runner import Runner, remove, snapshot  # noqa: E402

CATEGORIES = {m.__name__.split(".")[-1].removesuffix("_files"): m for m in (
    arguments, streams, environment, kinds, overwrite, programs, gguf, folders, tokenizer_files, templates, batch, arrays, manifests,
    chats)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tool", default=os.environ.get("PTERYX_CLI", "build/pteryx"))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=4200, help="runs; of a smaller count some of each category")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", action="append", choices=sorted(CATEGORIES), help="a category; may be repeated")
    parser.add_argument("--match", default="", help="only cases with this in their name")
    parser.add_argument("--no-gpu", action="store_true", help="leave out the runs that need a GPU")
    parser.add_argument("--asan", action="store_true", help="the tool is a build with sanitizers: takes more memory and time")
    parser.add_argument("--keep", default=None, type=pathlib.Path, help="folder for the inputs of failed cases")
    parser.add_argument("--shaders", default=None, type=pathlib.Path, help="folder that keeps compiled shaders")
    parser.add_argument("--list", action="store_true", help="print the names of the cases and stop")
    o = parser.parse_args()
    o.tool = str(pathlib.Path(o.tool).resolve())

    if o.list:
        print(*(f"{c.category}: {c.name}" for c in choose(o)), sep="\n")
        return 0
    with tempfile.TemporaryDirectory(prefix="pteryx_hostile_") as work:
        work = pathlib.Path(work)
        keep = (o.keep or pathlib.Path(tempfile.gettempdir(), "pteryx_hostile_failed")).resolve()
        remove(keep)
        shaders = (o.shaders or work / "shaders").resolve()
        shaders.mkdir(parents=True, exist_ok=True)
        runner = Runner(o.tool, shaders, o.asan, o.jobs)
        chosen = choose(o)
        if any(c.gpu for c in chosen):
            warm_up(runner, work)
        with concurrent.futures.ThreadPoolExecutor(o.jobs) as pool:
            results = list(pool.map(lambda item: attempt(runner, item[1], work / str(item[0]), keep), enumerate(chosen)))
        runner.starters.shutdown()
    return report(chosen, results, keep, o)


def choose(o):
    """As many cases as asked for: those that were thought of, then damaged files without end; or some of each category."""
    modules = {name: CATEGORIES[name] for name in (o.only or CATEGORIES)}
    random_of = {name: random.Random(f"{o.seed} {name}") for name in modules}
    found = {name: list(module.cases(o.tool, random_of[name])) for name, module in modules.items()}
    for name, cases in found.items():
        found[name] = [c for c in cases if o.match in c.name and not (o.no_gpu and c.gpu)]
    total = sum(map(len, found.values()))
    if total > o.count:
        return [c for name, cases in found.items() for c in thinned(cases, o.count / total, random_of[name])]
    endless = {name: module.more(random_of[name]) for name, module in modules.items() if hasattr(module, "more")}
    while endless and total < o.count and not o.match:
        for name, cases in endless.items():
            found[name].append(next(cases))
            total += 1
    return [c for cases in found.values() for c in cases]


def thinned(cases, share, rng):
    """A share of the cases, in their order."""
    chosen = sorted(rng.sample(range(len(cases)), round(len(cases) * share)))
    return [cases[i] for i in chosen]


def warm_up(runner, work):
    """Compiles the shaders that the runs below share, which takes seconds on a software GPU."""
    for number, args in enumerate((["generate", "m.pte", "--prompt-ids", "1", "-n", "2"], ["eval", "m.pte", "--ids", "1", "2"],
                                   ["eval", "m.pte", "--ids", *["1"] * 100],  # as many rows as a call has
                                   ["generate", "m.gguf", "--prompt-ids", "1", "-n", "2"], ["verify", str(OPS), "--only", "add"])):
        case = Case("warm-up", str(number), args, {"m.pte": LLM / "qwen3_like_q4.pte", "m.gguf": gguf.sound}, gpu=True)
        folder = work / f"warm{number}"
        execute(runner, case, folder)
        remove(folder)


def execute(runner, case, folder):
    (folder / "scratch").mkdir(parents=True)
    (folder / "case").mkdir()
    case.prepare(folder / "case")
    for name in ("home", "tmp"):
        (folder / "case" / name).mkdir(exist_ok=True)
    before = snapshot(folder / "case")
    run = runner.run(case, folder / "case", folder / "scratch")
    return run, before, snapshot(folder / "case")


def attempt(runner, case, folder, keep):
    """Runs a case and says what is wrong; its inputs are kept where something is."""
    run, before, after = execute(runner, case, folder)
    wrong = problems(case, run, before, after, runner.asan)
    if wrong:
        place = keep / f"{case.category}_{''.join(c if c.isalnum() else '_' for c in case.name)[:80]}"
        remove(place)
        place.mkdir(parents=True)
        case.prepare(place)
        for name in ("home", "tmp"):
            (place / name).mkdir(exist_ok=True)
        (place / "stdin").write_bytes(case.stdin)
        (place / "run.sh").write_text(runner.script(case, place), errors="surrogateescape")
    remove(folder)
    return run, wrong


def report(chosen, results, keep, o):
    rows = collections.defaultdict(list)
    groups = collections.defaultdict(list)
    for case, (run, wrong) in zip(chosen, results):
        rows[case.category].append((case, run, wrong))
        for problem in wrong:
            groups[case.category, kind(problem)].append((case, problem))
    print(f"{'category':12} {'runs':>5} {'failed':>6} {'GPU':>4} {'slowest s':>9} {'MB':>6}  slowest, largest")
    for category, entries in rows.items():
        slowest = max(entries, key=lambda e: e[1].cpu_s)
        largest = max(entries, key=lambda e: e[1].rss_mb)
        print(f"{category:12} {len(entries):5} {sum(bool(w) for _, _, w in entries):6} {sum(c.gpu for c, _, _ in entries):4} "
              f"{slowest[1].cpu_s:9.2f} {largest[1].rss_mb:6.0f}  {slowest[0].name[:50]}, {largest[0].name[:50]}")
    failed = sum(bool(wrong) for _, wrong in results)
    print(f"{len(results)} runs, {failed} failed; {sum(run.cpu_s for run, _ in results):.0f} s of processor time")
    for (category, problem), entries in sorted(groups.items()):
        print(f"\n{category}: {problem} ({len(entries)})")
        for case, detail in entries[:12]:
            print(f"  {case.name[:90]!r}: {printable(detail)[:220]}")
    if failed:
        print(f"\nThe inputs are in {keep}, a run.sh with each; one category again: {sys.argv[0]} --seed {o.seed} --only CATEGORY")
    return 1 if failed else 0


def kind(problem):
    """A problem without its numbers and details."""
    return re.sub(r"\d{3,}", "N", printable(problem.split(":")[0]))


def printable(text):
    return "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in text)


if __name__ == "__main__":
    sys.exit(main())
