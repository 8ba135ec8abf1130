#!/usr/bin/env python3
"""Reference interpreter for .pte files: programs around delegates, which vk_graph runs."""
import math, sys, os
import torch
sys.path.insert(0, os.path.dirname(__file__))
import pte_dump as D
from vk_graph import Graph, raw

ET = {"u8": torch.uint8, "i8": torch.int8, "i16": torch.int16, "i32": torch.int32, "i64": torch.int64, "f16": torch.float16,
      "f32": torch.float32, "f64": torch.float64, "bool": torch.bool}

class Cell:
    """A tensor value: where its bytes are and its live shape."""
    def __init__(self, spec, memory):
        self.dtype, self.max, self.order, self.planned = ET[spec["dtype"]], list(spec["sizes"] or []), spec["dim_order"] or [], spec["alloc"] is not None
        self.live = list(self.max); self.data = None
        if self.planned:
            m, off = spec["alloc"]; esz = torch.empty(0, dtype=self.dtype).element_size()
            self.data = memory[m][off:off + math.prod(self.max) * esz].view(self.dtype)
            assert self.data.numel() == math.prod(self.max), ("planned range", spec)

    def get(self):
        assert self.data is not None, "tensor without data"
        order = self.order if len(self.order) == len(self.live) else list(range(len(self.live)))
        t = self.data[:math.prod(self.live)].reshape([self.live[d] for d in order])
        inv = [order.index(d) for d in range(len(order))]
        return t.permute(inv) if order != sorted(order) else t

    def set(self, t):
        assert t.dim() == len(self.max), ("rank", tuple(t.shape), self.max)
        if not self.planned and (self.data is None or self.data.numel() < t.numel()): self.data = torch.empty(t.numel(), dtype=self.dtype)
        assert t.numel() <= self.data.numel(), ("size", tuple(t.shape), self.max)
        self.live = list(t.shape); t = t.clone(); self.get().copy_(t)

PRIMS = {"add": lambda x, y: x + y, "sub": lambda x, y: x - y, "mul": lambda x, y: x * y, "floordiv": lambda x, y: x // y, "truediv": lambda x, y: x / y, "mod": lambda x, y: x % y,
         "neg": lambda x: -x, "eq": lambda x, y: x == y, "gt": lambda x, y: x > y, "lt": lambda x, y: x < y, "ge": lambda x, y: x >= y, "le": lambda x, y: x <= y, "ceil": math.ceil, "round": round, "trunc": int,
         "sym_float": float, "sym_int": int, "sym_max": max, "sym_min": min, "sym_not": lambda x: not x, "sym_ite": lambda c, x, y: x if c else y}

