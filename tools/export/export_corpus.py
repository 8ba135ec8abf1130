#!/usr/bin/env python3
"""Make hundreds of small .pte programs with expected results, in groups.

    python export_corpus.py --out corpus                           everything
    python export_corpus.py --out corpus --groups delegated,mixed  some groups
    python export_corpus.py --out corpus --every 8                 every 8th case (a quick first pass)
    python export_corpus.py --out corpus --only add_i32,conv2d     names that contain one of these

Each group is a folder: manifest.json, name.pte, name.bin (see README.md), ops.json (operators of each
program, in and outside delegates), skipped.txt (what does not export, and why), and the file OPS.txt next
to the groups sums up all operators.  Cases that exist (or were skipped) are not made again: delete the folder, or
pass --again.  Every program is also executed once: without delegates by ExecuTorch's own runtime, otherwise by
vk_interp; the field "checked" of the manifest says what came out.  Cases that failed this check (programs the
exporter got wrong, or that neither can run) go to doubtful.json instead of manifest.json.
"""
import argparse
import collections
import copy
import json
import logging
import os
import shutil
import signal
import sys
import tempfile
import time
import traceback
import warnings
import zlib

import torch
from executorch.backends.vulkan.partitioner.vulkan_partitioner import VulkanPartitioner
from executorch.exir import EdgeCompileConfig, ExecutorchBackendConfig, to_edge, to_edge_transform_and_lower
from torch.export import export

import corpus_groups
import pte_dump
from corpus_tables import Fn, Spec
from fixtures import DTYPES, cache_patterns

warnings.filterwarnings("ignore")
FLOATS = (torch.float16, torch.float32, torch.float64)


# ------------------------------------------------------------ expected results

def flat(out):
    if isinstance(out, torch.Tensor) or not isinstance(out, (tuple, list, dict)):
        return [out]
    return [t for o in (out.values() if isinstance(out, dict) else out) for t in flat(o)]


def expected(module, runs, mutates=(), method="forward"):
    """Outputs of all runs, in order, on one module (state carries over): computed in double precision,
    rounded to the dtypes of the original module.  Mutated inputs come first, as in the program."""
    def go(m, double):
        m = copy.deepcopy(m).eval()
        if double:
            m.double()
        out = []
        with torch.no_grad():
            for ins in runs:
                ins = [t.clone() if isinstance(t, torch.Tensor) else t for t in ins]
                if double:
                    ins = [t.double() if isinstance(t, torch.Tensor) and t.is_floating_point() else t for t in ins]
                res = flat(getattr(m, method)(*ins))
                res = [ins[i] for i in mutates] + res
                out.append([t.clone() if isinstance(t, torch.Tensor) else t for t in res])
        return out

    plain = go(module, False)
    torch.set_default_dtype(torch.float64)
    try:
        exact = go(module, True)
    finally:
        torch.set_default_dtype(torch.float32)
    return [[e.to(p.dtype) if isinstance(p, torch.Tensor) else p for p, e in zip(ps, es)] for ps, es in zip(plain, exact)]


def half_values(module, inputs_list):
    """The same numbers, rounded to what half precision can hold."""
    q = lambda t: t.half().to(t.dtype) if isinstance(t, torch.Tensor) and t.is_floating_point() else t
    for t in list(module.parameters()) + list(module.buffers()):
        if t.is_floating_point():
            t.data = t.data.half().to(t.dtype)
    return [tuple(q(t) for t in ins) for ins in inputs_list]


# ------------------------------------------------------------------- exporting

def lower(c, modules, inputs, dynamic):
    """-> ExecutorchProgramManager.  modules/inputs/dynamic: by method name."""
    programs = {}
    for name, m in modules.items():
        d = dynamic.get(name)
        if d is not None and isinstance(m, Fn):
            d = (tuple(d),)
        programs[name] = export(m.eval(), inputs[name], dynamic_shapes=d, strict=c.get("strict", False))
    if list(programs) == ["forward"]:
        programs = programs["forward"]
    cfg = c.get("config") or ExecutorchBackendConfig()
    if callable(cfg):
        cfg = cfg()
    compile_config = EdgeCompileConfig(**{"_check_ir_validity": not c.get("portable"), **c.get("edge", {})})
    extra = {"constant_methods": c["constant_methods"]} if c.get("constant_methods") else {}
    if c.get("portable"):
        return to_edge(programs, compile_config=compile_config, **extra).to_executorch(cfg)
    options = dict(c.get("options") or {})
    if any(d is not None for d in dynamic.values()) and "require_dynamic_shapes" not in options:
        options["require_dynamic_shapes"] = True
    part = [VulkanPartitioner(options)]
    edge = to_edge_transform_and_lower(programs, partitioner=part, compile_config=compile_config, **extra)
    return edge.to_executorch(cfg)


