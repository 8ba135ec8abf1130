"""Prints what Python knows of characters, as JSON: runs of a kind, letters of either case, and what the normal forms change.

Cases are the simple mappings of Unicode where Python's full ones are one character, and where a capital leads back to its letter.
"""

import json
import sys
import unicodedata

KINDS = ["", "L", "M", "Nd", "Nl", "No", "Pc", "P"]  # as CharKind counts them
IGNORED = {"Cn", "Cs", "Co"}


def kind(category):
    return category if category in KINDS else category[0] if category[0] in "LMP" else ""


def capital(code, full):
    """The one character that a letter becomes, or itself."""
    if len(full) == 1:
        return ord(full)
    others = (0x1E9E, code + 8, code + 9)
    return next((other for other in others if chr(other).lower() == chr(code)), code)


def main():
    runs = []
    cases = {"lower": [], "upper": [], "title": []}
    normal = [[], [], [], []]
    for code in range(sys.maxunicode + 1):
        char = chr(code)
        category = unicodedata.category(char)
        if category in IGNORED:
            continue
        name = kind(category)
        if runs and runs[-1][1] == code - 1 and runs[-1][2] == name:
            runs[-1][1] = code
        else:
            runs.append([code, code, name])
        changed = {"lower": 0x69 if code == 0x130 else ord(char.lower()), "upper": capital(code, char.upper()), "title": capital(code, char.title())}
        for to, other in changed.items():
            if other != code:
                cases[to].append([code, other])
        for form, changes in zip(("NFC", "NFD", "NFKC", "NFKD"), normal):
            if not unicodedata.is_normalized(form, char):
                changes.append([char, unicodedata.normalize(form, char)])
    json.dump({"kinds": KINDS, "runs": runs, **cases, "normal": normal}, sys.stdout)


if __name__ == "__main__":
    main()
