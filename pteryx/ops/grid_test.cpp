// SPDX-License-Identifier: BSD-3-Clause
#include <cmath>

#include <gtest/gtest.h>

#include "pteryx/ops/testing/op_harness.h"

namespace pteryx::ops::testing {
namespace {

// The centre that stands for a whole position outside: the image repeated by mirroring, walked one
// step at a time.
int64_t reflect_index(int64_t i, int64_t size, bool align) {
  while (i < 0 || i >= size) {
    if (i < 0)
      i = align ? -i : -1 - i;
    else
      i = align ? 2 * (size - 1) - i : 2 * size - 1 - i;
  }
  return i;
}

struct Form {
  int64_t mode, outside;
  bool align;
};

// Sampling with the image extended over its edges as the padding mode says. Bilinear and nearest
// places are brought inside first, which for whole positions is the same.
double reference_at(const TestTensor& x, int64_t plane, double row, double column, const Form& f) {
  const int64_t height = x.dims[2];
  const int64_t width = x.dims[3];
  const auto element = [&](double r, double c) {
    auto h = static_cast<int64_t>(r);
    auto w = static_cast<int64_t>(c);
    if (f.outside == 1) {
      h = std::min(std::max<int64_t>(h, 0), height - 1);
      w = std::min(std::max<int64_t>(w, 0), width - 1);
    } else if (f.outside == 2) {
      h = height == 1 ? 0 : reflect_index(h, height, f.align);
      w = width == 1 ? 0 : reflect_index(w, width, f.align);
    } else if (h < 0 || h >= height || w < 0 || w >= width) {
      return 0.0;
    }
    return x.data[static_cast<size_t>((plane * height + h) * width + w)];
  };
  if (f.mode == 1) return element(std::nearbyint(row), std::nearbyint(column));
  const auto share = [&](double d) {
    d = std::fabs(d);
    if (f.mode == 0) return std::max(0.0, 1 - d);
    if (d < 1) return 1.25 * d * d * d - 2.25 * d * d + 1;
    return d < 2 ? -0.75 * d * d * d + 3.75 * d * d - 6 * d + 3 : 0.0;
  };
  double sum = 0;
  for (double r = std::floor(row) - 1; r <= std::floor(row) + 2; ++r) {
    for (double c = std::floor(column) - 1; c <= std::floor(column) + 2; ++c) {
      sum += share(r - row) * share(c - column) * element(r, c);
    }
  }
  return sum;
}

TestTensor reference(const TestTensor& x, const TestTensor& grid, const Form& f) {
  const int64_t oh = grid.dims[1];
  const int64_t ow = grid.dims[2];
  TestTensor y{x.dtype, {x.dims[0], x.dims[1], oh, ow}, {}};
  for (int64_t i = 0; i < numel(y.dims); ++i) {
    const int64_t plane = i / (oh * ow);
    const auto at = static_cast<size_t>((plane / x.dims[1] * oh * ow + i % (oh * ow)) * 2);
    const auto place = [&](double v, int64_t size) {
      const auto s = static_cast<double>(size);
      return f.align ? (v + 1) / 2 * (s - 1) : ((v + 1) * s - 1) / 2;
    };
    y.data.push_back(reference_at(x, plane, place(grid.data[at + 1], x.dims[2]),
                                  place(grid.data[at], x.dims[3]), f));
  }
  return y;
}

TEST(GridSampler, EveryModeMatchesReference) {
  const std::vector<std::pair<Dims, Dims>> shapes = {{{1, 3, 5, 6}, {1, 4, 7, 2}},
                                                     {{2, 1, 4, 3}, {2, 3, 3, 2}}};
  for (const auto& [x_dims, grid_dims] : shapes) {
    for (int64_t mode = 0; mode < 3; ++mode) {
      for (int64_t outside = 0; outside < 3; ++outside) {
        for (const bool align : {false, true}) {
          SCOPED_TRACE(fmt::format("mode {} outside {} align {}", mode, outside, align));
          const TestTensor x = random(DType::kF32, x_dims, 1, -1, 1);
          const TestTensor grid = random(DType::kF32, grid_dims, 2, -1.7, 1.7);
          const TestTensor y = reference(x, grid, {mode, outside, align});
          expect_op(Case("aten.grid_sampler_2d.default")
                        .in(x)
                        .in(grid)
                        .integer(mode)
                        .integer(outside)
                        .flag(align)
                        .out(DType::kF32, y.dims),
                    {y}, {1e-5, 1e-5});
        }
      }
    }
  }
}

TEST(GridSampler, HalfPrecisionAndEmptyBatches) {
  for (const int64_t batch : {0, 1}) {
    const TestTensor x = random(DType::kF16, {batch, 3, 5, 6}, 1, -1, 1);
    const TestTensor grid = random(DType::kF16, {batch, 5, 3, 2}, 2, -1.5, 1.5);
    const TestTensor y = reference(x, grid, {0, 1, true});
    expect_op(Case("aten.grid_sampler_2d.default")
                  .in(x)
                  .in(grid)
                  .integer(0)
                  .integer(1)
                  .flag(true)
                  .out(DType::kF16, y.dims),
              {y}, {2e-3, 2e-3});
  }
}

TEST(GridSampler, PlacesFarOutsideAndOnTheEdge) {
  const TestTensor x{DType::kF32, {1, 1, 2, 2}, {1, 2, 3, 4}};
  const TestTensor grid{DType::kF32, {1, 1, 4, 2}, {-1, -1, 1, 1, 1e9, -1e9, -1, 1}};
  const auto sampled = [&](int64_t outside) {
    return Case("aten.grid_sampler_2d.default")
        .in(x)
        .in(grid)
        .integer(0)
        .integer(outside)
        .flag(true)
        .out(DType::kF32, {1, 1, 1, 4});
  };
  expect_op(sampled(0), {{DType::kF32, {1, 1, 1, 4}, {1, 4, 0, 3}}}, {1e-6, 1e-6});
  expect_op(sampled(1), {{DType::kF32, {1, 1, 1, 4}, {1, 4, 2, 3}}}, {1e-6, 1e-6});
}

TEST(GridSampler, SaysWhatDoesNotFit) {
  const TestTensor x = random(DType::kF32, {1, 1, 2, 2});
  const auto sampled = [&](const Dims& grid, int64_t mode, int64_t outside) {
    return Case("aten.grid_sampler_2d.default")
        .in(x)
        .in(random(DType::kF32, grid))
        .integer(mode)
        .integer(outside)
        .flag(true)
        .out(DType::kF32, {1, 1, 3, 3});
  };
  expect_error(sampled({1, 3, 3, 3}, 0, 0),
               "grid (value 1) shape: expected [1, 3, 3, 2], got [1, 3, 3, 3]");
  expect_error(sampled({2, 3, 3, 2}, 0, 0),
               "grid (value 1) shape: expected [1, 3, 3, 2], got [2, 3, 3, 2]");
  expect_error(sampled({1, 3, 3, 2}, 3, 0),
               "interpolation_mode (value 2) value: expected 0 (bilinear)");
  expect_error(sampled({1, 3, 3, 2}, 0, -1), "padding_mode (value 3) value: expected 0 (zeros)");
}

TEST(GridPriors, CellsInRowOrder) {
  for (const DType t : {DType::kF32, DType::kF16}) {
    for (const Dims& d : {Dims{1, 8, 3, 5}, Dims{2, 7}, Dims{1, 2, 0, 4}}) {
      const int64_t width = d.back();
      const int64_t cells = d[d.rank() - 2] * width;
      const TestTensor y = make(t, {cells, 2}, [&](int64_t i) {
        return (static_cast<double>(i % 2 == 0 ? i / 2 % width : i / 2 / width) + 0.5) * 8;
      });
      expect_op(Case("et_vk.grid_priors.default")
                    .in(random(t, d))
                    .integer(8)
                    .number(0.5)
                    .out(t, {cells, 2}),
                {y}, kExact);
    }
  }
}

}  // namespace
}  // namespace pteryx::ops::testing
