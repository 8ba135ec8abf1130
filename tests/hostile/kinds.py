"""The wrong kind of file for every command, and names that a terminal would act on."""
# SPDX-License-Identifier: BSD-3-Clause
import os
import stat

from .case import ANY, CONVERT, LLM, NO_LIBRARY, OPS, REFUSED, TOKENIZERS, Case, link_to, sparse
from .gguf import sound


def folder(path):
    path.mkdir()


def closed_folder(path):
    path.mkdir()
    (path / "config.json").write_text("{}")
    path.chmod(0)


def device(path):
    """A zero device of our own: nothing may replace the system's."""
    try:
        os.mknod(path, stat.S_IFCHR | 0o600, os.makedev(1, 5))
    except PermissionError:
        path.symlink_to("/dev/zero")


def loop(path):
    path.symlink_to(path.name)


KINDS = {
    "nothing": None, "an empty file": b"", "a byte": b"x", "a line of text": b"hello\n", "zeros": bytes(4096), "ones": b"\xff" * 4096,
    "JSON": b"{}", "a JSON list": b"[]", "JSON of a number": b"1", "half a JSON": b'{"a": [', "a byte order mark": b"\xef\xbb\xbf{}",
    "UTF-16": "{}".encode("utf-16"), "a folder": folder, "a folder without permissions": closed_folder,
    "a fifo without a writer": os.mkfifo,
    "a device without an end": device, "/dev/null": link_to("/dev/null"), "a dangling link": link_to("/proc/nonexistent"),
    "a link to itself": loop,
    "/proc/self/mem": link_to("/proc/self/mem"), "/proc/self/exe": link_to("/proc/self/exe"), "/proc/kmsg's folder": link_to("/proc"),
    "a program": OPS / "add.pte", "a GGUF file": CONVERT / "llama.gguf", "a Hugging Face folder": CONVERT / "qwen3",
    "weights": CONVERT / "qwen2" / "model.safetensors", "a tokenizer": TOKENIZERS / "gpt2.json",
    "a sentencepiece model": TOKENIZERS / "spm_bpe.model",
    "a manifest": OPS / "manifest.json", "1 TB of nothing": sparse(1 << 40),
}
MODEL = {"m.pte": LLM / "qwen3_like_q4.pte"}
# Command, other files, kinds that are right, whether it comes to a GPU.
PLACES = {
    "run": (["run", "{}"], {}, ("a program",), False),
    "run --data": (["run", "m.pte", "--data", "{}"], {"m.pte": OPS / "external_weights.pte"}, (), True),
    "inspect --data": (["inspect", "m.pte", "--data", "{}"], {"m.pte": OPS / "external_weights.pte"}, (), False),
    "inspect --limits": (["inspect", "m.pte", "--limits", "{}"], {"m.pte": OPS / "add.pte"}, ("JSON", "a byte order mark"), False),
    "inspect": (["inspect", "{}"], {}, ("a program",), False),
    "verify": (["verify", "{}"], {}, ("a manifest",), False),
    "convert": (["convert", "{}", "-o", "out.pte"], {}, ("a GGUF file", "a Hugging Face folder"), False),
    "convert --tokenizer": (["convert", "m.gguf", "-o", "out.pte", "--tokenizer", "{}"], {"m.gguf": sound},
                            (), False),
    "generate": (["generate", "{}", "--prompt-ids", "1", "-n", "2"], {}, ("a GGUF file", "a Hugging Face folder", "a program"), False),
    "chat": (["chat", "{}"], {}, (), False),
    "bench": (["bench", "{}", "-p", "1", "-n", "1"], {}, ("a GGUF file", "a Hugging Face folder", "a program"), False),
    "profile": (["profile", "{}", "-p", "1", "-n", "1"], {}, ("a GGUF file", "a Hugging Face folder", "a program"), False),
    "eval": (["eval", "{}", "--ids", "1", "2"], {}, ("a GGUF file", "a Hugging Face folder", "a program"), False),
    "run -i": (["run", "m.pte", "-i", "{}.npy", "-i", "{}.npy"], {"m.pte": OPS / "add.pte"}, (), True),
    "run --batch": (["run", "m.pte", "--batch", "{}"], {"m.pte": OPS / "add.pte"}, ("nothing", "an empty file", "/dev/null"), True),
    "generate -f": (["generate", "m.pte", "-f", "{}", "--tokenizer", "t.json", "-n", "2"],
        {**MODEL, "t.json": TOKENIZERS / "no_fallback.json"},
                    (), True),
    "generate --tokenizer": (["generate", "m.pte", "-p", "x", "-n", "2", "--tokenizer", "{}"], MODEL, (), True),
    "eval --text": (["eval", "m.pte", "--text", "{}", "--tokenizer", "t.json"], {**MODEL, "t.json": TOKENIZERS / "no_fallback.json"},
        (), True),
}
# On a GPU only those that are not plain bytes: the others are seen by the readers' own categories.
SPECIAL = ("nothing", "an empty file", "a folder", "a fifo without a writer", "a device without an end", "1 TB of nothing",
    "a link to itself", "ones")
# These read pipes as well as files.
PIPES = ("run --batch", "generate -f", "eval --text")
NAMES = {"a newline": "a\nb", "escapes": "\x1b[31m\x1b]0;title\x07", "invalid UTF-8": "\udcff\udcfe", "a carriage return": "a\rb",
    "a dash": "-o",
         "255 bytes": "n" * 251, "C1 controls": "\x9b31m", "a right-to-left override": "\u202egpj", "a delete": "a\x7f"}


def cases(_tool, rng):
    for place, (args, files, right, gpu) in PLACES.items():
        for kind, content in KINDS.items():
            if gpu and kind not in SPECIAL:
                continue
            if place in PIPES and kind == "a fifo without a writer":
                continue  # whose writer may yet come
            name = "x.npy" if "{}.npy" in args else "x"
            given = {**files, **({} if content is None else {name: content})}
            yield Case("kinds", f"{place} {kind}", [a.replace("{}", "x") for a in args], given, {} if gpu else NO_LIBRARY, gpu=gpu,
                       codes=ANY if kind in right or gpu else REFUSED)
            for ending in (".gguf", ".bin", ".pte") if place in ("generate", "chat", "convert") and content is not None else ():
                if kind in right or kind == "a program":
                    continue
                given = {**files, f"x{ending}": content}
                yield Case("kinds", f"{place} {kind} called {ending}", [a.replace("{}", f"x{ending}") for a in args], given, NO_LIBRARY,
                           codes=REFUSED)
    for place, (args, files, _, gpu) in PLACES.items():
        if gpu:
            continue
        for what, name in NAMES.items():
            words = [a.replace("{}", f"./{name}") for a in args]
            yield Case("kinds", f"{place} of a name with {what}", words, {**files, name: b"not what it seems"}, NO_LIBRARY,
                codes=REFUSED)
            yield Case("kinds", f"{place} of an absent name with {what}", words, files, NO_LIBRARY, codes=REFUSED)