class Program:
    """Loads one method; state (mutable buffers, KV caches) persists between run() calls.  With beside, another method of the
    same file, buffers in memory 2 are shared: the exporter puts those of share_mutable_buffers there, and nothing else."""
    def __init__(self, path, method="forward", f64=False, ptd=(), beside=None):
        self.f = open(path, "rb").read(); self.P = D.parse_program(self.f); P = self.P
        self.plan = next(p for p in P["plans"] if p["name"] == method)
        named = {k: D.segment(self.f, P, s) for k, s in (P["named_data"] or [])}
        for q in ptd:
            b = open(q, "rb").read(); assert b[4:8] == b"FT01" and b[8:12] == b"FH01"
            base = int.from_bytes(b[32:40], "little"); r = D.root(b); segs = [(s.num(0, "Q"), s.num(1, "Q")) for s in r.tables(1)]
            for n in r.tables(2): o, z = segs[n.num(1, "I")]; named[n.string(0)] = b[base + o:base + o + z]
        self.delegates = []
        for d in self.plan["delegates"]:
            assert d["id"] == "VulkanBackend"
            self.delegates.append(Graph(D.blob_of(self.f, P, d), named, f64))
        self.memory = [torch.zeros(n, dtype=torch.uint8) for n in self.plan["non_const_buffer_sizes"]]
        if beside is not None: self.memory[2:3] = beside.memory[2:3]
        cs, ms = P["constant_segment"], P["mutable_data_segments"]
        self.v = []
        for k, x in self.plan["values"]:
            if k == "Tensor":
                c = Cell(x, self.memory); n = math.prod(c.max)
                e = x["extra"]
                if e is not None and e["loc"] == 1: b = named[e["fqn"]]
                elif x["data"] > 0:
                    s = cs if x["alloc"] is None else ms[0]
                    b = D.segment(self.f, P, s["segment_index"])[s["offsets"][x["data"]]:]
                else: b = None
                if b is not None:
                    t = raw(b, c.dtype, [n])
                    if c.planned: c.data.copy_(t)
                    else: c.data = t
                x = c
            self.v.append((k, x))

    def val(self, j):
        k, x = self.v[j]
        if k == "Tensor": return x.get()
        if k == "IntList": return [self.val(q) for q in x]
        if k in ("TensorList", "OptionalTensorList"): return [None if q < 0 or self.v[q][0] == "Null" else self.val(q) for q in x]
        return x

    def put(self, j, r):
        k, x = self.v[j]
        if k == "Tensor": x.set(r)
        else: self.v[j] = ("Bool" if isinstance(r, bool) else "Double" if isinstance(r, float) else "Int", r)

    def kernel(self, name, ov, args):
        ns, op = name.split("::")
        if op == "et_view":
            src, size, out = self.v[args[0]][1], self.val(args[1]), self.v[args[2]][1]
            if -1 in size: size = list(size); size[size.index(-1)] = math.prod(src.live) // -math.prod(size)
            out.data, out.live = src.data, list(size); return
        if op == "et_copy_index":
            out, src, i = self.v[args[0]][1], self.val(args[1]), self.val(args[2])
            row = src.numel(); out.live = [i + 1, *src.shape]
            out.data[i * row:(i + 1) * row].copy_(src.flatten()); return
        if ns == "executorch_prim": self.put(args[-1], PRIMS[op](*[self.val(j) for j in args[:-1]])); return
        if op == "sym_size": self.put(args[-1], self.val(args[0]).shape[self.val(args[1])]); return
        if op == "sym_numel": self.put(args[-1], self.val(args[0]).numel()); return
        if op == "_local_scalar_dense": self.put(args[-1], self.val(args[0]).item()); return
        if op == "copy_":
            assert len(args) == 4 and args[3] == args[0]; self.put(args[0], self.val(args[1])); return
        if op in ("_to_dim_order_copy", "_clone_dim_order"): self.put(args[-1], self.val(args[0]).to(self.v[args[-1]][1].dtype)); return
        if op == "_empty_dim_order": return
        o = getattr(getattr(getattr(torch.ops, ns), op), ov or "default")
        sch = o._schema.arguments; outs = [j for j, s in zip(args, sch) if s.is_out or (s.alias_info is not None and s.alias_info.is_write)]
        assert len(args) == len(sch) + 1, (name, ov, len(args), len(sch))
        pos, kw = [], {}
        for j, s in zip(args, sch):
            if s.is_out:
                k, x = self.v[j]
                x = [torch.empty(0, dtype=self.v[q][1].dtype) for q in x] if k == "TensorList" else torch.empty(0, dtype=x.dtype)
            else: x = self.val(j)
            if s.name == "indices" and isinstance(x, list): x = [None if q is None else q.long() if q.dtype == torch.int32 else q for q in x]
            if isinstance(x, torch.Tensor) and not s.is_out and j not in outs and x.dtype == torch.uint8 and x.numel() == 0 and str(s.type).startswith("Optional"): x = None
            if s.kwarg_only: kw[s.name] = x
            else: pos.append(x)
        r = o(*pos, **kw)
        if not any(s.is_out for s in sch):           # in place
            self.put(outs[0], r); return
        r = r if isinstance(r, (tuple, list)) else [r]
        if len(outs) == 1 and self.v[outs[0]][0] == "TensorList":
            r = kw.get("out"); outs = self.v[outs[0]][1]
        for j, t in zip(outs, r): self.put(j, t)

    def run(self, *inputs):
        p = self.plan
        for i, t in zip(p["inputs"], inputs):
            k, x = self.v[i]
            if k == "Tensor":
                assert t.dtype == x.dtype, (t.dtype, x.dtype)
                assert all(a <= b for a, b in zip(t.shape, x.max)) and t.dim() == len(x.max), (t.shape, x.max)
                x.set(t)
            else: assert x == t, (x, t)
        for ch in p["chains"]:
            pc = steps = 0
            while pc < len(ch["instructions"]):
                ins = ch["instructions"][pc]; pc += 1; steps += 1
                assert steps < 1000000
                if ins[0] == "MoveCall": self.v[ins[2]] = self.v[ins[1]]
                elif ins[0] == "KernelCall":
                    try: self.kernel(*p["operators"][ins[1]], ins[2])
                    except Exception as e: raise RuntimeError(f"{p['operators'][ins[1]]}: {type(e).__name__} {e}") from e
                elif ins[0] == "JumpFalseCall":
                    c = self.val(ins[1]); c = bool(c.all()) if isinstance(c, torch.Tensor) else c
                    if not c: pc = ins[2]
                elif ins[0] == "FreeCall": self.v[ins[1]][1].data = None
                else:
                    g = self.delegates[ins[1]]; n = len(g.g["input_ids"])
                    a, o = ins[2][:n], ins[2][n:]
                    assert len(o) == len(g.g["output_ids"]), ("delegate args", ins, g.g["input_ids"], g.g["output_ids"])
                    outs = g.run([self.val(j) for j in a])
                    for j, t in zip(o, outs): self.put(j, t)
        return [self.val(i).clone() if self.v[i][0] == "Tensor" else self.val(i) for i in p["outputs"]]
