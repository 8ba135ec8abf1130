"""Chat templates that would take all memory, all time or the stack, through a Hugging Face folder into convert and chat."""
# SPDX-License-Identifier: BSD-3-Clause
import json

from .case import ANY, NO_LIBRARY, REFUSED, Case
from .folders import QWEN2, with_files
from .tokenizer_files import small

DOUBLING = "{% set ns = namespace(x='a') %}{% for i in range(60) %}{% set ns.x = ns.x ~ ns.x %}{% endfor %}{{ ns.x|length }}"
SELVES = "{% set ns = namespace(x=[1]) %}{% for i in range(60) %}{% set ns.x = [ns.x, ns.x] %}{% endfor %}"
BOMBS = {
    "replace": "{{ ('a' * 20000)|replace('a', 'b' * 20000)|length }}",
    "replace as a method": "{{ ('a' * 20000).replace('a', 'b' * 20000)|length }}",
    "a text times 10^12": "{{ ('a' * 1000000000000)|length }}",
    "a text times 2^63": "{{ 'a' * 9223372036854775807 }}",
    "a text times -1": "{{ 'a' * -1 }}x",
    "a list times 10^12": "{{ ([1] * 1000000000000)|length }}",
    "products of products": "{{ ('a' * 100000 * 100000 * 100000)|length }}",
    "doubling by ~": DOUBLING,
    "doubling by +": DOUBLING.replace("~", "+"),
    "doubling a list": DOUBLING.replace("'a'", "[1]").replace("~", "+"),
    "doubling by a list of itself": SELVES + "{{ ns.x|string|length }}", "doubling into JSON": SELVES + "{{ ns.x|tojson|length }}",
    "joining": "{{ range(100000)|join('x' * 100000)|length }}",
    "joining as a method": "{{ ('x' * 100000).join(['a'] * 100000)|length }}",
    "splitting": "{{ ('a ' * 10000000).split(' ')|length }}",
    "a list of characters": "{{ ('a' * 50000000)|list|length }}",
    "indenting": "{{ ('a\\n' * 100000)|indent(100000)|length }}",
    "tojson with indent": "{{ ([[1] * 1000] * 1000)|tojson(indent=100000)|length }}",
    "centring": "{{ 'a'|center(100000000000)|length }}",
    "padding": "{{ 'a'.ljust(100000000000)|length }}",
    "filling": "{{ '%1000000000d'|format(1) }}",
    "a large range": "{% for i in range(1000000000000) %}{% endfor %}x",
    "a range as a list": "{{ range(1000000000000)|list|length }}",
    "a range of a range": "{% for i in range(100000) %}{% for j in range(100000) %}x{% endfor %}{% endfor %}",
    "a range down": "{{ range(10, 0, 0)|list }}", "a range of -2^63": "{{ range(-9223372036854775807, 9223372036854775807)|length }}",
    "output without end": "{% for i in range(100000) %}{{ 'x' * 100000 }}{% endfor %}",
    "a macro that calls itself": "{% macro m(x) %}{{ m(x) }}{% endmacro %}{{ m(1) }}",
    "macros that call each other": "{% macro a() %}{{ b() }}{% endmacro %}{% macro b() %}{{ a() }}{% endmacro %}{{ a() }}",
    "a macro that calls itself twice": "{% macro m(n) %}{% if n > 0 %}{{ m(n - 1) }}{{ m(n - 1) }}{% endif %}{% endmacro %}{{ m(60) }}",
    "recursion through a loop": "{% for i in [[]] recursive %}{{ loop([[]]) }}{% endfor %}",
    "a division by zero": "{{ 1 // 0 }}", "a remainder by zero": "{{ 1 % 0 }}",
    "a division of the smallest number": "{{ (-9223372036854775807 - 1) // -1 }}",
    "the remainder of the smallest number": "{{ (-9223372036854775807 - 1) % -1 }}",
    "a product that overflows": "{{ 9223372036854775807 * 9223372036854775807 }}",
    "a sum that overflows": "{{ 9223372036854775807 + 1 }}", "a power": "{{ 2 ** 100000 }}",
    "a power of a power": "{{ 9 ** 9 ** 9 ** 9 }}",
    "a negated smallest number": "{{ -(-9223372036854775807 - 1) }}", "a number that is none": "{{ 'nan'|float|int }}",
    "infinity as a number": "{{ 1e999|int }}",
    "a long number": "{{ " + "9" * 10_000 + " }}", "abs of the smallest": "{{ (-9223372036854775807 - 1)|abs }}",
    "rounding": "{{ 1.5|round(2147483647) }}",
    "an index of 2^63": "{{ 'abc'[9223372036854775808] }}", "a slice of 2^63": "{{ 'abc'[-9223372036854775808:9223372036854775807] }}",
    "a slice by zero": "{{ 'abc'[::0] }}", "a slice by -2^63": "{{ 'abc'[::-9223372036854775807] }}",
    "a list that holds itself": "{% set ns = namespace(x=[]) %}{% set _ = ns.x.append(ns.x) %}{{ ns.x }}",
    "a namespace that holds itself": "{% set ns = namespace() %}{% set ns.x = ns %}{{ ns }}",
    "a dict that holds itself": "{% set d = {} %}{% set _ = d.update(a=d) %}{{ d }}",
    "raise_exception": "{{ raise_exception('\x1b[31mno\x07') }}", "raise_exception of 1 MB": "{{ raise_exception('x' * 1000000) }}",
    "strftime_now": "{{ strftime_now('%Y' * 100000) }}", "strftime_now of rubbish": "{{ strftime_now('%q%\x00%') }}",
    "sorting": "{{ ([1, 'a', none, 2.5] * 100000)|sort }}", "grouping": "{{ messages|groupby('absent') }}",
    "batches": "{{ range(10)|batch(0)|list }}",
    "an undefined call": "{{ absent() }}", "attributes of attributes": "{{ messages" + ".x" * 10_000 + " }}",
    "an unknown filter": "{{ 1|quantum }}", "an unknown tag": "{% quantum %}", "an include": "{% include '/etc/passwd' %}",
    "an import": "{% import 'x' as y %}",
    "the class of a text": "{{ ''.__class__.__mro__ }}", "a generation block": "{% generation %}x{% endgeneration %}",
    "invalid UTF-8": "\udcff{{ 'x' }}", "a zero": "a\0b{{ 1 }}", "regular expressions": "{{ 'a' * 100000 is match('(a+)+$') }}",
}
OPEN = {
    "an open expression": "{{", "an open tag": "{%", "an open comment": "{#", "an open text": "{{ '", "an open block": "{% if 1 %}",
    "an open loop": "{% for x in y %}",
    "an end without a beginning": "{% endif %}", "two elses": "{% if 1 %}{% else %}{% else %}{% endif %}",
}
# What opens a level, what is innermost, what closes a level; and what stands around all of it.
DEPTHS = {
    "parentheses": ("(", "1", ")", "{{ @ }}"), "brackets": ("[", "1", "]", "{{ @ }}"), "braces": ("{'a':", "1", "}", "{{ @ }}"),
    "nots": ("not ", "1", "", "{{ @ }}"), "minuses": ("-", "1", "", "{{ @ }}"), "calls": ("x(", "", ")", "{{ @ }}"),
    "filters": ("", "1", "|string", "{{ @ }}"), "sums": ("", "1", "+1", "{{ @ }}"), "choices": ("", "1", " if 1 else 1", "{{ @ }}"),
    "indices": ("", "x", "[0]", "{{ @ }}"), "comparisons": ("", "1", " < 1", "{{ @ }}"), "concatenations": ("", "1", " ~ 1", "{{ @ }}"),
    "powers": ("", "2", " ** 1", "{{ @ }}"), "ands": ("", "1", " and 1", "{{ @ }}"), "ifs": ("{% if 1 %}", "x", "{% endif %}", "@"),
    "elifs": ("", "", "{% elif 0 %}", "{% if 0 %}@{% endif %}"), "loops": ("{% for x in [1] %}", "x", "{% endfor %}", "@"),
    "macros": ("{% macro m() %}", "x", "{% endmacro %}", "@"), "sets": ("{% set x %}", "x", "{% endset %}", "@"),
}


