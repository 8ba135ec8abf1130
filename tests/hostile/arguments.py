"""Values that no option takes, for every option of every command; most must be refused before anything is opened."""
# SPDX-License-Identifier: BSD-3-Clause
import itertools
import re
import subprocess

from .case import ANY, LLM, NO_LIBRARY, OK, OPS, REFUSED, USAGE, Case
from .gguf import sound

MODEL = {"m.pte": LLM / "qwen3_like_q4.pte"}
ADD = {"m.pte": OPS / "add.pte"}
SOURCE = {"m.gguf": sound}
# What each command needs to be complete.
COMMANDS = {
    "run": (["run", "m.pte"], ADD),
    "inspect": (["inspect", "m.pte"], ADD),
    "verify": (["verify", "m.json"], {"m.json": '{"cases": []}'}),
    "convert": (["convert", "m.gguf", "-o", "out.pte"], SOURCE),
    "synth": (["synth", "-o", "out.pte"], {}),
    "generate": (["generate", "m.pte", "--prompt-ids", "1"], MODEL),
    "chat": (["chat", "m.pte"], MODEL),
    "bench": (["bench", "m.pte"], MODEL),
    "profile": (["profile", "m.pte", "-p", "4", "-n", "2"], MODEL),
    "eval": (["eval", "m.pte", "--ids", "1", "2"], MODEL),
    "doctor": (["doctor"], {}),
    "ops": (["ops"], {}),
}

LONG = "x" * 10_240
VALUES = {
    "empty": "", "blank": " ", "nan": "nan", "-nan": "-nan", "inf": "inf", "-inf": "-inf", "minus one": "-1", "minus seven": "-7",
    "zero": "0", "2^31": str(2**31), "2^32": str(2**32), "2^63-1": str(2**63 - 1), "2^64-1": str(2**64 - 1), "2^64": str(2**64),
    "1e999": "1e999", "1e-400": "1e-400", "hexadecimal": "0x10", "a number with a tail": "12abc", "a comma": ",",
    "10 KB": LONG, "a long number": "9" * 5000, "unicode": "日本語 \U0001f9a4", "escapes": "\x1b[31mred\x1b[0m\x07", "a newline": "a\nb",
    "invalid utf-8": "\udcff\udcfe", "a format": "{}%s%n{0}", "dashes": "--", "2^44": "17592186044416",
}
FINITE = {"zero", "1e-400", "minus one", "minus seven", "hexadecimal", *(v for v in VALUES if v.startswith("2^"))}
VALUES_PER_OPTION = 6  # of those above, another handful for each option of each command
# Of these every value above is wrong but for the ones given: no run of theirs may get past the arguments.
NUMBERS = {
    "--temperature": {"zero", "1e-400", "hexadecimal"}, "--top-p": {"zero", "1e-400"}, "--min-p": {"zero", "1e-400"},
    "--repetition-penalty": {"hexadecimal"}, "--memory-limit": {"zero", "2^31", "2^32", "hexadecimal"},
    "--presence-penalty": FINITE,
    "--frequency-penalty": FINITE,
    "--max-new-tokens": {"zero", "minus one", "2^31", "2^32", "2^63-1", "2^44", "hexadecimal"},
    "--top-k": {"zero", "2^31", "hexadecimal"}, "--precision": set(), "--provider": set(), "--ahead": {"hexadecimal"},
}


def options(tool, command):
    """The long names of a command's options, and whether each takes a value."""
    text = subprocess.run([tool, command, "--help"], capture_output=True, text=True, check=True).stdout
    names = re.findall(r"^  (?:-\w,)?(--[\w-]+)(?:,-\w)?( [A-Z][\w.]*)?", text, re.MULTILINE)
    return [(name, bool(value)) for name, value in names if name != "--help"]