# ------------------------------------------------------------------ operators

def operators(path):
    """-> ({kernel: count}, {delegate operator: count}, {name: example of argument kinds})"""
    f, P, G = pte_dump.load(path)
    kernels, inside, example = collections.Counter(), collections.Counter(), {}
    for p in P["plans"]:
        def kind(i):
            k, v = p["values"][i]
            if k == "Tensor":
                return f"{v['dtype']}{v['sizes']}" + ("" if v["dyn"] == 0 else "~")
            if k == "IntList":
                return f"IntList{[p['values'][q][1] for q in v]}"
            if k in ("TensorList", "OptionalTensorList"):
                return f"{k}[{', '.join('-' if q < 0 else kind(q) for q in v)}]"
            return k if v is None else f"{k} {v}"
        for ch in p["chains"]:
            for ins in ch["instructions"]:
                if ins[0] == "KernelCall":
                    n, o = p["operators"][ins[1]]
                    n = f"{n}.{o}" if o else n
                    kernels[n] += 1
                    example.setdefault(n, ", ".join(map(kind, ins[2])))
                elif ins[0] != "DelegateCall":
                    kernels[f"<{ins[0]}>"] += 1
    for _, d, g in G:
        if g is None:
            continue
        def vk(i):
            k, v = g["values"][i]
            if k == "VkTensor":
                return f"{v['dtype']}{v['dims']}" + (" const" if v["const"] >= 0 else "")
            if k == "ValueList":
                return f"[{', '.join(map(vk, v))}]"
            return k if v is None else f"{k} {v}"
        for _, n, args in g["chain"]:
            inside[n] += 1
            example.setdefault(n, ", ".join(map(vk, args)))
    return dict(kernels), dict(inside), example


# -------------------------------------------------------------------- checking

def check(folder, case):
    """Runs the program in a child process; returns 'ok (by what)' or what went wrong."""
    r, w = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(r)
        signal.alarm(60)
        devnull = os.open(os.devnull, os.O_WRONLY)
        os.dup2(devnull, 1), os.dup2(devnull, 2)
        try:
            from check_manifest import run_case
            msg = run_case(folder, case)
        except BaseException as e:
            msg = f"{type(e).__name__}: {e}"
        os.write(w, msg[:600].encode())
        os._exit(0)
    os.close(w)
    data = b""
    while True:
        b = os.read(r, 4096)
        if not b:
            break
        data += b
    os.close(r)
    _, status = os.waitpid(pid, 0)
    return data.decode(errors="replace") or f"crashed with status {status}"


# --------------------------------------------------------------------- one case

