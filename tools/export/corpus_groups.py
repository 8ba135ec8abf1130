"""The groups of export_corpus.py: which cases, exported how."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.export import Dim

from corpus_mixed import mixed
from corpus_nets import nets
from corpus_portable import portable
from corpus_tables import *

FP16 = dict(atol=2e-3, rtol=2e-2)


def groups():
    return {"delegated": delegated(), "portable": portable(), "mixed": mixed(), "nets": net_group(), "dynamic": dynamic(), "fp16": fp16()}


def tolerance(entry):
    return {**FP16, "atol": entry.get("half_tol", FP16["atol"])}


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
