#!/usr/bin/env python3
"""Rules about the source that no compiler checks: what may stand where. Each is a pattern, the files it is looked for in, and the
files that may have it."""
# SPDX-License-Identifier: BSD-3-Clause
import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent
SOURCES = ("*.cpp", "*.h")
ONE_WORKGROUP = {"sample_pick.wgsl"}  # of a single workgroup, whatever the sizes


def files(folder, patterns=SOURCES):
    return sorted(f for p in patterns for f in (ROOT / folder).rglob(p))


def is_test(file):
    return "testing" in file.parts or file.name.endswith("_test.cpp")


class Rules(unittest.TestCase):
    def forbid(self, pattern, where, allowed=(), why=""):
        found = []
        for file in where:
            name = str(file.relative_to(ROOT))
            if name.startswith(tuple(allowed)):
                continue
            for number, line in enumerate(file.read_text().splitlines(), 1):
                if re.search(pattern, line.split("//")[0]):
                    found.append(f"{name}:{number}: {line.strip()}")
        self.assertEqual(found, [], why)

    def test_handles_are_released_in_one_place(self):
        self.forbid(r"wgpu\w+Release\b", files("pteryx"), ["pteryx/gpu/native/handle.h", "pteryx/gpu/native/api"],
                    "an owner in handle.h releases them")

    def test_operators_leave_the_device_alone(self):
        where = [f for f in files("pteryx/ops") if not is_test(f)]
        self.forbid(r"\bgpu::Device\b|create_buffer|create_pipeline|create_bindings|\.submit\(|->submit\(", where,
                    why="plan() only describes; the session makes buffers, params and grids")

    def test_sizes_are_multiplied_by_one_helper(self):
        where = [f for f in files("pteryx") if not is_test(f)]
        self.forbid(r"\b(int64_t|uint64_t|size_t|uint32_t)\s+(checked_)?numel\s*\(\s*(const|std::span)", where, ["pteryx/base/dims"],
                    "numel and checked_numel are in base/dims")
        self.forbid(r"\bnormalize_dim\s*\(\s*int64_t", where, ["pteryx/base/dims"], "normalize_dim is in base/dims")

    def test_nothing_throws(self):
        where = [f for f in files("pteryx") if not is_test(f)]
        self.forbid(r"\bthrow\b|\bcatch\s*\(|\btry\s*\{", where, why="errors are values")

    def test_the_platform_is_known_in_few_files(self):
        where = [f for f in files("pteryx") if not is_test(f) and not f.name.endswith(("_posix.cpp", "_portable.cpp"))]
        self.forbid(r"#\s*if.*(_WIN32|__APPLE__|__linux__|__EMSCRIPTEN__|__wasm)", where, ["pteryx/gpu/native", "pteryx/gpu/web"],
                    "files are chosen by CMake")

    def test_shaders_have_no_infinite_constants(self):
        shaders = files("pteryx/ops", ("*.wgsl",))
        self.assertGreater(len(shaders), 20)
        self.forbid(r"/\s*0\.0|0x[fF]{2}800000|\binf\b", shaders, why="WGSL need not know infinity: mask with a finite value")

    def test_shaders_say_what_they_compute(self):
        for shader in files("pteryx/ops", ("*.wgsl",)):
            with self.subTest(shader.name):
                self.assertTrue(shader.read_text().startswith(("//", "#include")), "opens with the formula and what the host guarantees")

    def test_shaders_fold_their_grids(self):
        """An index from workgroup_id.x alone dies at 65,535 workgroups."""
        for shader in files("pteryx/ops", ("*.wgsl",)):
            text = self.whole(shader)
            if "@compute" not in text or "common" in shader.parts or shader.name in ONE_WORKGROUP:
                continue
            with self.subTest(shader.name):
                self.assertRegex(text.split("@compute", 1)[1], r"flat_group\(|flat_id\(")

    def whole(self, shader):
        """The text with what it includes."""
        def included(match):
            return self.whole(ROOT / "pteryx/ops" / match[1])
        return re.sub(r'^#include "([^"]+)"$', included, shader.read_text(), flags=re.MULTILINE)


if __name__ == "__main__":
    unittest.main()
