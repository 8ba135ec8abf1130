"""Tokenizers that tests make up."""
# SPDX-License-Identifier: BSD-3-Clause
import json


def byte_level_tokenizer(vocabulary):
    end = {"id": len(vocabulary), "content": "<|endoftext|>", "special": True, "single_word": False, "lstrip": False, "rstrip": False,
           "normalized": False}
    return json.dumps({"added_tokens": [end],
                       "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "use_regex": False},
                       "decoder": {"type": "ByteLevel"},
                       "model": {"type": "BPE", "vocab": {**vocabulary, "<|endoftext|>": len(vocabulary)}, "merges": []}})


def byte_tokenizer():
    """A token for every byte, spelled as byte-level BPE spells them, and <|endoftext|>."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = iter(range(256, 512))
    return byte_level_tokenizer({chr(b if b in plain else next(others)): b for b in range(256)})


def letter_tokenizer():
    return byte_level_tokenizer({c: i for i, c in enumerate("abcdefghijklmnopqrstuvwxyz<>")})
