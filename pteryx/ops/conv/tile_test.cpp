// Convolutions as products of tiles, against a plain reference.
// SPDX-License-Identifier: BSD-3-Clause
#include <vector>

#include <gtest/gtest.h>

#include "pteryx/ops/testing/conv_cases.h"

namespace pteryx::ops::testing::conv_cases {
namespace {

TEST(ConvTile, AnySize) {
  const std::vector<Form> forms = {{{1, 20, 9, 8}, {35, 20, 3, 3}, {1}, {1}},
                                   {{1, 70, 5, 7}, {33, 70, 1, 1}},
                                   {{2, 40, 3, 3}, {66, 20, 3, 3}, {2}, {1}, {1}, 2},
                                   {{1, 300, 1, 1}, {70, 300, 1, 1}},           // split sums
                                   {{130, 2, 5, 13}, {65, 2, 1, 1}},            // tiles of 64
                                   {{0, 20, 9, 8}, {128, 20, 3, 3}, {1}, {1}},  // no image
                                   {{0, 70, 5, 7}, {64, 70, 1, 1}}};
  check(forms);
  check(forms, DType::kF16);
}

// Large tiles need many results; each order of terms, with full and with ragged tiles.
const std::vector<Form> kLargeTiles = {{{1, 4, 50, 51}, {120, 4, 3, 3}, {1}, {1}},
                                       {{1, 17, 30, 30}, {360, 17, 1, 1}},
                                       {{1, 14, 40, 66}, {122, 14, 3, 1}}};

TEST(ConvTile, Large) { check(kLargeTiles); }

// f16 is fetched as words, of which one half or the other counts: images and rows that begin inside
// a word, each order of terms, with full and with ragged tiles.
TEST(ConvTile, HalvesOfWords) {
  std::vector<Form> forms = kLargeTiles;
  forms.push_back({{2, 15, 5, 7}, {9, 15, 3, 3}, {1}, {1}});
  forms.push_back({{2, 28, 7, 7}, {70, 14, 2, 3}, {2, 1}, {0, 2}, {1, 2}, 2});
  forms.push_back({{1, 3, 15, 13}, {40, 3, 7, 7}, {2}, {3}});
  forms.push_back({{3, 2, 3, 5}, {5, 2, 3, 3}, {1}, {1}});
  forms.push_back({{2, 70, 6, 6}, {33, 70, 1, 1}});
  for (const Form& f : forms) {
    SCOPED_TRACE(fmt::format("x {} weight {}", to_string(f.x), to_string(f.w)));
    const Operands o = operands(f, DType::kF16);
    const TestTensor want = reference(f, o.x, o.w, o.bias);
    expect_route(
        make_case("aten.convolution.default", f, o.x, o.w, o.bias).out(DType::kF16, want.dims),
        "tile", {want}, {4e-3, 2e-3});
  }
}

// What small images take on a device of few processors, as the software GPU is one.
TEST(ConvTile, SplitForSmallImages) {
  const std::vector<Form> forms = {{{1, 30, 5, 7}, {120, 30, 3, 3}, {1}, {1}},  // tall
                                   {{1, 30, 9, 8}, {128, 30, 3, 3}, {1}, {1}},
                                   {{1, 523, 6, 6}, {64, 523, 1, 1}}};  // by few invocations
  for (const DType t : {DType::kF32, DType::kF16}) {
    for (const Form& f : forms) {
      SCOPED_TRACE(fmt::format("x {} weight {} {}", to_string(f.x), to_string(f.w), name(t)));
      const Operands o = operands(f, t);
      const TestTensor want = reference(f, o.x, o.w, o.bias);
      const Case c = make_case("aten.convolution.default", f, o.x, o.w, o.bias).out(t, want.dims);
      expect_route(c, "tile", {want}, t == DType::kF16 ? Tolerance{2e-2, 2e-3} : kFloat,
                   [](gpu::Caps& caps) { caps.sizes.processors = 4; });
    }
  }
}

TEST(ConvTile, LittleWorkgroupMemory) {
  for (const Form& f : {kLargeTiles[0], kLargeTiles[1], Form{{1, 20, 9, 8}, {35, 20, 3, 3}}}) {
    const Operands o = operands(f, DType::kF32);
    const TestTensor want = reference(f, o.x, o.w, o.bias);
    expect_route(
        make_case("aten.convolution.default", f, o.x, o.w, o.bias).out(DType::kF32, want.dims), "",
        {want}, kFloat, [](gpu::Caps& caps) { caps.max_workgroup_bytes = 16384; });
  }
}

}  // namespace
}  // namespace pteryx::ops::testing::conv_cases
