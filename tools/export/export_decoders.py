#!/usr/bin/env python3
"""Export tiny decoders in the forms that exporters give them, with expected results.

    python export_decoders.py --out ../../tests/fixtures/decoders               all of them
    python export_decoders.py --out decoders --only llama_8da4w,positions

`llama_*` come from ExecuTorch's Llama exporter as it is.  It takes neither caches as inputs nor several methods, so
`cache_inputs` and `prefill_decode_*` lower the exporter's model, or the small Decoder below, with the exporter's own steps.
Weights are random and all seeds are fixed: two runs give the same files.
"""
import argparse
import copy
import logging
import os
import tempfile
import warnings

import torch
import torch.nn as nn
from executorch.backends.vulkan import custom_ops_lib  # noqa: F401  registers et_vk
from executorch.examples.models.llama.export_llama_lib import get_llama_model
from executorch.examples.models.llama.rope import apply_rotary_emb
from executorch.exir import EdgeCompileConfig, ExecutorchBackendConfig, to_edge
from executorch.exir.passes import MemoryPlanningPass
from executorch.exir.passes.sym_shape_eval_pass import ConstraintBasedSymShapeEvalPass
from executorch.extension.llm.export.export_passes import RemoveRedundantTransposes
from executorch.extension.llm.export.partitioner_lib import get_vulkan_partitioner
from torch.export import Dim, export
from torch.nn.attention import SDPBackend, sdpa_kernel

import pte_dump
from export_llm import chunked, export_one, make_config, random_model
from fixtures import Writer, cache_patterns

warnings.filterwarnings("ignore")
CONTEXT, VOCABULARY = 64, 128
LLAMA = dict(dim=64, hidden_dim=96, n_layers=2, n_heads=4, n_kv_heads=2, vocab_size=VOCABULARY, norm_eps=1e-5, rope_theta=10000.0)
SMALL = {**LLAMA, "dim": 32, "hidden_dim": 48}     # where the form of the program matters and not its weights
S = Dim("s", max=CONTEXT - 1)
CHUNKS = chunked(3, VOCABULARY, [5, 1, 1, 9, 1], rewind=4)

# 8da4w rounds activations to 8 bits, and one that rounds the other way moves logits by about 0.1.  No activation of these
# tokens is that close to a boundary: in 100 trials, relative errors of 3e-6 in the inputs of all linears moved no logit by
# more than 3e-5.  So this case has the tolerance of the others.
CALM = chunked(32, VOCABULARY, [4, 1, 2], rewind=2)

# Half precision moves logits of up to 5 by 0.02, whoever computes them.
LLAMAS = {
    "llama_fp32": dict(model=LLAMA),                        # rotary tables are sliced from position to position + length
    "llama_8da4w": dict(model=LLAMA, qmode="8da4w", group=32, embedding="4,32", atol=1e-3, chunks=CALM),
    "llama_fp16": dict(fp16=True, atol=4e-2),               # force_fp16
    "llama_q4_fp16": dict(model=LLAMA, qmode="4w", group=32, embedding="4,32", fp16=True, dynamic=False, atol=4e-2),
    "llama_static": dict(dynamic=False),                    # one token per call
    "llama_full": dict(full_logits=True),
    "llama_unfused": dict(dynamic=False, fused_attention=False),    # caches [1, heads, context, size], written by a kernel
}


def weights(model=SMALL):
    """Random weights that half precision can hold."""
    params, state = random_model(21, **model)
    return params, {k: v.half().float() if v.is_floating_point() else v for k, v in state.items()}


# --------------------------------------------------------- the exporter's model

def llama(**options):
    """The model that the exporter would export, after quantization and its other transformations."""
    with tempfile.TemporaryDirectory() as work:
        return get_llama_model(make_config(work, *weights(), CONTEXT, CONTEXT, **options))[0].eval()


