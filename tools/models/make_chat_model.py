#!/usr/bin/env python3
"""Writes tests/fixtures/web/chat.pte: a language model of 0.2 MB with a tokenizer and a chat template, for tests of chats.

    tools/models/make_chat_model.py [PTERYX]

Its weights are drawn at random from a fixed seed, so its answers depend on the prompt and make no sense; tokens that are not plain ASCII are
unlikely, so that they can be read. PTERYX: the command line tool, which converts it; build/pteryx unless told.
"""
# SPDX-License-Identifier: BSD-3-Clause
import array
import json
import pathlib
import random
import re
import shutil
import struct
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
FIXTURES = ROOT / "tests" / "fixtures"
HIDDEN, INNER, HEADS, KV_HEADS, HEAD, LAYERS, VOCABULARY, CONTEXT = 64, 128, 4, 2, 16, 2, 700, 1024


def shapes():
    """Names and shapes, with the spread of the values; 0: all are 1."""
    yield "model.embed_tokens.weight", (VOCABULARY, HIDDEN), 1.0
    for i in range(LAYERS):
        layer = f"model.layers.{i}"
        yield f"{layer}.input_layernorm.weight", (HIDDEN,), 0
        yield f"{layer}.post_attention_layernorm.weight", (HIDDEN,), 0
        for name, rows in (("q", HEADS * HEAD), ("k", KV_HEADS * HEAD), ("v", KV_HEADS * HEAD)):
            yield f"{layer}.self_attn.{name}_proj.weight", (rows, HIDDEN), 0.2
        yield f"{layer}.self_attn.o_proj.weight", (HIDDEN, HEADS * HEAD), 0.3
        yield f"{layer}.mlp.gate_proj.weight", (INNER, HIDDEN), 0.2
        yield f"{layer}.mlp.up_proj.weight", (INNER, HIDDEN), 0.2
        yield f"{layer}.mlp.down_proj.weight", (HIDDEN, INNER), 0.2
    yield "model.norm.weight", (HIDDEN,), 0
    yield "lm_head.weight", (VOCABULARY, HIDDEN), 0.35


def unlikely():
    """Tokens that are special, or not a word with the space before it."""
    tokenizer = json.loads((FIXTURES / "tokenizers" / "smollm.json").read_text())
    return {i for token, i in tokenizer["model"]["vocab"].items() if not re.fullmatch(r"\u0120[A-Za-z]{2,}|[.,?!]", token)}


def write_safetensors(path):
    draw = random.Random(13)
    header, data = {}, bytearray()
    quiet = unlikely()
    for name, shape, spread in shapes():
        count = shape[0] * (shape[1] if len(shape) > 1 else 1)
        values = array.array("f", (draw.gauss(0, spread) if spread else 1.0 for _ in range(count)))
        if name == "lm_head.weight":
            for row in quiet:
                for i in range(row * HIDDEN, (row + 1) * HIDDEN):
                    values[i] *= 0.1
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(data), len(data) + 4 * count]}
        data += values.tobytes()
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def main():
    tool = sys.argv[1] if len(sys.argv) > 1 else ROOT / "build" / "pteryx"
    config = {
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_act": "silu", "hidden_size": HIDDEN, "intermediate_size": INNER,
        "num_hidden_layers": LAYERS, "num_attention_heads": HEADS, "num_key_value_heads": KV_HEADS, "head_dim": HEAD, "vocab_size": VOCABULARY,
        "max_position_embeddings": CONTEXT, "rms_norm_eps": 1e-6, "rope_theta": 10000.0, "tie_word_embeddings": False, "bos_token_id": 1,
        "eos_token_id": 2, "attention_bias": False, "mlp_bias": False,
    }
    with tempfile.TemporaryDirectory() as folder:
        model = pathlib.Path(folder)
        (model / "config.json").write_text(json.dumps(config))
        write_safetensors(model / "model.safetensors")
        shutil.copy(FIXTURES / "tokenizers" / "smollm.json", model / "tokenizer.json")
        shutil.copy(FIXTURES / "chat" / "smollm2.jinja", model / "chat_template.jinja")
        subprocess.run([tool, "convert", model, "-o", FIXTURES / "web" / "chat.pte", "--quantize", "q8", "--max-tokens", "64"], check=True)


if __name__ == "__main__":
    main()
