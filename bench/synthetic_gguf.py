"""Writes a GGUF file of Llama-3.2-1B's shape with random weights of 4 bits (Q4_0), for comparing programs that read such files."""
# SPDX-License-Identifier: BSD-3-Clause
import os
import random
import struct

HIDDEN, FFN, LAYERS, HEADS, KV_HEADS, WORDS, CONTEXT = 2048, 8192, 16, 32, 8, 128256, 8192
U32, I32, F32, TEXT, ARRAY = 4, 5, 6, 8, 9  # kinds of values
FLOATS, Q4_0 = 0, 2                         # types of tensors
BLOCK, BLOCK_BYTES = 32, 18                 # of Q4_0: a scale in f16, then 32 codes
ALIGNMENT = 32
SCALE = struct.pack("<e", 0.0043)           # codes are from -8 to 7: weights of deviation 0.02


def text(s):
    return struct.pack("<Q", len(s)) + s.encode()


def array(kind, items, pack):
    return struct.pack("<IQ", kind, len(items)) + b"".join(map(pack, items))


def vocabulary():
    """Names, kinds: unknown, control, bytes, then ordinary ones."""
    words = ["<unk>", "<s>", "</s>"] + [f"<0x{i:02X}>" for i in range(256)]
    kinds = [2, 3, 3] + [6] * 256
    words += [f"word{i}" for i in range(WORDS - len(words))]
    return words, kinds + [1] * (WORDS - len(kinds))


def header():
    """Keys and what belongs to them, as bytes."""
    words, kinds = vocabulary()
    yield "general.architecture", struct.pack("<I", TEXT) + text("llama")
    yield "tokenizer.ggml.model", struct.pack("<I", TEXT) + text("llama")
    yield "tokenizer.ggml.tokens", struct.pack("<I", ARRAY) + array(TEXT, words, text)
    yield "tokenizer.ggml.scores", struct.pack("<I", ARRAY) + array(F32, [0.0] * WORDS, lambda v: struct.pack("<f", v))
    yield "tokenizer.ggml.token_type", struct.pack("<I", ARRAY) + array(I32, kinds, lambda v: struct.pack("<i", v))
    for key, value in (("llama.context_length", CONTEXT), ("llama.embedding_length", HIDDEN), ("llama.block_count", LAYERS),
                       ("llama.feed_forward_length", FFN), ("llama.attention.head_count", HEADS),
                       ("llama.attention.head_count_kv", KV_HEADS), ("llama.rope.dimension_count", HIDDEN // HEADS),
                       ("llama.vocab_size", WORDS), ("general.file_type", 2), ("tokenizer.ggml.bos_token_id", 1),
                       ("tokenizer.ggml.eos_token_id", 2)):
        yield key, struct.pack("<II", U32, value)
    for key, value in (("llama.rope.freq_base", 500000.0), ("llama.attention.layer_norm_rms_epsilon", 1e-5)):
        yield key, struct.pack("<If", F32, value)


def tensors():
    """Names and dims, the fastest first."""
    yield "token_embd.weight", (HIDDEN, WORDS)
    yield "output_norm.weight", (HIDDEN,)
    kv = HIDDEN // HEADS * KV_HEADS
    for i in range(LAYERS):
        for name, dims in (("attn_norm", (HIDDEN,)), ("attn_q", (HIDDEN, HIDDEN)), ("attn_k", (HIDDEN, kv)), ("attn_v", (HIDDEN, kv)),
                           ("attn_output", (HIDDEN, HIDDEN)), ("ffn_norm", (HIDDEN,)), ("ffn_gate", (HIDDEN, FFN)),
                           ("ffn_up", (HIDDEN, FFN)), ("ffn_down", (FFN, HIDDEN))):
            yield f"blk.{i}.{name}.weight", dims


def size_of(dims):
    return dims[0] * 4 if len(dims) == 1 else dims[0] * dims[1] // BLOCK * BLOCK_BYTES


def padding(size):
    return -size % ALIGNMENT


def blocks(draw, count):
    data = bytearray(draw.randbytes(count * BLOCK_BYTES))
    data[0::BLOCK_BYTES] = SCALE[:1] * count
    data[1::BLOCK_BYTES] = SCALE[1:] * count
    return data


def write(path):
    """The file appears whole or not at all."""
    listed, keys = list(tensors()), list(header())
    head = b"GGUF" + struct.pack("<IQQ", 3, len(listed), len(keys)) + b"".join(text(k) + v for k, v in keys)
    offset = 0
    for name, dims in listed:
        head += text(name) + struct.pack(f"<I{len(dims)}QIQ", len(dims), *dims, FLOATS if len(dims) == 1 else Q4_0, offset)
        offset += size_of(dims) + padding(size_of(dims))
    part, draw = f"{path}.part", random.Random(1)
    with open(part, "wb") as out:
        out.write(head + bytes(padding(len(head))))
        for _, dims in listed:
            if len(dims) == 1:
                out.write(struct.pack("<f", 1.0) * dims[0])
            else:
                for row in range(0, dims[1], 64):
                    out.write(blocks(draw, min(64, dims[1] - row) * dims[0] // BLOCK))
            out.write(bytes(padding(size_of(dims))))
    os.replace(part, path)
