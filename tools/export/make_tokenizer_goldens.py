#!/usr/bin/env python3
"""make_tokenizer_goldens.py [--out FOLDER]: trains tiny tokenizers of every kind and writes what the reference engines make of a
set of texts. Needs the PyPI packages of tokenizer_requirements.txt; the result is in tests/fixtures/tokenizers."""
# SPDX-License-Identifier: BSD-3-Clause
import argparse
import base64
import io
import json
import pathlib
import random
import struct
import tempfile

import sentencepiece
import tiktoken
import tokenizers
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

import tokenizer_texts

LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
QWEN2 = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")
CHATML = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
LLAMA3_SPECIALS = ["<|begin_of_text|>", "<|end_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"]
SPACE = "\u2581"
RANDOM_TEXTS = 60
RANDOM_IDS = 20


def split(pattern, behavior="isolated", invert=False):
    return pre_tokenizers.Split(Regex(pattern), behavior, invert)


def train_bpe(pre_tokenizer, specials, *, vocab=700, normalizer=None, decoder=None, alphabet=(), **model):
    tok = Tokenizer(models.BPE(**model))
    tok.pre_tokenizer = pre_tokenizer
    if normalizer:
        tok.normalizer = normalizer
    trainer = trainers.BpeTrainer(vocab_size=vocab, special_tokens=specials, show_progress=False, initial_alphabet=list(alphabet))
    tok.train_from_iterator(tokenizer_texts.TRAINING, trainer)
    tok.decoder = decoder or decoders.ByteLevel()
    return tok


def byte_level(pre, specials, **more):
    return train_bpe(pre, specials, alphabet=pre_tokenizers.ByteLevel.alphabet(), **more)


def plain_bytes():
    return pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)


def gpt2():
    return byte_level(pre_tokenizers.ByteLevel(add_prefix_space=False), ["<|endoftext|>"])


def gpt2_prefix_space():
    tok = byte_level(pre_tokenizers.ByteLevel(add_prefix_space=True), ["<s>", "</s>"], vocab=400)
    tok.post_processor = processors.RobertaProcessing(("</s>", 1), ("<s>", 0))
    return tok


def smollm():
    pre = pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)])
    return byte_level(pre, CHATML)


def llama3():
    tok = byte_level(pre_tokenizers.Sequence([split(LLAMA3), plain_bytes()]), LLAMA3_SPECIALS)
    tok.post_processor = processors.Sequence(
        [processors.ByteLevel(), processors.TemplateProcessing(single="<|begin_of_text|> $A", special_tokens=[("<|begin_of_text|>", 0)])])
    document = json.loads(tok.to_str())
    document["model"]["ignore_merges"] = True
    # Only a word that no merges lead to shows that they are ignored.
    document["model"]["vocab"]["\u0120unmergeable"] = len(document["model"]["vocab"])
    return Tokenizer.from_str(json.dumps(document))


def qwen2():
    tok = byte_level(pre_tokenizers.Sequence([split(QWEN2), plain_bytes()]), [], normalizer=normalizers.NFC())
    tok.add_special_tokens(CHATML)
    tok.add_tokens([AddedToken("<think>", special=False, normalized=False), AddedToken("</think>", special=False, normalized=False)])
    return tok


def deepseek():
    steps = [split(r"\p{N}{1,3}"), split("[一-龥぀-ゟ゠-ヿ]+"), split(r"\s+$"),
             split(r"[!-/:-@\[-`{-~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"), plain_bytes()]
    return byte_level(pre_tokenizers.Sequence(steps), ["<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>"])


def odd_splits():
    steps = [split(r"-+", "merged_with_previous"), split(r"#+", "merged_with_next"), split(r"[aeiou]", "contiguous"), split(r"\w+\s*", "isolated", True),
             pre_tokenizers.Punctuation("isolated"), pre_tokenizers.Split("=", "removed"), plain_bytes()]
    return byte_level(pre_tokenizers.Sequence(steps), [], vocab=400)


