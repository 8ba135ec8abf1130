#!/usr/bin/env python3
"""Networks of images on the CPU: `pteryx bench --device cpu` beside onnxruntime's CPU provider, by turns in one run.

    python3 -m venv venv && venv/bin/pip install -r bench/networks_requirements.txt
    venv/bin/python bench/networks_cpu.py --out networks            # export once, check, measure
    venv/bin/python bench/networks_cpu.py --out networks --only resnet50 --rounds 1

Weights and statistics are random. What both make of the input is compared with PyTorch in double precision first.
"""
# SPDX-License-Identifier: BSD-3-Clause
import argparse
import copy
import json
import pathlib
import platform
import statistics
import subprocess
import sys
import tempfile
import time

import numpy
import onnxruntime

ROOT = pathlib.Path(__file__).resolve().parent.parent
NETWORKS = ("resnet50", "mobilenet_v2", "vit_b_16", "convnext_tiny")
TOLERANCE = 1e-4  # of the largest element


def randomise(module, torch):
    """Statistics of batch norms, and whatever starts as 0."""
    for m in module.modules():
        if isinstance(m, torch.nn.BatchNorm2d):
            m.running_mean.normal_(0, 0.1)
            m.running_var.uniform_(0.5, 1.5)
    for p in module.parameters():
        if not p.any():
            p.data.normal_(0, 0.02)


def export(name, out):
    """Writes NAME.pte, NAME.onnx, NAME.x.npy and NAME.y.npy."""
    import torch
    import torchvision
    sys.path.insert(0, str(ROOT / "tools" / "export"))
    from export_models import lower
    torch.manual_seed(1)
    module = getattr(torchvision.models, name)(weights=None).eval()
    randomise(module, torch)
    x = torch.randn(1, 3, 224, 224)
    with torch.no_grad():
        y = copy.deepcopy(module).double()(x.double())
    torch.onnx.export(module, (x,), str(out / f"{name}.onnx"), dynamo=True, external_data=False)
    numpy.save(out / f"{name}.x.npy", x.numpy())
    numpy.save(out / f"{name}.y.npy", y.numpy())
    (out / f"{name}.pte").write_bytes(bytes(lower(module, (x,)).buffer))


def onnx_session(path, threads):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def check(name, got, want):
    error = numpy.abs(got.astype(numpy.float64) - want).max() / numpy.abs(want).max()
    if not error <= TOLERANCE:
        raise SystemExit(f"{name}: {error:.2e} of the largest element off")
    return error


def check_both(name, out, pteryx, threads):
    want = numpy.load(out / f"{name}.y.npy")
    with tempfile.TemporaryDirectory() as folder:
        command = [pteryx, "run", out / f"{name}.pte", "--device", "cpu", "-i", out / f"{name}.x.npy", "-o", folder]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        file, = pathlib.Path(folder).glob("*.npy")
        check(f"pteryx, {name}", numpy.load(file), want)
    session = onnx_session(out / f"{name}.onnx", threads)
    x = numpy.load(out / f"{name}.x.npy")
    check(f"onnxruntime, {name}", session.run(None, {session.get_inputs()[0].name: x})[0], want)


def measure_pteryx(name, out, pteryx, repeats):
    command = [pteryx, "bench", out / f"{name}.pte", "--device", "cpu", "-r", str(repeats), "--json"]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return json.loads(text)["rows"][0]["repeats_ms"]


def measure_onnx(name, out, threads, repeats):
    session = onnx_session(out / f"{name}.onnx", threads)
    inputs = {session.get_inputs()[0].name: numpy.load(out / f"{name}.x.npy")}
    times = []
    for i in range(-3, repeats):
        start = time.perf_counter()
        session.run(None, inputs)
        if i >= 0:
            times.append((time.perf_counter() - start) * 1e3)
    return times


def cpu_name():
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.processor()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=pathlib.Path, required=True, help="folder of exported networks")
    parser.add_argument("--pteryx", default=ROOT / "build" / "pteryx", type=pathlib.Path)
    parser.add_argument("--only", default=",".join(NETWORKS), help="networks, with commas")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--repeats", type=int, default=20, help="calls in a round")
    parser.add_argument("--threads", type=int, default=2, help="of onnxruntime; Pteryx takes a thread for each core")
    o = parser.parse_args()
    o.out.mkdir(parents=True, exist_ok=True)
    names = o.only.split(",")
    for name in names:
        if not (o.out / f"{name}.pte").exists():
            export(name, o.out)
        check_both(name, o.out, o.pteryx, o.threads)
    print(f"{cpu_name()}, onnxruntime {onnxruntime.__version__}, {o.threads} threads; median ms of a call (best)\n")
    print("| network | Pteryx | onnxruntime | ratio |\n|---|---|---|---|")
    for name in names:
        ours, theirs = [], []
        for _ in range(o.rounds):
            ours += measure_pteryx(name, o.out, o.pteryx, o.repeats)
            theirs += measure_onnx(name, o.out, o.threads, o.repeats)
        a, b = statistics.median(ours), statistics.median(theirs)
        print(f"| {name} | {a:.2f} ({min(ours):.2f}) | {b:.2f} ({min(theirs):.2f}) | {a / b:.2f} |", flush=True)


if __name__ == "__main__":
    main()
