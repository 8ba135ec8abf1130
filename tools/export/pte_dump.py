#!/usr/bin/env python3
"""Walk the bytes of a .pte (ET12) and its VulkanBackend blobs (VH00/VK00).

Standard library only.
    pte_dump.py FILE [--values] [--ops-only]
"""
import argparse, collections, json, struct, sys

# ---------------------------------------------------------------- FlatBuffers
class Table:
    def __init__(self, buf, pos):
        self.b, self.p = buf, pos
        self.vt = pos - struct.unpack_from("<i", buf, pos)[0]
        self.vn = struct.unpack_from("<H", buf, self.vt)[0]

    def _slot(self, i):
        o = 4 + 2 * i
        if o >= self.vn:
            return 0
        return struct.unpack_from("<H", self.b, self.vt + o)[0]

    def has(self, i):
        return self._slot(i) != 0

    def num(self, i, fmt, default=0):
        o = self._slot(i)
        return struct.unpack_from("<" + fmt, self.b, self.p + o)[0] if o else default

    def _ind(self, i):
        o = self._slot(i)
        if not o:
            return None
        q = self.p + o
        return q + struct.unpack_from("<I", self.b, q)[0]

    def table(self, i):
        q = self._ind(i)
        return None if q is None else Table(self.b, q)

    def string(self, i):
        q = self._ind(i)
        if q is None:
            return None
        n = struct.unpack_from("<I", self.b, q)[0]
        assert self.b[q + 4 + n] == 0
        return self.b[q + 4:q + 4 + n].decode()

    def vec(self, i, fmt):
        q = self._ind(i)
        if q is None:
            return None
        n = struct.unpack_from("<I", self.b, q)[0]
        return list(struct.unpack_from(f"<{n}{fmt}", self.b, q + 4))

    def vecpos(self, i):
        q = self._ind(i)
        return None if q is None else q + 4

    def tables(self, i):
        q = self._ind(i)
        if q is None:
            return None
        n = struct.unpack_from("<I", self.b, q)[0]
        out = []
        for k in range(n):
            e = q + 4 + 4 * k
            out.append(Table(self.b, e + struct.unpack_from("<I", self.b, e)[0]))
        return out

def root(buf):
    return Table(buf, struct.unpack_from("<I", buf, 0)[0])

# -------------------------------------------------------------------- program
ST = {0: "u8", 1: "i8", 2: "i16", 3: "i32", 4: "i64", 5: "f16", 6: "f32", 7: "f64", 11: "bool", 15: "bf16"}
KT = ["NONE", "Null", "Int", "Bool", "Double", "Tensor", "String", "IntList", "DoubleList", "BoolList", "TensorList", "OptionalTensorList"]

def evalue(t):
    k = t.num(0, "B"); v = t.table(1); name = KT[k]
    if name == "Null": return name, None
    if name == "Int": return name, v.num(0, "q")
    if name == "Bool": return name, bool(v.num(0, "B"))
    if name == "Double": return name, v.num(0, "d")
    if name == "String": return name, v.string(0)
    if name == "IntList": return name, v.vec(0, "q")
    if name == "DoubleList": return name, v.vec(0, "d")
    if name == "BoolList": return name, v.vec(0, "B")
    if name in ("TensorList", "OptionalTensorList"): return name, v.vec(0, "i")
    a = v.table(6); x = v.table(9)
    return name, {
        "dtype": ST.get(v.num(0, "b"), v.num(0, "b")), "sizes": v.vec(2, "i"), "dim_order": v.vec(3, "B"),
        "data": v.num(5, "I"), "dyn": v.num(8, "b"), "storage_offset": v.num(1, "i"), "layout": v.num(7, "b"), "requires_grad": v.num(4, "B"),
        "alloc": None if a is None else (a.num(0, "I"), a.num(1, "I") | a.num(2, "I") << 32),
        "extra": None if x is None else {"seg": x.num(0, "Q"), "fqn": x.string(1), "loc": x.num(2, "b"), "dev": x.num(3, "b")}}

IT = ["NONE", "KernelCall", "DelegateCall", "MoveCall", "JumpFalseCall", "FreeCall"]

