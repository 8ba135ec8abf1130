#!/usr/bin/env python3
"""each_target.py [--best] [--gpu-only FILE] PROGRAM [-- COMMAND...]: runs PROGRAM, a test that has tests/gpu_main.cpp, on the CPU, once
for each set of instructions that kernels are compiled for and this processor has; or COMMAND, where there is one, for those that PROGRAM
names. With --best, only for the best. FILE lists the tests of PROGRAM that are of the GPU alone: a line for each pattern, as
--gtest_filter takes them; a pattern that fits no test is an error."""
# SPDX-License-Identifier: BSD-3-Clause
import argparse
import fnmatch
import os
import pathlib
import subprocess
import sys
import time


def patterns(file):
    lines = (line.split("#")[0].strip() for line in pathlib.Path(file).read_text().splitlines())
    return [line for line in lines if line]


def names(program):
    """Of all tests, as a filter knows them."""
    listed, suite = [], ""
    for line in subprocess.run([program, "--gtest_list_tests"], check=True, capture_output=True, text=True).stdout.splitlines():
        name = line.split("#")[0].strip()
        if line.startswith("  "):
            listed.append(suite + name)
        elif name.endswith("."):
            suite = name
    return listed


def stale(wanted, tests):
    """The patterns that no test fits."""
    return [p for p in wanted if not any(fnmatch.fnmatchcase(t, p) for t in tests)]


def run(target, command, filtered):
    started = time.monotonic()
    environment = {**os.environ, "PTERYX_DEVICE": "cpu", "PTERYX_CPU_TARGET": target}
    if filtered:
        environment["GTEST_FILTER"] = "-" + ":".join(filtered)
    status = subprocess.run(command, env=environment, check=False).returncode
    print(f"{target}: {'passed' if status == 0 else f'failed with {status}'} in {time.monotonic() - started:.1f} s", flush=True)
    return status == 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--best", action="store_true")
    parser.add_argument("--gpu-only")
    parser.add_argument("program")
    parser.add_argument("command", nargs="*")
    args = parser.parse_args()
    targets = subprocess.run([args.program, "--cpu_targets"], check=True, capture_output=True, text=True).stdout.split()
    if not targets:
        sys.exit(f"{args.program} names no target")
    filtered = patterns(args.gpu_only) if args.gpu_only else []
    if unused := stale(filtered, names(args.program)) if filtered else []:
        sys.exit(f"{args.gpu_only}: no test fits {', '.join(unused)}")
    command = args.command or [args.program, "--gtest_brief=1"]
    passed = [run(target, command, filtered) for target in (targets[:1] if args.best else targets)]
    sys.exit(0 if all(passed) else 1)


if __name__ == "__main__":
    main()
