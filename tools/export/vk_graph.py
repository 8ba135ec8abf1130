"""Reference interpreter of a VulkanBackend delegate.

Reads the bytes with pte_dump (no ExecuTorch code); et_vk/llama operators are written out here,
aten operators call torch by schema position (asserting arity = schema + result).
"""
import math, sys, os
import torch
sys.path.insert(0, os.path.dirname(__file__))
import pte_dump as D

TD = {"BOOL": torch.bool, "UINT8": torch.uint8, "INT8": torch.int8, "INT32": torch.int32, "FLOAT16": torch.float16,
      "FLOAT32": torch.float32, "FLOAT64": torch.float64, "INT64": torch.int64}

def raw(b, dtype, dims):
    n = math.prod(dims)
    if n == 0: return torch.empty(dims, dtype=dtype)
    esz = torch.empty(0, dtype=dtype).element_size()
    assert len(b) >= n * esz, ("short constant", len(b), n * esz)
    return torch.frombuffer(bytearray(b[:n * esz]), dtype=dtype).reshape(dims).clone()

def nibbles(w, low_first=True):
    lo, hi = (w & 15).to(torch.int32) - 8, (w >> 4).to(torch.int32) - 8
    a, b = (lo, hi) if low_first else (hi, lo)
    return torch.stack([a, b], -1).reshape(w.shape[0], -1)

def quant(x, scale, zp, lo=-128, hi=127):
    return torch.clamp(torch.round(x / scale) + zp, lo, hi)

class Graph:
    def __init__(self, blob, named, f64=False):
        self.g = D.parse_blob(blob); g = self.g
        assert g["magic"] == "VH00" and g["id"] == "VK00"
        self.kinds = [k for k, _ in g["values"]]
        self.v = [None] * len(self.kinds)
        self.f64 = f64; self.log = {}
        region = blob[g["bytes_off"]:]
        for i, (k, x) in enumerate(g["values"]):
            if k == "VkTensor" and x["const"] >= 0:
                c = g["constants"][x["const"]]
                b = named[c["key"]] if c["offset"] == 2**64 - 1 else region[c["offset"]:c["offset"] + c["length"]]
                assert c["length"] >= math.prod(x["dims"]) * torch.empty(0, dtype=TD[x["dtype"]]).element_size(), ("length", c, x)
                assert len(b) == c["length"], ("blob length", len(b), c)
                t = raw(b, TD[x["dtype"]], x["dims"])
                self.v[i] = t.double() if f64 and t.dtype == torch.float32 else t
            elif k in ("Int", "Double", "Bool", "String", "IntList", "DoubleList", "BoolList"):
                self.v[i] = x

    def get(self, i):
        if self.kinds[i] == "ValueList": return [self.get(j) for j in self.g["values"][i][1]]
        return self.v[i]

    def put(self, i, r):
        if self.kinds[i] == "ValueList":
            ids = self.g["values"][i][1]; r = list(r)
            assert len(ids) == len(r), ("outs", ids, len(r))
            for j, t in zip(ids, r): self.put(j, t)
        elif self.kinds[i] == "SymInt": self.v[i] = int(r)
        else:
            spec = self.g["values"][i][1]; want = TD[spec["dtype"]]
            assert isinstance(r, torch.Tensor), (i, r)
            assert r.dim() == len(spec["dims"]), ("rank", i, spec, tuple(r.shape))
            assert all(a <= b for a, b in zip(r.shape, spec["dims"])), ("dims", i, spec, tuple(r.shape))
            if self.f64 and want == torch.float32: want = torch.float64
            self.v[i] = r.to(want)

    def run(self, inputs):
        g = self.g
        assert len(inputs) == len(g["input_ids"])
        for i, t in zip(g["input_ids"], inputs):
            if self.kinds[i] == "SymInt": self.v[i] = int(t)
            else: self.put(i, t)
        for nid, name, args in g["chain"]:
            *ins, out = args
            a = [self.get(i) for i in ins]
            try:
                r = self.call(name, a, ins, out)
                if r is not None: self.put(out, r)
            except Exception as e:
                raise RuntimeError(f"call {nid} {name} {[D.short(g['values'][i]) for i in args]}: {e}") from e
        return [self.v[i] for i in g["output_ids"]]

    def call(self, name, a, ins, out):
        if name in OPS: return OPS[name](self, a, ins, out)
        ns, op, ov = name.split(".")
        o = getattr(getattr(getattr(torch.ops, ns), op), ov)
        sch = o._schema.arguments
        assert len(a) == len(sch), ("arity", name, len(a), len(sch))
        spec = self.g["values"][out][1] if self.kinds[out] == "VkTensor" else None
        pos, kw = [], {}
        for x, s in zip(a, sch):
            t = str(s.type)
            if isinstance(x, float) and t in ("int", "SymInt", "int?", "Optional[int]"): assert x == int(x); x = int(x)
            if s.name == "dtype" and x is None and spec is not None and op not in ("mean", "sum"): x = torch.float64 if self.f64 and spec["dtype"] == "FLOAT32" else TD[spec["dtype"]]
            if isinstance(x, torch.Tensor) and x.dtype == torch.int32 and s.name in ("index",): x = x.long()
            if s.name == "indices" and isinstance(x, list): x = [None if q is None else q.long() for q in x]
            if s.kwarg_only: kw[s.name] = x
            else: pos.append(x)
        return o(*pos, **kw)

