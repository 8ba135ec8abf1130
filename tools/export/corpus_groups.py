"""The groups of export_corpus.py: which cases, exported how."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from executorch.exir import ExecutorchBackendConfig
from executorch.exir.passes import MemoryPlanningPass
from torch.export import Dim

from corpus_nets import nets
from corpus_tables import *

FP16 = dict(atol=2e-3, rtol=2e-2)


def groups():
    return {"delegated": delegated(), "portable": portable(), "mixed": mixed(), "nets": net_group(), "dynamic": dynamic(), "fp16": fp16()}


def tolerance(entry):
    return {**FP16, "atol": entry.get("half_tol", FP16["atol"])}


def derived(entry, **kw):
    return {**{k: v for k, v in entry.items() if k not in ("half", "only")}, **kw}


# ------------------------------------------------------------------- delegated

def delegated():
    out = {n: derived(e) for n, e in common().items() if e.get("only", "d") == "d"}
    t = Table()
    # the same conversions spelled aten._to_copy / aten.clone instead of dim_order_ops
    plain = dict(edge={"_skip_dim_order": True})
    t.op("nodimorder_to_i32", lambda x: x.to(i32) + 1, R(3, 5, k=4.0), **plain)
    t.op("nodimorder_to_f32", lambda x: x.float() * 0.5, I(9, 3, 5), **plain)
    t.op("nodimorder_bool_f32", lambda x: (x > 0).float() + x, R(3, 5), **plain)
    t.op("nodimorder_clone", lambda x: x.clone() * 2, R(3, 5), **plain)
    t.op("nodimorder_f16", lambda x: x.half(), R(3, 5), atol=2e-3, rtol=2e-2, **plain)
    # kept whole by the partitioner or not: composite operators
    t.op("max_pool2d_composite", lambda x: torch.ops.aten.max_pool2d.default(x, [2, 2]), R(1, 3, 6, 6))
    t.op("copy_default", lambda a, b: torch.ops.aten.copy.default(a, b) + 1, R(3, 4), R(3, 4))
    t.op("t_copy", lambda a: torch.ops.aten.t_copy.default(a) + 1, R(3, 4))
    t.op("alias_copy", lambda a: torch.ops.aten.alias_copy.default(a) + 1, R(3, 4))
    t.op("permute_op", lambda a: torch.ops.aten.permute_copy.default(a, [1, 0]) * 2, R(3, 4))
    t.op("long_chain", lambda x: torch.tanh(torch.relu(torch.sigmoid(x * 3) - 0.4) * 2).exp() / 2 + x.abs().sqrt() - x.cos() * x.sin(), R(4, 9))
    t.op("diamond", lambda x: (lambda a: a * torch.relu(a) + torch.sigmoid(a) * a)(x + 1), R(4, 9))
    t.op("many_outputs", lambda x: tuple(x * (i + 1) for i in range(12)), R(3, 3))
    t.op("many_inputs", lambda *a: sum(a[1:], a[0]), *[R(3, 3) for _ in range(14)])
    t.op("big_elementwise", lambda x, y: torch.relu(x + y), R(3, 70001), R(3, 1))
    t.op("big_reduce", lambda x: x.sum(-1), R(2, 20000), atol=2e-2)
    t.op("big_rows", lambda x: torch.softmax(x, -1), R(70000, 2))
    t.op("big_mm", torch.mm, R(65, 130), R(130, 67))
    t.op("big_bool", lambda x: x > 0, R(3, 21845))
    t.mod("big_linear", lambda: nn.Linear(513, 300), R(5, 513), atol=2e-4)
    t.mod("big_conv", lambda: nn.Conv2d(33, 40, 3, padding=1), R(1, 33, 17, 19), atol=2e-4)
    for key in ("skip_memory_planning", "skip_tag_memory_metadata", "small_texture_limits", "skip_bool_tensors"):
        t.mod(f"opt_{key}", lambda: randomised(nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(64, 5))), R(1, 3, 6, 6), options={key: True})
        t.op(f"opt_{key}_op", lambda a, b: torch.where(a > b, a, b).sum(-1, keepdim=True) * a, R(5, 6), R(6), options={key: True})
    t.op("opt_no_downcast_f32", lambda a: a * 2 + 1, R(5, 6), options={"downcast_64_bit": False})
    t.op("opt_no_downcast_i64", lambda a: a * 2 + 1, I(9, 5, 6), options={"downcast_64_bit": False})
    t.op("opt_no_downcast_f64", lambda a: a * 2 + 1, R(5, 6, dt=f64), options={"downcast_64_bit": False})
    t.mod("opt_no_downcast_embedding", lambda: nn.Embedding(20, 6), I(20, 2, 3), options={"downcast_64_bit": False})
    t.op("f64_add", lambda a, b: a * b + 1, R(5, 6, dt=f64), R(6, dt=f64))
    t.op("f64_softmax", lambda a: torch.softmax(a, -1), R(5, 6, dt=f64))
    out.update({n: derived(e) for n, e in t.items()})
    return out


# ------------------------------------------------------------------------ fp16

def fp16():
    out = {}
    for j, (n, e) in enumerate(common().items()):
        if e.get("half", True) is False:
            continue
        if j % 3 == 0:
            out[f"ff_{n}"] = derived(e, options={"force_fp16": True}, half="values", **tolerance(e))
        if j % 4 == 0:
            out[f"hm_{n}"] = derived(e, half="module", **tolerance(e))
    # every kind at least once, whatever the strides above took
    kinds = ["add_7x33_7x33", "sub_7x33_7x33", "mul_7x33_7x33", "div_7x33_7x33", "minimum_7x33_7x33", "pow_tt_7x33_7x33", "gelu", "gelu_tanh", "softmax_4x33_m1", "log_softmax_4x33_m1",
             "layer_norm_1", "group_norm_4d", "batch_norm2d", "rms_norm", "mm_17_33_9", "bmm_3_7_12_5", "linear_17_33_9", "addmm_4_8_16", "conv2d_3x3", "conv2d_dw", "conv2d_pw", "convT2d_s2",
             "conv1d_", "max_pool2d_2", "avg_pool2d_2", "embedding", "index_0", "index_select_dim1", "gather_4x9_1_4x3", "upsample_bilinear_x2", "upsample_nearest_x2", "pixel_shuffle_1x12x5x4_2",
             "permute_f32", "cat_f32", "slice_f32", "select_f32", "expand_f32", "repeat_f32", "flip_f32", "split_f32", "pad_f32", "where_5x7_5x7_5x7", "eq_same", "lt_scalar", "sum_last", "mean_hw_keep",
             "amax_last", "argmax_last", "sdpa", "conv2d_relu", "full", "arange", "clamp", "pow_2", "to_f32_i32", "to_i64_f32", "to_bool_f32", "const_reuse", "unfold_2x9_1_4_1", "hardswish", "sigmoid", "nn_rms_norm"]
    table = common()
    for n in kinds:
        for p, kw in (("ff", dict(options={"force_fp16": True}, half="values")), ("hm", dict(half="module"))):
            out.setdefault(f"{p}_{n}", derived(table[n], **kw, **tolerance(table[n])))
    for n, e in nets().items():
        out[f"ff_net_{n}"] = derived(e, options={"force_fp16": True}, half="values", atol=3e-2, rtol=3e-2, suite="net")
    for n in ("mlp", "resnet_block", "transformer_block", "autoencoder", "bert", "wavenet"):
        out[f"hm_net_{n}"] = derived(nets()[n], half="module", atol=3e-2, rtol=3e-2, suite="net")
    for n in ("mlp", "resnet_block", "transformer_block", "bert"):
        out[f"hp_net_{n}"] = derived(nets()[n], half="module", portable=True, atol=3e-2, rtol=3e-2, suite="net")
    t = Table()
    kw = dict(half="module", portable=True, **FP16)
    t.op("hp_add", lambda a, b: a + b * 2, R(3, 5), R(5), **kw)
    t.op("hp_mm", torch.mm, R(3, 5), R(5, 4), **kw)
    t.op("hp_softmax", lambda a: torch.softmax(a, -1), R(3, 5), **kw)
    t.op("hp_sum", lambda a: a.sum(-1), R(3, 5), **kw)
    t.op("hp_gelu", F.gelu, R(3, 5), **kw)
    t.op("hp_sigmoid", torch.sigmoid, R(3, 5), **kw)
    t.op("hp_gt", lambda a, b: torch.where(a > b, a, b), R(3, 5), R(5), **kw)
    t.op("hp_cat", lambda a, b: torch.cat([a, b]), R(3, 5), R(1, 5), **kw)
    t.mod("hp_conv2d", lambda: nn.Conv2d(3, 4, 3), R(1, 3, 5, 5), **kw)
    t.mod("hp_layer_norm", lambda: randomised(nn.LayerNorm(6)), R(3, 6), **kw)
    t.mod("hp_linear", lambda: nn.Linear(6, 5), R(3, 6), **kw)
    t.op("hp_cumsum_mixed", lambda a: torch.relu(torch.cumsum(a * 2, 1)) + 1, R(3, 5), half="module", **FP16)
    t.op("ff_cumsum_mixed", lambda a: torch.relu(torch.cumsum(a * 2, 1)) + 1, R(3, 5), half="values", options={"force_fp16": True}, **FP16)
    t.op("ff_inputs_mixed", lambda a, i, m: torch.where(m, a, -a).index_select(1, i) * 2, R(3, 5), I(5, 4), B(3, 5), half="values", options={"force_fp16": True}, **FP16)
    t.op("hm_half_and_float", lambda a, b: a.float() + b, R(3, 5, dt=f16), R(3, 5), **FP16)
    t.op("hm_float_to_half", lambda a: a.half() * 2, R(3, 5), half="values", **FP16)
    n = Dim("n", min=1, max=32)
    t.mod("ff_dyn_linear", lambda: nn.Linear(8, 6), R(32, 8), dynamic=({0: n},), runs=[(R(k, 8),) for k in (32, 1, 7)], half="values", options={"force_fp16": True}, suite="dynamic", **FP16)
    t.mod("hm_dyn_linear", lambda: nn.Linear(8, 6), R(32, 8), dynamic=({0: n},), runs=[(R(k, 8),) for k in (32, 1, 7)], half="module", suite="dynamic", **FP16)
    t.op("ff_dyn_softmax", lambda a: torch.softmax(a, -1), R(4, 32), dynamic=({1: n},), runs=[(R(4, k),) for k in (32, 1, 7)], half="values", options={"force_fp16": True}, suite="dynamic", **FP16)
    out.update(t)
    return out


# -------------------------------------------------------------------- portable

def portable():
    out = {n: derived(e, portable=True) for n, e in common().items() if e.get("only", "p") == "p"}
    t = Table()
    op, mod = t.op, t.mod
    un = [("log", torch.log, U(0.2, 4, 3, 7)), ("log2", torch.log2, U(0.2, 4, 3, 7)), ("log1p", torch.log1p, U(-0.5, 4, 3, 7)), ("expm1", torch.expm1, R(3, 7)), ("erf", torch.erf, R(3, 7)), ("floor", torch.floor, R(3, 7, k=3)), ("ceil", torch.ceil, R(3, 7, k=3)),
          ("trunc", torch.trunc, R(3, 7, k=3)), ("sign", torch.sign, K([-2.0, 0.0, 3.5])), ("softplus", F.softplus, R(3, 7, k=3)), ("mish", F.mish, R(3, 7)), ("elu", F.elu, R(3, 7)), ("celu", F.celu, R(3, 7)), ("selu", F.selu, R(3, 7)),
          ("logit", torch.logit, U(0.1, 0.9, 3, 7)), ("asin", torch.asin, U(-0.9, 0.9, 3, 7)), ("acos", torch.acos, U(-0.9, 0.9, 3, 7)), ("atan", torch.atan, R(3, 7)), ("sinh", torch.sinh, R(3, 7)), ("cosh", torch.cosh, R(3, 7)), ("tan", torch.tan, U(-1, 1, 3, 7)),
          ("asinh", torch.asinh, R(3, 7)), ("atanh", torch.atanh, U(-0.9, 0.9, 3, 7)), ("isnan", torch.isnan, K([1.0, float("nan"), 2.0])), ("isinf", torch.isinf, K([1.0, float("inf"), -float("inf")])), ("logsigmoid", F.logsigmoid, R(3, 7)),
          ("softsign", F.softsign, R(3, 7)), ("tanhshrink", F.tanhshrink, R(3, 7)), ("softshrink", F.softshrink, R(3, 7)), ("threshold", lambda x: F.threshold(x, 0.1, 20), R(3, 7)), ("frac", torch.frac, R(3, 7, k=3))]
    for n, fn, a in un:
        op(f"x_{n}", fn, a)
    for dt, nm in ((i32, "i32"), (i64, "i64"), (u8, "u8"), (i8, "i8"), (f64, "f64"), (i16, "i16")):
        lo = 0 if dt == u8 else -9
        a = lambda *s: R(*s, dt=f64) if dt == f64 else I(10, *s, lo=lo, dt=dt)
        for n, fn in [("add", torch.add), ("sub", torch.sub), ("mul", torch.mul), ("maximum", torch.maximum), ("minimum", torch.minimum), ("ne", torch.ne), ("lt", torch.lt), ("eq", torch.eq)]:
            if dt == u8 and n == "sub":
                continue
            op(f"x_{n}_{nm}", fn, a(3, 5), a(5))
        op(f"x_abs_{nm}", torch.abs, a(3, 5))
        op(f"x_sum_{nm}", lambda x: x.sum(1), a(3, 5))
        op(f"x_amax_{nm}", lambda x: x.amax(1), a(3, 5))
        op(f"x_relu_{nm}", torch.relu, a(3, 5))
        op(f"x_cat_{nm}", lambda x, y: torch.cat([x, y]), a(3, 5), a(1, 5))
        op(f"x_cumsum_{nm}", lambda x: torch.cumsum(x, 1), a(3, 5))
    for n, fn in [("sin_i64", torch.sin), ("sqrt_i32", torch.sqrt), ("sigmoid_i64", torch.sigmoid), ("mean_like", lambda x: x.float().mean(-1))]:
        op(f"x_{n}", fn, I(9, 3, 5, dt=i32 if "i32" in n else i64))
    op("x_add_scalar", lambda x: torch.ops.aten.add.Scalar(x, 2.5), R(3, 5))
    op("x_add_scalar_alpha", lambda x: torch.ops.aten.add.Scalar(x, 2, 3), I(9, 3, 5))
    op("x_sub_scalar", lambda x: torch.ops.aten.sub.Scalar(x, 2.5), R(3, 5))
    op("x_mul_scalar", lambda x: torch.ops.aten.mul.Scalar(x, -3), I(9, 3, 5))
    op("x_div_scalar", lambda x: torch.ops.aten.div.Scalar(x, 4), I(9, 3, 5))
    op("x_div_scalar_mode", lambda x: torch.ops.aten.div.Scalar_mode(x, 4, rounding_mode="floor"), I(9, 3, 5, lo=-9))
    op("x_maximum", torch.maximum, R(3, 5), R(5))
    op("x_max_other", lambda a, b: torch.max(a, b), R(3, 5), R(3, 1))
    op("x_ne", torch.ne, I(3, 3, 5), I(3, 5))
    op("x_remainder", torch.remainder, R(3, 5, k=4), Z(5))
    op("x_remainder_i64", torch.remainder, I(50, 3, 5, lo=-50), N(7, 5))
    op("x_remainder_scalar", lambda x: x % 3, I(50, 3, 5, lo=-50))
    op("x_fmod", torch.fmod, R(3, 5, k=4), Z(5))
    op("x_fmod_scalar", lambda x: torch.fmod(x, 1.5), R(3, 5, k=4))
    op("x_atan2", torch.atan2, R(3, 5), Z(5))
    op("x_bitwise_xor", torch.bitwise_xor, I(50, 3, 5), I(50, 5))
    op("x_bitwise_xor_bool", torch.bitwise_xor, B(3, 5), B(5))
    op("x_bitwise_and_i64", torch.bitwise_and, I(50, 3, 5), I(50, 5))
    op("x_bitwise_or_i32", torch.bitwise_or, I(50, 3, 5, dt=i32), I(50, 5, dt=i32))
    op("x_bitwise_not_i64", torch.bitwise_not, I(50, 3, 5, lo=-50))
    op("x_bitwise_scalar", lambda x: (x & 6) | 1, I(50, 3, 5))
    op("x_shift", lambda x: (x << 2) + (x >> 1), I(50, 3, 5))
    op("x_logical_xor", torch.logical_xor, B(3, 5), B(5))
    op("x_logical_and_f32", torch.logical_and, K([0.0, 1.0, -2.0]), K([1.0, 0.0, 3.0]))
    op("x_logical_not_i64", torch.logical_not, I(3, 3, 5))
    op("x_any", lambda x: x.any(), B(3, 5))
    op("x_any_dim", lambda x: x.any(1), B(3, 5, p=0.2))
    op("x_any_dims", lambda x: torch.any(x, (0, 2)), B(3, 5, 2, p=0.1))
    op("x_any_f32", lambda x: x.any(-1), K([[0.0, 0.0], [1.0, 0.0]]))
    op("x_all", lambda x: x.all(), B(3, 5, p=0.9))
    op("x_all_dim", lambda x: x.all(1, keepdim=True), B(3, 5, p=0.8))
    op("x_topk", lambda x: torch.topk(x, 3), R(4, 9))
    op("x_topk_smallest", lambda x: torch.topk(x, 2, 0, largest=False), R(5, 3))
    op("x_sort", lambda x: torch.sort(x, -1), R(4, 9))
    op("x_argsort", lambda x: torch.argsort(x, -1, descending=True), R(4, 9))
    op("x_nonzero_free_where", lambda x: torch.where(x > 0, 1, 0), R(4, 9))
    op("x_cumsum0", lambda x: torch.cumsum(x, 0), R(4, 5))
    op("x_cumsum_neg", lambda x: torch.cumsum(x, -1), R(2, 3, 4))
    op("x_cumsum_bool", lambda x: torch.cumsum(x, 1), B(3, 5))
    op("x_cumprod", lambda x: torch.cumprod(x, 1), R(3, 5))
    op("x_prod", lambda x: x.prod(-1), R(3, 5))
    op("x_prod_all", lambda x: x.prod(), R(3, 2))
    op("x_index_put", lambda x, i, v: x.index_put((i,), v), R(7, 4), K([1, 5, 3]), R(3, 4))
    op("x_index_put_acc", lambda x, i, v: x.index_put((i,), v, accumulate=True), R(7, 4), K([1, 5, 1]), R(3, 4))
    op("x_index_put_pair", lambda x, i, j, v: x.index_put((i, j), v), R(7, 4), K([1, 5, 3]), K([0, 2, 3]), R(3))
    op("x_index_put_dim1", lambda x, i, v: torch.ops.aten.index_put(x, [None, i], v), R(3, 7, 2), K([1, 5]), R(3, 2, 2))
    op("x_index_put_bool", lambda x, m: torch.ops.aten.index_put(x, [m], torch.tensor(0.5)), R(7), B(7))
    op("x_index_copy", lambda x, i, v: x.index_copy(0, i, v), R(7, 4), K([1, 5, 3]), R(3, 4))
    op("x_index_add", lambda x, i, v: x.index_add(0, i, v), R(7, 4), K([1, 5, 1]), R(3, 4))
    op("x_index_fill", lambda x, i: x.index_fill(1, i, 2.5), R(3, 4), K([1, 3]))
    op("x_scatter", lambda x, i, v: x.scatter(1, i, v), R(3, 6), K([[1, 3], [0, 2], [5, 4]]), R(3, 2))
    op("x_scatter_value", lambda x, i: x.scatter(1, i, 7.5), R(3, 6), K([[1, 3], [0, 2], [5, 4]]))
    op("x_scatter_add", lambda x, i, v: x.scatter_add(0, i, v), R(6, 3), I(6, 4, 3), R(4, 3))
    op("x_slice_scatter", lambda x, v: torch.slice_scatter(x, v, 1, 1, 5, 2), R(3, 6), R(3, 2))
    op("x_select_scatter", lambda x, v: torch.select_scatter(x, v, 1, 2), R(3, 6), R(3))
    op("x_slice_assign", lambda x, v: (lambda y: (y.__setitem__((slice(None), slice(1, 3)), v), y)[1])(x.clone()), R(3, 6), R(3, 2))
    op("x_select_assign", lambda x: (lambda y: (y.__setitem__((slice(None), 2), 9.0), y)[1])(x.clone()), R(3, 6))
    op("x_masked_scatter", lambda x, m, v: x.masked_scatter(m, v), R(7), B(7), R(7))
    op("x_masked_select_free", lambda x: x * (x > 0), R(7))
    op("x_tril", lambda x: torch.tril(x), R(5, 6))
    op("x_triu_1", lambda x: torch.triu(x, 1), R(2, 5, 6))
    op("x_tril_m1_i64", lambda x: torch.tril(x, -1), I(9, 5, 4))
    op("x_triu_bool", lambda x: torch.triu(x, 0), B(4, 4))
    op("x_masked_fill", lambda x, m: x.masked_fill(m, -1.5), R(3, 5), B(5))
    op("x_masked_fill_i64", lambda x, m: x.masked_fill(m, 4), I(9, 3, 5), B(3, 1))
    op("x_diagonal", lambda x: torch.diagonal(x) * 2, R(4, 5))
    op("x_diag_embed", lambda x: torch.diag_embed(x), R(3))
    op("x_meshgrid", lambda a, b: torch.meshgrid(a, b, indexing="ij"), R(3), R(4))
    op("x_one_hot", lambda i: F.one_hot(i, 5), I(5, 6))
    op("x_bincount_free", lambda i: (i[:, None] == torch.arange(4)[None]).sum(0), I(4, 11))
    op("x_var_mean", lambda x: torch.var_mean(x, 1), R(3, 9))
    op("x_var_corr", lambda x: torch.var(x, (0, 1), correction=0), R(3, 4, 2))
    op("x_median", lambda x: torch.median(x, 1), R(3, 9))
    op("x_cdist", lambda a, b: torch.cdist(a, b), R(3, 4), R(5, 4))
    op("x_addcmul", lambda a, b, c: torch.addcmul(a, b, c, value=0.5), R(3, 4), R(3, 4), R(4))
    op("x_addcdiv", lambda a, b, c: torch.addcdiv(a, b, c, value=0.5), R(3, 4), R(3, 4), Z(4))
    op("x_lerp", lambda a, b: torch.lerp(a, b, 0.3), R(3, 4), R(3, 4))
    op("x_clamp_tensor", lambda a, lo, hi: torch.clamp(a, lo, hi), R(3, 4), K(-0.5), K(0.5))
    op("x_pow_scalar_base", lambda a: torch.pow(2.0, a), R(3, 4))
    op("x_exp2", torch.exp2, R(3, 4))
    op("x_cross", lambda a, b: torch.cross(a, b, dim=1), R(4, 3), R(4, 3))
    op("x_dist", lambda a, b: F.pairwise_distance(a, b), R(4, 3), R(4, 3))
    op("x_cosine", lambda a, b: F.cosine_similarity(a, b), R(4, 3), R(4, 3))
    op("x_mse", lambda a, b: F.mse_loss(a, b), R(4, 3), R(4, 3))
    op("x_cross_entropy", lambda a, b: F.cross_entropy(a, b), R(4, 3), I(3, 4))
    op("x_empty_like_fill", lambda a: torch.empty_like(a).fill_(2.0) + a, R(4, 3))
    op("x_new_full", lambda a: a.new_full((2, 3), 4.0), R(4, 3))
    op("x_rand_free_dropout", lambda a: F.dropout(a, 0.5, False), R(4, 3))
    op("x_narrow", lambda a: a.narrow(1, 1, 2), R(4, 5))
    op("x_as_strided", lambda a: torch.as_strided(a, (3, 2), (2, 1), 1) + 1, R(10))
    op("x_view_elided", lambda a: torch.relu(a.view(2, 6)).view(3, 4).view(12) + 1, R(3, 4))
    op("x_view_of_input_out", lambda a: a.view(2, 6), R(3, 4))
    op("x_view_out_and_use", lambda a: (lambda y: (y.view(12), y * 2))(a + 1), R(3, 4))
    op("x_squeeze_chain", lambda a: (a.unsqueeze(0).squeeze(1) + 1).unsqueeze(-1), R(1, 3))
    keepview = dict(config=lambda: ExecutorchBackendConfig(remove_view_copy=False))
    op("x_view_copy_kept", lambda a: torch.relu(a.view(2, 6)).view(3, 4) + 1, R(3, 4), **keepview)
    op("x_expand_view", lambda a: a.expand(3, 4).reshape(2, 6) * 2, R(3, 1))
    op("x_reinplace", lambda a: torch.relu(a + 1) * 2 - 1, R(3, 4), config=lambda: ExecutorchBackendConfig(run_reinplace_pass=True))
    op("x_reinplace_index_put", lambda a, i, v: (a + 1).index_put((i,), v) * 2, R(5, 4), K([1, 3]), R(2, 4), config=lambda: ExecutorchBackendConfig(run_reinplace_pass=True))
    mod("x_const_prop", lambda: Const(lambda x, a, b: x + (a * b).sum(0), a=torch.randn(3, 4), b=torch.randn(4)), R(3, 4), config=lambda: ExecutorchBackendConfig(do_quant_fusion_and_const_prop=True))
    nd = dict(edge={"_skip_dim_order": True})
    op("x_nodimorder_to", lambda x: x.to(i32), R(3, 5, k=4), **nd)
    op("x_nodimorder_clone", lambda x: x.clone() + 1, R(3, 5), **nd)
    op("x_nodimorder_zeros", lambda x: torch.zeros_like(x) + x.double(), R(3, 5), **nd)
    # channels last
    op("cl_add", lambda a, b: a + b, R(1, 3, 4, 5, cl=True), R(1, 3, 4, 5, cl=True), note="channels-last inputs and output")
    op("cl_relu_mul", lambda a: torch.relu(a) * 2, R(2, 3, 4, 5, cl=True))
    op("cl_add_const", lambda a: a + 1.5, R(1, 3, 4, 5, cl=True))
    op("cl_to_contig", lambda a: a.contiguous() + 1, R(1, 3, 4, 5, cl=True))
    op("cl_from_contig", lambda a: a.to(memory_format=torch.channels_last) * 2, R(1, 3, 4, 5))
    mod("cl_conv2d", lambda: nn.Conv2d(3, 4, 3), R(1, 3, 5, 6, cl=True))
    mod("cl_conv2d_w", lambda: nn.Conv2d(3, 4, 3).to(memory_format=torch.channels_last), R(1, 3, 5, 6, cl=True))
    mod("cl_conv_bn_relu", lambda: randomised(nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.Conv2d(4, 2, 1))), R(1, 3, 5, 6, cl=True))
    mod("cl_maxpool", lambda: nn.MaxPool2d(2), R(1, 3, 6, 4, cl=True))
    mod("cl_avgpool", lambda: nn.AvgPool2d(2), R(1, 3, 6, 4, cl=True))
    op("cl_mean", lambda a: a.mean((2, 3)), R(1, 3, 4, 5, cl=True))
    op("cl_clone", lambda a: a.clone(), R(1, 3, 4, 5, cl=True))
    op("cl_upsample", lambda a: F.interpolate(a, scale_factor=2), R(1, 3, 4, 5, cl=True))
    op("cl_inner", lambda a: (a.to(memory_format=torch.channels_last) * 2).contiguous() + 1, R(1, 3, 4, 5))
    op("cl_permute", lambda a: a.permute(0, 2, 3, 1) + 1, R(1, 3, 4, 5, cl=True))
    op("cl_cat", lambda a, b: torch.cat([a, b], 1), R(1, 3, 4, 5, cl=True), R(1, 2, 4, 5, cl=True))
    # structure
    op("multi_out", lambda a: (a + 1, a.sum(), (a > 0), a.to(i32)), R(3, 4))
    op("dict_out", lambda a: {"x": a + 1, "y": a * 2}, R(3, 4))
    op("nested_out", lambda a: (a + 1, [a * 2, (a - 1, a / 2)]), R(3, 4))
    op("const_out", lambda a: (a + 1, torch.tensor([1.0, 2.0])), R(3, 4))
    op("int_out", lambda a: (a + 1, 7), R(3, 4), note="a plain number among the outputs")
    op("int_input", lambda a, n: a * n, R(3, 4), 3, note="a plain number among the inputs")
    op("float_bool_inputs", lambda a, x, b: a * x + (1 if b else 0), R(3, 4), 0.5, True, note="plain values among the inputs")
    op("item", lambda a, i: a * i.sum().item(), R(3, 4), I(5, 3))
    op("identity", lambda a: a, R(3, 4))
    for n, e in t.items():
        out[n] = derived(e, portable=True)
    for n, e in nets().items():
        out[f"net_{n}"] = derived(e, portable=True, suite="net")
    return out


# ----------------------------------------------------------------------- mixed

class Counter(nn.Module):
    def __init__(self, dt=torch.int64):
        super().__init__()
        self.register_buffer("n", torch.zeros(1, dtype=dt))

    def forward(self, x):
        self.n.add_(1)
        return x + self.n


class Ema(nn.Module):
    def __init__(self, init=None):
        super().__init__()
        self.register_buffer("s", torch.zeros(4) if init is None else init)

    def forward(self, x):
        self.s.mul_(0.5).add_(x)
        return self.s * 2


class Accumulate(nn.Module):
    """Two buffers, one read before it is written."""

    def __init__(self):
        super().__init__()
        self.register_buffer("prev", torch.zeros(3, 4))
        self.register_buffer("total", torch.zeros(4))

    def forward(self, x):
        d = x - self.prev
        self.prev.copy_(x)
        self.total.add_(torch.cumsum(d, 0)[-1])
        return d, self.total.clone()


class Cache(nn.Module):
    """A key cache written by position, read whole."""

    def __init__(self, how):
        super().__init__()
        self.register_buffer("k", torch.zeros(6, 4))
        self.how = how

    def forward(self, x, pos):
        if self.how == "index_put":
            self.k[pos] = x
        elif self.how == "index_copy":
            self.k.index_copy_(0, pos, x)
        elif self.how == "where":
            m = (torch.arange(6) == pos)[:, None]
            self.k.copy_(torch.where(m, x, self.k))
        return torch.softmax(x @ self.k.t(), -1) @ self.k


class Ring(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("h", torch.zeros(1, 5, 3))

    def forward(self, x):
        self.h.copy_(torch.cat([self.h[:, 1:], x], 1))
        return self.h.mean(1)


class GruState(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.GRUCell(4, 6)
        self.register_buffer("h", torch.zeros(1, 6))

    def forward(self, x):
        self.h.copy_(self.cell(x, self.h))
        return self.h + 0


class Cond(nn.Module):
    def __init__(self, pred):
        super().__init__()
        self.pred = pred

    def forward(self, x, y):
        return torch.cond(self.pred(x), lambda a, b: torch.sin(a) + b, lambda a, b: a * b - 1.0, (x, y))


class CondNested(nn.Module):
    def forward(self, x):
        def inner_true(a):
            return a * 2.0

        def inner_false(a):
            return a - 3.0

        def true(a):
            return torch.cond(a.sum() > 2, inner_true, inner_false, (a,))

        def false(a):
            return torch.relu(a) + 1.0
        return torch.cond(x[0, 0] > 0, true, false, (x,)) + 0.5


class CondTwo(nn.Module):
    def forward(self, x):
        a, b = torch.cond(x.mean() > 0, lambda t: (t + 1.0, t * 2.0), lambda t: (t - 1.0, t / 2.0), (x,))
        return a * b, a - b


class Map(nn.Module):
    def forward(self, xs, y):
        from torch._higher_order_ops.map import map as tmap
        return tmap(lambda x, q: torch.relu(x) * q + 1.0, xs, y)


class MapLinear(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.randn(4, 3))

    def forward(self, xs):
        from torch._higher_order_ops.map import map as tmap
        return tmap(lambda x, w: torch.tanh(x @ w), xs * 2, self.w) + 1


class Scan(nn.Module):
    def forward(self, init, xs):
        from torch._higher_order_ops.scan import scan
        return scan(lambda c, x: (c + x, c * x), init, xs)


class While(nn.Module):
    def forward(self, x):
        from torch._higher_order_ops.while_loop import while_loop
        return while_loop(lambda i, a: i < 4, lambda i, a: (i + 1, a * 1.5 + 1.0), (torch.tensor(0), x))


def mixed():
    t = Table()
    op, mod = t.op, t.mod
    # several delegates with kernels between
    op("two_delegates", lambda x: torch.relu(torch.cumsum(x * 2, 1)) + 1, R(3, 7))
    op("three_delegates", lambda x: torch.cumsum(torch.relu(torch.cumsum(x * 2, 1)) + 1, 0) * x, R(3, 7))
    op("five_delegates", lambda x: (lambda f: f(f(f(f(x)))))(lambda y: torch.cumsum(torch.tanh(y) * 0.5, 0) + x), R(3, 7))
    op("maximum_between", lambda a, b: torch.maximum(a * 2, b + 1).exp() * 0.1, R(3, 7), R(7))
    op("log_between", lambda a: torch.log(torch.sigmoid(a)) * 2, R(3, 7))
    op("erf_between", lambda a: torch.erf(a * 0.5) + a, R(3, 7))
    op("ne_between", lambda a, b: torch.where(torch.ne(a, b), a * 2, b - 1), R(3, 7), R(3, 7))
    op("sum_first", lambda a: (a * 2).sum(0) + 1, R(4, 5))
    op("mean_hw", lambda a: torch.relu(a).mean((2, 3)) * 2, R(1, 4, 5, 6))
    op("any_between", lambda a: torch.where((a > 1).any(1, keepdim=True), a, -a) * 2, R(4, 5))
    op("tril_between", lambda a: torch.softmax(torch.tril(a * 2) + 1, -1), R(5, 5))
    op("topk_between", lambda a: torch.topk(a * 2, 3)[0] + 1, R(3, 7))
    op("sort_between", lambda a: torch.sort(a * 2, -1)[0].exp(), R(3, 7))
    op("index_put_between", lambda a, v: (a + 1).index_put((torch.tensor([0, 2]),), v * 2) * 3, R(4, 5), R(2, 5))
    op("scatter_between", lambda a, i, v: (a + 1).scatter(1, i, v * 2) * 3, R(3, 6), K([[1, 3], [0, 2], [5, 4]]), R(3, 2))
    op("remainder_between", lambda a: torch.remainder(a * 3, 2.0) + 1, R(3, 7))
    op("floor_between", lambda a: torch.floor(a * 3) + a, R(3, 7))
    op("add_scalar_between", lambda a: torch.ops.aten.add.Scalar(a * 2, 1.5).exp(), R(3, 7))
    op("int_between", lambda i: torch.remainder(i * 3, 5) + 1, I(9, 3, 7))
    op("bool_between", lambda a, b: torch.logical_not(torch.logical_xor(a > 0, b > 0)), R(3, 7), R(7))
    op("f64_between", lambda a: (a * 2).double().cumsum(1).float() + 1, R(3, 7))
    op("argmax_gather", lambda a: (a * 2).gather(1, a.argmax(0, keepdim=True)) + 1, R(3, 7))
    op("high_dim", lambda a: torch.relu(a * 2).flip(3) + 1, R(2, 1, 2, 3, 2))
    op("const_to_both", lambda a: torch.cumsum(a * torch.arange(7.0), 1) + torch.arange(7.0), R(3, 7))
    mod("param_to_both", lambda: Const(lambda x, w: torch.cumsum(x * w, 1) * w, w=torch.randn(7)), R(3, 7))
    mod("nn_rms_norm", lambda: randomised(nn.RMSNorm(12)), R(2, 3, 12))
    mod("conv3d_between", lambda: nn.Sequential(nn.ReLU(), nn.Conv3d(2, 3, 2), nn.ReLU(), nn.Flatten(), nn.Linear(36, 4)), R(1, 2, 3, 4, 3))
    mod("conv_batch2", lambda: nn.Sequential(nn.ReLU(), nn.Conv2d(2, 3, 3), nn.ReLU(), nn.Flatten(), nn.Linear(27, 4)), R(2, 2, 5, 5))
    op("outputs_from_all", lambda x: (lambda a: (a, torch.cumsum(a, 1), torch.relu(torch.cumsum(a, 1)) + a))(x * 2), R(3, 7))
    op("kernel_first_last", lambda x: torch.cumsum(torch.relu(torch.cumsum(x, 0)) + 1, 1), R(3, 7))
    op("unused_delegate_in", lambda x, y: torch.cumsum(x, 0) * 2 + y, R(3, 7), R(7))
    # no delegate takes part
    op("only_kernels", lambda x: torch.cumsum(x, 0), R(3, 7), portable=True)
    # mutable buffers
    for p in (False, True):
        s = "_p" if p else ""
        kw = dict(portable=p, repeat=4)
        mod("counter" + s, lambda: Counter(), R(4), **kw)
        mod("counter_f32" + s, lambda: Counter(torch.float32), R(4), **kw)
        mod("ema" + s, lambda: Ema(), R(4), **kw)
        mod("accumulate" + s, lambda: Accumulate(), R(3, 4), **kw)
        for how in ("index_put", "index_copy", "where"):
            mod(f"cache_{how}" + s, lambda how=how: Cache(how), R(1, 4), K([0]), runs=[(R(1, 4), K([j])) for j in (0, 1, 2, 5, 1)], portable=p)
        mod("ring" + s, lambda: Ring(), R(1, 1, 3), portable=p, repeat=7)
        mod("gru_state" + s, lambda: GruState(), R(1, 4), **kw)
    for n, m in (("counter_f32", lambda: Counter(torch.float32)), ("ema", lambda: Ema()), ("ring", lambda: Ring()), ("gru_state", lambda: GruState()), ("cache_where", lambda: Cache("where"))):
        ins = (R(1, 1, 3),) if n == "ring" else (R(1, 4),) if n == "gru_state" else (R(1, 4), K([0])) if "cache" in n else (R(4),)
        runs = dict(runs=[(R(1, 4), K([j])) for j in (0, 1, 2, 5, 1)]) if "cache" in n else dict(repeat=5)
        mod(n + "_alias", m, *ins, options={"alias_buffer_mutations": True}, **runs)

    def init(*names):
        def cfg():
            from executorch.exir.passes.init_mutable_pass import InitializedMutableBufferPass
            return ExecutorchBackendConfig(passes=[InitializedMutableBufferPass(list(names))])
        return cfg
    start = lambda: torch.tensor([1.0, -2.0, 3.0, 0.5])
    mod("ema_init_p", lambda: Ema(start()), R(4), repeat=4, portable=True, config=init("b_s"), note="mutable buffer with initial values")
    mod("ema_init", lambda: Ema(start()), R(4), repeat=4, config=init("b_s"), note="mutable buffer with initial values")
    mod("ema_init_alias", lambda: Ema(start()), R(4), repeat=4, options={"alias_buffer_mutations": True}, note="initial values inside the delegate")
    mod("ema_names_p", lambda: Ema(), R(4), repeat=3, portable=True, config=lambda: ExecutorchBackendConfig(emit_mutable_buffer_names=True))
    # mutated user inputs
    class AddIn(nn.Module):
        def forward(self, x, y):
            x.add_(y)
            return x * 2

    class MulIn(nn.Module):
        def forward(self, x, y):
            y.mul_(2)
            x.copy_(torch.cumsum(y, 0))
            return x + y

    for p in (False, True):
        s = "_p" if p else ""
        mod("mutate_input" + s, AddIn, R(3, 4), R(4), mutates=(0,), portable=p, repeat=2)
        mod("mutate_two" + s, MulIn, R(3, 4), R(3, 4), mutates=(0, 1), portable=p, repeat=2)
    # control flow
    for p in (False, True):
        s = "_p" if p else ""
        both = [(K([[1.0, 2.0], [3.0, 4.0]]), R(2, 2)), (K([[-1.0, -2.0], [3.0, -4.0]]), R(2, 2)), (K([[5.0, 2.0], [3.0, 4.0]]), R(2, 2))]
        mod("cond_sum" + s, lambda: Cond(lambda x: x.sum() > 0), R(2, 2), R(2, 2), runs=both, portable=p)
        mod("cond_elem" + s, lambda: Cond(lambda x: x[0, 1] > 0), R(2, 2), R(2, 2), runs=both, portable=p)
        mod("cond_nested" + s, CondNested, R(2, 2), runs=[(b[0],) for b in both] + [(K([[1.0, -9.0], [0.0, 0.0]]),)], portable=p)
        mod("cond_two" + s, CondTwo, R(2, 2), runs=[(b[0],) for b in both], portable=p)
        mod("map" + s, Map, R(4, 3), R(3), repeat=2, portable=p)
        mod("map_linear" + s, MapLinear, R(5, 2, 4), repeat=2, portable=p)
        mod("scan" + s, Scan, R(3), R(4, 3), repeat=2, portable=p)
        mod("while" + s, While, R(3), repeat=2, portable=p)
    # several methods
    class Two(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(6, 4)

        def forward(self, x):
            return self.fc(x)

    class Back(nn.Module):
        def __init__(self, other):
            super().__init__()
            self.fc = other.fc
            self.emb = nn.Embedding(5, 4)

        def forward(self, y, i):
            return torch.relu(y + self.emb(i)) @ self.fc.weight

    def pair():
        a = Two()
        return {"encode": a, "decode": Back(a)}
    for p in (False, True):
        s = "_p" if p else ""
        t.add("methods" + s, pair, {"encode": (R(2, 6),), "decode": (R(2, 4), I(5, 2))}, dict(portable=p, dynamic={}))
        t.add("methods_meta" + s, pair, {"encode": (R(2, 6),), "decode": (R(2, 4), I(5, 2))},
              dict(portable=p, dynamic={}, constant_methods={"get_vocab_size": 32000, "get_name": "abc", "use_kv_cache": True, "get_scale": 0.25, "get_eos_ids": [1, 2, 3]}))
        mod("meta" + s, lambda: nn.Linear(4, 3), R(2, 4), portable=p, constant_methods={"get_max_seq_len": 128, "get_flag": False, "get_table": torch.arange(4)} if False else {"get_max_seq_len": 128, "get_flag": False})

    # external data
    net = lambda: nn.Sequential(nn.Linear(8, 6), nn.ReLU(), nn.Linear(6, 5))
    for size in (200, 1000, 1000000):
        mod(f"ptd_vulkan_{size}", net, R(3, 8), options={"external_constants_max_data_bytes": size}, suite="ptd", need_ptd=True)
    mod("ptd_vulkan_conv", lambda: randomised(nn.Sequential(nn.Conv2d(2, 4, 3), nn.GroupNorm(2, 4), nn.ReLU())), R(1, 2, 6, 6), options={"external_constants_max_data_bytes": 300}, suite="ptd", need_ptd=True)
    mod("ptd_vulkan_mixed", lambda: Const(lambda x, a, b: torch.cumsum(x * a, 1) @ b, a=torch.randn(7), b=torch.randn(7, 4)), R(3, 7), options={"external_constants_max_data_bytes": 128}, suite="ptd", need_ptd=True)
    mod("ptd_portable", net, R(3, 8), portable=True, suite="ptd", need_ptd=True, config=lambda: ExecutorchBackendConfig(external_constants=True))
    mod("ptd_portable_tagged", net, R(3, 8), portable=True, suite="ptd", need_ptd=True, config=lambda: ExecutorchBackendConfig(external_constants=lambda node: "first" if node.name.startswith("p_0") else None))
    mod("ptd_portable_two", net, R(3, 8), portable=True, suite="ptd", need_ptd=True, config=lambda: ExecutorchBackendConfig(external_constants=lambda node: "first" if node.name.startswith("p_0") else "second"))
    mod("ptd_portable_mutable", net, R(3, 8), portable=True, suite="ptd", need_ptd=True, config=lambda: ExecutorchBackendConfig(external_mutable_weights=True))
    mod("ptd_both", lambda: Const(lambda x, a, b: torch.cumsum(x * a, 1) + torch.ops.aten.add.Scalar(b, 1.0), a=torch.randn(7), b=torch.randn(7)), R(3, 7), suite="ptd", need_ptd=True,
        options={"external_constants_max_data_bytes": 64}, config=lambda: ExecutorchBackendConfig(external_constants=True))
    mod("ptd_conv_cl", lambda: nn.Conv2d(2, 3, 3).to(memory_format=torch.channels_last), R(1, 2, 5, 5, cl=True), portable=True, suite="ptd", need_ptd=True, config=lambda: ExecutorchBackendConfig(external_constants=True))

    # exporter settings
    plan = lambda **kw: (lambda: ExecutorchBackendConfig(memory_planning_pass=MemoryPlanningPass(**kw)))
    settings = {
        "no_in": plan(alloc_graph_input=False), "no_out": plan(alloc_graph_output=False), "no_io": plan(alloc_graph_input=False, alloc_graph_output=False),
        "align1": plan(alignment=1), "align64": plan(alignment=64), "overlap": plan(allow_lifetime_and_storage_overlap=True),
        "inline": lambda: ExecutorchBackendConfig(extract_delegate_segments=False), "seg4": lambda: ExecutorchBackendConfig(segment_alignment=4), "seg4096": lambda: ExecutorchBackendConfig(segment_alignment=4096),
        "const64": lambda: ExecutorchBackendConfig(constant_tensor_alignment=64), "deleg16": lambda: ExecutorchBackendConfig(delegate_alignment=16), "stack": lambda: ExecutorchBackendConfig(emit_stacktrace=True),
        "noview": lambda: ExecutorchBackendConfig(remove_view_copy=False),
    }
    body = lambda: Const(lambda x, w: torch.relu(torch.cumsum(x @ w, 1)).view(5, 3) * 2 + 1, w=torch.randn(4, 5))
    for n, cfg in settings.items():
        mod(f"cfg_{n}", body, R(3, 4), config=cfg, repeat=2)
        mod(f"cfg_{n}_p", body, R(3, 4), config=cfg, repeat=2, portable=True)
    n = Dim("n", min=1, max=16)
    for key in ("no_io", "no_out", "inline"):
        op(f"cfg_{key}_dyn", lambda x: torch.cumsum(x * 2, 0) + 1, R(16, 3), config=settings[key], dynamic=({0: n},), runs=[(R(k, 3),) for k in (16, 1, 5)], suite="dynamic")
    mod("cfg_no_io_state", Ema, R(4), config=settings["no_io"], repeat=3)
    mod("cfg_inline_net", net, R(3, 8), config=settings["inline"])
    # channels last with delegates
    mod("cl_conv", lambda: nn.Conv2d(3, 4, 3), R(1, 3, 5, 6, cl=True))
    mod("cl_conv_relu", lambda: randomised(nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU())).to(memory_format=torch.channels_last), R(1, 3, 5, 6, cl=True))
    op("cl_add", lambda a, b: a + b, R(1, 3, 4, 5, cl=True), R(1, 3, 4, 5))
    op("cl_mixed", lambda a: torch.cumsum(a * 2, 1) + 1, R(1, 3, 4, 5, cl=True))
    op("cl_out", lambda a: (a * 2).to(memory_format=torch.channels_last), R(1, 3, 4, 5))
    # numbers travelling between delegates
    op("int_values", lambda x: torch.cumsum(x * 2, 0).view(x.shape[0] * 2, 3) + 1, R(16, 6), dynamic=({0: n},), runs=[(R(k, 6),) for k in (16, 1, 5)], suite="dynamic")
    op("int_values_expand", lambda x, y: y.expand(x.shape[0], 4) * 2 + x.sum(0)[0], R(16, 6), R(1, 4), dynamic=({0: n}, {}), runs=[(R(k, 6), R(1, 4)) for k in (16, 2, 5)], suite="dynamic")
    op("int_values_matmul", lambda x: torch.softmax(x @ x.transpose(-1, -2), -1) @ x, R(1, 2, 16, 4), dynamic=({2: n},), runs=[(R(1, 2, k, 4),) for k in (16, 1, 5)], suite="dynamic")
    op("int_values_arange", lambda x: torch.cumsum(x + torch.arange(x.shape[0])[:, None], 0) * 2, R(16, 3), dynamic=({0: n},), runs=[(R(k, 3),) for k in (16, 2, 5)], suite="dynamic")
    op("int_values_full", lambda x: x + torch.full((x.shape[0], 3), 2.0), R(16, 3), dynamic=({0: n},), runs=[(R(k, 3),) for k in (16, 2, 5)], suite="dynamic")
    op("int_values_prims", lambda x: torch.cumsum(x, 0)[: x.shape[0] - 1] * 2, R(16, 3), dynamic=({0: Dim("m", min=3, max=16)},), runs=[(R(k, 3),) for k in (16, 3, 5)], suite="dynamic")
    op("size_output", lambda x: (x * 2, x.shape[0]), R(16, 3), dynamic=({0: n},), runs=[(R(k, 3),) for k in (16, 2, 5)], suite="dynamic", note="a symbolic number among the outputs")
    return t


# ------------------------------------------------------------------------ nets

def net_group():
    out = {}
    for n, e in nets().items():
        out[n] = derived(e, suite="net")
    return out


# --------------------------------------------------------------------- dynamic

def dynamic():
    t = Table()
    n, m, big = Dim("n", min=1, max=32), Dim("m", min=1, max=16), Dim("big", min=1, max=300)

    def case(name, fn, shapes, dims, sizes=(32, 1, 7, 31), make=R, **kw):
        """shapes: with 'n' and 'm' for the dynamic ones; sizes: values of n, or pairs (n, m)."""
        n = Dim("n", min=min(q if isinstance(q, int) else q[0] for q in sizes), max=32)
        two = any("m" in s for s in shapes)
        sizes = [q if isinstance(q, tuple) else (q, 5) for q in sizes]
        if two:
            sizes = [(a, b if b != 5 else (16, 1, 9, 3, 16)[j % 5]) for j, (a, b) in enumerate(sizes)]
        mk = make if isinstance(make, (list, tuple)) else [make] * len(shapes)
        at = lambda a, b: tuple(f(*[a if d == "n" else b if d == "m" else d for d in s]) for s, f in zip(shapes, mk))
        dyn = tuple({j: {"n": n, "m": m}[d] for j, d in enumerate(s) if isinstance(d, str)} for s in shapes)
        build = fn if isinstance(fn, type(lambda: 0)) and kw.pop("module", False) else (lambda f=fn: Fn(f))
        t.add(name, build, at(32, 16), dict(dynamic=dyn, runs=[at(a, b) for a, b in sizes], suite="dynamic", **kw))

    ints = lambda hi: (lambda *s: I(hi, *s))
    for nm, fn in [("relu", torch.relu), ("sigmoid", torch.sigmoid), ("gelu", F.gelu), ("exp", torch.exp), ("neg", torch.neg), ("clamp", lambda x: x.clamp(-1, 1)), ("pow", lambda x: x ** 2), ("hardswish", F.hardswish), ("leaky_relu", F.leaky_relu)]:
        case(f"dyn_{nm}", fn, [("n", 6)], n)
    case("dyn_unary_4d", lambda x: torch.tanh(x) + 1, [(1, 3, "n", "m")], n)
    for nm, fn in [("add", torch.add), ("sub", torch.sub), ("mul", torch.mul), ("div", lambda a, b: a / (b.abs() + 0.5)), ("minimum", torch.minimum), ("gt", torch.gt), ("le", torch.le)]:
        case(f"dyn_{nm}", fn, [("n", 6), (6,)], n)
        case(f"dyn_{nm}_both", fn, [("n", 6), ("n", 6)], n)
    case("dyn_add_bc_col", torch.add, [("n", 1), (1, "m")], n)
    case("dyn_add_rank0", torch.add, [("n", 4), ()], n)
    case("dyn_add_i64", torch.add, [("n", 4), (4,)], n, make=ints(99))
    case("dyn_eq_scalar", lambda x: x == 1, [("n", 5)], n, make=ints(3))
    case("dyn_logical", lambda a, b: torch.logical_and(a, torch.logical_not(b)), [("n", 5), ("n", 5)], n, make=B)
    case("dyn_where", torch.where, [("n", 5), ("n", 5), (5,)], n, make=[B, R, R])
    case("dyn_to_float", lambda x: x.float() * 0.5, [("n", 5)], n, make=ints(9))
    case("dyn_bool_out", lambda x: x > 0, [("n",)], n, sizes=(32, 1, 2, 3, 5))
    # shapes
    case("dyn_view_flatten", lambda x: x.view(-1), [("n", 6)], n)
    case("dyn_view_split", lambda x: x.view(x.shape[0], 2, 3), [("n", 6)], n)
    case("dyn_view_merge", lambda x: x.view(x.shape[0] * 2, 3) + 1, [("n", 2, 3)], n)
    case("dyn_view_last", lambda x: x.view(2, 3, x.shape[1]) * 2, [(6, "n")], n)
    case("dyn_view_two", lambda x: x.reshape(x.shape[0], x.shape[1], 2, 2) + 1, [("n", "m", 4)], n)
    case("dyn_view_merge_two", lambda x: x.reshape(x.shape[0] * x.shape[1], 4) + 1, [("n", "m", 4)], n)
    case("dyn_unsqueeze", lambda x: x.unsqueeze(1) * 2, [("n", 6)], n)
    case("dyn_squeeze", lambda x: x.squeeze(0) * 2, [(1, "n", 6)], n)
    case("dyn_permute", lambda x: x.permute(2, 0, 1), [("n", 3, 4)], n)
    case("dyn_permute_two", lambda x: x.permute(1, 0, 2) + 1, [("n", "m", 2)], n)
    case("dyn_transpose", lambda x: x.t(), [("n", 6)], n)
    case("dyn_slice_const", lambda x: x[:, 1:4], [("n", 6)], n)
    case("dyn_slice_dyn", lambda x: x[1:], [("n", 6)], n, sizes=(32, 3, 7))
    case("dyn_slice_last", lambda x: x[-1:], [("n", 6)], n)
    case("dyn_slice_step", lambda x: x[::2] * 2, [("n", 6)], n, sizes=(32, 3, 8, 31))
    case("dyn_slice_half", lambda x: x[: x.shape[0] - 2], [("n", 3)], n, sizes=(32, 4, 9))
    case("dyn_select_last", lambda x: x[-1] * 2, [("n", 6)], n)
    case("dyn_select_last_tok", lambda x: x[:, -1], [(1, "n", 6)], n)
    case("dyn_select_first", lambda x: x[0] + x[-1], [("n", 6)], n)
    case("dyn_cat_dyn", lambda a, b: torch.cat([a, b], 0), [("n", 4), ("m", 4)], n)
    case("dyn_cat_other", lambda a, b: torch.cat([a, b], 1), [("n", 4), ("n", 3)], n)
    case("dyn_cat_self", lambda a: torch.cat([a, a * 2], 0), [("n", 4)], n)
    case("dyn_split", lambda x: torch.split(x, [2, 4], 1), [("n", 6)], n)
    case("dyn_chunk", lambda x: (lambda a, b: a * torch.sigmoid(b))(*torch.chunk(x, 2, -1)), [("n", 6)], n)
    case("dyn_expand", lambda x, y: y.expand(x.shape[0], 4) + x, [("n", 4), (1, 4)], n)
    case("dyn_repeat", lambda x: x.repeat(2, 1), [("n", 4)], n)
    case("dyn_flip", lambda x: x.flip(0), [("n", 4)], n)
    case("dyn_pad", lambda x: F.pad(x, (1, 2)), [("n", 4)], n)
    case("dyn_pad_dyn", lambda x: F.pad(x, (1, 2)), [(3, "n")], n)
    case("dyn_pixel_shuffle", lambda x: F.pixel_shuffle(x, 2), [(1, 4, "n", 3)], n)
    case("dyn_arange", lambda x: x + torch.arange(x.shape[1]), [(2, "n")], n)
    case("dyn_full", lambda x: x + torch.full((x.shape[0], 1), 2.5), [("n", 3)], n)
    case("dyn_zeros_like", lambda x: torch.zeros_like(x) - x, [("n", 3)], n)
    case("dyn_causal", lambda x: torch.where(torch.arange(x.shape[0])[:, None] >= torch.arange(x.shape[1])[None], x, -100.0), [("n", "n")], n)
    case("dyn_unfold", lambda x: x.unfold(1, 3, 1), [(2, "n")], n, sizes=(32, 4, 7))
    # reductions, norms
    for nm, fn in [("sum", torch.sum), ("mean", torch.mean), ("amax", torch.amax), ("amin", torch.amin)]:
        case(f"dyn_{nm}_row", lambda x, f=fn: f(x, -1), [("n", 6)], n)
        case(f"dyn_{nm}_dyn", lambda x, f=fn: f(x, -1, keepdim=True), [(3, "n")], n)
        case(f"dyn_{nm}_keep0", lambda x, f=fn: f(x, 0, keepdim=True), [("n", 4)], n)
    case("dyn_mean_hw", lambda x: x.mean((2, 3), keepdim=True), [(1, 4, "n", "m")], n)
    case("dyn_argmax", lambda x: x.argmax(-1), [("n", 6)], n)
    case("dyn_argmax_dyn", lambda x: x.argmax(-1), [(3, "n")], n)
    case("dyn_softmax_row", lambda x: torch.softmax(x, -1), [("n", 6)], n)
    case("dyn_softmax_dyn", lambda x: torch.softmax(x, -1), [(3, "n")], n)
    case("dyn_softmax_dim0", lambda x: torch.softmax(x, 0), [("n", 3)], n)
    case("dyn_log_softmax", lambda x: torch.log_softmax(x, -1), [("n", "m")], n)
    case("dyn_layer_norm", lambda: randomised(nn.LayerNorm(6)), [("n", 6)], n, module=True)
    case("dyn_layer_norm_3d", lambda: randomised(nn.LayerNorm(6)), [(2, "n", 6)], n, module=True)
    case("dyn_rms_norm", lambda: RMSNorm(6), [(1, "n", 6)], n, module=True)
    case("dyn_nn_rms_norm", lambda: randomised(nn.RMSNorm(6)), [(1, "n", 6)], n, module=True)
    case("dyn_batch_norm", lambda: randomised(nn.BatchNorm2d(3)), [(1, 3, "n", "m")], n, module=True)
    case("dyn_group_norm", lambda: randomised(nn.GroupNorm(2, 4)), [(1, 4, "n", 3)], n, module=True)
    # matrices
    case("dyn_linear", lambda: nn.Linear(6, 5), [("n", 6)], n, module=True)
    case("dyn_linear_3d", lambda: nn.Linear(6, 5), [(2, "n", 6)], n, module=True)
    case("dyn_linear_two", lambda: nn.Linear(6, 5), [("n", "m", 6)], n, module=True)
    case("dyn_mm_m", torch.mm, [("n", 5), (5, 4)], n)
    case("dyn_mm_k", torch.mm, [(3, "n"), ("n", 4)], n)
    case("dyn_mm_n", torch.mm, [(3, 5), (5, "n")], n)
    case("dyn_mm_mn", torch.mm, [("n", 5), (5, "m")], n)
    case("dyn_bmm_b", torch.bmm, [("n", 3, 4), ("n", 4, 2)], n)
    case("dyn_bmm_attn", lambda q, k, v: torch.bmm(torch.softmax(torch.bmm(q, k.transpose(1, 2)), -1), v), [(2, "n", 4), (2, "m", 4), (2, "m", 4)], n)
    case("dyn_addmm", torch.addmm, [(4,), ("n", 5), (5, 4)], n)
    case("dyn_matmul_4d", lambda a, b: a @ b, [(1, 2, "n", 4), (1, 2, 4, 3)], n)
    case("dyn_sdpa", F.scaled_dot_product_attention, [(1, 2, "n", 4)] * 3, n)
    # indexing
    case("dyn_embedding", lambda: nn.Embedding(20, 6), [(1, "n")], n, make=ints(20), module=True)
    case("dyn_index", lambda x, i: x[i], [(9, 3), ("n",)], n, make=[R, ints(9)])
    case("dyn_index_select", lambda x, i: x.index_select(0, i), [(9, 3), ("n",)], n, make=[R, ints(9)])
    case("dyn_index_of_dyn", lambda x, i: x[i], [("n", 3), (4,)], n, make=[R, ints(1)])
    case("dyn_gather", lambda x, i: x.gather(1, i), [("n", 6), ("n", 2)], n, make=[R, ints(6)])
    # images
    case("dyn_conv2d", lambda: nn.Conv2d(3, 4, 3, padding=1), [(1, 3, "n", "m")], n, module=True)
    case("dyn_conv2d_s2", lambda: nn.Conv2d(3, 4, 3, stride=2, padding=1), [(1, 3, "n", 8)], n, sizes=(32, 4, 7), module=True)
    case("dyn_conv2d_dw", lambda: nn.Conv2d(4, 4, 3, padding=1, groups=4), [(1, 4, "n", 8)], n, module=True)
    case("dyn_conv2d_relu", lambda: nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), nn.ReLU()), [(1, 3, "n", 8)], n, sizes=(32, 4, 7), module=True)
    case("dyn_convT2d", lambda: nn.ConvTranspose2d(3, 4, 2, stride=2), [(1, 3, "n", 4)], n, module=True)
    case("dyn_conv1d", lambda: nn.Conv1d(3, 4, 3, padding=1), [(1, 3, "n")], n, module=True)
    case("dyn_conv1d_pw", lambda: nn.Conv1d(3, 4, 1), [(1, 3, "n")], n, module=True)
    case("dyn_conv1d_dw", lambda: nn.Conv1d(4, 4, 3, padding=2, groups=4), [(1, 4, "n")], n, module=True)
    case("dyn_max_pool", lambda: nn.MaxPool2d(2), [(1, 3, "n", 8)], n, sizes=(32, 4, 7), module=True)
    case("dyn_avg_pool", lambda: nn.AvgPool2d(3, 2, 1), [(1, 3, "n", 8)], n, sizes=(32, 4, 7), module=True)
    case("dyn_upsample", lambda x: F.interpolate(x, scale_factor=2), [(1, 3, "n", 4)], n)
    case("dyn_upsample_bilinear", lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"), [(1, 3, "n", 4)], n)
    # kernels outside
    case("dyn_cumsum", lambda x: torch.relu(torch.cumsum(x * 2, 0)) + 1, [("n", 4)], n)
    case("dyn_maximum", lambda a, b: torch.maximum(a * 2, b) + 1, [("n", 4), (4,)], n)
    case("dyn_tril", lambda x: torch.softmax(torch.tril(x * 2) + 1, -1), [("n", "n")], n)
    case("dyn_item_slice", lambda x, p: x * 2, [("n", 4), (1,)], n, make=[R, ints(3)])
    # nets
    for nm in ("mlp", "transformer_block", "bert", "wavenet", "fcn", "lstm_cell"):
        e = nets()[nm]
        if e.get("dyn"):
            t.add(f"dyn_net_{nm}", e["build"], e["dyn"]["inputs"], {k: v for k, v in e["dyn"].items() if k != "inputs"} | dict(suite="dynamic"))
    out = dict(t)
    for nme, e in t.items():
        out["p_" + nme] = {**e, "portable": True}
    # a static partition with dynamic shapes not required
    for nme in ("dyn_expand", "dyn_repeat", "dyn_flip", "dyn_upsample", "dyn_index_select", "dyn_full", "dyn_group_norm", "dyn_arange"):
        out["static_" + nme] = {**t[nme], "options": {"require_dynamic_shapes": False}}
    return out
