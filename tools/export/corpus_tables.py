"""Tables of small operator programs for export_corpus.py.

An entry is made lazily: inputs are Spec objects (called after seeding by case name), modules are
factories.  `op(name, function, *inputs)` wraps a function, `mod(name, factory, *inputs)` a module.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F

i8, u8, i16, i32, i64 = torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64
f16, f32, f64, b8 = torch.float16, torch.float32, torch.float64, torch.bool


# --------------------------------------------------------------------- inputs

class Spec:
    def __init__(self, make):
        self.make = make

    def __call__(self):
        return self.make()


def R(*shape, k=1.0, b=0.0, dt=f32, cl=False):
    """Normal numbers times k plus b; cl: channels-last memory."""
    def make():
        t = (torch.randn(shape) * k + b).to(dt)
        return t.to(memory_format=torch.channels_last) if cl else t
    return Spec(make)


def U(lo, hi, *shape, dt=f32):
    """Uniform numbers."""
    return Spec(lambda: (torch.rand(shape) * (hi - lo) + lo).to(dt))


def Z(*shape, k=1.0, dt=f32):
    """Numbers away from zero (divisors)."""
    return Spec(lambda: ((torch.rand(shape) * k + 0.5) * torch.where(torch.rand(shape) < 0.5, -1.0, 1.0)).to(dt))


def I(hi, *shape, lo=0, dt=i64):
    """Integers lo..hi-1."""
    return Spec(lambda: torch.randint(lo, hi, shape).to(dt))


def N(hi, *shape, dt=i64):
    """Integers of either sign, never zero."""
    return Spec(lambda: (torch.randint(1, hi, shape) * torch.where(torch.rand(shape) < 0.5, -1, 1)).to(dt))


def B(*shape, p=0.5):
    return Spec(lambda: torch.rand(shape) < p)


def K(values, dt=None):
    """These values."""
    return Spec(lambda: torch.tensor(values, dtype=dt))


class Fn(nn.Module):
    """A module around a plain function of tensors."""

    def __init__(self, fn):
        super().__init__()
        self.fn = fn

    def forward(self, *args):
        out = self.fn(*args)
        return tuple(out) if type(out).__module__ == "torch.return_types" else out


class Table(dict):
    """name -> dict(build, inputs, options of the case)."""

    def op(self, name, fn, *inputs, **kw):
        self.add(name, lambda: Fn(fn), inputs, kw)

    def mod(self, name, factory, *inputs, **kw):
        self.add(name, factory, inputs, kw)

    def add(self, name, build, inputs, kw):
        assert name not in self, name
        self[name] = dict(build=build, inputs=inputs, **kw)


def tag(shape):
    return "x".join(map(str, shape)) if shape else "scalar"


def randomised(m):
    """Norm layers with values that are not 0 and 1."""
    for x in m.modules():
        if isinstance(x, nn.modules.batchnorm._BatchNorm) and x.running_mean is not None:
            x.running_mean.normal_(0, 0.3)
            x.running_var.uniform_(0.5, 2.0)
        if isinstance(x, (nn.modules.batchnorm._BatchNorm, nn.LayerNorm, nn.GroupNorm, nn.RMSNorm)) and getattr(x, "weight", None) is not None:
            nn.init.normal_(x.weight, 1, 0.2)
            if getattr(x, "bias", None) is not None:
                nn.init.normal_(x.bias, 0, 0.2)
    return m


class Const(nn.Module):
    """A function that also gets named tensors of the module (buffers)."""

    def __init__(self, fn, **tensors):
        super().__init__()
        for n, t in tensors.items():
            self.register_buffer(n, t)
        self.names = list(tensors)
        self.fn = fn

    def forward(self, *args):
        return self.fn(*args, *[getattr(self, n) for n in self.names])


class RMSNorm(nn.Module):
    """The spelling that becomes one et_vk.rms_norm."""

    def __init__(self, dim, eps=1e-5):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(1 + 0.2 * torch.randn(dim))

    def forward(self, x):
        return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + self.eps) * self.weight


RANKS = [(7,), (2, 3, 5), (), (2, 3, 4, 5), (1, 9, 1), (2, 1, 3, 2, 2), (1, 2, 1, 3, 1, 2), (5, 1), (1,),
         (2, 1, 2, 1, 2, 1, 3), (1, 2, 1, 2, 1, 2, 1, 2), (1, 1, 6, 3), (64,)]


# ------------------------------------------------------- the common operators

def common():
    """Operators for every group.  Flags: half=False: not in half precision; only="d"/"p": only delegated/portable."""
    t = Table()
    op, mod = t.op, t.mod

    # ---- unary
    pos = lambda *s: U(0.2, 4.0, *s)
    wide = lambda *s: R(*s, k=3.0)
    unary = [
        ("abs", torch.abs, wide), ("exp", torch.exp, R), ("sqrt", torch.sqrt, pos), ("rsqrt", torch.rsqrt, pos),
        ("sin", torch.sin, wide), ("cos", torch.cos, wide), ("tanh", torch.tanh, wide), ("round", torch.round, wide),
        ("neg", torch.neg, wide), ("relu", torch.relu, wide), ("sigmoid", torch.sigmoid, wide),
        ("hardswish", F.hardswish, wide), ("gelu", F.gelu, wide), ("gelu_tanh", lambda x: F.gelu(x, approximate="tanh"), wide),
        ("silu", F.silu, wide), ("clamp", lambda x: x.clamp(-1.5, 2), wide), ("clamp_min", lambda x: x.clamp(min=-0.5), wide),
        ("clamp_max", lambda x: x.clamp(max=0.25), wide), ("clamp_int", lambda x: x.clamp(-2, 3), wide),
        ("hardtanh", F.hardtanh, wide), ("hardtanh_02", lambda x: F.hardtanh(x, 0.0, 2.5), wide), ("relu6", F.relu6, wide),
        ("leaky_relu", F.leaky_relu, wide), ("leaky_relu_03", lambda x: F.leaky_relu(x, 0.3), wide),
        ("leaky_relu_neg", lambda x: F.leaky_relu(x, -0.5), wide),
        ("hardshrink", F.hardshrink, wide), ("hardshrink_15", lambda x: F.hardshrink(x, 1.5), wide),
        ("log10", torch.log10, pos), ("hardsigmoid", F.hardsigmoid, wide),
        ("reciprocal", torch.reciprocal, pos), ("square", torch.square, wide),
    ]
    n = 0
    for name, fn, arg in unary:
        half = name not in ("exp",)
        op(name, fn, arg(3, 37))
        for _ in range(2):
            s = RANKS[n % len(RANKS)]
            n += 1
            op(f"{name}_{tag(s)}", fn, arg(*s))
    op("round_half", torch.round, K([-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 3.5, -0.2, 0.2, 7.0]))
    op("exp_large", torch.exp, K([-80.0, -20.0, 0.0, 10.0, 20.0]), half=False)
    op("tanh_large", torch.tanh, K([-100.0, -20.0, -9.0, 0.0, 9.0, 20.0, 100.0]))
    op("sigmoid_large", torch.sigmoid, K([-100.0, -30.0, -9.0, 0.0, 9.0, 30.0, 100.0]))
    op("gelu_large", F.gelu, K([-100.0, -10.0, -4.0, 0.0, 4.0, 10.0, 100.0]))
    op("gelu_tanh_large", lambda x: F.gelu(x, approximate="tanh"), K([-100.0, -10.0, -4.0, 0.0, 4.0, 10.0, 100.0]))
    op("silu_large", F.silu, K([-100.0, -30.0, -4.0, 0.0, 4.0, 30.0, 100.0]))
    op("clamp_i32", lambda x: x.clamp(-3, 4), I(9, 4, 5, lo=-9, dt=i32))
    op("clamp_i64_min", lambda x: x.clamp(min=2), I(9, 11, lo=-9))
    op("clamp_inverted", lambda x: x.clamp(2.0, -1.0), R(9))
    for e, arg in [(2, wide), (3, wide), (2.0, wide), (3.0, wide), (0.5, pos), (-1, pos), (-2, Z), (0, wide), (1, wide), (2.5, pos), (4, R),
                   (-0.5, pos), (-3, Z), (1.5, pos)]:
        nm = str(e).replace("-", "m").replace(".", "p")
        op(f"pow_{nm}", lambda x, e=e: torch.pow(x, e), arg(4, 9))
    for e in (2, 3):
        op(f"pow_{e}_5d", lambda x, e=e: x ** e, R(2, 1, 3, 2, 2))

    # ---- binary
    pairs = [((7, 33), (7, 33)), ((2, 3, 1, 5), (4, 1)), ((5,), (3, 4, 5)), ((), (3, 4)), ((3, 4), ()), ((1,), (2, 3)), ((), ()),
             ((2, 1, 3, 1, 2), (3, 4, 1)), ((2, 1, 2, 1, 2, 1), (3, 1, 2, 1, 2)), ((1, 5), (5, 1)), ((3, 1, 1), (1, 4, 1)),
             ((2, 3, 4, 5), (2, 3, 4, 5)), ((2, 3, 4, 5), (3, 1, 1)), ((1, 1, 1), (7,)), ((3, 5), (1, 1)), ((64,), (64,))]
    binary = [
        ("add", torch.add, R, R), ("sub", torch.sub, R, R), ("mul", torch.mul, R, R), ("div", torch.div, R, Z),
        ("minimum", torch.minimum, R, R), ("pow_tt", torch.pow, pos, R),
        ("div_floor", lambda a, b: torch.div(a, b, rounding_mode="floor"), wide, Z),
        ("div_trunc", lambda a, b: torch.div(a, b, rounding_mode="trunc"), wide, Z),
        ("floor_divide", lambda a, b: a // b, wide, Z),
    ]
    n = 0
    for name, fn, a, b in binary:
        take = pairs if name in ("add", "sub") else [pairs[0]] + [pairs[1 + (n + j) % 15] for j in range(5)]
        n += 5
        for s1, s2 in take:
            op(f"{name}_{tag(s1)}_{tag(s2)}", fn, a(*s1), b(*s2), half=not ("div_" in name or "divide" in name))
    op("add_alpha", lambda a, b: torch.add(a, b, alpha=2.5), R(5, 6), R(5, 6))
    op("add_alpha_int", lambda a, b: torch.add(a, b, alpha=3), R(5, 6), R(6))
    op("sub_alpha", lambda a, b: torch.sub(a, b, alpha=-0.5), R(5, 6), R(5, 1))
    op("rsub", lambda a: 1.0 - a, R(5, 6))
    op("rsub_int", lambda a: 3 - a, I(9, 5, 6))
    op("add_scalar_float", lambda a: a + 1.5, R(3, 5))
    op("add_scalar_int", lambda a: a + 2, R(3, 5))
    op("mul_scalar", lambda a: a * 0.3, R(3, 5))
    op("div_scalar", lambda a: a / 3, R(3, 5))
    op("rdiv_scalar", lambda a: 2.0 / a, Z(3, 5))
    op("mul_self", lambda a: a * a, R(3, 5))
    op("chain_scalars", lambda a: (a + 1) * 1.0 - 0 + 0.0 * a, R(3, 5))
    for dt, nm in ((i32, "i32"), (i64, "i64")):
        for s1, s2 in (pairs[0], pairs[1], pairs[3], pairs[4]):
            op(f"add_{nm}_{tag(s1)}_{tag(s2)}", torch.add, I(99, *s1, lo=-99, dt=dt), I(99, *s2, lo=-99, dt=dt))
        op(f"sub_{nm}", torch.sub, I(99, 3, 5, lo=-99, dt=dt), I(99, 5, dt=dt))
        op(f"mul_{nm}", torch.mul, I(99, 3, 5, lo=-99, dt=dt), I(99, 3, 1, lo=-99, dt=dt))
        op(f"minimum_{nm}", torch.minimum, I(99, 3, 5, lo=-99, dt=dt), I(99, 5, lo=-99, dt=dt))
        op(f"div_{nm}", torch.div, I(99, 3, 5, lo=-99, dt=dt), N(9, 5, dt=dt))
        op(f"div_floor_{nm}", lambda a, b: torch.div(a, b, rounding_mode="floor"), I(99, 3, 5, lo=-99, dt=dt), N(9, 5, dt=dt))
        op(f"div_trunc_{nm}", lambda a, b: torch.div(a, b, rounding_mode="trunc"), I(99, 3, 5, lo=-99, dt=dt), N(9, 5, dt=dt))
        op(f"floor_divide_{nm}", lambda a: a // 4, I(99, 3, 5, lo=-99, dt=dt))
        op(f"pow_tt_{nm}", torch.pow, I(5, 3, 5, lo=-4, dt=dt), I(4, 5, dt=dt))
        op(f"add_alpha_{nm}", lambda a, b: torch.add(a, b, alpha=3), I(99, 3, 5, dt=dt), I(99, 5, dt=dt))
        op(f"add_scalar_{nm}", lambda a: a + 7, I(99, 3, 5, dt=dt))
        op(f"mul_scalar_{nm}", lambda a: a * -3, I(99, 3, 5, dt=dt))
        op(f"add_mixed_{nm}", lambda a, b: a + b, I(9, 3, 5, dt=dt), R(3, 5))
        op(f"mul_mixed_{nm}", lambda a, b: a * b, R(3, 5), I(9, 5, dt=dt))
        op(f"mul_float_scalar_{nm}", lambda a: a * 0.5, I(9, 3, 5, dt=dt))
    op("add_large_i32", lambda a: a + 1, K([2147483646, -2147483648, 16777217, -16777219], i32))
    op("mul_large_i32", lambda a, b: a * b, K([46341, 65535, -40000, 123457], i32), K([46340, 32767, 50000, -17321], i32))

    # ---- comparisons, logic, where
    cmps = [("eq", torch.eq), ("lt", torch.lt), ("le", torch.le), ("gt", torch.gt), ("ge", torch.ge)]
    grid = lambda *s: Spec(lambda: torch.randint(-2, 3, s).float())
    for j, (name, fn) in enumerate(cmps):
        op(f"{name}_same", fn, grid(5, 7), grid(5, 7))
        s1, s2 = pairs[1:6][j]
        op(f"{name}_{tag(s1)}_{tag(s2)}", fn, grid(*s1), grid(*s2))
        op(f"{name}_i32", fn, I(3, 5, 3, lo=-3, dt=i32), I(3, 3, lo=-3, dt=i32))
        op(f"{name}_i64", fn, I(3, 5, 3, lo=-3), I(3, 5, 1, lo=-3))
    for name, fn in cmps + [("ne", torch.ne)]:
        op(f"{name}_scalar", lambda x, f=fn: f(x, 1), grid(5, 7))
        op(f"{name}_scalar_f", lambda x, f=fn: f(x, -0.5), K([-1.0, -0.5, 0.0, 0.5, -0.5]))
        op(f"{name}_scalar_i32", lambda x, f=fn: f(x, 2), I(4, 3, 3, dt=i32))
        op(f"{name}_scalar_i64", lambda x, f=fn: f(x, 0), I(4, 11, lo=-3))
    op("lt_scalar_rank0", lambda x: x < 0.5, R())
    op("gt_5d", lambda a, b: a > b, R(2, 1, 3, 2, 2), R(2, 1, 1, 2, 1))
    for name, fn in [("logical_and", torch.logical_and), ("logical_or", torch.logical_or), ("bitwise_and", torch.bitwise_and), ("bitwise_or", torch.bitwise_or)]:
        op(f"{name}_odd", fn, B(3, 7), B(3, 7))
        op(f"{name}_16", fn, B(4, 4), B(4, 4))
        op(f"{name}_bc", fn, B(2, 1, 5), B(3, 1))
        op(f"{name}_rank0", fn, B(), B(5))
    for name, fn in [("logical_not", torch.logical_not), ("bitwise_not", torch.bitwise_not)]:
        op(f"{name}_odd", fn, B(3, 7))
        op(f"{name}_16", fn, B(2, 8))
        op(f"{name}_rank0", fn, B())
    op("logic_chain", lambda a, b: torch.logical_and(a > 0, torch.logical_not(b < 0.5)) | (a < -1), R(5, 5), R(5, 5))
    for s0, s1, s2 in [((5, 7), (5, 7), (5, 7)), ((5, 1), (7,), ()), ((), (3, 4), (3, 4)), ((2, 1, 3), (4, 1), (1,)), ((3, 4), (), ()), ((1,), (5,), (2, 1))]:
        op(f"where_{tag(s0)}_{tag(s1)}_{tag(s2)}", torch.where, B(*s0), R(*s1), R(*s2))
    op("where_gt", lambda a, b: torch.where(a > b, a, b * 2), R(6, 8), R(6, 8))
    op("where_scalar", lambda a: torch.where(a > 0, a, 0.25), R(6, 7))
    op("where_i32", torch.where, B(3, 5), I(9, 3, 5, dt=i32), I(9, 5, dt=i32))
    op("where_i64", torch.where, B(3, 5), I(9, 3, 5), I(9, 5))
    op("where_4d", torch.where, B(1, 1, 4, 5), R(2, 3, 4, 5), R(1))
    op("masked_softmax", lambda x, m: torch.softmax(x.masked_fill(m, float("-inf")), -1), R(3, 9), B(3, 9, p=0.4))
    op("masked_softmax_big", lambda x, m: torch.softmax(torch.where(m, x, -1e4), -1), R(3, 9), B(3, 9, p=0.6))

    # ---- copies and shapes
    kinds = [("f32", lambda *s: R(*s)), ("i32", lambda *s: I(99, *s, dt=i32)), ("i64", lambda *s: I(99, *s)), ("bool", B), ("u8", lambda *s: I(200, *s, dt=u8)), ("i8", lambda *s: I(99, *s, lo=-99, dt=i8))]
    for nm, d in kinds:
        op(f"view_{nm}", lambda x: x.view(6, 5), d(2, 3, 5))
        op(f"clone_{nm}", lambda x: x.clone(), d(3, 5))
        op(f"permute_{nm}", lambda x: x.permute(2, 0, 1), d(2, 3, 5))
        op(f"slice_{nm}", lambda x: x[:, 1:4:2], d(3, 5))
        op(f"select_{nm}", lambda x: x[:, 2], d(3, 5))
        op(f"cat_{nm}", lambda a, b: torch.cat([a, b], 1), d(3, 5), d(3, 2))
        op(f"expand_{nm}", lambda x: x.expand(3, 5), d(1, 5))
        op(f"repeat_{nm}", lambda x: x.repeat(2, 3), d(3, 5))
        op(f"flip_{nm}", lambda x: x.flip(1), d(3, 5))
        op(f"squeeze_{nm}", lambda x: x.squeeze(1), d(3, 1, 5))
        op(f"unsqueeze_{nm}", lambda x: x.unsqueeze(1), d(3, 5))
        op(f"pad_{nm}", lambda x: F.pad(x, (1, 2), value=1), d(3, 5))
        op(f"split_{nm}", lambda x: torch.split(x, [2, 3], 1), d(3, 5))
        op(f"index_select_{nm}", lambda x, i: x.index_select(1, i), d(3, 5), I(5, 4))
        op(f"gather_{nm}", lambda x, i: x.gather(1, i), d(3, 5), I(5, 3, 2))
    views = [((2, 3, 4), (24,)), ((24,), (2, 3, 4)), ((1,), ()), ((), (1, 1)), ((2, 3, 4, 5), (6, 20)), ((3, 4), (3, 1, 4)), ((5,), (1, 5)), ((5,), (5, 1)),
             ((1, 3, 1, 4), (3, 4)), ((2, 6), (2, 2, 3, 1, 1)), ((2, 2, 2, 2, 2), (4, 8)), ((8,), (2, 2, 2)), ((4, 4), (-1, 2)), ((2, 2, 1, 2, 1, 2), (16,)), ((3, 2, 2), (2, 1, 2, 1, 3, 1, 1))]
    for s1, s2 in views:
        op(f"view_{tag(s1)}_to_{tag(s2)}".replace("-", "m"), lambda x, s=s2: x.reshape(s), R(*s1))
        op(f"view_relu_{tag(s1)}_to_{tag(s2)}".replace("-", "m"), lambda x, s=s2: torch.relu(x.reshape(s)) + 1, R(*s1))
    perms = [(2, (1, 0)), (3, (2, 1, 0)), (3, (0, 2, 1)), (3, (1, 2, 0)), (4, (0, 2, 3, 1)), (4, (3, 1, 0, 2)), (4, (0, 1, 3, 2)), (5, (4, 0, 3, 1, 2)), (6, (5, 1, 3, 0, 2, 4)), (1, (0,)), (4, (-1, 0, -2, 1)), (8, (7, 1, 5, 3, 4, 2, 6, 0))]
    full = (2, 3, 4, 5, 2, 3, 1, 2)
    for rank, p in perms:
        op(f"permute_r{rank}_{''.join(str(q % rank) for q in p)}", lambda x, p=p: x.permute(p), R(*full[:rank]))
    op("transpose_12", lambda x: x.transpose(1, 2), R(2, 3, 4, 5))
    op("transpose_neg", lambda x: x.transpose(-1, 0), R(2, 3, 4))
    op("t", lambda x: x.t(), R(4, 7))
    op("t_1d", lambda x: x.t() + 1, R(7))
    op("mT", lambda x: x.mT, R(2, 4, 3))
    op("permute_contig_add", lambda x: x.permute(1, 0).contiguous() + 1, R(4, 7))
    for s, d in [((1, 3, 1), None), ((1, 3, 1), 0), ((1, 3, 1), -1), ((3, 1, 1, 2), (1, 2)), ((1,), 0), ((2, 3), 1), ((2, 1, 3, 1, 2), (1, 3))]:
        op(f"squeeze_{tag(s)}_{d}".replace(" ", "").replace("(", "").replace(")", "").replace(",", "_").replace("-", "m"),
           (lambda x: x.squeeze()) if d is None else (lambda x, d=d: x.squeeze(d)), R(*s))
    for s, d in [((), 0), ((3,), 0), ((3,), -1), ((2, 3), -2), ((2, 3, 4), 3), ((2, 3, 4), 0), ((2, 3, 4, 5), 2), ((2, 1, 2, 1, 2), 4)]:
        op(f"unsqueeze_{tag(s)}_{d}".replace("-", "m"), lambda x, d=d: x.unsqueeze(d), R(*s))
    slices = [("front", lambda x: x[1:]), ("end", lambda x: x[:-1]), ("step2", lambda x: x[::2]), ("step3", lambda x: x[1:11:3]), ("dim1", lambda x: x[:, 2:5]),
              ("neg", lambda x: x[:, -3:-1]), ("over", lambda x: x[:, 3:100]), ("last", lambda x: x[..., -2:]), ("two", lambda x: x[2:9:2, 1:4]), ("one", lambda x: x[4:5, :, 1:2]),
              ("nop", lambda x: x[:, :, 0:4] * 2), ("far_neg", lambda x: x[-100:3]), ("all3", lambda x: x[1::2, ::3, 1:-1])]
    for nm, fn in slices:
        op(f"slice_{nm}", fn, R(12, 6, 4))
    op("slice_5d", lambda x: x[:, :, 1:, :, ::2], R(2, 1, 4, 2, 3))
    op("slice_scatterless", lambda x: x[:, 1:3] + x[:, 3:5], R(3, 6))
    for nm, fn in [("first", lambda x: x[0]), ("last", lambda x: x[-1]), ("mid", lambda x: x[:, 1]), ("inner", lambda x: x[..., -2]), ("twice", lambda x: x[1, :, 2]), ("to_scalar", lambda x: x[0, 1, 2])]:
        op(f"select_{nm}", fn, R(3, 4, 5))
    op("select_1d", lambda x: x[3], R(5))
    op("select_4d", lambda x: x[:, :, 2], R(2, 3, 4, 5))
    op("select_5d", lambda x: x[:, :, 1], R(2, 1, 4, 2, 3))
    for d in (0, 1, 2, -1):
        s = [[2, 3, 4] for _ in range(3)]
        for j, q in enumerate((2, 1, 5)):
            s[j][d] = q
        op(f"cat3_dim{d}".replace("-", "m"), lambda a, b, c, d=d: torch.cat([a, b, c], d), *[R(*q) for q in s])
    op("cat_1d", lambda a, b: torch.cat([a, b]), R(3), R(4))
    op("cat_4d_c", lambda a, b: torch.cat([a, b], 1), R(1, 3, 4, 5), R(1, 2, 4, 5))
    op("cat_5d", lambda a, b: torch.cat([a, b], 3), R(2, 1, 2, 3, 2), R(2, 1, 2, 1, 2))
    op("cat_many", lambda *a: torch.cat(a, 0), *[R(1 + j % 3, 4) for j in range(9)])
    op("cat_same", lambda a: torch.cat([a, a, a * 2], 1), R(3, 4))
    op("cat_one", lambda a: torch.cat([a], 1) + 1, R(3, 4))
    op("cat_empty", lambda a, b: torch.cat([a, b[:, :0], b], 1), R(3, 4), R(3, 2))
    op("stack_0", lambda a, b: torch.stack([a, b]), R(3, 4), R(3, 4))
    op("stack_last", lambda a, b, c: torch.stack([a, b, c], -1), R(3, 4), R(3, 4), R(3, 4))
    op("split_even", lambda x: torch.split(x, 3, 0), R(8, 4))
    op("split_last", lambda x: torch.split(x, [1, 4, 2], -1), R(3, 7))
    op("split_4d", lambda x: torch.split(x, [1, 2], 1), R(2, 3, 4, 5))
    op("chunk", lambda x: torch.chunk(x, 3, 1), R(2, 7, 3))
    op("chunk_use", lambda x: torch.chunk(x, 2, -1)[0] * torch.sigmoid(torch.chunk(x, 2, -1)[1]), R(3, 10))
    op("glu", lambda x: F.glu(x, -1), R(3, 10))
    op("unbind", lambda x: x.unbind(1), R(3, 4, 2))
    for s1, s2 in [((3, 1), (3, 4)), ((1,), (2, 3)), ((), (2, 3)), ((1, 3, 1), (4, 3, 5)), ((3, 4), (2, 3, 4)), ((2, 1, 4), (-1, 3, -1)), ((1, 1, 2, 1), (2, 3, 2, 2)), ((5,), (5,))]:
        op(f"expand_{tag(s1)}_to_{tag(s2)}".replace("-", "m"), lambda x, s=s2: x.expand(s) * 1.5, R(*s1))
    for s, reps in [((3,), (4,)), ((3,), (2, 3)), ((2, 3), (1, 2)), ((2, 3), (3, 1)), ((2, 3), (2, 1, 2)), ((2, 3, 4), (1, 2, 1)), ((2, 1, 2, 3), (2, 3, 1, 2)), ((2, 3), (1, 1))]:
        op(f"repeat_{tag(s)}_by_{tag(reps)}", lambda x, q=reps: x.repeat(q), R(*s))
    op("repeat_interleave", lambda x: x.repeat_interleave(2, 1), R(2, 3, 4))
    op("tile", lambda x: x.tile(2, 2), R(3, 4))
    for s, d in [((7,), (0,)), ((3, 4), (0, 1)), ((2, 3, 4), (0, 2)), ((2, 3, 4, 5), (-1,)), ((2, 3, 4, 5), (1, 2)), ((2, 1, 3, 2, 2), (2, 4))]:
        op(f"flip_{tag(s)}_{''.join(str(q % len(s)) for q in d)}", lambda x, d=d: x.flip(d), R(*s))
    op("roll", lambda x: torch.roll(x, 2, 1), R(3, 5))
    pads = [((5,), (1, 2), 0.0), ((3, 5), (2, 0), 1.5), ((3, 5), (0, 1, 2, 3), -1.0), ((2, 3, 4), (1, 1, 2, 2, 0, 1), 0.0), ((1, 2, 3, 4), (1, 2), 3.0), ((1, 2, 3, 4), (1, 0, 0, 2), 0.5),
            ((1, 2, 3, 4), (1, 2, 3, 4, 1, 1), 0.0), ((2, 2, 3, 4), (0, 0, 1, 1, 0, 0, 1, 2), 2.0), ((3, 6), (-1, -2), 0.0), ((1, 2, 5, 6), (-1, 2, 1, -2), 7.0), ((1, 3, 4), (0, -1, -1, 0), 0.0),
            ((2, 1, 2, 3, 2), (1, 1, 0, 1), 0.25), ((3, 4), (0, 0), 1.0)]
    for s, p, v in pads:
        op(f"pad_{tag(s)}_{'_'.join(map(str, p))}".replace("-", "m"), lambda x, p=p, v=v: F.pad(x, p, value=v), R(*s))
    op("pad_add", lambda x: F.pad(x, (1, 1, 1, 1)) + 1, R(1, 2, 3, 3))
    op("reflection_pad", lambda x: F.pad(x, (1, 2, 1, 1), mode="reflect"), R(1, 2, 4, 5))
    op("replication_pad", lambda x: F.pad(x, (1, 2, 1, 1), mode="replicate"), R(1, 2, 4, 5))
    for s, k in [((1, 12, 5, 4), 2), ((9, 3, 2), 3), ((2, 8, 2, 3), 2), ((1, 2, 1, 16, 2, 2), 4)]:
        op(f"pixel_shuffle_{tag(s)}_{k}", lambda x, k=k: F.pixel_shuffle(x, k), R(*s))
    op("pixel_unshuffle", lambda x: F.pixel_unshuffle(x, 2), R(1, 2, 4, 6))
    for s, d, z, st in [((10,), 0, 3, 2), ((2, 9), 1, 4, 1), ((2, 9), 0, 2, 1), ((2, 8, 3), 1, 3, 3), ((2, 3, 7), -1, 5, 2), ((1, 2, 3, 6), 3, 2, 2)]:
        op(f"unfold_{tag(s)}_{d}_{z}_{st}".replace("-", "m"), lambda x, d=d, z=z, st=st: x.unfold(d, z, st), R(*s))
    op("copy_", lambda a, b: torch.zeros_like(a).copy_(b) + a, R(3, 4), R(3, 4))
    op("alias_out_twice", lambda a: (a + 1, a * 2), R(3, 4))
    op("out_same_twice", lambda a: (lambda y: (y, y))(a + 1), R(3, 4))
    op("out_input", lambda a: (a, a + 1), R(3, 4))
    op("unused_input", lambda a, b: a + 1, R(3, 4), R(2))
    mod("out_const", lambda: Const(lambda x, c: (x + c, c), c=torch.randn(4)), R(3, 4))

    # ---- dtype conversions
    conv = [("f32", f32, lambda: R(3, 5, k=4.0)), ("i32", i32, lambda: I(9, 3, 5, lo=-9, dt=i32)), ("i64", i64, lambda: I(9, 3, 5, lo=-9)), ("bool", b8, lambda: B(3, 5)),
            ("f16", f16, lambda: R(3, 5, dt=f16)), ("u8", u8, lambda: I(200, 3, 5, dt=u8)), ("i8", i8, lambda: I(99, 3, 5, lo=-99, dt=i8))]
    for n1, d1, a in conv:
        for n2, d2, _ in conv:
            if n1 != n2 and not (n2 in ("u8", "i8") and n1 in ("f32", "f16", "i32", "i64")):
                op(f"to_{n1}_{n2}", lambda x, d=d2: x.to(d), a(), half=False)
    op("to_float_add", lambda x: x.float() + 0.5, I(9, 3, 5))
    op("to_int_trunc", lambda x: x.to(i32), K([-2.7, -1.0, -0.5, 0.5, 1.9, 100.25]), half=False)
    op("to_bool", lambda x: x.bool(), K([-2.7, 0.0, -0.0, 0.5]), half=False)
    op("mask_mul", lambda x: x * (x > 0).float(), R(5, 5))
    op("mask_sum", lambda x: (x > 0).to(f32).sum(-1), R(5, 7), half=False)
    op("type_as", lambda x, y: x.type_as(y) + y, I(9, 5), R(5))

    # ---- creation
    op("full", lambda x: x + torch.full((3, 4), 1.5), R(3, 4))
    op("full_out", lambda x: (x * 2, torch.full((2, 5), 3.25)), R(3, 4), half=False)
    op("full_i32", lambda x: x + torch.full((3, 4), 7, dtype=i32), I(9, 3, 4, dt=i32))
    op("full_i64_out", lambda x: (x + 1, torch.full((2, 3), -5, dtype=i64)), I(9, 3, 4))
    op("full_bool", lambda x: torch.logical_and(x, torch.full((3, 4), True)), B(3, 4))
    op("full_rank0", lambda x: x + torch.full((), 0.5), R(3, 4))
    op("zeros", lambda x: torch.minimum(x, torch.zeros(3, 4)), R(3, 4))
    op("zeros_i32", lambda x: torch.cat([x, torch.zeros(2, 4, dtype=i32)]), I(9, 3, 4, dt=i32))
    op("ones", lambda x: x - torch.ones(4), R(3, 4))
    op("ones_i64", lambda x: x * torch.ones(3, 1, dtype=i64), I(9, 3, 4))
    op("full_like", lambda x: torch.full_like(x, 2.5) * x, R(3, 4))
    op("full_like_i32", lambda x: torch.full_like(x, 3) + x, I(9, 3, 4, dt=i32))
    op("full_like_f_of_i", lambda x: torch.full_like(x, 0.5, dtype=f32), I(9, 3, 4), half=False)
    op("zeros_like", lambda x: torch.zeros_like(x) - x, R(3, 4))
    op("zeros_like_bool", lambda x: torch.logical_or(torch.zeros_like(x), x), B(3, 4))
    op("ones_like", lambda x: torch.ones_like(x) / (x * x + 1), R(3, 4))
    op("ones_like_i64", lambda x: torch.ones_like(x) + x, I(9, 3, 4))
    op("new_zeros", lambda x: torch.cat([x.new_zeros(1, 4), x]), R(3, 4))
    op("scalar_tensor", lambda x: torch.where(x > 0, x, torch.scalar_tensor(0.25)), R(3, 4))
    op("arange", lambda x: x + torch.arange(5), R(3, 5))
    op("arange_f", lambda x: x * torch.arange(0.0, 1.25, 0.25), R(3, 5))
    op("arange_step", lambda x: x + torch.arange(10, 0, -2), I(9, 3, 5))
    op("arange_i32", lambda x: x + torch.arange(2, 12, 2, dtype=i32), I(9, 3, 5, dt=i32))
    op("arange_out", lambda x: (x + 1, torch.arange(7), torch.arange(0.5, 3, 0.5)), R(2), half=False)
    op("arange_causal", lambda x: torch.where(torch.arange(5)[:, None] >= torch.arange(5)[None, :], x, -10.0), R(5, 5))
    op("eye_mask", lambda x: x * torch.eye(4), R(4, 4))
    op("linspace", lambda x: x * torch.linspace(-1, 1, 5), R(3, 5))
    mod("const_reuse", lambda: Const(lambda x, c: (x + c) * c - c, c=torch.randn(4)), R(3, 4))
    mod("const_shapes", lambda: Const(lambda x, a, b: x * a + b.view(3, 1), a=torch.randn(4), b=torch.randn(3)), R(3, 4))
    mod("const_only", lambda: Const(lambda x, a, b: (a * b) + x, a=torch.randn(3, 4), b=torch.randn(4)), R(3, 4))
    mod("const_scalar", lambda: Const(lambda x, a: x * a, a=torch.tensor(1.75)), R(3, 4))
    mod("const_i64", lambda: Const(lambda x, a: x + a, a=torch.arange(4)), I(9, 3, 4))
    mod("const_bool", lambda: Const(lambda x, a: torch.where(a, x, -x), a=torch.tensor([True, False, True, True, False])), R(3, 5))
    mod("const_index", lambda: Const(lambda x, a: x.index_select(1, a), a=torch.tensor([3, 0, 0, 2])), R(3, 5))
    mod("const_empty_use", lambda: Const(lambda x, a: torch.cat([x, a], 1), a=torch.zeros(3, 0)), R(3, 5))

    mod("const_tail_view", lambda: Const(lambda x, a: x * a, a=torch.randn(9)[:-1]), R(3, 8))
    mod("const_offset_view", lambda: Const(lambda x, a: x * a, a=torch.randn(9)[1:]), R(3, 8))
    mod("const_strided", lambda: Const(lambda x, a: x * a, a=torch.randn(4, 3).t()), R(3, 4))
    mod("const_strided_mm", lambda: Const(lambda x, a: x @ a, a=torch.randn(4, 3).t()), R(2, 3))
    mod("const_expanded", lambda: Const(lambda x, a: x + a, a=torch.randn(1, 4).expand(3, 4)), R(3, 4))
    mod("const_step_view", lambda: Const(lambda x, a: x + a, a=torch.randn(8)[::2]), R(3, 4))
    mod("linear_strided", lambda: Const(lambda x, a: F.linear(x, a), a=torch.randn(4, 3).t()), R(2, 4))

    # ---- reductions, softmax
    for s, d in [((7,), 0), ((4, 33), -1), ((4, 9), 0), ((2, 9, 6), 1), ((2, 9, 6), 2), ((2, 3, 4, 5), 1), ((2, 3, 4, 5), -1), ((2, 3, 4, 5), 0), ((2, 3, 4, 5), 2), ((3, 1), 1), ((2, 70), 1), ((2, 1, 3, 2, 4), 4), ((2, 1, 3, 2, 4), 2), ((), 0)]:
        op(f"softmax_{tag(s)}_{d}".replace("-", "m"), lambda x, d=d: torch.softmax(x, d), R(*s, k=2.0))
        op(f"log_softmax_{tag(s)}_{d}".replace("-", "m"), lambda x, d=d: torch.log_softmax(x, d), R(*s, k=2.0))
    op("softmax_large", lambda x: torch.softmax(x, -1), K([[100.0, 90.0, -100.0], [1000.0, 1000.0, 999.0]]))
    forms = [("last", (2, 5, 7), -1, False), ("last_keep", (2, 5, 7), -1, True), ("mid", (2, 5, 7), 1, False), ("mid_keep", (2, 5, 7), 1, True), ("first", (4, 5), 0, False), ("first_keep", (4, 5), 0, True),
             ("hw_keep", (1, 6, 7, 5), (2, 3), True), ("hw", (1, 6, 7, 5), (2, 3), False), ("far_keep", (3, 4, 5), (0, 2), True), ("ch_keep", (2, 3, 4, 5), (1,), True), ("bh_keep", (2, 3, 4, 5), (0, 2), True),
             ("three", (2, 3, 4, 5), (1, 2, 3), False), ("1d", (9,), 0, False), ("1d_keep", (9,), 0, True), ("one", (3, 1), 1, False), ("long", (2, 300), 1, False), ("5d", (2, 1, 3, 2, 4), -1, True)]
    for name, fn in [("sum", torch.sum), ("mean", torch.mean), ("amax", torch.amax), ("amin", torch.amin)]:
        for nm, s, d, keep in forms:
            op(f"{name}_{nm}", lambda x, f=fn, d=d, k=keep: f(x, d, keepdim=k), R(*s))
    op("sum_all", lambda x: x.sum(), R(3, 4))
    op("mean_all", lambda x: x.mean(), R(3, 4))
    op("amax_all", lambda x: x.amax(), R(3, 4))
    op("max_all", lambda x: x.max(), R(3, 4))
    op("min_all", lambda x: x.min(), R(3, 4))
    op("sum_i64", lambda x: x.sum(-1), I(99, 3, 4))
    op("sum_i32", lambda x: x.sum(-1), I(99, 3, 4, dt=i32))
    op("sum_bool", lambda x: x.sum(-1), B(3, 14))
    op("var", lambda x: x.var(-1), R(3, 9))
    op("var_keep", lambda x: x.var(1, keepdim=True, unbiased=False), R(3, 9, 2))
    op("std", lambda x: x.std(-1), R(3, 9))
    op("norm", lambda x: x.norm(dim=-1), R(3, 9))
    op("normalize", lambda x: F.normalize(x, dim=-1), R(3, 9))
    op("logsumexp", lambda x: torch.logsumexp(x, -1), R(3, 9))
    for name, fn in [("argmax", torch.argmax), ("argmin", torch.argmin)]:
        for nm, s, d, keep in [("last", (5, 41), -1, False), ("last_keep", (2, 5, 9), -1, True), ("mid_keep", (2, 5, 3), 1, True), ("mid", (2, 5, 3), 1, False), ("first", (6, 3), 0, False), ("first_keep", (6, 3), 0, True),
                               ("1d", (9,), 0, False), ("4d", (2, 3, 2, 5), -1, False), ("4d_c_keep", (1, 3, 2, 5), 1, True)]:
            op(f"{name}_{nm}", lambda x, f=fn, d=d, k=keep: f(x, d, keepdim=k), R(*s))
        op(f"{name}_all", fn, R(3, 4))
        op(f"{name}_ties", lambda x, f=fn: f(x, -1), K([[1.0, 3.0, 3.0, 1.0], [0.0, 0.0, 0.0, 0.0], [-1.0, -1.0, -2.0, -2.0]]))
    op("max_dim", lambda x: torch.max(x, 1), R(3, 9))
    op("max_dim_values", lambda x: torch.max(x, -1).values, R(3, 9))
    op("min_dim", lambda x: torch.min(x, 1, keepdim=True), R(3, 9))

    # ---- normalisation
    for nm, s, ns in [("1", (2, 7, 40), (40,)), ("1_odd", (3, 13), (13,)), ("2", (2, 3, 4, 5), (4, 5)), ("3", (2, 3, 4, 5), (3, 4, 5)), ("vec", (9,), (9,)), ("one", (3, 1), (1,)), ("4d", (1, 2, 3, 8), (8,)), ("5d", (2, 1, 3, 2, 4), (4,))]:
        mod(f"layer_norm_{nm}", lambda ns=ns: randomised(nn.LayerNorm(ns)), R(*s))
        mod(f"layer_norm_{nm}_plain", lambda ns=ns: nn.LayerNorm(ns, elementwise_affine=False, eps=1e-3), R(*s))
    mod("layer_norm_nobias", lambda: randomised(nn.LayerNorm(12, bias=False)), R(2, 5, 12))
    mod("layer_norm_shift", lambda: randomised(nn.LayerNorm(12)), R(2, 5, 12, b=5.0))
    for nm, s, g in [("4d", (1, 16, 6, 5), 4), ("4d_b2", (2, 6, 3, 5), 3), ("g1", (1, 5, 4, 3), 1), ("gC", (1, 6, 4, 3), 6), ("3d", (2, 6, 7), 2), ("2d", (3, 8), 2), ("5d", (1, 4, 2, 3, 2), 2)]:
        mod(f"group_norm_{nm}", lambda s=s, g=g: randomised(nn.GroupNorm(g, s[1])), R(*s))
    mod("group_norm_plain", lambda: nn.GroupNorm(2, 6, affine=False), R(1, 6, 3, 5))
    mod("batch_norm2d", lambda: randomised(nn.BatchNorm2d(6)), R(1, 6, 8, 7))
    mod("batch_norm2d_b2", lambda: randomised(nn.BatchNorm2d(3)), R(2, 3, 4, 5))
    mod("batch_norm2d_plain", lambda: randomised(nn.BatchNorm2d(5, affine=False)), R(1, 5, 4, 3))
    mod("batch_norm1d", lambda: randomised(nn.BatchNorm1d(6)), R(3, 6))
    mod("batch_norm1d_3d", lambda: randomised(nn.BatchNorm1d(6)), R(2, 6, 5))
    mod("batch_norm3d", lambda: randomised(nn.BatchNorm3d(3)), R(1, 3, 2, 4, 3))
    mod("instance_norm", lambda: nn.InstanceNorm2d(4), R(1, 4, 5, 6))
    mod("rms_norm", lambda: RMSNorm(48), R(1, 9, 48))
    mod("rms_norm_2d", lambda: RMSNorm(13), R(5, 13))
    mod("rms_norm_4d", lambda: RMSNorm(8, 1e-6), R(1, 3, 4, 8))
    mod("nn_rms_norm", lambda: randomised(nn.RMSNorm(12, eps=1e-5)), R(1, 5, 12))

    # ---- matrix products
    for m, k, n in [(17, 33, 9), (1, 7, 5), (5, 1, 3), (4, 8, 16), (1, 64, 1), (3, 5, 1), (16, 16, 16)]:
        op(f"mm_{m}_{k}_{n}", torch.mm, R(m, k), R(k, n))
        mod(f"linear_{m}_{k}_{n}", lambda k=k, n=n: nn.Linear(k, n), R(m, k))
        mod(f"linear_nb_{m}_{k}_{n}", lambda k=k, n=n: nn.Linear(k, n, bias=False), R(m, k))
        op(f"addmm_{m}_{k}_{n}", torch.addmm, R(n), R(m, k), R(k, n))
    for b, m, k, n in [(3, 7, 12, 5), (1, 4, 4, 4), (2, 1, 9, 3), (5, 3, 1, 2), (2, 16, 8, 16)]:
        op(f"bmm_{b}_{m}_{k}_{n}", torch.bmm, R(b, m, k), R(b, k, n))
    op("addmm_beta", lambda c, a, b: torch.addmm(c, a, b, beta=0.5, alpha=2), R(4, 3), R(4, 5), R(5, 3))
    op("addmm_beta0", lambda c, a, b: torch.addmm(c, a, b, beta=0, alpha=1), R(3), R(4, 5), R(5, 3))
    op("addmm_col", torch.addmm, R(4, 1), R(4, 5), R(5, 3))
    op("baddbmm", torch.baddbmm, R(2, 3, 4), R(2, 3, 5), R(2, 5, 4))
    op("matmul_vv", torch.matmul, R(7), R(7))
    op("matmul_mv", torch.matmul, R(4, 7), R(7))
    op("matmul_vm", torch.matmul, R(7), R(7, 4))
    op("matmul_3d2d", torch.matmul, R(2, 3, 5), R(5, 4))
    op("matmul_4d", torch.matmul, R(1, 3, 4, 5), R(1, 3, 5, 2))
    op("matmul_4d_bc", torch.matmul, R(2, 3, 4, 5), R(5, 2))
    op("matmul_bc", torch.matmul, R(2, 1, 4, 5), R(3, 5, 2))
    op("matmul_qk", lambda q, k: torch.matmul(q, k.transpose(-1, -2)) * 0.5, R(1, 2, 5, 4), R(1, 2, 6, 4))
    op("einsum", lambda a, b: torch.einsum("bhd,bnd->bhn", a, b), R(2, 3, 4), R(2, 5, 4))
    op("outer", torch.outer, R(4), R(5))
    mod("linear_3d", lambda: nn.Linear(12, 7), R(2, 5, 12))
    mod("linear_4d", lambda: nn.Linear(6, 5), R(1, 2, 3, 6))
    mod("linear_1d", lambda: nn.Linear(6, 5), R(6))
    mod("mm_const_right", lambda: Const(lambda x, w: x @ w, w=torch.randn(6, 5)), R(4, 6))
    mod("mm_const_left", lambda: Const(lambda x, w: w @ x, w=torch.randn(5, 6)), R(6, 4))
    mod("linear_shared", lambda: Const(lambda x, w: F.linear(F.linear(x, w), w), w=torch.randn(6, 6) * 0.4), R(4, 6))
    mod("linear_relu", lambda: nn.Sequential(nn.Linear(9, 7), nn.ReLU(), nn.Linear(7, 3)), R(2, 9))
    mod("bilinear_form", lambda: Const(lambda x, y, w: (x @ w * y).sum(-1), w=torch.randn(6, 5)), R(4, 6), R(4, 5))
    op("sdpa", F.scaled_dot_product_attention, R(1, 2, 5, 4), R(1, 2, 6, 4), R(1, 2, 6, 4))
    op("sdpa_causal", lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True), R(1, 2, 5, 4), R(1, 2, 5, 4), R(1, 2, 5, 4))
    op("sdpa_mask", lambda q, k, v, m: F.scaled_dot_product_attention(q, k, v, attn_mask=m), R(1, 2, 5, 4), R(1, 2, 6, 4), R(1, 2, 6, 4), R(5, 6))

    # ---- embedding and indexing
    mod("embedding", lambda: nn.Embedding(50, 24), I(50, 1, 9))
    mod("embedding_i32", lambda: nn.Embedding(50, 5), I(50, 9, dt=i32))
    mod("embedding_pad", lambda: nn.Embedding(20, 6, padding_idx=0), I(20, 2, 3))
    mod("embedding_3d", lambda: nn.Embedding(20, 3), I(20, 2, 3, 2))
    mod("embedding_rank0", lambda: nn.Embedding(20, 3), I(20))
    op("embedding_input", lambda w, i: F.embedding(i, w), R(10, 4), I(10, 5))
    op("index_0", lambda x, i: x[i], R(9, 4), I(9, 5))
    op("index_0_1d", lambda x, i: x[i], R(9), I(9, 5))
    op("index_1", lambda x, i: x[:, i], R(3, 7, 2), I(7, 4))
    op("index_last", lambda x, i: x[..., i], R(3, 2, 7), I(7, 4))
    op("index_i32", lambda x, i: x[i], R(9, 4), I(9, 5, dt=i32))
    op("index_ints", lambda x, i: x[i], I(99, 9, 4), I(9, 5))
    op("index_neg", lambda x, i: x[i], R(9, 4), K([-1, 0, -9, 3]))
    op("index_2d", lambda x, i: x[i], R(9, 4), I(9, 5, 2))
    op("index_pair", lambda x, i, j: x[i, j], R(6, 7), I(6, 4), I(7, 4))
    op("index_pair_bc", lambda x, i, j: x[i[:, None], j[None]], R(6, 7), I(6, 4), I(7, 3))
    op("index_0_2", lambda x, i, j: x[i, :, j], R(6, 2, 7), I(6, 4), I(7, 4))
    for d in (0, 1, 2, -1):
        op(f"index_select_dim{d}".replace("-", "m"), lambda x, i, d=d: x.index_select(d, i), R(5, 6, 7), I(5, 4))
    op("index_select_4d", lambda x, i: x.index_select(1, i), R(1, 6, 3, 2), I(6, 4, dt=i32))
    for s, d, q in [((4, 9), 1, (4, 3)), ((4, 9), 0, (2, 9)), ((4, 9), 0, (3, 5)), ((2, 3, 4), 2, (2, 3, 6)), ((2, 3, 4), 1, (1, 5, 4)), ((7,), 0, (3,)), ((2, 3, 4, 2), -1, (2, 2, 4, 3))]:
        op(f"gather_{tag(s)}_{d}".replace("-", "m") + f"_{tag(q)}", lambda x, i, d=d: x.gather(d, i), R(*s), I(s[d], *q))
    op("take_along", lambda x, i: torch.take_along_dim(x, i, 1), R(3, 5), I(5, 3, 2))

    # ---- convolutions
    def c2(name, cin, cout, k, size, **kw):
        b = kw.pop("batch", 1)
        mod(f"conv2d_{name}", lambda: nn.Conv2d(cin, cout, k, **kw), R(b, cin, *size))
    c2("3x3", 3, 8, 3, (8, 8), padding=1)
    c2("odd", 5, 7, (3, 2), (11, 9), stride=2, padding=(1, 0))
    c2("dil", 4, 6, 3, (9, 10), dilation=2, bias=False)
    c2("dil_21", 4, 4, 3, (9, 10), dilation=(2, 1), padding=(2, 1))
    c2("dw", 8, 8, 3, (7, 6), padding=1, groups=8)
    c2("dw_s2", 4, 4, 5, (9, 9), stride=2, padding=2, groups=4)
    c2("dw_odd", 3, 3, 3, (7, 6), groups=3)
    c2("dw_mult", 4, 8, 3, (6, 6), groups=4)
    c2("dw_dil", 4, 4, 3, (9, 8), dilation=2, groups=4, bias=False)
    c2("grouped", 8, 8, 3, (6, 6), padding=1, groups=2)
    c2("grouped4", 8, 16, 1, (5, 4), groups=4)
    c2("grouped_odd", 6, 9, 3, (6, 6), groups=3)
    c2("pw", 16, 12, 1, (5, 5))
    c2("pw_odd", 5, 3, 1, (3, 7), bias=False)
    c2("pw_s2", 6, 4, 1, (7, 7), stride=2)
    c2("1x1img", 4, 6, 1, (1, 1))
    c2("full", 3, 5, 4, (4, 4))
    c2("1x5", 3, 4, (1, 5), (4, 9), padding=(0, 2))
    c2("stride_21", 3, 4, 3, (9, 9), stride=(2, 1), padding=1)
    c2("batch2", 3, 4, 3, (6, 6), padding=1, batch=2)
    c2("same", 3, 4, 3, (6, 5), padding="same")
    c2("reflect", 3, 4, 3, (6, 5), padding=1, padding_mode="reflect")
    c2("kernel7", 1, 2, 7, (9, 9), padding=3)
    mod("conv2d_relu", lambda: nn.Sequential(nn.Conv2d(4, 8, 3), nn.ReLU()), R(1, 4, 6, 6))
    mod("conv2d_relu6", lambda: nn.Sequential(nn.Conv2d(4, 5, 3), nn.ReLU6()), R(1, 4, 6, 6))
    mod("conv2d_hardtanh", lambda: nn.Sequential(nn.Conv2d(4, 4, 1), nn.Hardtanh(-0.3, 0.4)), R(1, 4, 6, 6))
    mod("conv2d_dw_relu", lambda: nn.Sequential(nn.Conv2d(4, 4, 3, groups=4), nn.ReLU()), R(1, 4, 6, 6))
    mod("conv2d_bn", lambda: randomised(nn.Sequential(nn.Conv2d(4, 5, 3), nn.BatchNorm2d(5))), R(1, 4, 6, 6))
    mod("conv2d_bn_relu6", lambda: randomised(nn.Sequential(nn.Conv2d(4, 8, 3, bias=False), nn.BatchNorm2d(8), nn.ReLU6())), R(1, 4, 6, 6))
    mod("conv2d_twice", lambda: Const(lambda x, w: F.conv2d(F.conv2d(x, w, padding=1), w, padding=1), w=torch.randn(3, 3, 3, 3) * 0.3), R(1, 3, 5, 5))
    op("conv2d_dyn_weight", lambda x, w: F.conv2d(x, w), R(1, 3, 6, 6), R(4, 3, 3, 3))
    mod("conv2d_unbatched", lambda: nn.Conv2d(3, 4, 3), R(3, 6, 6))
    for nm, kw in [("", {}), ("s2", dict(stride=2, padding=1)), ("s2_op", dict(stride=2, padding=1, output_padding=1)), ("s3", dict(stride=3)), ("nb", dict(stride=2, bias=False)), ("dil", dict(dilation=2)), ("g2", dict(groups=2, stride=2)), ("s21", dict(stride=(2, 1), padding=(0, 1)))]:
        mod(f"convT2d_{nm}", lambda kw=kw: nn.ConvTranspose2d(6, 4, 3, **kw), R(1, 6, 4, 5))
    mod("convT2d_k2s2", lambda: nn.ConvTranspose2d(4, 8, 2, stride=2), R(1, 4, 5, 3))
    mod("convT2d_dw", lambda: nn.ConvTranspose2d(4, 4, 3, stride=2, groups=4), R(1, 4, 4, 4))
    mod("convT2d_relu", lambda: nn.Sequential(nn.ConvTranspose2d(4, 4, 2, stride=2), nn.ReLU()), R(1, 4, 3, 3))
    for nm, a, s, kw in [("", (6, 10, 5), (1, 6, 13), dict(padding=2)), ("pw", (6, 4, 1), (1, 6, 9), {}), ("dw", (4, 4, 3), (1, 4, 9), dict(groups=4, padding=1)), ("s2", (3, 5, 3), (1, 3, 10), dict(stride=2)),
                        ("dil", (3, 4, 3), (1, 3, 12), dict(dilation=3, bias=False)), ("g2", (4, 8, 3), (1, 4, 7), dict(groups=2)), ("b2", (3, 4, 3), (2, 3, 7), dict(padding=1)), ("pw_b2", (3, 4, 1), (2, 3, 7), {}), ("k_all", (3, 4, 7), (1, 3, 7), {})]:
        mod(f"conv1d_{nm}", lambda a=a, kw=kw: nn.Conv1d(*a, **kw), R(*s))
    mod("conv1d_relu", lambda: nn.Sequential(nn.Conv1d(4, 6, 3), nn.ReLU()), R(1, 4, 9))
    mod("convT1d", lambda: nn.ConvTranspose1d(4, 3, 4, stride=2, padding=1), R(1, 4, 6))
    mod("convT1d_op", lambda: nn.ConvTranspose1d(4, 3, 3, stride=3, output_padding=2), R(1, 4, 5))
    mod("conv3d", lambda: nn.Conv3d(2, 3, 3, padding=1), R(1, 2, 4, 5, 4))
    mod("conv3d_s2", lambda: nn.Conv3d(2, 4, (1, 2, 3), stride=(1, 2, 2), bias=False), R(1, 2, 3, 5, 6))
    mod("convT3d", lambda: nn.ConvTranspose3d(2, 3, 2, stride=2), R(1, 2, 2, 3, 2))

    # ---- pooling and images
    for nm, a, kw, s in [("2", (2,), {}, (1, 4, 6, 6)), ("3_2_1", (3, 2, 1), {}, (1, 3, 9, 8)), ("ceil", (3, 2), dict(ceil_mode=True), (1, 3, 8, 8)), ("dil", (2,), dict(stride=1, dilation=2), (1, 3, 7, 6)),
                         ("rect", ((2, 3), (1, 2)), {}, (1, 2, 5, 9)), ("b2", (2,), {}, (2, 3, 4, 6)), ("ceil_pad", (3, 2, 1), dict(ceil_mode=True), (1, 2, 8, 7)), ("3d_in", (2,), {}, (3, 6, 4)), ("odd", (2,), {}, (1, 5, 7, 5))]:
        mod(f"max_pool2d_{nm}", lambda a=a, kw=kw: nn.MaxPool2d(*a, **kw), R(*s))
    mod("max_pool2d_indices", lambda: nn.MaxPool2d(2, return_indices=True), R(1, 3, 6, 4))
    mod("max_pool2d_indices_pad", lambda: nn.MaxPool2d(3, 2, 1, return_indices=True), R(1, 2, 7, 6))
    for nm, a, kw, s in [("2", (2,), {}, (1, 4, 6, 6)), ("pad", (3, 2, 1), {}, (1, 3, 9, 8)), ("pad_excl", (3, 2, 1), dict(count_include_pad=False), (1, 3, 9, 8)), ("ceil", (3, 2), dict(ceil_mode=True), (1, 3, 8, 8)),
                         ("ceil_pad_excl", (3, 2, 1), dict(ceil_mode=True, count_include_pad=False), (1, 2, 8, 7)), ("div", (2,), dict(divisor_override=3), (1, 3, 4, 6)), ("rect", ((2, 3), (1, 2), (1, 0)), {}, (1, 2, 5, 9)),
                         ("b2", (2,), {}, (2, 3, 4, 6)), ("3d_in", (2,), {}, (3, 6, 4)), ("ceil_pad", (3, 2, 1), dict(ceil_mode=True), (1, 2, 8, 7))]:
        mod(f"avg_pool2d_{nm}", lambda a=a, kw=kw: nn.AvgPool2d(*a, **kw), R(*s))
    mod("avg_pool1d", lambda: nn.AvgPool1d(3, 2), R(1, 3, 9))
    mod("max_pool1d", lambda: nn.MaxPool1d(3, 2), R(1, 3, 9))
    mod("adaptive_avg_1", lambda: nn.AdaptiveAvgPool2d(1), R(1, 8, 6, 5))
    mod("adaptive_avg_div", lambda: nn.AdaptiveAvgPool2d((2, 3)), R(1, 4, 6, 6))
    mod("adaptive_avg_odd", lambda: nn.AdaptiveAvgPool2d((3, 2)), R(1, 4, 7, 5))
    mod("adaptive_max", lambda: nn.AdaptiveMaxPool2d((2, 2)), R(1, 4, 6, 6))
    for nm, kw in [("x2", dict(scale_factor=2)), ("size", dict(size=(7, 9))), ("down", dict(size=(2, 3))), ("frac", dict(scale_factor=1.5)), ("x21", dict(scale_factor=(2, 3))), ("same", dict(size=(5, 4))), ("one", dict(size=(1, 1)))]:
        op(f"upsample_nearest_{nm}", lambda x, kw=kw: F.interpolate(x, mode="nearest", **kw), R(1, 3, 5, 4))
        op(f"upsample_bilinear_{nm}", lambda x, kw=kw: F.interpolate(x, mode="bilinear", align_corners=False, **kw), R(1, 3, 5, 4))
        op(f"upsample_bilinear_ac_{nm}", lambda x, kw=kw: F.interpolate(x, mode="bilinear", align_corners=True, **kw), R(1, 2, 5, 4))
    op("upsample_nearest_b2", lambda x: F.interpolate(x, scale_factor=2), R(2, 3, 3, 4))
    op("upsample_bicubic", lambda x: F.interpolate(x, scale_factor=2, mode="bicubic"), R(1, 2, 4, 4))
    op("upsample_nearest1d", lambda x: F.interpolate(x, scale_factor=2), R(1, 3, 5))
    op("upsample_linear1d", lambda x: F.interpolate(x, scale_factor=2, mode="linear"), R(1, 3, 5))
    for nm, mode, pm, ac in [("border_ac", "bilinear", "border", True), ("zeros", "bilinear", "zeros", False), ("nearest", "nearest", "border", True)]:
        op(f"grid_sample_{nm}", lambda x, g, a=(mode, pm, ac): F.grid_sample(x, g, *a), R(1, 3, 5, 6), U(-1.2, 1.2, 1, 4, 7, 2), half=nm == "border_ac", half_tol=3e-2)
    op("grid_sample_b2", lambda x, g: F.grid_sample(x, g, "bilinear", "border", True), R(2, 3, 4, 5), U(-1, 1, 2, 3, 2, 2), half_tol=3e-2)

    # ---- empty tensors
    op("empty_add", lambda x: x + 1, R(0, 4))
    op("empty_slice", lambda x: (x[:, 2:2], x * 2), R(3, 4))
    op("empty_view", lambda x: x.view(0, 2, 2) * 2, R(0, 4))
    op("empty_sum", lambda x: x.sum(0, keepdim=True), R(0, 4))
    op("empty_mm", torch.mm, R(3, 0), R(0, 4))
    return t
