#!/usr/bin/env python3
"""make_chat_goldens.py [--out FOLDER]: renders the templates of tests/fixtures/chat with Jinja itself, set up as Hugging Face's library sets
it up, and writes what came of it to goldens.json there. Needs the PyPI package jinja2 (tokenizer_requirements.txt)."""
# SPDX-License-Identifier: BSD-3-Clause
import argparse
import datetime
import json
import pathlib

import jinja2
import jinja2.ext
import jinja2.sandbox

import chat_conversations

NOW = datetime.datetime(2024, 7, 26, 13, 5, 9)


class Generation(jinja2.ext.Extension):
    """The tag around what the model says, which renders as its body."""

    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        return jinja2.nodes.Scope(parser.parse_statements(["name:endgeneration"], drop_needle=True), lineno=line)


class Raised(jinja2.exceptions.TemplateError):
    """What a template refuses in its own words."""


def raise_exception(message):
    raise Raised(message)


def to_json(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def environment():
    env = jinja2.sandbox.ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols", Generation])
    env.filters["tojson"] = to_json
    env.globals["raise_exception"] = raise_exception
    env.globals["strftime_now"] = NOW.strftime
    return env


def render(env, source, variables):
    try:
        return {"text": env.from_string(source).render(**variables)}
    except Raised as error:
        return {"raised": str(error)}
    except (jinja2.exceptions.TemplateError, TypeError, ValueError, ZeroDivisionError) as error:
        return {"error": str(error)}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    root = pathlib.Path(__file__).resolve().parents[2]
    parser.add_argument("--out", type=pathlib.Path, default=root / "tests/fixtures/chat")
    out = parser.parse_args().out
    env = environment()
    rendered = {}
    for path in sorted(out.glob("*.jinja")):
        source = path.read_text()
        rendered[path.name] = [render(env, source, variables) for variables in chat_conversations.CONVERSATIONS]
    features = [{"template": source, **render(env, source, chat_conversations.VARIABLES)} for source in chat_conversations.FEATURES]
    document = {"made_by": {"jinja2": jinja2.__version__}, "now": [NOW.year, NOW.month, NOW.day, NOW.hour, NOW.minute, NOW.second],
                "conversations": chat_conversations.CONVERSATIONS, "templates": rendered, "variables": chat_conversations.VARIABLES, "features": features}
    (out / "goldens.json").write_text(json.dumps(document, ensure_ascii=False, indent=1) + "\n")


if __name__ == "__main__":
    main()
