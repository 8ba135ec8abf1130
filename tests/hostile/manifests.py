"""Manifests for pteryx verify that are wrong, or would pass without having compared anything."""
# SPDX-License-Identifier: BSD-3-Clause
import json

from .case import ANY, NO_LIBRARY, OPS, REFUSED, VALUES, Case, replaced


def sound():
    manifest = json.loads((OPS / "manifest.json").read_text())
    return next(c for c in manifest["cases"] if c["name"] == "add")


def with_place(path, v):
    return {"cases": [replaced(sound(), path, v)]}


HUGE = (2**31, 2**32, 2**63 - 1, 2**63, 2**64 - 1, 10**30, -1, 1.5, "0", None, [], ...)
PLACES = [
    *((("name",), v) for v in (1, None, ..., "", "x" * 10_240, "\x1b[31m", [])),
    *((("pte",), v) for v in (1, None, ..., "", "absent.pte", "../../../etc/passwd", "/etc/passwd", ".", "x" * 10_240, "\x1b[31m",
        "manifest.json", "add.bin", "add.pte\0")),
    *((("method",), v) for v in (1, None, "", "absent", "\x1b[31m", "x" * 10_240)),
    *((("atol",), v) for v in ("0", None, -1, 1e300, [])), *((("rtol",), v) for v in ("0", -1, 1e300)),
    *((("ptd",), v) for v in (1, "x", [1], ["absent"], ["add.bin"], None)),
    *((("runs",), v) for v in ([], None, ..., 1, {}, [1], [{}], [[]], "x")),
    *((("runs", 0, "inputs"), v) for v in ([], None, ..., 1, {}, [1], [None], ["x"], [{}], [{"scalar": {"scalar": 1}}],
        [{"scalar": []}])),
    *((("runs", 0, "outputs"), v) for v in ([], None, ..., 1, {}, [1], [None], ["x"], [{}])),
    *((("runs", 0, "inputs", 0, "offset"), v) for v in HUGE), *((("runs", 0, "outputs", 0, "offset"), v) for v in HUGE),
    *((("runs", 0, "inputs", 0, "shape"), v) for v in ([], [0], [-1, 33], [2**32, 2**32], [2**63 - 1], [1] * 100, [1.5], ["7"], None,
        ..., 7, [10**30])),
    *((("runs", 0, "outputs", 0, "shape"), v) for v in ([], [0], [7], [231], [2**32, 2**32])),
    *((("runs", 0, "inputs", 0, "dtype"), v) for v in ("float99", "", 1, None, ..., "int64", "bool", "\x1b[31m", "x" * 10_240)),
    *((("runs", 0, "outputs", 0, "dtype"), v) for v in ("int64", "float16")),
    *((("runs", 0, "inputs", 0, "file"), v) for v in ("absent", "", ".", "../../etc/passwd", 1, None, ..., "add.pte", "\x1b[31m")),
]
TEXTS = {
    "nothing": "", "no cases": "{}", "cases that are a number": '{"cases": 1}', "cases that are an object": '{"cases": {"a": {}}}',
    "cases that are a text": '{"cases": "x"}',
    "a list of nothing": '{"cases": []}', "a case that is a number": '{"cases": [1]}', "a case of nothing": '{"cases": [{}]}',
    "cases that are null": '{"cases": null}',
    "200,000 brackets": '{"cases": ' + "[" * 200_000 + "]" * 200_000 + "}", "200,000 open brackets": '{"cases": ' + "[" * 200_000,
    "200,000 braces": '{"cases": [' + '{"name":' * 200_000 + "1" + "}" * 200_000 + "]}",
    "invalid UTF-8": '{"cases": [{"name": "\udcff"}]}',
    "100,000 empty cases": '{"cases": [' + ",".join(["{}"] * 100_000) + "]}",
}


def deep_scalar(depth):
    text = json.dumps({"cases": [{**sound(), "runs": [{"inputs": ["@"], "outputs": []}]}]})
    return text.replace('"@"', '{"scalar":' * depth + "1" + "}" * depth)


def cases(_tool, rng):
    beside = {f"v/{p.name}": p for p in (OPS / "add.pte", OPS / "add.bin")}

    def case(name, text, codes=REFUSED, args=(), gpu=True):
        return Case("manifests", name, ["verify", "v/manifest.json", *args], {**beside, "v/manifest.json": text},
            {} if gpu else NO_LIBRARY,
                    gpu=gpu, codes=codes)

    for name, text in TEXTS.items():
        yield case(name, text)
    for depth in (10, 20_000, 200_000):
        yield case(f"{depth} nested scalars", deep_scalar(depth))
    harmless = {"name", "atol", "rtol", "ptd"}
    for path, v in PLACES:
        yield case(f"{'.'.join(map(str, path))} = {str(v)[:60]}", json.dumps(with_place(path, v)),
            ANY if path[0] in harmless else REFUSED)
    outputs = {"dtype": "int64", "shape": [1000], "file": "big.bin", "offset": 0}
    files = {f"v/{p.name}": p for p in VALUES.iterdir()}
    for c in json.loads((VALUES / "manifest.json").read_text())["cases"]:
        run = c["runs"][0]
        c["runs"] = [{**run, "outputs": [outputs] * len(run["outputs"])}]
        yield Case("manifests", f"1,000 numbers expected of {c['name']}", ["verify", "v/manifest.json"],
                   {**files, "v/big.bin": bytes(8000), "v/manifest.json": json.dumps({"cases": [c]})}, gpu=True, codes=REFUSED)
    yield case("as JSON", json.dumps({"cases": [sound()]}), {0}, ["--json"])
