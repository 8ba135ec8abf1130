#!/usr/bin/env python3
"""Checks that a component includes only Pteryx headers of itself and of the components it depends on."""

import argparse
import pathlib
import re
import sys

INCLUDE = re.compile(r'^\s*#\s*include\s*["<]pteryx/([^/">]+)(/?)')
# pteryx/pteryx.h is the face of the session component.
PUBLIC_HEADER_OWNER = "session"


def violations(folder, component, allowed):
    permitted = {component, *allowed}
    for path in sorted(p for p in folder.rglob("*") if p.suffix in (".h", ".cpp")):
        for number, line in enumerate(path.read_text().splitlines(), 1):
            match = INCLUDE.match(line)
            if not match:
                continue
            owner = match[1] if match[2] else PUBLIC_HEADER_OWNER
            if owner not in permitted:
                yield f"{path}:{number}: error: {component} must not include {owner}; it may include {', '.join(sorted(permitted))}"


def main(argv):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--component", required=True)
    parser.add_argument("--allowed", default="", help="components it depends on, separated by commas")
    parser.add_argument("--stamp", type=pathlib.Path, required=True, help="touched when all is well")
    parser.add_argument("folder", type=pathlib.Path)
    args = parser.parse_args(argv)
    found = list(violations(args.folder, args.component, filter(None, args.allowed.split(","))))
    if found:
        sys.exit("\n".join(found))
    args.stamp.touch()


if __name__ == "__main__":
    main(sys.argv[1:])