def parse_program(f):
    P = {"file_size": len(f), "id": f[4:8].decode("latin1"), "root": struct.unpack_from("<I", f, 0)[0]}
    if f[8:12] == b"eh00":
        n, = struct.unpack_from("<I", f, 12)
        P["header"] = {"length": n, "program_size": struct.unpack_from("<Q", f, 16)[0],
                       "segment_base_offset": struct.unpack_from("<Q", f, 24)[0],
                       "segment_data_size": struct.unpack_from("<Q", f, 32)[0] if n >= 32 else None}
        base = P["header"]["segment_base_offset"]
    else:
        P["header"] = None; base = 0
    r = root(f)
    P["version"] = r.num(0, "I")
    P["present"] = [i for i in range(8) if r.has(i)]
    P["constant_buffer"] = len(r.tables(2) or []) if r.has(2) else None
    P["inline_blobs"] = [bytes(t.vec(0, "B") or []) for t in (r.tables(3) or [])]
    P["inline_delegate_data"] = [len(b) for b in P["inline_blobs"]] if r.has(3) else None
    P["segments"] = [(s.num(0, "Q"), s.num(1, "Q")) for s in (r.tables(4) or [])]
    cs = r.table(5)
    P["constant_segment"] = None if cs is None else {"segment_index": cs.num(0, "I"), "offsets": cs.vec(1, "Q")}
    P["mutable_data_segments"] = None if not r.has(6) else [{"segment_index": s.num(0, "I"), "offsets": s.vec(1, "Q")} for s in r.tables(6)]
    P["named_data"] = None if not r.has(7) else [(n.string(0), n.num(1, "I")) for n in r.tables(7)]
    P["plans"] = []
    for p in r.tables(1):
        E = {"name": p.string(0), "present": [i for i in range(10) if p.has(i)]}
        c = p.table(1)
        E["container"] = (c.string(0), c.string(1)) if c else None
        E["values"] = [evalue(t) for t in p.tables(2)]
        E["inputs"], E["outputs"] = p.vec(3, "i"), p.vec(4, "i")
        E["operators"] = [(o.string(0), o.string(1)) for o in (p.tables(6) or [])]
        E["delegates"] = []
        for d in (p.tables(7) or []):
            ref = d.table(1)
            E["delegates"].append({"id": d.string(0), "location": ref.num(0, "b"), "index": ref.num(1, "I"),
                                   "specs": [(s.string(0), bytes(s.vec(1, "B") or [])) for s in (d.tables(2) or [])]})
        E["non_const_buffer_sizes"] = p.vec(8, "q")
        E["chains"] = []
        for ch in p.tables(5):
            ins = []
            for i in ch.tables(2) or []:
                k = IT[i.num(0, "B")]; a = i.table(1)
                if k in ("KernelCall", "DelegateCall"): ins.append((k, a.num(0, "i"), a.vec(1, "i")))
                elif k in ("MoveCall", "JumpFalseCall"): ins.append((k, a.num(0, "i"), a.num(1, "i")))
                else: ins.append((k, a.num(0, "i")))
            E["chains"].append({"inputs": ch.vec(0, "i"), "outputs": ch.vec(1, "i"), "stacktrace": ch.has(3), "instructions": ins})
        P["plans"].append(E)
    P["base"] = base
    return P

def segment(f, P, i):
    o, n = P["segments"][i]
    return f[P["base"] + o:P["base"] + o + n]

def blob_of(f, P, d):
    return segment(f, P, d["index"]) if d["location"] == 1 else P["inline_blobs"][d["index"]]

# ------------------------------------------------------------------- VK graph
VD = {0: "BOOL", 1: "UINT8", 2: "INT8", 3: "INT32", 4: "FLOAT16", 5: "FLOAT32", 6: "FLOAT64", 7: "INT64", 127: "UNSET"}
VT = ["NONE", "Null", "Int", "Double", "Bool", "VkTensor", "IntList", "DoubleList", "BoolList", "ValueList", "String", "SymInt"]

