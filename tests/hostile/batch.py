"""run --batch: lines that are no calls, and outputs that would land on inputs."""
# SPDX-License-Identifier: BSD-3-Clause
import json

import npy

from .case import ANY, FAILED, OPS, REFUSED, Case, link_to, sparse

FILES = {"m.pte": OPS / "add.pte", "x.npy": npy.to_file(npy.ramp("float32", (7, 33)))}
CALL = {"inputs": ["x.npy", "x.npy"]}
LINES = {
    "200,000 brackets": "[" * 200_000 + "]" * 200_000, "200,000 open brackets": "[" * 200_000,
    "200,000 braces": '{"a":' * 200_000 + "1" + "}" * 200_000,
    "20,000 brackets as an input": '{"inputs": [' + "[" * 20_000 + "]" * 20_000 + "]}",
    "200,000 brackets as an input": '{"inputs": [' + "[" * 200_000 + "]" * 200_000 + "]}",
    "200,000 brackets as inputs": '{"inputs": ' + "[" * 200_000 + "]" * 200_000 + "}",
    "200,000 brackets as a method": '{"method": ' + "[" * 200_000 + "]" * 200_000 + "}",
    "200,000 brackets as outputs": '{"inputs": ["x.npy", "x.npy"], "outputs": ' + "[" * 200_000 + "]" * 200_000 + "}",
    "200,000 brackets beside": '{"inputs": ["x.npy", "x.npy"], "note": ' + "[" * 200_000 + "]" * 200_000 + "}",
    "an input of 10 MB": json.dumps({"inputs": ["x" * 10**7]}), "a method of 10 MB": json.dumps({"method": "x" * 10**7}),
    "a method of escapes": json.dumps({"method": "\x1b[31m\n"}), "an input of escapes": json.dumps({"inputs": ["\x1b[31m.npy"]}),
    "no JSON": "hello", "half a call": '{"inputs": [', "a number": "1", "a list": "[]", "a text": '"x"', "null": "null",
    "an empty call": "{}",
    "a zero byte": "\0", "invalid UTF-8": '{"inputs": ["\udcff"]}', "an invalid escape": '{"inputs": ["\\ud800"]}',
    "a byte order mark": "\ufeff{}",
    "inputs that are a text": '{"inputs": "x.npy"}', "inputs that are a number": '{"inputs": 1}',
    "inputs that are an object": '{"inputs": {"a": 1}}',
    "inputs that are null": '{"inputs": null}', "an input of 2^64": '{"inputs": [18446744073709551616, 1]}',
    "an input of 2^64-1": '{"inputs": [18446744073709551615, 1]}',
    "an input of 1e999": '{"inputs": [1e999, 1]}', "an input of NaN": '{"inputs": [NaN, 1]}',
    "an input of 10,000 digits": '{"inputs": [' + "9" * 10_000 + "]}",
    "a method that is a number": '{"method": 1}', "a method that is null": '{"method": null}',
    "outputs that are a text": '{"inputs": ["x.npy", "x.npy"], "outputs": "y.npy"}',
    "outputs that are numbers": '{"inputs": ["x.npy", "x.npy"], "outputs": [1]}',
    "outputs that are an object": '{"inputs": ["x.npy", "x.npy"], "outputs": {"a": "y.npy"}}',
    "outputs that are null": '{"inputs": ["x.npy", "x.npy"], "outputs": null}',
    "too many outputs": '{"inputs": ["x.npy", "x.npy"], "outputs": ["a.npy", "b.npy"]}',
    "the same key twice": '{"inputs": [1], "inputs": ["x.npy", "x.npy"]}', "100,000 inputs": json.dumps({"inputs": [1] * 100_000}),
    "an absent input": '{"inputs": ["absent.npy", "x.npy"]}', "an input that is a folder": '{"inputs": [".npy", "x.npy"]}',
}
# Where a call would write, and what may come of it: outputs land on nothing that was given.
OUTPUTS = {
    "the first input": "x.npy", "the first input, spelled otherwise": "./x.npy", "the first input through a link": "link.npy",
    "the model": "m.pte",
    "the model through a link": "model.npy", "the calls": "calls.jsonl", "a folder that is not there": "absent/y.npy",
    "a folder": "folder", "nothing": "",
    "a file as a folder": "x.npy/y.npy", "a full disk": "full.npy", "a name of 10 KB": "n" * 10_240,
    "a name of escapes": "\x1b[31m.npy", "a name with a zero": "y\0.npy",
}
EXTRA = {"link.npy": link_to("x.npy"), "model.npy": link_to("m.pte"), "folder/keep": b"x", "full.npy": link_to("/dev/full")}
LINKS = ("link.npy", "model.npy", "full.npy")  # may be replaced: what they lead to may not
ODD = ("a full disk", "a name of escapes")


def cases(_tool, rng):
    def case(name, lines, codes=frozenset({FAILED}), args=(), files=None, **more):
        text = lines if isinstance(lines, str) else "\n".join(lines) + "\n"
        return Case("batch", name, ["run", "m.pte", "--batch", "calls.jsonl", *args], {**FILES, "calls.jsonl": text, **(files or {})},
            gpu=True,
                    codes=codes, **more)

    lenient = ("200,000 brackets beside", "the same key twice", "outputs that are null", "a byte order mark", "outputs that are a text",
               "outputs that are numbers", "outputs that are an object", "200,000 brackets as outputs")
    for name, line in LINES.items():
        yield case(name, [line], ANY if name in lenient else REFUSED)
    good = json.dumps(CALL)
    yield case("200 bad lines, going on", ["nonsense \x1b[31m" + "x" * 1000] * 200 + [good], args=["--keep-going"])
    yield case("a bad line between good ones", [good, "{", good], args=["--report", "report.jsonl"], keeps=("report.jsonl",))
    for name, target in OUTPUTS.items():
        call = json.dumps({**CALL, "outputs": [target]})
        yield case(f"an output onto {name}", [call], ANY if "link" in name or name in ODD else REFUSED, files=EXTRA, changes=LINKS)
    for name, target in {**OUTPUTS, "the report's own folder": "."}.items():
        if "zero" in name or name == "nothing":
            continue
        yield case(f"a report onto {name}", [good], ANY if "link" in name or name in ODD else REFUSED, args=["--report", target],
            files=EXTRA,
                   changes=LINKS)
    yield case("calls of 1 TB", [], REFUSED, files={"calls.jsonl": sparse(1 << 40)})
