"""npy_seeds.py FOLDER: writes what the fuzz target npy starts from."""
# SPDX-License-Identifier: BSD-3-Clause
import pathlib
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "cli"))
import npy  # noqa: E402

SHAPES = [(), (3,), (2, 3), (0, 4), (1, 1, 1, 1, 1, 1, 2, 3)]


def main():
    folder = pathlib.Path(sys.argv[1])
    for dtype in npy.TYPES:
        npy.write(folder / f"{dtype}.npy", npy.array(dtype, (2, 3), 1))
    for shape in SHAPES:
        for version in (1, 2, 3):
            name = "x".join(map(str, shape)) or "scalar"
            npy.write(folder / f"{name}_v{version}.npy", npy.array("float32", shape, 1), version=version, fortran=version == 2)


main()
