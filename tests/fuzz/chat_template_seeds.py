"""chat_template_seeds.py FOLDER: writes what the fuzz target chat_template starts from."""
# SPDX-License-Identifier: BSD-3-Clause
import json
import pathlib
import shutil
import sys

FIXTURES = pathlib.Path(__file__).resolve().parents[1] / "fixtures/chat"

# Expressions that make much of little: each is refused for the memory or the work it takes.
GREEDY = [
    "('a' * 20000)|replace('a', 'b' * 20000)|length",
    "''.join(['x' * 1000000] * 3000)",
    "(['x' * 1000000] * 3000)|string|length",
    "(['x' * 1000000] * 3000) ~ ''",
    "(['x' * 1000000] * 3000)|tojson",
    "range(1000)|join('x' * 1000000)",
    "('\\n' * 100000)|indent('x' * 10000, true, true)",
    "range(100000)|tojson(separators=['x' * 10000, ': '])",
    "([0] * 1000000) * 9000000000000000000",
    "('a,' * 4000000).split(',')|length",
    "('a ' * 4000000).rsplit(' ')|length",
    "('a\\n' * 4000000).splitlines()|length",
    "('a' * 8000000)|list|sort|unique|length",
    "('a' * 8000000)[::-2]|reverse|upper|title|e",
    "range(100000)|map(attribute='x' * 10000)|list",
    "(['a'] * 100000)|map(attribute='upper')|list",
    "'a'|map(" + "'map', " * 1000 + "'upper')|list",
    "('a' * 1000000).find('a' * 500000 ~ 'b')",
    "('a' * 1000000).strip('b' * 1000000 ~ 'a')",
    "('a' * 1000000).endswith(['b' ~ 'a' * 999999] * 100000)",
    "([['a' * 100000] * 1000] * 1000) == ([['a' * 100000] * 1000] * 1000)",
    "{}[['a' * 1000000] * 1000].x",
    "[1].index(['a' * 1000000] * 1000)",
]
# What a namespace's member grows by, until a limit is met.
GROWTH = ["ns.x ~ ns.x", "ns.x|tojson", "[ns.x, ns.x]", "[ns.x|string, ns.x]", "{'a': ns.x}.get", "[ns.x, loop]"]


def main():
    folder = pathlib.Path(sys.argv[1])
    for path in FIXTURES.glob("*.jinja"):
        shutil.copy(path, folder)
    for number, feature in enumerate(json.loads((FIXTURES / "goldens.json").read_text())["features"]):
        (folder / f"feature_{number}.jinja").write_text(feature["template"])
    for number, expression in enumerate(GREEDY):
        (folder / f"greedy_{number}.jinja").write_text("{{ " + expression + " }}")
    for number, value in enumerate(GROWTH):
        (folder / f"growth_{number}.jinja").write_text(
            "{% set ns = namespace(x='x') %}{% for i in range(9999) %}{% set ns.x = " + value + " %}{% endfor %}{{ ns.x }}")


main()