def cases(tool, rng):
    yield from crafted()
    yield from environment_variables()
    for command, (args, files) in COMMANDS.items():
        for option, takes_value in options(tool, command):
            yield Case("arguments", f"{command} {option} as the last word", [*args, option], files, NO_LIBRARY)
            if not takes_value:
                yield Case("arguments", f"{command} {option}=yes", [*args, f"{option}=maybe"], files, NO_LIBRARY, codes=REFUSED)
                continue
            for what, value in rng.sample(sorted(VALUES.items()), VALUES_PER_OPTION):
                if option in ("-o", "--output", "--output-dir", "--report", "--graph") and what not in ("empty", "10 KB", "a newline"):
                    continue
                allowed = NUMBERS.get(option)
                refused = allowed is not None and what not in allowed and not (option == "--memory-limit" and what == "2^44")
                yield Case("arguments", f"{command} {option} {what}", [*args, f"{option}={value}"], files, NO_LIBRARY,
                           codes={USAGE} if refused else ANY)


def crafted():
    def case(name, args, codes=REFUSED, files=None, env=None, **more):
        return Case("arguments", name, args, files or MODEL, env if env is not None else NO_LIBRARY, codes=codes, **more)

    yield case("no arguments", [])
    yield case("no such command", ["dance"])
    yield case("an empty command", [""])
    yield case("a command of 10 KB", [LONG])
    yield case("a command of escapes", ["\x1b[2J\x07"])
    yield case("10,000 arguments", ["run"] + ["x"] * 10_000)
    yield case("help of nothing", ["help", "me"])
    for command, (args, files) in COMMANDS.items():
        yield case(f"{command} twice", [*args, *args], files=files)
        yield case(f"{command} with an unknown option of 10 KB", [*args, "--" + LONG], files=files)
        yield case(f"{command} with unknown escapes", [*args, "--\x1b[31m"], files=files)
        yield case(f"{command} with one word more", [*args, "one", "more"], files=files, codes=ANY)
        yield case(f"{command} with words behind dashes", [*args, "--", "-o", "--help"], files=files, codes=ANY)
        yield case(f"{command} alone", [command], files=files, codes=ANY, env=NO_LIBRARY)
        yield case(f"{command} help", [command, "--help"], files=files, codes={OK})
        yield case(f"{command} with help in the middle", [command, "--frob", "--help"], files=files, codes=ANY)
    # With a GPU: what is only seen once a model is there.
    def gpu(name, args, codes=REFUSED, **more):
        return case(name, args, codes, env={}, gpu=True, **more)
    generate = ["generate", "m.pte", "--prompt-ids", "1"]
    for ids in (["1", "2", "999999999"], ["1", "2", "600"], ["1", "2", "-5"], ["1", "300"], ["300", "1"], ["9223372036854775807", "1"],
                ["1", "-1"], ["-1"], ["5"], ["1"] * 2000 + ["300"]):
        yield gpu(f"eval --ids {' '.join(ids)[:40]}", ["eval", "m.pte", "--ids", *ids])
        yield gpu(f"generate --prompt-ids {' '.join(ids)[:40]}", ["generate", "m.pte", "-n", "2", "--ignore-end", "--prompt-ids", *ids],
                  codes=ANY if ids == ["5"] else REFUSED)
    for option, value in itertools.product(("--temperature", "--top-p", "--min-p", "--repetition-penalty", "--presence-penalty",
                                            "--frequency-penalty"), ("nan", "inf")):
        yield gpu(f"generate {option} {value}", [*generate, "-n", "2", option, value], codes={USAGE})
    yield gpu("generate -n -7", [*generate, "-n", "-7"], codes={USAGE})
    yield gpu("generate -n 0", [*generate, "-n", "0"], codes=ANY, silent=True)
    yield gpu("generate -n 2^63-1", [*generate, "-n", str(2**63 - 1), "--ignore-end"], codes=ANY)
    yield gpu("generate -n -2^63", [*generate, "-n", str(-2**63)], codes={USAGE})
    yield gpu("generate --presence-penalty 1e38", [*generate, "-n", "2", "--ignore-end", "--presence-penalty", "1e38"], codes=ANY)
    yield gpu("generate --temperature 1e-38", [*generate, "-n", "2", "--ignore-end", "--temperature", "1e-38"], codes=ANY)
    yield gpu("generate --top-k 2^32-1", [*generate, "-n", "2", "--ignore-end", "--top-k", str(2**32 - 1)], codes=ANY)
    yield gpu("generate --top-p 0 --min-p 1", [*generate, "-n", "2", "--ignore-end", "--top-p", "0", "--min-p", "1"], codes=ANY)
    yield gpu("generate --memory-limit -1", [*generate, "--memory-limit", "-1"], codes={USAGE})
    yield gpu("generate --memory-limit 2^44", [*generate, "-n", "2", "--memory-limit", "17592186044416"])
    yield gpu("generate --memory-limit 1", [*generate, "-n", "2", "--memory-limit", "1"], codes=ANY)
    yield gpu("generate with 1,000 stops", [*generate, "-n", "2", "--ignore-end", *["--stop=x"] * 1000], codes=ANY)
    yield gpu("generate with a stop of 10 KB", [*generate, "-n", "2", "--ignore-end", "--stop", LONG], codes=ANY)
    yield gpu("generate --stop nothing", [*generate, "-n", "2", "--ignore-end", "--stop", ""], codes=ANY)
    for flags in (["-p", "x"], ["-p", ""], ["-f", "/nonexistent"]):
        yield gpu(f"generate {' '.join(flags)} without a tokenizer", ["generate", "m.pte", *flags])
    for option, value in (("-c", str(2**63 - 1)), ("-n", str(2**63 - 1)), ("-c", "128"), ("-p", str(2**63 - 1))):
        yield gpu(f"bench {option} {value}", ["bench", "m.pte", "-p", "1", "-n", "1", "-r", "1", option, value], codes=ANY)
    yield gpu("bench of nothing", ["bench", "m.pte", "-p", "100000", "-n", "0", "-r", "1"], codes=ANY)
    yield gpu("eval --chunk 2^63-1", ["eval", "m.pte", "--ids", "1", "2", "3", "--chunk", str(2**63 - 1)], codes=ANY)
    for adapter in ("", "999", "-1", "99999999999999999999", "voodoo", LONG, "\x1b[31m"):
        yield gpu(f"doctor's adapter {adapter[:20]!r}", ["run", "m.pte", f"--adapter={adapter}"], files=ADD)
    for route in ("x", ":", "matmul:", ":naive", "matmul:naive,matmul:naive", "matmul:naive:naive", LONG, "\x1b[31m:x", ",,,"):
        yield gpu(f"run --route {route[:20]!r}", ["run", "m.pte", f"--route={route}"], files=ADD)
    for value in ("nan", "inf", "1e999", "x.npy", "", "none", "true", "-0", "9223372036854775808", LONG):
        yield gpu(f"run -i {value[:20]!r}", ["run", "m.pte", "-i", value, "-i", value], files=ADD)
    yield gpu("run with 2,000 inputs", ["run", "m.pte", *["-i", "1"] * 2000], files=ADD)
    yield gpu("run a method of 10 KB", ["run", "m.pte", "-m", LONG], files=ADD)
    yield gpu("run a method of escapes", ["run", "m.pte", "-m", "\x1b[31m\n"], files=ADD)


def environment_variables():
    garbage = ("", " ", "nan", "-1", "x", ",", ":", "a:b:c", "f99", LONG, "\x1b[31m", "{}%n", "\udcff")
    for variable, value in itertools.product(("DEVICE", "ADAPTER", "PROVIDER", "WEBGPU_LIBRARY", "DISABLE", "ROUTE", "PRECISION", "BOUNDS_CHECKS"),
                                             garbage):
        name = f"PTERYX_{variable}={value[:20]!r}"
        yield Case("arguments", f"run with {name}", ["run", "m.pte"], ADD, {**NO_LIBRARY, f"PTERYX_{variable}": value}, codes=REFUSED)
        yield Case("arguments", f"ops with {name}", ["ops"], {}, {**NO_LIBRARY, f"PTERYX_{variable}": value}, codes={OK})
    for variable, value in (("ROUTE", "x"), ("ROUTE", "matmul:quantum"), ("PRECISION", "f99"), ("BOUNDS_CHECKS", "maybe"),
        ("DISABLE", "x")):
        yield Case("arguments", f"run on a GPU with PTERYX_{variable}={value}", ["run", "m.pte"], ADD, {f"PTERYX_{variable}": value},
                   gpu=True, codes=REFUSED)
