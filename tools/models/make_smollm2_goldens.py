#!/usr/bin/env python3
"""Writes tests/fixtures/smollm2/expected.json: what SmolLM2-135M's dequantised GGUF says of a text, computed in double precision.

usage: make_smollm2_goldens.py MODEL.gguf IDS.json OUT.json

IDS.json is what `pteryx eval --json` prints for the text; only its "ids" are used. Needs the PyPI packages torch and gguf. Part of no
test: the result is committed.
"""
# SPDX-License-Identifier: BSD-3-Clause
import json
import sys

import numpy as np
import torch
from gguf import GGUFReader
from gguf.quants import dequantize


class Weights:
    def __init__(self, path):
        self.reader = GGUFReader(path)
        self.tensors = {t.name: t for t in self.reader.tensors}

    def number(self, key):
        field = self.reader.fields[key]
        return field.parts[field.data[0]][0].item()

    def __getitem__(self, name):
        t = self.tensors[name]
        return torch.from_numpy(dequantize(t.data, t.tensor_type).astype(np.float64))


def norm(x, weight, eps):
    return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + eps) * weight


def rotate(x, theta):
    """Adjacent pairs of the last dim turned by their position; x is [positions, heads, size]."""
    positions, _, size = x.shape
    angle = torch.arange(positions, dtype=torch.float64)[:, None] * theta ** (-torch.arange(0, size, 2, dtype=torch.float64) / size)
    cos, sin = angle.cos()[:, None, :], angle.sin()[:, None, :]
    even, odd = x[..., 0::2], x[..., 1::2]
    return torch.stack((even * cos - odd * sin, even * sin + odd * cos), -1).flatten(-2)


def logits(weights, ids):
    get = lambda key: weights.number(f"llama.{key}")
    heads, kv_heads = get("attention.head_count"), get("attention.head_count_kv")
    eps, theta, layers = get("attention.layer_norm_rms_epsilon"), get("rope.freq_base"), get("block_count")
    table = weights["token_embd.weight"]
    x = table[torch.tensor(ids)]
    count = len(ids)
    mask = torch.full((count, count), float("-inf"), dtype=torch.float64).triu(1)
    for i in range(layers):
        layer = lambda name: weights[f"blk.{i}.{name}.weight"]
        h = norm(x, layer("attn_norm"), eps)
        q = rotate((h @ layer("attn_q").T).view(count, heads, -1), theta)
        k = rotate((h @ layer("attn_k").T).view(count, kv_heads, -1), theta)
        v = (h @ layer("attn_v").T).view(count, kv_heads, -1)
        k, v = (t.repeat_interleave(heads // kv_heads, 1) for t in (k, v))
        scores = torch.einsum("qhd,khd->hqk", q, k) / q.shape[-1] ** 0.5 + mask
        x = x + torch.einsum("hqk,khd->qhd", scores.softmax(-1), v).reshape(count, -1) @ layer("attn_output").T
        h = norm(x, layer("ffn_norm"), eps)
        x = x + (torch.nn.functional.silu(h @ layer("ffn_gate").T) * (h @ layer("ffn_up").T)) @ layer("ffn_down").T
    head = weights["output.weight"] if "output.weight" in weights.tensors else table
    return norm(x, weights["output_norm.weight"], eps) @ head.T


def main():
    model, source, target = sys.argv[1:]
    with open(source, encoding="utf-8") as f:
        ids = json.load(f)["ids"]
    y = logits(Weights(model), ids[:-1])
    nll = -y.log_softmax(-1)[torch.arange(len(ids) - 1), torch.tensor(ids[1:])]
    result = {"ids": ids, "top1": y.argmax(-1).tolist(), "nll": [round(v, 6) for v in nll.tolist()]}
    with open(target, "w", encoding="utf-8") as f:
        json.dump(result, f, separators=(",", ":"))
        f.write("\n")
    print(f"{len(nll)} tokens, perplexity {nll.mean().exp().item():.4f}")


if __name__ == "__main__":
    main()