class Plain(nn.Module):
    """(tokens, position) -> logits; the caches are buffers."""
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, tokens, position):
        return self.model(tokens, {"input_pos": position})


class CacheInputs(Plain):
    """(tokens, position, caches...) -> logits; the caches are changed."""
    def __init__(self, model):
        super().__init__(model)
        self.names = [n for n, _ in model.named_buffers() if n.endswith(("k_cache", "v_cache"))]

    def forward(self, tokens, position, *caches):
        return torch.func.functional_call(self.model, dict(zip(self.names, caches)), (tokens, {"input_pos": position}))

    def empty(self):
        buffers = dict(self.model.named_buffers())
        return tuple(torch.zeros_like(buffers[n]) for n in self.names)


# ------------------------------------------------ caches outside of the delegates

class Norm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(1 + 0.2 * torch.randn(width))

    def forward(self, x):
        return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-5) * self.weight


class Layer(nn.Module):
    def __init__(self, dim, heads, hidden):
        super().__init__()
        linear = lambda n, m: nn.Linear(n, m, bias=False)
        self.heads, self.size = heads, dim // heads
        self.norm, self.ffn_norm = Norm(dim), Norm(dim)
        self.wq, self.wk, self.wv, self.wo = (linear(dim, dim) for _ in range(4))
        self.w1, self.w2, self.w3 = linear(dim, hidden), linear(hidden, dim), linear(dim, hidden)
        self.register_buffer("k_cache", torch.zeros(1, CONTEXT, heads, self.size))
        self.register_buffer("v_cache", torch.zeros(1, CONTEXT, heads, self.size))

    def forward(self, x, rows, cos, sin):
        h = self.norm(x)
        q, k, v = (w(h).view(1, x.shape[1], self.heads, self.size) for w in (self.wq, self.wk, self.wv))
        q, k = apply_rotary_emb(q, k, cos, sin)
        self.k_cache[:, rows] = k
        self.v_cache[:, rows] = v
        scores = torch.bmm(q.squeeze(0).permute(1, 0, 2), self.k_cache.squeeze(0).permute(1, 2, 0)) * self.size ** -0.5
        mask = torch.where(torch.arange(CONTEXT)[None] <= rows[:, None], 0.0, -1e9)
        y = torch.bmm(torch.softmax(scores + mask, -1), self.v_cache.squeeze(0).permute(1, 0, 2))
        x = x + self.wo(y.permute(1, 0, 2).reshape(1, x.shape[1], self.heads * self.size))
        h = self.ffn_norm(x)
        return x + self.w2(nn.functional.silu(self.w1(h)) * self.w3(h))