def added_tokens():
    """Added tokens with every flag, over normalizers that change the text they are looked for in."""
    tok = byte_level(pre_tokenizers.ByteLevel(add_prefix_space=False), ["<pad>"], vocab=400,
                     normalizer=normalizers.Sequence([normalizers.NFD(), normalizers.StripAccents(), normalizers.Lowercase(), normalizers.Strip()]))
    tok.add_special_tokens([AddedToken("<mask>", lstrip=True), AddedToken("<sep>", rstrip=True), AddedToken("<both>", lstrip=True, rstrip=True)])
    tok.add_tokens([AddedToken("Gamma", single_word=True, normalized=False), AddedToken("École", normalized=True), AddedToken("LOUD", normalized=True),
                    AddedToken("  ", normalized=False), AddedToken("ab"), AddedToken("abcd")])
    return tok


def byte_pieces():
    return [f"<0x{b:02X}>" for b in range(256)]


def scored(tok, specials):
    """The document of a trained tokenizer whose vocabulary starts with specials and bytes, as Llama 2's does."""
    document = json.loads(tok.to_str())
    old = sorted(document["model"]["vocab"], key=document["model"]["vocab"].get)
    order = specials + byte_pieces() + [t for t in old if t not in specials]
    document["model"]["vocab"] = {t: i for i, t in enumerate(order)}
    document["model"].update(byte_fallback=True, fuse_unk=True, unk_token="<unk>")
    for token in document["added_tokens"]:
        token["id"] = order.index(token["content"])
    return document


