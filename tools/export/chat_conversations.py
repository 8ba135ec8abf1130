"""What the chat templates are tried on, and small templates that try one feature each."""
# SPDX-License-Identifier: BSD-3-Clause

WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "The weather at a place.",
        "parameters": {
            "type": "object",
            "properties": {"place": {"type": "string", "description": "A town, e.g. \"Köln\""}, "days": {"type": "integer", "enum": [1, 2, 3]}},
            "required": ["place"],
        },
    },
}
ADD = {"type": "function", "function": {"name": "add", "description": "Adds <two> numbers & more.", "parameters": {"type": "object", "properties": {}}}}

USER = {"role": "user", "content": "What is 2 + 2?"}
CALL = {"role": "assistant", "content": "", "tool_calls": [{"type": "function", "id": "abc123def", "function": {"name": "get_weather", "arguments": {"place": "Köln", "days": 2}}}]}


def conversation(messages, prompt=True, **more):
    return {"messages": messages, "add_generation_prompt": prompt, "bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>", "tools": None, "documents": None, **more}


CONVERSATIONS = [
    conversation([USER]),
    conversation([USER], prompt=False),
    conversation([{"role": "system", "content": "  You are terse.\n"}, USER]),
    conversation([USER, {"role": "assistant", "content": "4"}, {"role": "user", "content": " And twice that?\n\n"}]),
    conversation([{"role": "system", "content": "Be kind."}, USER, {"role": "assistant", "content": " It is 4. "}, {"role": "user", "content": "Danke! 😀 你好"}, {"role": "assistant", "content": "Bitte."}], prompt=False),
    conversation([{"role": "user", "content": "quotes ' and \" and \\ and <tags> & {{ braces }} {% tag %}"}]),
    conversation([{"role": "user", "content": ""}]),
    conversation([USER], tools=[WEATHER, ADD]),
    conversation([{"role": "system", "content": "Use tools."}, USER, CALL, {"role": "tool", "name": "get_weather", "tool_call_id": "abc123def", "content": "{\"sky\": \"grey\"}"}, {"role": "assistant", "content": "Grey."}, USER], tools=[WEATHER]),
    conversation([USER, {"role": "assistant", "content": "<think>\nTwo and two.\n</think>\n\n4"}, USER]),
    conversation([USER, {"role": "assistant", "content": "4", "reasoning_content": "Two and two."}, USER], enable_thinking=False),
    conversation([{"role": "user", "content": [{"type": "text", "text": "First part."}, {"type": "text", "text": " Second."}]}]),
    conversation([{"role": "assistant", "content": "I start."}, USER]),
    conversation([USER, USER]),
    conversation([{"role": "wizard", "content": "Abracadabra"}]),
    conversation([]),
    conversation([USER], documents=[{"title": "One", "text": "The first document."}, {"title": "Two", "text": "The second."}]),
    conversation([USER], date_string="01 Jan 2025", tools_in_user_message=False, custom_tools=[ADD]),
]

VARIABLES = {
    "name": "World",
    "text": "  The quick brown fox\njumps over.  ",
    "number": 42,
    "real": 2.5,
    "yes": True,
    "no": False,
    "nothing": None,
    "empty": [],
    "numbers": [3, 1, 2],
    "words": ["pear", "Apple", "fig"],
    "mixed": [1, "two", 3.0, None, True, ["x"], {"k": "v"}],
    "map": {"b": 1, "a": {"deep": [10, 20]}, "items": "shadow"},
    "people": [{"name": "Ada", "age": 36, "job": {"title": "countess"}}, {"name": "Bob", "age": 7}, {"name": "Cyd", "age": 36, "job": {"title": "baker"}}],
    "unicode": "Straße ÄÖÜ 日本 😀",
    "quotes": "it's \"so\"",
}