def nested(kind, depth):
    first, inner, last, around = DEPTHS[kind]
    return around.replace("@", first * depth + inner + last * depth)


def folder(template, config=False):
    tokenizer = json.dumps(small(40))
    if config:
        return with_files(QWEN2, tokenizer__json=tokenizer, tokenizer_config__json=json.dumps({"chat_template": template}))
    return with_files(QWEN2, tokenizer__json=tokenizer, chat_template__jinja=template)


def cases(_tool, rng):
    def convert(name, template, codes=ANY, **options):
        return Case("templates", f"convert: {name}", ["convert", "hf", "-o", "out.pte"], {"hf": folder(template, **options)},
            NO_LIBRARY, codes=codes)

    def chat(name, template):
        return Case("templates", f"chat: {name}", ["chat", "hf", "-n", "2", "--seed", "1"], {"hf": folder(template)}, stdin=b"0\n",
            gpu=True)

    for name, template in {**BOMBS, **OPEN}.items():
        yield convert(name, template, REFUSED if name in OPEN else ANY)
    for kind in DEPTHS:
        for depth in (60, 5_000, 100_000):
            yield convert(f"{depth} {kind}", nested(kind, depth))
    for v in (1, [], {}, None, [{"name": "default"}], [{"name": "default", "template": 1}], [1], "x" * 10**6,
        [{"name": 1, "template": "x"}] * 1000):
        yield convert(f"chat_template = {str(v)[:40]}", v, config=True)
    for name, template in BOMBS.items():
        yield chat(name, template)
    for kind in ("parentheses", "ifs", "nots", "filters", "sums", "calls", "elifs"):
        yield chat(f"20,000 {kind}", nested(kind, 20_000))