class Decoder(nn.Module):
    """(tokens, position [1]) -> logits, or (tokens, positions [S]): the caches are written by index_put, which stays a kernel."""
    def __init__(self, vector=False, dim=32, heads=4, hidden=48, layers=2):
        super().__init__()
        torch.manual_seed(22)
        self.vector = vector
        self.embedding = nn.Embedding(VOCABULARY, dim)
        self.layers = nn.ModuleList(Layer(dim, heads, hidden) for _ in range(layers))
        self.norm, self.output = Norm(dim), nn.Linear(dim, VOCABULARY, bias=False)
        angles = torch.outer(torch.arange(CONTEXT).float(), 10000.0 ** -(torch.arange(0, dim // heads, 2) * heads / dim))
        self.register_buffer("cos", angles.cos())
        self.register_buffer("sin", angles.sin())

    def forward(self, tokens, position):
        rows = position if self.vector else position + torch.arange(tokens.shape[1])
        cos, sin = self.cos[rows], self.sin[rows]
        x = self.embedding(tokens)
        for layer in self.layers:
            x = layer(x, rows, cos, sin)
        return self.output(self.norm(x)[:, -1])


# --------------------------------------------------------------- single operators

class Interleaved(nn.Module):
    def forward(self, x, table):
        return torch.ops.et_vk.apply_rotary_emb_interleaved(x * 2, table)


class Windows(nn.Module):
    """Sums of sizes and of a position as the ends of slices."""
    def __init__(self):
        super().__init__()
        torch.manual_seed(23)
        self.register_buffer("table", torch.randn(CONTEXT, 8))

    def forward(self, a, b, position):
        p, n, m = position[0].item(), a.shape[0], b.shape[0]
        torch._check(p >= 0)
        torch._check(p + n <= CONTEXT)
        at_position = self.table.narrow(0, p, n)
        return a * at_position, self.table[n:n + m] + b, self.table[:n + m] * 2


# ------------------------------------------------------------------------ lowering

def program(module, inputs, dims=None):
    """Exported twice, with the exporter's removal of transposes between, which its attention pattern needs."""
    module = copy.deepcopy(module).requires_grad_(False)
    inputs = tuple(t.clone() for t in inputs)
    with sdpa_kernel([SDPBackend.MATH]), torch.no_grad():
        once = export(module, inputs, dynamic_shapes=dims, strict=False).run_decompositions({}).module()
        once = RemoveRedundantTransposes()(once).graph_module
        if dims:                                        # the arguments *caches are apart now
            dims = tuple(d for dim in dims for d in (dim if isinstance(dim, tuple) else (dim,)))
        return export(once, inputs, dynamic_shapes=dims, strict=False).run_decompositions({})


def lower(programs, share=False, names=False):
    """-> bytes of a .pte; share: one memory for the buffers of all methods; names: write their names down."""
    edge = to_edge(programs, compile_config=EdgeCompileConfig(_check_ir_validity=False, _skip_dim_order=True))
    edge = edge.to_backend(get_vulkan_partitioner("fp32", True, False))
    planning = MemoryPlanningPass(alloc_graph_input=False, share_mutable_buffers=share)
    config = ExecutorchBackendConfig(extract_delegate_segments=True, do_quant_fusion_and_const_prop=True,
                                     memory_planning_pass=planning, emit_mutable_buffer_names=names,
                                     sym_shape_eval_pass=ConstraintBasedSymShapeEvalPass())
    return bytes(edge.to_executorch(config).buffer)


def tokens(n):
    return torch.ones(1, n, dtype=torch.long)


def prefill_and_decode(prefill, decode, caches=()):
    """Two methods: any number of tokens, and one."""
    dims = ({1: S}, {}) + ((tuple({} for _ in caches),) if caches else ())
    return {"prefill": program(prefill, (tokens(8), torch.tensor([0]), *caches), dims),
            "decode": program(decode, (tokens(1), torch.tensor([0]), *caches))}


def calls(of, chunks, caches=None, vector=False):
    """Runs of a case; of: length of a chunk -> (module, method or None).  Caches that are inputs come back as outputs."""
    runs = []
    with torch.no_grad():
        for start, ids in chunks:
            module, method = of(len(ids))
            inputs = (torch.tensor([ids]), torch.arange(start, start + len(ids)) if vector else torch.tensor([start]))
            before = tuple(c.clone() for c in caches or ())
            logits = module(*inputs, *(caches or ())).float()
            after = tuple(c.clone() for c in caches or ())
            runs.append((inputs + before, after + (logits,), *([method] if method else [])))
    return runs


# ----------------------------------------------------------------------- the cases

def cache_inputs():
    model = CacheInputs(llama())
    pte = lower(program(model, (tokens(8), torch.tensor([0]), *model.empty()), ({1: S}, {}, tuple({} for _ in model.names))))
    return pte, calls(lambda n: (model, None), CHUNKS, model.empty())


def prefill_decode_inputs():
    """Two methods, and caches that the caller hands from one to the other."""
    prefill, decode = CacheInputs(llama()), CacheInputs(llama(dynamic=False))
    pte = lower(prefill_and_decode(prefill, decode, prefill.empty()))
    return pte, calls(lambda n: (decode, "decode") if n == 1 else (prefill, "prefill"), CHUNKS, prefill.empty())


def prefill_decode_own():
    """Two methods, each with caches inside its delegate: what one writes the other does not see."""
    prefill, decode = Plain(llama()), Plain(llama(dynamic=False))
    pte = lower(prefill_and_decode(prefill, decode), share=True)    # of no effect: no buffer is left outside of the delegates
    chunks = [(0, [17, 5, 99]), (0, [64]), (3, [8, 120]), (1, [3]), (2, [77])]
    return pte, calls(lambda n: (decode, "decode") if n == 1 else (prefill, "prefill"), chunks)


def prefill_decode(share, names=False):
    """Two methods with caches outside of the delegates: in one memory, or in one of each method."""
    one, other = Decoder(), Decoder()
    pte = lower(prefill_and_decode(one, one), share, names)
    decode = one if share else other
    return pte, calls(lambda n: (decode, "decode") if n == 1 else (one, "prefill"), CHUNKS)


def positions():
    model = Decoder(vector=True)
    pte = lower(program(model, (tokens(8), torch.arange(8)), ({1: S}, {0: S})))
    return pte, calls(lambda n: (model, None), CHUNKS, vector=True)


def rotary_interleaved():
    torch.manual_seed(24)
    inputs = (torch.randn(2, 5, 8), torch.randn(5, 8))
    model = Interleaved()
    return lower(program(model, inputs)), [(inputs, (model(*inputs),))]


def windows():
    model = Windows()
    dims = ({0: Dim("n", max=20)}, {0: Dim("m", max=20)}, {})
    inputs = lambda n, m, p: (torch.randn(n, 8), torch.randn(m, 8), torch.tensor([p]))
    pte = lower(program(model, inputs(6, 4, 3), dims))
    torch.manual_seed(25)
    runs = [inputs(*q) for q in ((20, 20, 44), (6, 4, 3), (2, 20, 0), (20, 2, 43))]
    return pte, [(i, model(*i)) for i in runs]


OTHERS = {
    "cache_inputs": cache_inputs,
    "prefill_decode_inputs": prefill_decode_inputs,
    "prefill_decode_own": prefill_decode_own,
    "prefill_decode_apart": lambda: prefill_decode(share=False),
    "prefill_decode_shared": lambda: prefill_decode(share=True),
    "prefill_decode_named": lambda: prefill_decode(share=True, names=True),
    "positions": positions,
    "rotary_interleaved": rotary_interleaved,
    "windows": windows,
}


def summary(path):
    """-> (delegates, kernels outside of them)"""
    _, p, delegates = pte_dump.load(path)
    kernels = {f"{n}.{o}" if o else n for plan in p["plans"] for n, o in plan["operators"]}
    return len(delegates), sorted(kernels)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", required=True)
    parser.add_argument("--only", default="", help="comma-separated names")
    args = parser.parse_args()
    logging.disable(logging.ERROR)
    torch.set_num_threads(1)
    cache_patterns()
    only = set(filter(None, args.only.split(",")))
    writer = Writer(args.out)
    for name, options in LLAMAS.items():
        if not only or name in only:
            source = weights(options.get("model", SMALL))
            rest = {k: v for k, v in options.items() if k != "model"}
            export_one(writer, name, source, CONTEXT, CONTEXT, [5, 6, 7], **{"chunks": CHUNKS, **rest})
    for name, make in OTHERS.items():
        if not only or name in only:
            pte, runs = make()
            writer.add(name, "decoder", pte, runs, 1e-3, 1e-3)
            delegates, kernels = summary(os.path.join(writer.dir, name + ".pte"))
            writer.cases[-1].update(cpu_operators=kernels, delegates=delegates)
            print(f"{name}: {len(pte)} bytes, {len(runs)} runs, {delegates} delegates, CPU operators {kernels or 'none'}", flush=True)
    writer.close()


if __name__ == "__main__":
    main()