# Each is rendered with VARIABLES.
FEATURES = [
    "Hello {{ name }}!",
    "{{ missing }}|{{ nothing }}|{{ yes }}|{{ real }}|{{ number }}|{{ mixed }}|{{ map }}|{{ quotes }}|{{ [quotes] }}",
    "{{ 1 + 2 * 3 - 4 / 2 }} {{ 7 // 2 }} {{ -7 // 2 }} {{ 7 % 3 }} {{ -7 % 3 }} {{ 2 ** 10 }} {{ 2 ** -1 }} {{ 1.5 + 1 }} {{ 10 / 4 }} {{ 1e3 }} {{ 1_000 }}",
    "{{ 'a' + 'b' }} {{ 'a' ~ 1 ~ none ~ missing }} {{ 'ab' * 3 }} {{ [1] + [2] }} {{ [0] * 3 }} {{ -number }} {{ +real }}",
    "{{ 1 < 2 <= 2 }} {{ 1 == 1.0 }} {{ 'a' < 'b' }} {{ 'a' != 'b' }} {{ 3 > 2 > 1 }} {{ true == 1 }} {{ none == missing }} {{ [1, 2] == [1, 2] }} {{ {'a': 1} == {'a': 1} }}",
    "{{ 'qu' in text }} {{ 'b' in map }} {{ 3 in numbers }} {{ 9 not in numbers }} {{ 'x' in missing }} {{ not yes }} {{ not missing }} {{ yes and 'and' }} {{ no or 'or' }} {{ none or 0 or '' }}",
    "{{ 'yes' if yes else 'no' }} {{ 'x' if no }} {{ 1 if no else 2 if no else 3 }} {{ ('a' if yes else 'b') ~ 'c' }}",
    "{{ map.b }} {{ map['b'] }} {{ map.a.deep[1] }} {{ map.a.deep[-1] }} {{ map.zzz }} {{ map['items'] }} {{ map.items() | list | length }} {{ numbers[0] }} {{ numbers[9] }} {{ name[0] }} {{ name[-1] }} {{ unicode[-1] }} {{ unicode[4] }}",
    "{{ numbers[1:] }} {{ numbers[:-1] }} {{ numbers[::-1] }} {{ name[1:3] }} {{ name[::-1] }} {{ name[-3:] }} {{ name[10:] }} {{ unicode[3:6] }} {{ numbers[::2] }} {{ numbers[5:1:-1] }} {{ name[:-10] }}",
    "{{ text | trim }}|{{ text.strip() }}|{{ text.lstrip() }}|{{ text.rstrip() }}|{{ 'xxaxx'.strip('x') }}|{{ 'xyaxy'.lstrip('xy') }}|{{ '--a--' | trim('-') }}",
    "{{ name | upper }} {{ name | lower }} {{ name.upper() }} {{ unicode | upper }} {{ unicode.lower() }} {{ 'hello big-world (of) words' | title }} {{ \"they're bill's\".title() }} {{ 'hELLO wORLD' | capitalize }} {{ 'aB'.capitalize() }}",
    "{{ text | length }} {{ numbers | count }} {{ map | length }} {{ unicode | length }} {{ missing | length }} {{ words | first }} {{ words | last }} {{ '' | first }} {{ name | last }}",
    "{{ words | join(', ') }} {{ numbers | join }} {{ people | join('/', attribute='name') }} {{ ', '.join(words) }} {{ missing | join('x') }}",
    "{{ missing | default('d') }} {{ nothing | default('d') }} {{ nothing | default('d', true) }} {{ '' | d('e', boolean=true) }} {{ name | default('x') }} {{ missing | default }}",
    "{{ mixed | tojson }}\n{{ map | tojson(indent=2) }}\n{{ quotes | tojson }} {{ unicode | tojson }} {{ '<&>\\n\\t\\x01' | tojson }} {{ {} | tojson }} {{ [] | tojson(indent=4) }} {{ {'x': []} | tojson(indent=1) }} {{ unicode | tojson(ensure_ascii=true) }} {{ {'b': 1, 'a': 2} | tojson(sort_keys=true) }} {{ [1, 2] | tojson(separators=(',', ':')) }}",
    "{% for k, v in map.items() %}{{ k }}={{ v }};{% endfor %} {% for k in map %}{{ k }} {% endfor %} {% for k, v in map | items %}{{ k }}{% endfor %} {{ map.keys() | list }} {{ map.values() | list }} {{ map.get('b') }} {{ map.get('q') }} {{ map.get('q', 'r') }}",
    "{% for x in numbers %}{{ loop.index }}{{ loop.index0 }}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.first }}{{ loop.last }}{{ loop.length }}{{ loop.previtem }}{{ loop.nextitem }}{{ loop.cycle('a', 'b') }} {% endfor %}",
    "{% for x in empty %}x{% else %}none{% endfor %} {% for x in missing %}x{% else %}none{% endfor %} {% for x in numbers if x > 1 %}{{ x }}/{{ loop.length }} {% endfor %} {% for c in 'añ😀' %}[{{ c }}]{% endfor %}",
    "{% for x in range(10) %}{% if x == 2 %}{% continue %}{% endif %}{% if x == 5 %}{% break %}{% endif %}{{ x }}{% endfor %} {{ range(3) | list }} {{ range(1, 4) | list }} {{ range(5, 0, -2) | list }}",
    "{% for a in numbers %}{% for b in words %}{{ loop.index }}{{ b[0] }}{% if b == 'Apple' %}{% break %}{% endif %}{% endfor %};{% endfor %}",
    "{% set x = 1 %}{% for i in numbers %}{% set x = i %}{{ x }}{% endfor %}{{ x }} {% if true %}{% set x = 9 %}{% endif %}{{ x }}",
    "{% set ns = namespace(total=0, seen=[]) %}{% for i in numbers %}{% set ns.total = ns.total + i %}{% set ns.seen = ns.seen + [i] %}{% endfor %}{{ ns.total }} {{ ns.seen }} {% set ns.new = 'x' %}{{ ns.new }} {{ ns.none_such }}",
    "{% set a, b = 1, 2 %}{{ a }}{{ b }} {% set (c, d) = [3, 4] %}{{ c }}{{ d }} {% set t = 5, 6 %}{{ t[1] }} {% set block %}Block {{ name }}{% endset %}[{{ block }}]",
    "{% macro greet(who, mark='!') %}Hi {{ who }}{{ mark }}{% endmacro %}{{ greet('Ada') }} {{ greet('Bob', '?') }} {{ greet(mark='.', who='Cyd') }} {{ greet() }} {% macro deep(n) %}{{ n }}{% if n > 0 %}{{ deep(n - 1) }}{% endif %}{% endmacro %}{{ deep(3) }}",
    "{% set outer = 'o' %}{% macro m() %}[{{ outer }}{{ inner }}]{% endmacro %}{% for inner in [1] %}{{ m() }}{% endfor %}",
    "{{ people | map(attribute='name') | list }} {{ people | map(attribute='job', default='?') | list }} {{ words | map('upper') | join(',') }} {{ ['1', '2'] | map('int') | sum }} {{ words | map('replace', 'p', 'P') | list }}",
    "{{ people | selectattr('age', 'equalto', 36) | map(attribute='name') | list }} {{ people | selectattr('job') | list | length }} {{ people | rejectattr('job', 'defined') | map(attribute='name') | first }} {{ numbers | select('odd') | list }} {{ numbers | reject('gt', 1) | list }} {{ mixed | select('string') | list }} {{ people | selectattr('age', '==', 7) | list | length }}",
    "{{ numbers | sort }} {{ words | sort }} {{ numbers | sort(reverse=true) }} {{ people | sort(attribute='age') | map(attribute='name') | list }} {{ numbers | min }} {{ numbers | max }} {{ numbers | reverse | list }} {{ name | reverse }} {{ [1, 2, 1] | unique | list }} {% for k, v in {'b': 1, 'a': 2} | dictsort %}{{ k }}{{ v }}{% endfor %}",
    "{{ yes is defined }} {{ missing is defined }} {{ missing is undefined }} {{ nothing is none }} {{ name is string }} {{ map is mapping }} {{ numbers is iterable }} {{ number is iterable }} {{ numbers is sequence }} {{ map is sequence }} {{ number is number }} {{ real is float }} {{ number is integer }} {{ yes is boolean }} {{ yes is true }} {{ no is false }} {{ yes is number }} {{ yes is integer }}",
    "{{ 3 is odd }} {{ 3 is even }} {{ 9 is divisibleby 3 }} {{ 9 is divisibleby(2) }} {{ 'a' is in 'abc' }} {{ 1 is eq 1 }} {{ 1 is ne(2) }} {{ 'abc' is lower }} {{ 'ABC' is upper }} {{ nothing is not none }} {{ not nothing is none }} {{ range is callable }} {{ name is not string or number is number }}",
    "{{ 'a,b,,c'.split(',') }} {{ ' a  b '.split() }} {{ 'a,b,c'.split(',', 1) }} {{ 'a b c'.split(' ')[-1] }} {{ 'a.b.c'.rsplit('.', 1) }} {{ 'x\\ny\\n'.splitlines() }} {{ ' a b c '.split(none, 1) }}",
    "{{ name.startswith('Wo') }} {{ name.endswith(('x', 'ld')) }} {{ 'aaa'.replace('a', 'b') }} {{ 'aaa'.replace('a', 'b', 2) }} {{ 'aXa' | replace('X', '-') }} {{ 'abcabc'.find('c') }} {{ 'abc'.find('z') }} {{ 'banana'.count('an') }} {{ '日本'.find('本') }}",
    "{{ '12' | int }} {{ 'x' | int }} {{ 'x' | int(7) }} {{ 3.9 | int }} {{ '2.5' | float }} {{ 5 | float }} {{ 5 | string }} {{ [1, 2] | string }} {{ -3 | abs }} {{ 2.567 | round(2) }} {{ 2.5 | round }} {{ ' 12 ' | int }} {{ true | int }}",
    "{{ 'a\\nb\\n\\nc' | indent(2) }}|{{ 'a\\nb' | indent(2, true) }}|{{ 'a\\n\\nb' | indent(1, blank=true) }}|{{ '<a> & \"b\"' | e }}|{{ '<b>' | safe }}|{{ 'a' | list }}",
    "{{ '12'.isdigit() }} {{ 'ab'.isalpha() }} {{ 'a1'.isalnum() }} {{ ' '.isspace() }} {{ 'AB'.isupper() }} {{ 'ab'.islower() }} {{ ''.isdigit() }} {{ [1, 2].index(2) }}",
    "  {% if yes %}\n  kept\n  {% endif %}\n  after\n",
    "a {%- if yes -%} b {%- endif -%} c {{- ' d ' -}} e {{ 'f' -}}\n\n g\n",
    "{%+ if yes %}x{% endif +%}\ny\n{# comment #}\nz {#- c -#} w\n   {# indented #}\nv",
    "line\n    {% for x in numbers %}\n    - {{ x }}\n    {% endfor %}\nend\n\n",
    "{% raw %}{{ not }} {% this %}{% endraw %} {%- raw -%} x {%- endraw -%} y",
    "{{ 'single' }} {{ \"double\" }} {{ 'it\\'s' }} {{ \"\\u00e9\\x41\\n\\\\\" }} {{ 'a' 'b' }} {{ '\\q' }} {{ '{{' }} {{ \"%}\" }}",
    "{{ {'a': 1, 'b': [1, {'c': 2}]} }} {{ {'x': {'y': 'z'}}.x.y }} {{ [1, 2,] }} {{ (1, 2)[0] }} {{ (1 + 2) * 3 }} {{ {} }} {{ {'a': 1, 'a': 2} }}",
    "{{ strftime_now('%d %b %Y %H:%M:%S') }} {{ dict(a=1, b='x') }} {{ namespace(x=3).x }}",
    "{% if no %}a{% elif nothing %}b{% elif yes %}c{% else %}d{% endif %}{% if no %}x{% else %}y{% endif %}{% if not (no or missing) and yes %}z{% endif %}",
    "{% generation %}in {{ name }}{% endgeneration %} out",
    "{{ raise_exception('No ' ~ name) }}",
    "{{ missing.attribute }}",
    "{{ missing + 1 }}",
    "{{ 1 + 'a' }}",
    "{{ missing() }}",
    "{{ 1 / 0 }}",
    "{% set x.y = 1 %}",
    "{% for a, b in [[1, 2, 3]] %}{% endfor %}",
    "{{ 5 | length }}",
    "{% for x in 5 %}{% endfor %}",
    "{% if yes %}open",
    "{{ name",
    "{{ name }",
    "{% endfor %}",
    "{{ 'open }}",
    "{{ 1 + }}",
    "{{ name | }}",
    "{% for in x %}{% endfor %}",
]