class Group:
    def __init__(self, folder):
        self.dir = folder
        os.makedirs(folder, exist_ok=True)
        self.cases = self.load("manifest.json", {"cases": []})["cases"] + self.load("doubtful.json", {"cases": []})["cases"]
        self.ops = self.load("ops.json", {})
        self.skipped = {}
        p = os.path.join(folder, "skipped.txt")
        if os.path.exists(p):
            with open(p) as f:
                self.skipped = dict(line.rstrip("\n").split("\t", 1) for line in f if "\t" in line)

    def load(self, name, default):
        p = os.path.join(self.dir, name)
        if not os.path.exists(p):
            return default
        with open(p) as f:
            return json.load(f)

    def save(self):
        good = [c for c in self.cases if c["checked"].startswith("ok")]
        bad = [c for c in self.cases if not c["checked"].startswith("ok")]
        for name, data in (("manifest.json", {"cases": good}), ("doubtful.json", {"cases": bad}), ("ops.json", self.ops)):
            tmp = os.path.join(self.dir, name + ".tmp")
            with open(tmp, "w") as f:
                json.dump(data, f, indent=1)
            os.replace(tmp, os.path.join(self.dir, name))
        with open(os.path.join(self.dir, "skipped.txt"), "w") as f:
            for k, v in self.skipped.items():
                f.write(f"{k}\t{v}\n")

    def put(self, name, runs):
        data = bytearray()

        def put(t):
            if not isinstance(t, torch.Tensor):         # plain numbers of the program's signature
                return {"scalar": t}
            entry = {"dtype": DTYPES[t.dtype], "shape": list(t.shape)}
            if t.dim() == 4 and not t.is_contiguous() and t.is_contiguous(memory_format=torch.channels_last):
                entry["dim_order"] = [0, 2, 3, 1]       # how the program holds it; the data here is row-major
            t = t.detach().contiguous()
            data.extend(bytes(-len(data) % 16))
            entry.update(file=name + ".bin", offset=len(data))
            data.extend(t.numpy().tobytes())
            return entry

        out = [{"inputs": [put(t) for t in ins], "outputs": [put(t) for t in outs]} for ins, outs in runs]
        with open(os.path.join(self.dir, name + ".bin"), "wb") as f:
            f.write(data)
        return out


def make(g, name, c):
    torch.manual_seed(zlib.crc32(name.encode()))
    modules = c["build"]()
    if not isinstance(modules, dict):
        modules = {"forward": modules}
    for m in modules.values():
        m.requires_grad_(False)
    val = lambda specs: tuple(s() if isinstance(s, Spec) else s for s in specs)
    many = isinstance(c["inputs"], dict)
    inputs = {k: val(v) for k, v in (c["inputs"] if many else {"forward": c["inputs"]}).items()}
    live = {}
    for k in inputs:
        rr = (c["runs"][k] if many else c["runs"]) if c.get("runs") else None
        live[k] = [val(s) for s in rr] if rr else [inputs[k]] + [val((c["inputs"][k] if many else c["inputs"])) for _ in range(c.get("repeat", 1) - 1)]
    if c.get("half"):
        for k, m in modules.items():
            allv = half_values(m, [inputs[k]] + live[k])
            inputs[k], live[k] = allv[0], allv[1:]
            if c["half"] == "module":
                m.half()
                h = lambda t: t.half() if isinstance(t, torch.Tensor) and t.dtype == torch.float32 else t
                inputs[k], live[k] = tuple(map(h, inputs[k])), [tuple(map(h, i)) for i in live[k]]
    dynamic = c.get("dynamic") if many else {"forward": c.get("dynamic")}
    want = {k: expected(modules[k], live[k], c.get("mutates", ())) for k in modules}
    for k in want:
        for outs in want[k]:
            for o in outs:
                if isinstance(o, torch.Tensor) and o.is_floating_point() and not torch.isfinite(o).all():
                    raise ValueError("expected result is not finite")
    clone = lambda ins: tuple(t.clone(memory_format=torch.preserve_format) if isinstance(t, torch.Tensor) else t for t in ins)
    et = lower(c, modules, {k: clone(v) for k, v in inputs.items()}, dynamic or {})
    plans = et.executorch_program.execution_plan
    if not c.get("portable") and not any(d.id == "VulkanBackend" for p in plans for d in p.delegates):
        raise RuntimeError("nothing was delegated")
    with open(os.path.join(g.dir, name + ".pte"), "wb") as f:
        f.write(bytes(et.buffer))
    ptd = []
    with tempfile.TemporaryDirectory() as tmp:
        et.write_tensor_data_to_file(tmp)
        for q in sorted(os.listdir(tmp)):
            short = q if len(q) < 40 else q[:12] + q[-12:]
            shutil.copyfile(os.path.join(tmp, q), os.path.join(g.dir, f"{name}.{short}"))
            ptd.append(f"{name}.{short}")
    if c.get("need_ptd") and not ptd:
        raise RuntimeError("no external data was written")
    kernels, inside, example = operators(os.path.join(g.dir, name + ".pte"))
    g.ops[name] = {"kernels": kernels, "delegated": inside, "delegates": sum(len(p.delegates) for p in plans), "example": example}
    made = []
    for k in modules:
        nm = name if list(modules) == ["forward"] else f"{name}.{k}"
        case = {"name": nm, "suite": c.get("suite", "op"), "pte": name + ".pte", "method": k,
                "atol": c.get("atol", 1e-4), "rtol": c.get("rtol", 1e-4)}
        if ptd:
            case["ptd"] = ptd
        case["runs"] = g.put(nm, list(zip(live[k], want[k])))
        case["cpu_operators"] = sorted(n for n in kernels if not n.startswith("<"))
        case["delegates"] = g.ops[name]["delegates"]
        if c.get("constant_methods"):
            case["metadata"] = c["constant_methods"]
        if c.get("note"):
            case["note"] = c["note"]
        case["checked"] = check(g.dir, case)
        made.append(case)
    names = {m["name"] for m in made}
    g.cases = [q for q in g.cases if q["name"] not in names] + made
    return made


