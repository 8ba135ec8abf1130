"""tokenizer_seeds.py FOLDER: writes what the fuzz target tokenizer starts from."""
# SPDX-License-Identifier: BSD-3-Clause
import pathlib
import shutil
import sys

FIXTURES = pathlib.Path(__file__).resolve().parents[1] / "fixtures/tokenizers"


def main():
    for path in FIXTURES.iterdir():
        if path.name not in ("goldens.json", "spm_bpe.gguf.json"):
            shutil.copy(path, sys.argv[1])


main()