LLAMA2_DECODER = decoders.Sequence([decoders.Replace(SPACE, " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)])


def llama2():
    specials = ["<unk>", "<s>", "</s>"]
    tok = train_bpe(pre_tokenizers.Metaspace(), specials, decoder=LLAMA2_DECODER, unk_token="<unk>")
    tok.normalizer = normalizers.Sequence([normalizers.Prepend(SPACE), normalizers.Replace(" ", SPACE)])
    document = scored(tok, specials)
    document["pre_tokenizer"] = None
    tok = Tokenizer.from_str(json.dumps(document))
    tok.post_processor = processors.TemplateProcessing(single="<s> $A </s>", special_tokens=[("<s>", 1), ("</s>", 2)])
    return tok


def mistral():
    specials = ["<unk>", "<s>", "</s>", "[INST]", "[/INST]"]
    tok = train_bpe(pre_tokenizers.Metaspace(prepend_scheme="first"), specials, unk_token="<unk>",
                    decoder=decoders.Sequence([decoders.Metaspace(prepend_scheme="first"), decoders.ByteFallback()]))
    tok.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first", split=False)
    return Tokenizer.from_str(json.dumps(scored(tok, specials)))


def gemma():
    specials = ["<pad>", "<eos>", "<bos>", "<unk>", "<start_of_turn>", "<end_of_turn>"]
    tok = train_bpe(pre_tokenizers.Split(" ", "merged_with_previous"), specials, normalizer=normalizers.Replace(" ", SPACE),
                    decoder=decoders.Sequence([decoders.Replace(SPACE, " "), decoders.ByteFallback(), decoders.Fuse()]), unk_token="<unk>")
    return Tokenizer.from_str(json.dumps(scored(tok, specials)))


def no_fallback():
    """Characters without a token become the unknown one."""
    return train_bpe(pre_tokenizers.Whitespace(), ["[UNK]"], vocab=300, decoder=decoders.BPEDecoder(), unk_token="[UNK]", normalizer=normalizers.NFKC())


def unigram():
    tok = Tokenizer(models.Unigram())
    tok.pre_tokenizer = pre_tokenizers.Metaspace()
    tok.normalizer = normalizers.NFKC()
    tok.decoder = decoders.Metaspace()
    trainer = trainers.UnigramTrainer(vocab_size=400, special_tokens=["<unk>", "<s>", "</s>"], unk_token="<unk>", show_progress=False)
    tok.train_from_iterator(tokenizer_texts.TRAINING, trainer)
    return tok


HF = [gpt2, gpt2_prefix_space, smollm, llama3, qwen2, deepseek, odd_splits, added_tokens, llama2, mistral, gemma, no_fallback, unigram]


def train_sentencepiece(**options):
    out = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(tokenizer_texts.TRAINING), model_writer=out, num_threads=1, minloglevel=2, **options)
    return out.getvalue()


def spm_bpe():
    return train_sentencepiece(model_type="bpe", vocab_size=900, byte_fallback=True, normalization_rule_name="identity", remove_extra_whitespaces=False,
                               character_coverage=0.995, user_defined_symbols=["<user>", "::"])


def with_rules(**options):
    """A model with a table of replacements: a small one, where the usual tables have 240 KB."""
    with tempfile.NamedTemporaryFile("w", suffix=".tsv") as rules:
        for source, target in tokenizer_texts.RULES:
            rules.write(" ".join(f"{ord(c):X}" for c in source) + "\t" + " ".join(f"{ord(c):X}" for c in target) + "\n")
        rules.flush()
        return train_sentencepiece(normalization_rule_tsv=rules.name, **options)


def spm_bytes():
    return train_sentencepiece(model_type="bpe", vocab_size=900, byte_fallback=True, normalization_rule_name="identity", remove_extra_whitespaces=False,
                               character_coverage=0.995)


def spm_bpe_unknown():
    return with_rules(model_type="bpe", vocab_size=500, character_coverage=0.98, add_dummy_prefix=False)


def spm_unigram():
    return with_rules(model_type="unigram", vocab_size=400, character_coverage=0.99)


SENTENCEPIECE = [spm_bpe, spm_bpe_unknown, spm_unigram]


def pieces_of(sp):
    def kind(i):
        if sp.is_unknown(i):
            return 2
        if sp.is_control(i):
            return 3
        if sp.is_byte(i):
            return 6
        return 4 if sp.id_to_piece(i) in ("<user>", "::") else 1

    ids = range(sp.get_piece_size())
    return [(sp.id_to_piece(i), sp.get_score(i), kind(i)) for i in ids]


def llama2c_table(sp):
    """The pieces as llama2.c's exporter spells them."""
    table = []
    for i, (text, score, _) in enumerate(pieces_of(sp)):
        if i in (1, 2):
            text = f"\n{text}\n"
        table.append((text.replace(SPACE, " ").encode(), score))
    return table


def llama2c_file(table, long_header):
    longest = max(len(t) for t, _ in table)
    header = struct.pack("<4i", len(table) + 5, 1, 2, longest) if long_header else struct.pack("<i", longest)
    return header + b"".join(struct.pack("<fi", score, len(text)) + text for text, score in table)


def llama2c_encode(table, text):
    """The rules of llama2.c's encoder, the slow way."""
    ids_of = {}
    for i, (piece, _) in enumerate(table):
        if i == 0 or i > 2 + 256:
            ids_of.setdefault(piece, i)
    ids = [ids_of[b" "]] if text else []
    for char in text:
        piece = char.encode()
        ids += [ids_of[piece]] if piece in ids_of else [b + 3 for b in piece]
    while True:
        best = None
        for at in range(len(ids) - 1):
            joined = ids_of.get(table[ids[at]][0] + table[ids[at + 1]][0])
            if joined is not None and (best is None or table[joined][1] > best[0]):
                best = (table[joined][1], at, joined)
        if best is None:
            return ids
        ids[best[1]:best[1] + 2] = [best[2]]


def random_texts():
    rng = random.Random(20)
    texts = []
    for _ in range(RANDOM_TEXTS):
        texts.append("".join(rng.choice(rng.choice(tokenizer_texts.POOLS)) for _ in range(rng.randrange(1, 40))))
    return texts


def random_ids(size, but=()):
    rng = random.Random(size)
    allowed = [i for i in range(size) if i not in but]
    return [[rng.choice(allowed) for _ in range(rng.randrange(1, 12))] for _ in range(RANDOM_IDS)]


def hf_case(tok, texts):
    encoded = [tok.encode(t, add_special_tokens=False).ids for t in texts]
    tok.encode_special_tokens = True
    plain = [tok.encode(t, add_special_tokens=False).ids for t in texts]
    tok.encode_special_tokens = False
    framed = tok.encode("Hello world").ids
    # Of a run of byte tokens that is not UTF-8, the reference also drops what is.
    ids = random_ids(tok.get_vocab_size(), {tok.token_to_id(t) for t in byte_pieces()})
    return {"special": encoded, "plain": plain, "framed": framed, "decoded": [tok.decode(e) for e in encoded],
            "ids": ids, "ids_decoded": [tok.decode(i, skip_special_tokens=False) for i in ids]}


def sp_case(sp, texts):
    encoded = [sp.encode(t) for t in texts]
    ids = random_ids(sp.get_piece_size())
    return {"plain": encoded, "decoded": [sp.decode(e) for e in encoded], "ids": ids, "ids_decoded": [sp.decode(i) for i in ids],
            "bytes": [sp.encode(b) for b in tokenizer_texts.NOT_UTF8]}


def tiktoken_of(tok):
    """The ranks of a byte-level tokenizer: bytes first, then its merges in order."""
    alphabet = {c: b for b, c in enumerate(byte_characters())}
    vocab = json.loads(tok.to_str())["model"]["vocab"]
    specials = {t.content for t in tok.get_added_tokens_decoder().values()}
    tokens = [bytes(alphabet[c] for c in t) for t in sorted(vocab, key=vocab.get) if t not in specials]
    return {t: i for i, t in enumerate(sorted(tokens, key=lambda t: len(t) > 1))}


def byte_characters():
    kept = [*range(ord("!"), ord("~") + 1), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    moved = iter(range(0x100, 0x200))
    return [chr(b) if b in kept else chr(next(moved)) for b in range(256)]


def tiktoken_case(ranks, texts):
    names = ["<|begin_of_text|>", "<|end_of_text|>", "<|reserved_special_token_0|>", "<|reserved_special_token_1|>", "<|finetune_right_pad_id|>",
             "<|reserved_special_token_2|>", "<|start_header_id|>", "<|end_header_id|>", "<|eom_id|>", "<|eot_id|>", "<|python_tag|>"]
    names += [f"<|reserved_special_token_{i}|>" for i in range(3, 256 - len(names) + 3)]
    specials = {name: len(ranks) + i for i, name in enumerate(names)}
    engine = tiktoken.Encoding("tiny", pat_str=LLAMA3, mergeable_ranks=ranks, special_tokens=specials)
    encoded = [engine.encode(t, allowed_special="all") for t in texts]
    ids = random_ids(len(ranks))
    return {"special": encoded, "plain": [engine.encode_ordinary(t) for t in texts], "decoded": [engine.decode(e) for e in encoded],
            "ids": ids, "ids_decoded": [engine.decode(i) for i in ids], "reserved": specials["<|reserved_special_token_247|>"]}


def write_json(path, document):
    path.write_text(json.dumps(document, ensure_ascii=False, separators=(",", ":")) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    root = pathlib.Path(__file__).resolve().parents[2]
    parser.add_argument("--out", type=pathlib.Path, default=root / "tests/fixtures/tokenizers")
    out = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    texts = tokenizer_texts.TEXTS + random_texts()
    cases = {}
    for make in HF:
        tok = make()
        name = f"{make.__name__}.json"
        (out / name).write_text(tok.to_str() + "\n")
        cases[name] = hf_case(tok, texts)
    for make in SENTENCEPIECE:
        model = make()
        name = f"{make.__name__}.model"
        (out / name).write_bytes(model)
        cases[name] = sp_case(sentencepiece.SentencePieceProcessor(model_proto=model), texts)
    ranks = tiktoken_of(llama3())
    (out / "llama3.tiktoken").write_text("".join(f"{base64.b64encode(t).decode()} {i}\n" for t, i in ranks.items()))
    cases["llama3.tiktoken"] = tiktoken_case(ranks, texts)
    table = llama2c_table(sentencepiece.SentencePieceProcessor(model_proto=spm_bytes()))
    encoded = [llama2c_encode(table, t) for t in texts]
    for name, long_header in [("llama2c.bin", False), ("llama2c_executorch.bin", True)]:
        (out / name).write_bytes(llama2c_file(table, long_header))
        cases[name] = {"plain": encoded, "decoded": texts, "ids": [], "ids_decoded": []}
    sp = sentencepiece.SentencePieceProcessor(model_proto=(out / "spm_bpe.model").read_bytes())
    tokens, scores, types = zip(*pieces_of(sp))
    write_json(out / "spm_bpe.gguf.json", {"tokens": tokens, "scores": scores, "types": types})
    write_json(out / "goldens.json", {"made_by": {"tokenizers": tokenizers.__version__, "sentencepiece": sentencepiece.__version__, "tiktoken": tiktoken.__version__},
                                      "texts": texts, "not_utf8": [b.hex() for b in tokenizer_texts.NOT_UTF8], "cases": cases})


if __name__ == "__main__":
    main()
