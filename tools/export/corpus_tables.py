"""Operators for every group of export_corpus.py, as tables of small programs.

Flags of an entry: half=False: not in half precision; only="d"/"p": only delegated/portable.
"""
import torch
import torch.nn.functional as F

from corpus_entries import *
from corpus_layers import layers


def common():
    t = Table()
    for part in (elementwise(), movement(), layers()):
        assert not t.keys() & part.keys()
        t.update(part)
    return t


def elementwise():
    """Operators of each element, or of two."""
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
    return t


def movement():
    """Copies, shapes, types and new tensors."""
    t = Table()
    op, mod = t.op, t.mod

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
    return t
