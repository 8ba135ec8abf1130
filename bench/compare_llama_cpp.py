#!/usr/bin/env python3
"""bench/compare_llama_cpp.py [MODEL.gguf...]: tokens per second of language models on the CPU, Pteryx beside llama.cpp, in one run and in
turns; and what the processor can do, by build/bench/cpu_bench. Without a model: SmolLM2 135M, and Llama-3.2-1B's shape with random
weights of 4 bits. Needs `make build`, and npm the first time. Other work on the machine spoils it: what the processor spent on that
is stated for each measurement."""
# SPDX-License-Identifier: BSD-3-Clause
import argparse
import json
import pathlib
import resource
import statistics
import subprocess
import sys
import time

import llama_cpp
import synthetic_gguf

ROOT = pathlib.Path(__file__).resolve().parent.parent
DEPS = ROOT / ".deps"
PROMPT, CONTEXT, TOKENS = 256, 128, 64


def processor():
    names = (line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name"))
    return next(names, "CPU")


def busy():
    """Hundredths of seconds that all processors have spent on anything."""
    fields = [int(f) for f in open("/proc/stat").readline().split()[1:]]
    return sum(fields[:3]) + sum(fields[5:8])


def measured(command, before=()):
    """The JSON that a command prints, and the cores that others took meanwhile."""
    own = resource.getrusage(resource.RUSAGE_CHILDREN)
    start, at = time.monotonic(), busy()
    done = subprocess.run([*before, *map(str, command)], capture_output=True, text=True, check=False)
    wall, spent = time.monotonic() - start, (busy() - at) / 100
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}: exit code {done.returncode}\n{done.stderr}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    ours = after.ru_utime + after.ru_stime - own.ru_utime - own.ru_stime
    return json.loads(done.stdout), max(0.0, spent - ours) / wall


def models(given):
    if given:
        return [pathlib.Path(m) for m in given]
    small = subprocess.run([ROOT / "tools/models/fetch"], check=True, capture_output=True, text=True).stdout.strip()
    large = DEPS / "models" / "llama-3.2-1b-random-q4_0.gguf"
    if not large.exists():
        synthetic_gguf.write(large)
    return [pathlib.Path(small), large]


def converted(tool, model):
    program = model.with_suffix(".pte")
    if not program.exists() or program.stat().st_mtime < max(model.stat().st_mtime, tool.stat().st_mtime):
        program.unlink(missing_ok=True)
        subprocess.run([tool, "convert", model, "-o", program], check=True, stdout=subprocess.DEVNULL)
    return program


def pteryx_speeds(args, program):
    command = [args.tool, "bench", program, "--device", "cpu", "-p", PROMPT, "-c", CONTEXT, "-n", TOKENS, "-r", args.repeats, "--json"]
    report, others = measured(command, args.before)
    prompt, text = report["rows"]
    return {"prompt": prompt["repeats"], "text": text["repeats"]}, others


def llama_speeds(args, model):
    command = [sys.executable, ROOT / "bench/llama_cpp.py", args.libraries, model, args.threads, PROMPT, CONTEXT, TOKENS, args.repeats]
    return measured(command, args.before)


def peaks(args):
    """The best rates by name, with as many threads as sessions use."""
    report, others = measured([args.tool.parent / "bench/cpu_bench", "--benchmark_format=json"], args.before)
    rates = {}
    for row in report["benchmarks"]:
        rates[row["name"].split("/")[0]] = row.get("GB/s", row.get("GOP/s"))
    print(f"{processor()}: reads {rates['read']:.1f} GB/s, f32 {rates['f32']:.0f} GFLOP/s, pairs of i16 {rates['i16_pairs']:.0f} GOP/s"
          f" (others {others:.2f} cores)")


def compare(args, model):
    program = converted(args.tool, model)
    sums = {"Pteryx": {"prompt": [], "text": []}, "llama.cpp": {"prompt": [], "text": []}}
    for _ in range(args.rounds):
        ours, our_others = pteryx_speeds(args, program)
        theirs, their_others = llama_speeds(args, model)
        for name, speeds, others in (("Pteryx", ours, our_others), ("llama.cpp", theirs, their_others)):
            for test in ("prompt", "text"):
                sums[name][test] += speeds[test]
            print(f"  {name}: prompt {max(speeds['prompt']):.0f}, text {max(speeds['text']):.1f} (others {others:.2f} cores)", flush=True)
    print(f"{model.name}, {args.threads} threads; llama.cpp {theirs['version']}, {theirs['system']}")
    for test, title in (("prompt", f"prompt of {PROMPT}"), ("text", f"text at {CONTEXT}")):
        a, b = sums["Pteryx"][test], sums["llama.cpp"][test]
        print(f"  {title}: Pteryx {statistics.median(a):.1f} (best {max(a):.1f}), llama.cpp {statistics.median(b):.1f} (best {max(b):.1f}), "
              f"ratio {statistics.median(a) / statistics.median(b):.2f} (of the best {max(a) / max(b):.2f})")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="*")
    parser.add_argument("--tool", type=pathlib.Path, default=ROOT / "build/pteryx")
    parser.add_argument("--libraries", type=pathlib.Path, default=DEPS / "llama.cpp")
    parser.add_argument("--threads", type=int, default=2, help="of llama.cpp; Pteryx takes the cores there are")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--before", nargs="*", default=[], help="put before each command, such as taskset -c 0,1")
    parser.add_argument("--no-peaks", action="store_true")
    args = parser.parse_args()
    llama_cpp.fetch(args.libraries)
    if not args.no_peaks:
        peaks(args)
    for model in models(args.models):
        compare(args, model)


if __name__ == "__main__":
    main()
