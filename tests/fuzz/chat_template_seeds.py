"""chat_template_seeds.py FOLDER: writes what the fuzz target chat_template starts from."""
# SPDX-License-Identifier: BSD-3-Clause
import json
import pathlib
import shutil
import sys

FIXTURES = pathlib.Path(__file__).resolve().parents[1] / "fixtures/chat"


def main():
    folder = pathlib.Path(sys.argv[1])
    for path in FIXTURES.glob("*.jinja"):
        shutil.copy(path, folder)
    for number, feature in enumerate(json.loads((FIXTURES / "goldens.json").read_text())["features"]):
        (folder / f"feature_{number}.jinja").write_text(feature["template"])


main()
