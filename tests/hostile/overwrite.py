"""Outputs that are inputs, for every command that writes: the input stays as it is."""
# SPDX-License-Identifier: BSD-3-Clause
import json
import os
import stat

import npy

from .case import ANY, CONVERT, NO_LIBRARY, OPS, REFUSED, Case, hard_link_to, link_to
from .gguf import sound
from .tokenizer_files import small


def null_device(path):
    """A null device of our own: nothing may replace the system's."""
    try:
        os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, 3))
    except PermissionError:
        path.write_bytes(b"")


GGUF = {"m.gguf": sound, "t.json": json.dumps(small())}
SAME = {"itself": "m.gguf", "itself, spelled otherwise": "./m.gguf", "itself through its folder": "sub/../m.gguf",
    "a link to it": "link.pte",
        "a link to a link to it": "link2.pte", "a hard link to it": "hard.pte", "its tokenizer": "t.json"}
LINKS = {"link.pte": link_to("m.gguf"), "link2.pte": link_to("link.pte"), "hard.pte": hard_link_to("m.gguf"), "sub/keep": b"x"}
BAD = {"a folder": "sub", "a folder, with a slash": "sub/", "this folder": ".", "a folder that is not there": "absent/m.pte",
    "a file as a folder": "m.gguf/out.pte",
       "a full disk": "full.pte", "a name of 10 KB": "n" * 10_240, "a name of 250 bytes": "n" * 250, "nothing": "",
       "a dangling link": "dangling.pte", "/proc": "/proc/out.pte",
       "a fifo": "fifo.pte", "a name of escapes that is not there": "absent/\x1b[31m"}
ODD = {"full.pte": link_to("/dev/full"), "dangling.pte": link_to("/proc/nonexistent/x"), "fifo.pte": os.mkfifo}


def cases(_tool, rng):
    def case(name, args, files, codes=REFUSED, **more):
        return Case("overwrite", name, args, files, more.pop("env", NO_LIBRARY), codes=codes, **more)

    for name, target in SAME.items():
        convert = ["convert", "m.gguf", "-o", target, "--tokenizer", "t.json"]
        # A link may be replaced; what it leads to may not.
        yield case(f"convert onto {name}", convert, {**GGUF, **LINKS}, ANY if "link" in name else REFUSED,
            changes=("link*.pte", "hard.pte"))
    for name, target in BAD.items():
        codes = ANY if name in ("a name of 250 bytes", "a fifo", "a full disk", "a dangling link") else REFUSED
        changes = ("fifo.pte", "full.pte", "dangling.pte")
        yield case(f"convert onto {name}", ["convert", "m.gguf", "-o", target], {**GGUF, **LINKS, **ODD}, codes, changes=changes)
        yield case(f"synth onto {name}", ["synth", "-o", target], {**GGUF, **LINKS, **ODD}, codes, changes=changes)
        yield case(f"inspect --graph onto {name}", ["inspect", "m.pte", "--graph", target],
            {"m.pte": OPS / "add.pte", "m.gguf": b"x", **LINKS, **ODD},
                   codes, changes=("full.pte", "dangling.pte"))
    hf = {"hf": CONVERT / "qwen2", "hf/tokenizer.json": json.dumps(small(40))}
    for target in ("hf", "hf/", "hf/config.json", "hf/model.safetensors", "hf/tokenizer.json", "hf/generation_config.json"):
        yield case(f"convert a folder onto {target}", ["convert", "hf", "-o", target], hf)
    yield case("convert a folder into itself", ["convert", "hf", "-o", "hf/out.pte"], hf, ANY)
    program = {"m.pte": OPS / "add.pte", "link": link_to("m.pte")}
    for target in ("m.pte", "./m.pte", "link"):
        yield case(f"inspect --graph onto {target}", ["inspect", "m.pte", "--graph", target], program)
        yield case(f"inspect --data, --graph onto {target}", ["inspect", "e.pte", "--data", "m.pte", "--graph", target],
                   {**program, "e.pte": OPS / "external_weights.pte"})
    yield case("inspect --graph onto the limits", ["inspect", "m.pte", "--limits", "l.json", "--graph", "l.json"],
               {**program, "l.json": "{}"})
    yield case("inspect --graph onto a hard link", ["inspect", "m.pte", "--graph", "hard"],
        {"m.pte": OPS / "add.pte", "hard": hard_link_to("m.pte")},
               ANY, changes=("hard",))
    device = {"null": null_device}
    yield case("convert onto a null device", ["convert", "m.gguf", "-o", "null"], {**GGUF, **device}, ANY)
    yield case("inspect --graph onto a null device", ["inspect", "m.pte", "--graph", "null"], {"m.pte": OPS / "add.pte", **device}, ANY)
    x = npy.to_file(npy.ramp("float32", (7, 33)))
    run = ["run", "m.pte", "-i", "out/0.npy", "-i", "out/0.npy", "-o"]
    for target in ("out", "./out", "link", "."):
        files = {"m.pte": OPS / "add.pte", "out/0.npy": x, "0.npy": link_to("out/0.npy"), "link": link_to("out")}
        yield case(f"run onto its input in {target}", [*run, target], files, ANY if target == "." else REFUSED, env={}, gpu=True,
                   changes=("0.npy",))
    yield case("run into a file", ["run", "m.pte", "-i", "x.npy", "-i", "x.npy", "-o", "x.npy"],
        {"m.pte": OPS / "add.pte", "x.npy": x}, env={}, gpu=True)
    yield case("run where its temporary name is taken", ["run", "m.pte", "-i", "x.npy", "-i", "x.npy", "-o", "out"],
               {"m.pte": OPS / "add.pte", "x.npy": x, "out/0.npy.part": b"precious"}, ANY, env={}, gpu=True)
    yield case("run into /proc", ["run", "m.pte", "-i", "x.npy", "-i", "x.npy", "-o", "/proc/out"],
        {"m.pte": OPS / "add.pte", "x.npy": x}, env={}, gpu=True)
    yield case("run where an output is a folder", ["run", "m.pte", "-i", "x.npy", "-i", "x.npy", "-o", "out"],
               {"m.pte": OPS / "add.pte", "x.npy": x, "out/0.npy/keep": b"x"}, env={}, gpu=True)