def summary(out):
    total = {"kernels": {}, "delegated": {}}
    for group in sorted(os.listdir(out)):
        p = os.path.join(out, group, "ops.json")
        if not os.path.exists(p):
            continue
        with open(p) as f:
            for name, o in json.load(f).items():
                for part in total:
                    for op, n in o[part].items():
                        e = total[part].setdefault(op, [0, 0, f"{group}/{name}", o["example"].get(op, "")])
                        e[0] += n
                        e[1] += 1
    with open(os.path.join(out, "OPS.txt"), "w") as f:
        for part, title in (("kernels", "Kernels outside delegates"), ("delegated", "Operators inside delegates")):
            f.write(f"{title}: {len(total[part])} (name, calls, programs, one example: where, argument kinds)\n\n")
            for op, (n, k, where, ex) in sorted(total[part].items()):
                f.write(f"{op}\t{n}\t{k}\t{where}\t{ex[:400]}\n")
            f.write("\n")


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--out", required=True)
    ap.add_argument("--groups", default="")
    ap.add_argument("--only", default="", help="comma-separated parts of names")
    ap.add_argument("--every", type=int, default=1)
    ap.add_argument("--minutes", type=float, default=0, help="stop a group after that time; takes its cases from all over the table")
    ap.add_argument("--again", action="store_true", help="make cases again that exist")
    ap.add_argument("--trace", action="store_true", help="print tracebacks of what does not export")
    args = ap.parse_args()
    logging.disable(logging.WARNING)
    torch.set_num_threads(1)
    cache_patterns()
    groups = corpus_groups.groups()
    chosen = [q for q in args.groups.split(",") if q] or list(groups)
    only = [q for q in args.only.split(",") if q]
    for gname in chosen:
        g = Group(os.path.join(args.out, gname))
        have = {os.path.splitext(q["pte"])[0] for q in g.cases}
        todo = [(n, c) for j, (n, c) in enumerate(groups[gname].items()) if j % args.every == 0]
        todo = [(n, c) for n, c in todo if (not only or any(q in n for q in only)) and (args.again or n not in have and n not in g.skipped)]
        if args.minutes:
            todo = [q for _, q in sorted(enumerate(todo), key=lambda e: e[0] * 0.6180339887 % 1)]
        t0 = last = time.time()
        for n, c in todo:
            if args.minutes and time.time() - t0 > args.minutes * 60:
                break
            try:
                made = make(g, n, c)
                g.skipped.pop(n, None)
                bad = [m for m in made if not m["checked"].startswith("ok")]
                for m in bad:
                    print(f"  CHECK {gname}/{m['name']}: {m['checked'][:300]}", flush=True)
            except Exception as e:
                lines = [q for q in str(e).splitlines() if q.strip()] or [""]
                g.skipped[n] = f"{type(e).__name__}: {lines[0][:250]}".replace("\t", " ")
                print(f"  SKIP {gname}/{n}: {g.skipped[n][:200]}", flush=True)
                if args.trace:
                    traceback.print_exc()
            if time.time() - last > 20:
                g.save()
                last = time.time()
        g.save()
        summary(args.out)
        print(f"{gname}: {len(g.cases)} cases, {len(g.skipped)} skipped, {len(todo)} to do, {time.time() - t0:.0f} s", flush=True)


if __name__ == "__main__":
    main()
