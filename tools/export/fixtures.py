"""Write test fixtures: a .pte, one .bin with all tensors, and an entry for manifest.json.

A case is a list of runs.  The runs of a case are executed in order on ONE loaded
program, so state (KV caches) and shape changes carry over from run to run.
Tensors are little endian, dense, row major, at `offset` in the case's .bin.
"""
import json
import os

import torch

DTYPES = {torch.float32: "float32", torch.float16: "float16", torch.int64: "int64",
          torch.int32: "int32", torch.int8: "int8", torch.uint8: "uint8", torch.bool: "bool",
          torch.float64: "float64", torch.int16: "int16"}


def cache_patterns():
    """Speed: ExecuTorch 1.5 re-exports its rotary-embedding patterns for every graph
    (its lru_cache sits outside the registration); caching them saves ~5 s per export."""
    from functools import lru_cache
    from executorch.backends.vulkan.patterns import fusable_patterns
    for entry in fusable_patterns.values():
        if entry.get_graphs_fn is not None:
            entry.get_graphs_fn = lru_cache(None)(entry.get_graphs_fn)


class Writer:
    def __init__(self, out_dir):
        self.dir = out_dir
        self.cases = []
        os.makedirs(out_dir, exist_ok=True)

    def add(self, name, suite, pte, runs, atol, rtol, **extra):
        """pte: bytes, or the path of a file that is already in out_dir.
        runs: [(inputs, outputs)], both tuples of tensors, or [(inputs, outputs, method)] of a
        program with several methods.  extra: free-form notes."""
        if isinstance(pte, bytes):
            with open(os.path.join(self.dir, name + ".pte"), "wb") as f:
                f.write(pte)
        data, places = bytearray(), {}

        def put(t):
            """Equal tensors, such as a cache that comes out of one run and goes into the next, are written once."""
            raw = t.detach().contiguous().numpy().tobytes()
            if raw not in places:
                data.extend(bytes(-len(data) % 16))
                places[raw] = len(data)
                data.extend(raw)
            return {"dtype": DTYPES[t.dtype], "shape": list(t.shape),
                    "file": name + ".bin", "offset": places[raw]}

        runs = [{**({"method": method[0]} if method else {}),
                 "inputs": [put(t) for t in ins], "outputs": [put(t) for t in outs]}
                for ins, outs, *method in runs]
        with open(os.path.join(self.dir, name + ".bin"), "wb") as f:
            f.write(data)
        self.cases.append({"name": name, "suite": suite, "pte": name + ".pte",
                           **({} if "method" in runs[0] else {"method": "forward"}),
                           "atol": atol, "rtol": rtol, "runs": runs, **extra})

    def close(self):
        """Write manifest.json; cases of an earlier run with other names are kept."""
        path = os.path.join(self.dir, "manifest.json")
        new = {c["name"] for c in self.cases}
        old = []
        if os.path.exists(path):
            with open(path) as f:
                old = [c for c in json.load(f)["cases"] if c["name"] not in new]
        with open(path, "w") as f:
            json.dump({"cases": old + self.cases}, f, indent=1)
