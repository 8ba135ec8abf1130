"""Operators that are layers of networks, for every group of export_corpus.py (flags: corpus_tables.py)."""
import torch
import torch.nn as nn
import torch.nn.functional as F

from corpus_entries import *


def layers():
    """Reductions, products, convolutions and the like, and empty tensors."""
    t = Table()
    op, mod = t.op, t.mod

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
