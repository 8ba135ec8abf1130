#!/usr/bin/env python3
"""Small models of other programs, and what they compute, for the tests of `pteryx convert`.

    python export_convert.py --out ../../tests/fixtures/convert

Needs torch, transformers 5, safetensors, gguf. Weights are random. Writes

    NAME/             a Hugging Face folder, and expected.bin
    llama.gguf        written by the gguf package, with llama.expected.bin
    formats.bin       blocks of every element format, and what the gguf package makes of them

expected.bin: u32 tokens, u32 vocabulary, the tokens (i64), the logits of every position (f32).
formats.bin: entries of an 8-byte name, u32 bytes, u32 elements, the bytes, the elements (f32).
"""
# SPDX-License-Identifier: BSD-3-Clause
import argparse
import pathlib
import struct

import gguf
import numpy as np
import torch
import transformers

TOKENS = [3, 17, 5, 29, 11, 2, 30, 8, 21, 14, 1, 9]
SMALL = dict(hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, head_dim=16,
             vocab_size=40, max_position_embeddings=128, rms_norm_eps=1e-6, bos_token_id=1, eos_token_id=2, tie_word_embeddings=False)
SCALED = dict(rope_type="llama3", rope_theta=500000.0, factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
              original_max_position_embeddings=32)


def model_of(name, **options):
    config = getattr(transformers, name + "Config")(**options)
    torch.manual_seed(5)
    model = getattr(transformers, name + "ForCausalLM")(config).eval()
    with torch.no_grad():
        for key, value in model.named_parameters():
            noise = torch.randn_like(value)
            value.copy_(1 + 0.2 * noise if "norm" in key else 0.3 * noise if key.endswith("bias") else noise * 1.2 * value.shape[-1]**-0.5)
    return model


def write_expected(path, model):
    model = model.float()
    with torch.no_grad():
        logits = model(torch.tensor([TOKENS])).logits[0].float().numpy()
    head = struct.pack("<2I", len(TOKENS), logits.shape[1]) + np.array(TOKENS, "<i8").tobytes()
    path.write_bytes(head + logits.astype("<f4").tobytes())


def write_folder(out, model, dtype, shard=None):
    """In `dtype`; the expected logits are those of the rounded weights, computed in f32."""
    model = model.to(dtype)
    model.save_pretrained(out, **({"max_shard_size": shard} if shard else {}))
    write_expected(out / "expected.bin", model)


def folders(out):
    write_folder(out / "llama3", model_of("Llama", **SMALL, rope_parameters=SCALED), torch.bfloat16)
    write_folder(out / "qwen2", model_of("Qwen2", **{**SMALL, "tie_word_embeddings": True, "head_dim": 8}), torch.float16)
    write_folder(out / "qwen3", model_of("Qwen3", **SMALL), torch.float32, shard="40KB")


def paired(w, heads):
    """Rows of q or k for rope over neighbours, as GGUF files of this architecture store them."""
    return w.reshape(heads, 2, w.shape[0] // heads // 2, w.shape[1]).swapaxes(1, 2).reshape(w.shape)


def halved(w, heads):
    return w.reshape(heads, w.shape[0] // heads // 2, 2, w.shape[1]).swapaxes(1, 2).reshape(w.shape)


GGUF_NAMES = {"self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v", "self_attn.o_proj": "attn_output",
              "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down", "input_layernorm": "attn_norm",
              "post_attention_layernorm": "ffn_norm"}


def gguf_name(name):
    if name.startswith("model.layers."):
        _, _, layer, rest = name.split(".", 3)
        return f"blk.{layer}.{GGUF_NAMES[rest.removesuffix('.weight')]}.weight"
    return {"model.embed_tokens.weight": "token_embd.weight", "model.norm.weight": "output_norm.weight"}[name]


def write_gguf(out):
    config = dict(SMALL, hidden_size=64, intermediate_size=96, vocab_size=64, tie_word_embeddings=True)
    model = model_of("Llama", **config)
    w = gguf.GGUFWriter(out / "llama.gguf", "llama")
    w.add_context_length(config["max_position_embeddings"])
    w.add_embedding_length(config["hidden_size"])
    w.add_block_count(config["num_hidden_layers"])
    w.add_feed_forward_length(config["intermediate_size"])
    w.add_head_count(config["num_attention_heads"])
    w.add_head_count_kv(config["num_key_value_heads"])
    w.add_key_length(config["head_dim"])
    w.add_rope_dimension_count(config["head_dim"])
    w.add_rope_freq_base(10000.0)
    w.add_layer_norm_rms_eps(config["rms_norm_eps"])
    w.add_tokenizer_model("gpt2")
    w.add_tokenizer_pre("smollm")
    w.add_token_list([f"t{i}" for i in range(59)] + ["a", "b", "c", "ab", "abc"])
    w.add_token_types([3, 3, 3] + [1] * 61)
    w.add_token_merges(["a b", "ab c"])
    w.add_bos_token_id(1)
    w.add_eos_token_id(2)
    w.add_add_bos_token(False)
    w.add_chat_template("{{ messages }}")
    with torch.no_grad():
        for name, value in model.named_parameters():
            a = value.detach().numpy().astype(np.float32)
            if a.ndim == 1:
                w.add_tensor(gguf_name(name), a)
                continue
            heads = {"q_proj": config["num_attention_heads"], "k_proj": config["num_key_value_heads"]}.get(name.split(".")[-2])
            a = paired(a, heads) if heads else a
            kind = gguf.GGMLQuantizationType.Q8_0 if "embed" in name else gguf.GGMLQuantizationType.Q4_0
            blocks = gguf.quantize(a, kind)
            w.add_tensor(gguf_name(name), blocks, raw_dtype=kind)
            a = gguf.dequantize(blocks, kind)
            value.copy_(torch.from_numpy(halved(a, heads) if heads else a))
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()
    write_expected(out / "llama.expected.bin", model)


# Where a block keeps its f16 numbers, which random bytes must not make infinite.
HALVES = {"Q4_0": [0], "Q4_1": [0, 2], "Q5_0": [0], "Q5_1": [0, 2], "Q8_0": [0], "Q4_K": [0, 2], "Q5_K": [0, 2], "Q6_K": [208]}


def write_formats(out):
    random = np.random.default_rng(7)
    data = b""
    for name in ["F32", "F16", "BF16", *HALVES]:
        kind = gguf.GGMLQuantizationType[name]
        elements, size = gguf.GGML_QUANT_SIZES[kind]
        if elements == 1:
            values = random.standard_normal(8).astype(np.float32)
            raw = gguf.quantize(values, kind).tobytes() if name == "BF16" else values.astype({"F32": "<f4", "F16": "<f2"}[name]).tobytes()
        else:
            blocks = random.integers(0, 256, (2, size), dtype=np.uint8)
            for at in HALVES[name]:
                blocks[:, at:at + 2] = random.standard_normal(2).astype("<f2").view(np.uint8).reshape(2, 2)
            raw = blocks.tobytes()
        source = np.frombuffer(raw, {"F32": "<f4", "F16": "<f2"}.get(name, np.uint8))
        values = np.asarray(gguf.dequantize(source, kind), "<f4").ravel()
        data += name.encode().ljust(8, b"\0") + struct.pack("<2I", len(raw), len(values)) + raw + values.tobytes()
    (out / "formats.bin").write_bytes(data)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    out = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    folders(out)
    write_gguf(out)
    write_formats(out)


if __name__ == "__main__":
    main()