def _q4lin(G, a, i, o):
    x, w, s, gs, b = a
    N, K = w.shape[0], x.shape[-1]
    assert w.shape[1] == (K + 7) // 8 * 4 and s.shape[0] == K // gs and s.shape[1] == (N + 3) // 4 * 4, (x.shape, w.shape, s.shape, gs)
    W = nibbles(w)[:, :K].to(s.dtype) * s.t()[:N].repeat_interleave(gs, 1)
    y = x @ W.t().to(x.dtype)
    return y if b is None else y + b[:N]

def _dq8q4(G, a, i, o):
    x, xs, xz, w, ws, s, gs, b = a
    N, K = w.shape[0], x.shape[-1]; M = x.numel() // K
    q = nibbles(w)[:, :K]
    sums = q.reshape(N, K // gs, gs).sum(-1).t()
    assert ws.shape == (K // gs, (N + 7) // 8 * 8) and torch.equal(ws[:, :N].to(torch.int64), sums.to(torch.int64)), ("sums", ws.shape)
    xs_, xz_ = xs.reshape(M, 1), xz.reshape(M, 1).to(xs.dtype)
    xq = quant(x.reshape(M, K), xs_, xz_) - xz_
    y = (xq * xs_) @ (q.to(s.dtype) * s.t()[:N].repeat_interleave(gs, 1)).t()
    y = y if b is None else y + b[:N]
    return y.reshape(*x.shape[:-1], N)

def _emb4(G, a, i, o):
    w, s, gs, idx, lin = a
    assert s.shape == (w.shape[0], w.shape[1] * 2 // gs)
    T = nibbles(w, lin).to(s.dtype) * s.repeat_interleave(gs, 1)
    return T[idx.long()]

def _rope(G, a, i, o):
    xq, xk, c, s = a
    def f(x):
        x0, x1 = x[..., 0::2], x[..., 1::2]
        C, S = c[None, :, None, :], s[None, :, None, :]
        return torch.stack([x0 * C - x1 * S, x0 * S + x1 * C], -1).flatten(-2)
    assert c.shape[0] == xq.shape[1] == xk.shape[1], (c.shape, xq.shape)
    return f(xq), f(xk)

def _rope_hf(G, a, i, o):
    xq, xk, c, s, p = a
    S, R = xq.shape[1], c.shape[-1]; h = R // 2
    C, N = c[p:p + S][None, :, None, :], s[p:p + S][None, :, None, :]
    assert C.shape[1] == S
    def f(x):
        r, rest = x[..., :R], x[..., R:]
        rot = torch.cat([-r[..., h:], r[..., :h]], -1)
        return torch.cat([r * C + rot * N, rest], -1)
    return f(xq), f(xk)

def _attend(q, K, V, pos, causal, scale, mask=None):
    S, H, Dh = q.shape[1:]; g = H // K.shape[2]; ctx = pos + S
    k = K[0, :ctx].repeat_interleave(g, 1).transpose(0, 1); v = V[0, :ctx].repeat_interleave(g, 1).transpose(0, 1)
    sc = (q[0].transpose(0, 1) @ k.transpose(1, 2)) * (scale if scale is not None else 1 / math.sqrt(Dh))
    if causal: sc = sc.masked_fill(torch.arange(ctx)[None, :] > pos + torch.arange(S)[:, None], float("-inf"))
    return (torch.softmax(sc, -1) @ v).transpose(0, 1)[None]

def _sdpa(G, a, i, o):
    q, k, v, kc, vc, pos, seq, mask, drop, causal, scale = a
    assert mask is None and drop == 0
    S = q.shape[1]; assert pos >= 0 and pos + S <= kc.shape[1]
    kc[0, pos:pos + S] = k[0]; vc[0, pos:pos + S] = v[0]
    return _attend(q, kc, vc, pos, causal, scale)

def _update(G, a, i, o):
    val, cache, pos = a
    cache[0, pos:pos + val.shape[1]] = val[0]; return None

def _csdpa(G, a, i, o):
    q, kc, vc, pos, mask, drop, causal, scale = a
    return _attend(q, kc, vc, pos, causal, scale)

def _etsdpa(G, a, i, o):
    q, k, v, m, sc = a
    s = q @ k.transpose(-1, -2) * (sc if sc is not None else 1 / math.sqrt(q.shape[-1]))
    return torch.softmax(s if m is None else s + m, -1) @ v

def _choose(G, a, i, o):
    x, mt, bs, _, qmin, qmax, eps = a[:7]
    assert mt == "ASYMMETRIC" and bs[-1] == x.shape[-1] and all(b == 1 for b in bs[:-1]), (mt, bs)
    mn, mx = torch.clamp(x.amin(-1), max=0), torch.clamp(x.amax(-1), min=0)
    s = torch.clamp((mx - mn) / (qmax - qmin), min=eps if eps is not None else torch.finfo(torch.float32).eps)
    z = torch.clamp(qmin - torch.round(mn / s), qmin, qmax)
    spec = G.g["values"][G.g["values"][o][1][0]][1]["dims"]
    if len(spec) == x.dim(): s, z = s.unsqueeze(-1), z.unsqueeze(-1)
    return s, z

def _rms(G, a, i, o):
    x, w, eps = a
    return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + eps) * w

def _selsym(G, a, i, o):
    x, dim, idx = a
    return x.select(dim, idx).flatten()[0].item()

def _dimorder_copy(G, a, i, o): return a[0]
def _conv_clamp(G, a, i, o):
    y = torch.ops.aten.convolution.default(*a[:9])
    m = torch.finfo(y.dtype).max; f = lambda v: None if v is None else max(-m, min(m, v))
    return torch.clamp(y, min=f(a[9]), max=f(a[10])) if a[9] is not None or a[10] is not None else y

def _qcs4w(G, a, i, o):
    x, w, s = a
    return x @ (nibbles(w, False)[:, :x.shape[-1]].to(s.dtype) * s[:, None]).t()
def _i8mm(G, a, i, o):
    x, w, s = a
    return x @ (w.to(s.dtype) * s[:, None]).t()
def _q8lin_f(G, a, i, o):
    x, xs, xz, w, ws, s, b = a
    N = w.shape[0]
    y = ((x.double() - xz) @ w.double().t()) * xs * s[:N].double()
    return (y if b is None else y + b[:N]).float()
def _q8lin(G, a, i, o):
    x, xs, xz, w, ws, s, os_, oz, b, act = a
    y = _q8lin_f(G, [x, xs, xz, w, ws, s, b], i, o)
    if act == "relu": y = torch.relu(y)
    return quant(y, os_, oz)
def _q8conv(kind):
    def f(G, a, i, o):
        x, xs, xz, w, ws, s, os_, oz, b, k, st, pad, dil, groups, act = a[:15] if kind != "T" else a[:12] + a[13:]
        op = a[12] if kind == "T" else [0, 0]
        oc = G.g["values"][o][1]["dims"][1]; ic = x.shape[1]; icg = ic // groups
        if kind == "dw": W = w.permute(2, 0, 1)[:oc].unsqueeze(1)
        else: W = w[:, :k[0] * k[1] * icg].reshape(w.shape[0], k[0], k[1], icg).permute(0, 3, 1, 2)[:oc]
        xf = x.float() - xz
        if kind == "T":
            # stored as [OC, kh*kw*ic]
            y = torch.nn.functional.conv_transpose2d(xf, W.permute(1, 0, 2, 3).float(), None, st, pad, op, groups, dil)
        else: y = torch.nn.functional.conv2d(xf, W.float(), None, st, pad, dil, groups)
        y = y * xs * s[:oc].reshape(1, -1, 1, 1)
        if b is not None: y = y + b[:oc].reshape(1, -1, 1, 1)
        if act == "relu": y = torch.relu(y)
        return quant(y, os_, oz)
    return f
def _q8add(G, a, i, o):
    x, y, xs, xz, ys, yz, os_, oz, al = a
    return quant((x.float() - xz) * xs + al * (y.float() - yz) * ys, os_, oz)
def _q8relu(G, a, i, o): return quant(torch.relu((a[0].float() - a[2]) * a[1]), a[3], a[4])
def _q8ps(G, a, i, o): return torch.clamp(torch.round(torch.pixel_shuffle((a[0].float() - a[2]) * a[1], a[5]) * a[3]) + a[4], -128, 127)
def _qpt(G, a, i, o):
    x, s, z, lo, hi = a[:5]; return torch.clamp(torch.round(x * (1.0 / s)) + z, lo, hi)
def _dqpt(G, a, i, o): return (a[0].float() - a[2]) * a[1]
def _ropei(G, a, i, o):
    x, f = a; B, N, C = x.shape; f = f.reshape(N, C // 2, 2); c, s = f[..., 0], f[..., 1]
    return torch.stack([x[..., 0::2] * c - x[..., 1::2] * s, x[..., 0::2] * s + x[..., 1::2] * c], -1).flatten(-2)
def _gp(G, a, i, o):
    x, st, off = a; H, W = x.shape[-2:]
    yy, xx = torch.meshgrid(torch.arange(H), torch.arange(W), indexing="ij")
    return torch.stack([(xx.flatten() + off) * st, (yy.flatten() + off) * st], -1).float()

OPS = {
    "et_vk.prepack.default": lambda G, a, i, o: None if G.v[o] is not None else a[0].clone(),
    "sym_size.int": lambda G, a, i, o: a[0].shape[a[1]],
    "add": lambda G, a, i, o: a[0] + a[1], "sub": lambda G, a, i, o: a[0] - a[1],
    "mul": lambda G, a, i, o: a[0] * a[1], "floordiv": lambda G, a, i, o: a[0] // a[1],
    "et_vk.select_as_symint.default": _selsym, "et_vk.rms_norm.default": _rms,
    "et_vk.linear_q4gsw.default": _q4lin, "et_vk.linear_dq8ca_q4gsw.default": _dq8q4, "et_vk.embedding_q4gsw.default": _emb4,
    "et_vk.apply_rotary_emb.default": _rope, "et_vk.apply_rotary_emb_hf.default": _rope_hf,
    "et_vk.apply_rotary_emb_interleaved.default": _ropei, "et_vk.grid_priors.default": _gp,
    "sdpa_with_kv_cache.default": _sdpa, "update_cache.default": _update, "llama.custom_sdpa.default": _csdpa, "custom_sdpa.default": _csdpa,
    "et_vk.sdpa.default": _etsdpa, "torchao.choose_qparams_affine.default": _choose,
    "et_vk.conv_with_clamp.default": _conv_clamp, "et_vk.linear_qcs4w.default": _qcs4w, "aten._weight_int8pack_mm.default": _i8mm,
    "et_vk.linear_q8ta_q8csw.default": _q8lin_f, "et_vk.q8ta_linear.default": _q8lin, "et_vk.q8ta_linear_gemv.default": _q8lin,
    "et_vk.q8ta_conv2d.default": _q8conv("c"), "et_vk.q8ta_conv2d_pw.default": _q8conv("c"), "et_vk.q8ta_conv2d_dw.default": _q8conv("dw"),
    "et_vk.q8ta_conv2d_transposed.default": _q8conv("T"), "et_vk.q8ta_add.default": _q8add, "et_vk.q8ta_relu.default": _q8relu,
    "et_vk.q8ta_pixel_shuffle.default": _q8ps,
    "quantized_decomposed.quantize_per_tensor.default": _qpt, "quantized_decomposed.dequantize_per_tensor.default": _dqpt,
    "dim_order_ops._clone_dim_order.default": _dimorder_copy, "dim_order_ops._to_dim_order_copy.default": _dimorder_copy,
    "et_vk.linear_dW.default": lambda G, a, i, o: a[0].reshape(-1, a[0].shape[-1]).t() @ a[1].reshape(-1, a[1].shape[-1]),
    "quantized_decomposed.embedding_4bit.dtype": lambda G, a, i, o: _emb4(G, [a[0], a[1] if a[1].dim() == 2 else a[1][:, None], a[0].shape[1] * 2 // (a[1].shape[1] if a[1].dim() == 2 else 1), a[5], False], i, o),
    "aten.linear.default": lambda G, a, i, o: torch.nn.functional.linear(*a),
}