def vkvalue(t):
    k = VT[t.num(0, "B")]; v = t.table(1)
    if k == "Null": return k, None
    if k == "Int": return k, v.num(0, "q")
    if k == "Double": return k, v.num(0, "d")
    if k == "Bool": return k, bool(v.num(0, "B"))
    if k == "IntList": return k, v.vec(0, "q")
    if k == "DoubleList": return k, v.vec(0, "d")
    if k == "BoolList": return k, v.vec(0, "B")
    if k == "ValueList": return k, v.vec(0, "i")
    if k == "String": return k, v.string(0)
    if k == "SymInt": return k, v.num(0, "i")
    return k, {"dtype": VD[v.num(0, "b")], "dims": v.vec(1, "I"), "const": v.num(2, "i"), "mem": v.num(3, "i"),
               "storage": v.num(4, "B", 255), "layout": v.num(5, "B", 255), "staging": VD[v.num(6, "b", 127)]}

def parse_blob(b):
    G = {"size": len(b), "pad": b[0:4].hex(), "magic": b[4:8].decode("latin1")}
    G["header_size"], G["fb_off"], G["fb_size"], G["bytes_off"], G["bytes_size"] = struct.unpack_from("<HIIIQ", b, 8)
    fb = b[G["fb_off"]:G["fb_off"] + G["fb_size"]]
    G["id"] = fb[4:8].decode("latin1")
    r = root(fb)
    G["version"] = r.string(0)
    G["present"] = [i for i in range(9) if r.has(i)]
    G["chain"] = [(o.num(0, "I"), o.string(1), o.vec(2, "i")) for o in (r.tables(1) or [])]
    G["values"] = [vkvalue(v) for v in (r.tables(2) or [])]
    G["input_ids"], G["output_ids"] = r.vec(3, "I"), r.vec(4, "I")
    G["constants"] = [{"offset": c.num(0, "Q"), "length": c.num(1, "Q"), "key": c.string(2)} for c in (r.tables(5) or [])]
    G["shaders"] = None if not r.has(6) else len(r.tables(6))
    G["storage_override"], G["layout_override"] = r.num(7, "B", 255), r.num(8, "B", 255)
    return G

def short(v):
    k, x = v
    if k == "VkTensor":
        s = f"{x['dtype']}{x['dims']}"
        s += f" c{x['const']}" if x["const"] >= 0 else ""
        s += f" m{x['mem']} st{x['storage']}/{x['layout']}"
        return s + ("" if x["staging"] == x["dtype"] else f" staging={x['staging']}")
    return k if x is None else f"{k}({x})"

def load(path):
    f = open(path, "rb").read()
    P = parse_program(f); G = []
    for p in P["plans"]:
        for d in p["delegates"]:
            blob = blob_of(f, P, d)
            G.append((p["name"], d, parse_blob(blob) if d["id"] == "VulkanBackend" and blob else None))
    return f, P, G

def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("file"); ap.add_argument("--values", action="store_true"); ap.add_argument("--ops-only", action="store_true")
    a = ap.parse_args()
    f, P, G = load(a.file)
    if not a.ops_only:
        print({k: v for k, v in P.items() if k not in ("plans", "named_data", "segments", "inline_blobs")})
        print("segments", len(P["segments"]), P["segments"][:6], "named", len(P["named_data"] or []))
        for p in P["plans"]:
            print(f"plan {p['name']} present={p['present']} in={[p['values'][i] for i in p['inputs']]} out={[p['values'][i] for i in p['outputs']]}")
            print("   ", p["container"], "buffers", p["non_const_buffer_sizes"], "nvalues", len(p["values"]), "ops", p["operators"])
            for c in p["chains"]: print("    chain", c)
            for d in p["delegates"]: print("    delegate", d)
    for name, d, g in G:
        if g is None:
            print("delegate", d["id"], "not parsed"); continue
        print(f"== blob of {name}:", {k: v for k, v in g.items() if k not in ("chain", "values", "constants")})
        if a.values:
            for i, v in enumerate(g["values"]): print(f"  v{i}: {short(v)}")
            for i, c in enumerate(g["constants"]): print(f"  const{i}: {c}")
        for nid, n, args in g["chain"]:
            if a.ops_only: continue
            print(f"  [{nid}] {n}({', '.join(str(i)+':'+short(g['values'][i]) for i in args)})")
        print("  ops:", dict(collections.Counter(n for _, n, _ in g["chain"])))

if __name__ == "__main__":
    main()
