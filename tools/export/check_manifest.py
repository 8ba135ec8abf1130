#!/usr/bin/env python3
"""Run every case of a manifest and compare: programs without delegates with ExecuTorch's own runtime (where
installed), others with vk_interp.  Usage: check_manifest.py DIR [name-substring]"""
import collections, json, os, sys
import numpy as np
import torch
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from vk_interp import Program

NP = {"float32": "<f4", "float16": "<f2", "float64": "<f8", "int64": "<i8", "int32": "<i4", "int16": "<i2", "int8": "i1", "uint8": "u1", "bool": "?"}


def load(d, e):
    if "scalar" in e:
        return e["scalar"]
    n = int(np.prod(e["shape"])) if e["shape"] else 1
    a = np.fromfile(os.path.join(d, e["file"]), dtype=NP[e["dtype"]], count=n, offset=e.get("offset", 0))
    t = torch.from_numpy(a.copy()).reshape(e["shape"])
    return t.to(memory_format=torch.channels_last) if e.get("dim_order") == [0, 2, 3, 1] else t


def compare(c, d, runner):
    worst = 0.0
    for k, run in enumerate(c["runs"]):
        outs = runner(run.get("method", c.get("method", "forward")), *[load(d, e) for e in run["inputs"]])
        assert len(outs) == len(run["outputs"]), f"run {k}: {len(outs)} outputs instead of {len(run['outputs'])}"
        for j, (o, e) in enumerate(zip(outs, run["outputs"])):
            w = load(d, e)
            if not isinstance(w, torch.Tensor):
                assert o == w, (k, j, o, w)
                continue
            assert str(o.dtype) == "torch." + e["dtype"], f"run {k} output {j}: dtype {o.dtype} instead of {e['dtype']}"
            assert list(o.shape) == e["shape"], f"run {k} output {j}: shape {list(o.shape)} instead of {e['shape']}"
            o, w = o.double(), w.double()
            bad = ~torch.isclose(o, w, atol=c["atol"], rtol=c["rtol"], equal_nan=True)
            err = (o - w).abs().max().item() if o.numel() else 0
            worst = max(worst, err)
            assert not bad.any(), f"run {k} output {j}: {int(bad.sum())} of {o.numel()} values wrong, largest difference {err:.3g}"
    return worst


class Methods:
    """The methods of a program, each loaded when it is first called."""
    def __init__(self, path, ptd):
        self.path, self.ptd, self.loaded = path, ptd, {}

    def __call__(self, method, *inputs):
        return self.get(method).run(*inputs)

    def get(self, method):
        if method not in self.loaded:
            self.loaded[method] = Program(self.path, method, ptd=self.ptd, beside=next(iter(self.loaded.values()), None))
        return self.loaded[method]


def run_case(d, c):
    """-> 'ok (...)'; raises if the results differ or cannot be computed."""
    path, ptd = os.path.join(d, c["pte"]), [os.path.join(d, q) for q in c.get("ptd", [])]
    methods = Methods(path, ptd)
    if methods.get(c["runs"][0].get("method", c.get("method", "forward"))).delegates:
        return f"ok (vk_interp, error {compare(c, d, methods):.1e})"
    try:
        from executorch.extension.pybindings.portable_lib import _load_for_executorch_from_buffer
        with open(path, "rb") as f:
            buf = f.read()
        extra = {}
        if ptd:
            with open(ptd[0], "rb") as f:
                extra["data_map_buffer"] = f.read()
        m = _load_for_executorch_from_buffer(buf, **extra)
        try:
            return f"ok (executorch, error {compare(c, d, lambda method, *a: m.run_method(method, a)):.1e})"
        except AssertionError as e:
            why = f"executorch differs: {e}"
        except Exception as e:
            why = f"executorch fails: {str(e)[:150]}"
    except ImportError:
        why = "executorch not installed"
    return f"ok (vk_interp, error {compare(c, d, Methods(path, ptd)):.1e}; {why})"


def main():
    torch.set_num_threads(1)
    d, sub = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else ""
    with open(os.path.join(d, "manifest.json")) as f:
        cases = [c for c in json.load(f)["cases"] if sub in c["name"]]
    bad = 0
    for c in cases:
        try:
            msg = run_case(d, c)
        except Exception as e:
            msg = f"BAD {type(e).__name__}: {e}"[:400]
            bad += 1
        if sub or not msg.startswith("ok"):
            print(c["name"], msg)
    print(f"{d}: {len(cases) - bad} ok, {bad} bad")
    return bad != 0


if __name__ == "__main__":
    sys.exit(main())
