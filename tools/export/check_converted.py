#!/usr/bin/env python3
"""Checks a program that `pteryx convert` wrote with the tools of others.

    python check_converted.py MODEL.pte [--compare LOGITS.npy ...] [--tokens 1,2,3] [--greedy N]

ExecuTorch's own deserialiser reads the file and its delegate; the interpreter of this folder, which shares no code with Pteryx,
computes the logits of the tokens, in one call and again one by one, which must agree. --compare takes the logits that
`pteryx run` wrote for the same tokens. Needs executorch and torch.
"""
# SPDX-License-Identifier: BSD-3-Clause
import argparse
import sys

import numpy as np
import torch
from executorch.backends.vulkan.serialization.vulkan_graph_serialize import extract_vk_flatbuffer, flatbuffer_to_vk_graph
from executorch.exir._serialize import _deserialize_pte_binary

import vk_interp


def read_with_executorch(path):
    """Methods, delegates and named data, as ExecuTorch sees them."""
    with open(path, "rb") as f:
        pte = _deserialize_pte_binary(f.read())
    plans = {plan.name: plan for plan in pte.program.execution_plan}
    forward = plans["forward"]
    delegates = [d for d in forward.delegates if d.id == "VulkanBackend"]
    if len(delegates) != 1 or forward.operators:
        sys.exit(f"{path}: expected one VulkanBackend delegate and no operators")
    graphs = [flatbuffer_to_vk_graph(extract_vk_flatbuffer(bytes(data.data))) for data in pte.program.backend_delegate_data]
    print(f"  {len(graphs[0].chain)} operators, {len(graphs[0].values)} values, {len(graphs[0].constants)} constants")
    for name, plan in plans.items():
        if name != "forward":
            print(f"  {name:24} {[v.val for v in plan.values]}")
    return plans


def logits(path, chunks):
    """The last token's logits after each chunk, on one loaded program."""
    program = vk_interp.Program(path)
    position, out = 0, []
    for chunk in chunks:
        y = program.run(torch.tensor([chunk]), torch.tensor([position]))[0]
        position += len(chunk)
        out.append(y.reshape(-1, y.shape[-1])[-1].numpy())
    return out


def greedy(path, prompt, count):
    program = vk_interp.Program(path)
    chunk, position, out = prompt, 0, []
    while len(out) < count:
        y = program.run(torch.tensor([chunk]), torch.tensor([position]))[0]
        position += len(chunk)
        chunk = [int(y.argmax())]
        out += chunk
    return out


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--tokens", default="1,2,3,4,5", help="separated by commas")
    parser.add_argument("--compare", help="logits that pteryx run wrote")
    parser.add_argument("--greedy", type=int, default=0, help="print so many tokens that follow")
    args = parser.parse_args()
    tokens = [int(t) for t in args.tokens.split(",")]
    read_with_executorch(args.model)
    at_once = logits(args.model, [tokens])[-1]
    one_by_one = logits(args.model, [[t] for t in tokens])[-1]
    difference = float(np.abs(at_once - one_by_one).max())
    print(f"in one call and one by one: {difference:.2e}")
    if args.compare:
        theirs = np.load(args.compare).reshape(-1)
        difference = max(difference, float(np.abs(at_once - theirs).max()))
        print(f"pteryx run: {float(np.abs(at_once - theirs).max()):.2e}")
    if args.greedy:
        print(*greedy(args.model, tokens, args.greedy))
    if not difference < 1e-3 * (1 + float(np.abs(at_once).max())):
        sys.exit(f"{args.model}: logits differ by {difference}")


if __name__ == "__main__":
    main()
