// SPDX-License-Identifier: BSD-3-Clause
#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "pteryx/ops/testing/op_harness.h"

namespace pteryx::ops::testing {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

struct Window {
  Dims x;
  std::vector<int64_t> kernel;
  std::vector<int64_t> stride = {};
  std::vector<int64_t> padding = {0};
  std::vector<int64_t> dilation = {1};
  bool ceil = false;
};
int64_t at(const std::vector<int64_t>& list, size_t i) {
  return list.size() == 1 ? list[0] : list[i];
}

// Number of windows along an axis, counted one by one.
int64_t count_windows(const Window& w, size_t axis, int64_t in) {
  const int64_t k = at(w.dilation, axis) * (at(w.kernel, axis) - 1) + 1;
  const int64_t s = w.stride.empty() ? at(w.kernel, axis) : at(w.stride, axis);
  const int64_t p = at(w.padding, axis);
  int64_t count = 0;
  for (int64_t begin = -p;; begin += s, ++count) {
    if (begin + k <= in + p) continue;                             // lies inside
    if (w.ceil && begin + k - s < in + p && begin < in) continue;  // hangs over but begins inside
    return count;
  }
}

Dims result_dims(const Window& w) {
  Dims d = w.x;
  d[d.rank() - 2] = count_windows(w, 0, w.x[w.x.rank() - 2]);
  d[d.rank() - 1] = count_windows(w, 1, w.x[w.x.rank() - 1]);
  return d;
}

// Visits every window: result index, then each of its kernel entries as (row, column), which may
// lie outside.
template <typename F>
void for_each_window(const Window& w, const Dims& y, F&& visit) {
  const int64_t oh = y[y.rank() - 2];
  const int64_t ow = y[y.rank() - 1];
  for (int64_t i = 0; i < numel(y); ++i) {
    for (int64_t kh = 0; kh < at(w.kernel, 0); ++kh) {
      for (int64_t kw = 0; kw < at(w.kernel, 1); ++kw) {
        const int64_t sh = w.stride.empty() ? at(w.kernel, 0) : at(w.stride, 0);
        const int64_t sw = w.stride.empty() ? at(w.kernel, 1) : at(w.stride, 1);
        visit(i, i / ow / oh, i / ow % oh * sh - at(w.padding, 0) + kh * at(w.dilation, 0),
              i % ow * sw - at(w.padding, 1) + kw * at(w.dilation, 1));
      }
    }
  }
}

const std::vector<Window> kWindows = {{{1, 3, 6, 6}, {2, 2}},
                                      {{2, 2, 7, 9}, {3}, {2}, {1}},
                                      {{1, 3, 8, 8}, {3, 3}, {2, 2}, {0, 0}, {1}, true},
                                      {{3, 5, 7}, {2, 3}, {2, 1}, {1, 1}, {1}, true},
                                      {{1, 2, 5, 4}, {3, 2}, {3, 3}, {1, 1}, {1}, true},
                                      {{1, 1, 1, 1}, {1}},
                                      {{0, 2, 4, 4}, {2}}};

TEST(Pool, MeanMatchesReference) {
  for (const Window& w : kWindows) {
    SCOPED_TRACE(to_string(w.x));
    for (const DType t : {DType::kF32, DType::kF16, DType::kF64}) {
      for (const bool include_pad : {true, false}) {
        for (const int64_t divisor : {0, 5}) {
          const TestTensor x = random(t, w.x);
          TestTensor y{t, result_dims(w), {}};
          y.data.resize(static_cast<size_t>(numel(y.dims)));
          std::vector<double> count(y.data.size());
          const int64_t h = w.x[w.x.rank() - 2];
          const int64_t width = w.x[w.x.rank() - 1];
          for_each_window(w, y.dims, [&](int64_t i, int64_t plane, int64_t r, int64_t c) {
            const bool inside = r >= 0 && r < h && c >= 0 && c < width;
            // Padding counts, but not what hangs over it.
            const bool padded = r < h + at(w.padding, 0) && c < width + at(w.padding, 1);
            if (inside)
              y.data[static_cast<size_t>(i)] +=
                  x.data[static_cast<size_t>((plane * h + r) * width + c)];
            if (include_pad ? padded : inside) count[static_cast<size_t>(i)] += 1;
          });
          for (size_t i = 0; i < y.data.size(); ++i)
            y.data[i] /= divisor != 0 ? static_cast<double>(divisor) : count[i];
          Case c("aten.avg_pool2d.default");
          c.in(x).ints(w.kernel).ints(w.stride).ints(w.padding).flag(w.ceil).flag(include_pad);
          divisor != 0 ? c.integer(divisor) : c.none();
          expect_op(c.out(t, y.dims), {y}, tolerance(t));
        }
      }
    }
  }
}

TEST(Pool, MaxAndItsIndicesMatchReference) {
  std::vector<Window> windows = kWindows;
  windows.push_back({{1, 2, 9, 8}, {2, 3}, {2, 1}, {1, 1}, {2, 2}});
  windows.push_back({{1, 2, 1, 5}, {2}, {1}, {1}, {2}});  // windows wholly in the padding
  for (const Window& w : windows) {
    SCOPED_TRACE(to_string(w.x));
    for (const DType t : {DType::kF32, DType::kF16, DType::kI32, DType::kI64}) {
      if (!is_float(t) && w.x[w.x.rank() - 2] == 1 && w.kernel[0] > 1) continue;
      const TestTensor x = random(t, w.x, 4, -9, 9);
      TestTensor y{t, result_dims(w), {}};
      y.data.assign(static_cast<size_t>(numel(y.dims)), -kInf);
      TestTensor index{DType::kI64, y.dims, std::vector<double>(y.data.size(), -1)};
      const int64_t h = w.x[w.x.rank() - 2];
      const int64_t width = w.x[w.x.rank() - 1];
      for_each_window(w, y.dims, [&](int64_t i, int64_t plane, int64_t r, int64_t c) {
        if (r < 0 || r >= h || c < 0 || c >= width) return;
        const double v = x.data[static_cast<size_t>((plane * h + r) * width + c)];
        if (v <= y.data[static_cast<size_t>(i)]) return;
        y.data[static_cast<size_t>(i)] = v;
        index.data[static_cast<size_t>(i)] = static_cast<double>(r * width + c);
      });
      for (size_t i = 0; i < y.data.size(); ++i) {  // an empty window points behind the plane
        if (index.data[i] < 0)
          index.data[i] = static_cast<double>(width + static_cast<int64_t>(i) % y.dims.back());
      }
      Case with("aten.max_pool2d_with_indices.default");
      with.in(x).ints(w.kernel).ints(w.stride).ints(w.padding).ints(w.dilation).flag(w.ceil);
      if (h > 1 || w.kernel[0] == 1) expect_op(with.outs({y, index}), {y, index}, kExact);
      Case without("aten.max_pool2d.default");
      without.in(x).ints(w.kernel).ints(w.stride).ints(w.padding).ints(w.dilation).flag(w.ceil);
      expect_op(without.out(t, y.dims), {y}, kExact);
    }
  }
}

TEST(Pool, LargestElementMayBeInfiniteOrNaN) {
  const double nan = std::nan("");
  const TestTensor x{
      DType::kF32, {1, 2, 6}, {-kInf, -kInf, 1, nan, 2, -kInf, -kInf, -kInf, nan, 3, kInf, 5}};
  const TestTensor y{DType::kF32, {1, 1, 3}, {-kInf, nan, kInf}};
  const TestTensor index{DType::kI32, {1, 1, 3}, {0, 8, 10}};
  expect_op(Case("aten.max_pool2d_with_indices.default")
                .in(x)
                .ints({2})
                .ints({})
                .ints({0})
                .ints({1})
                .flag(false)
                .outs({y, index}),
            {y, index}, kExact);
}

TEST(Pool, OneDimension) {
  const TestTensor x{DType::kF32, {1, 2, 5}, {1, 2, 3, 4, 5, -1, -2, -3, -4, -5}};
  expect_op(Case("aten.avg_pool1d.default")
                .in(x)
                .ints({2})
                .ints({})
                .ints({1})
                .flag(false)
                .flag(true)
                .out(DType::kF32, {1, 2, 3}),
            {{DType::kF32, {1, 2, 3}, {0.5, 2.5, 4.5, -0.5, -2.5, -4.5}}}, tolerance(DType::kF32));
  expect_op(Case("aten.max_pool1d.default")
                .in(x)
                .ints({3})
                .ints({2})
                .ints({0})
                .ints({1})
                .flag(false)
                .out(DType::kF32, {1, 2, 2}),
            {{DType::kF32, {1, 2, 2}, {3, 5, -1, -3}}}, kExact);
  expect_op(Case("aten.adaptive_avg_pool1d.default").in(x).ints({2}).out(DType::kF32, {1, 2, 2}),
            {{DType::kF32, {1, 2, 2}, {2, 4, -2, -4}}}, tolerance(DType::kF32));
}

TEST(Pool, AdaptiveWindowsCoverTheInput) {
  struct Form {
    Dims x;
    int64_t h, w;
  };
  for (const Form& f : {Form{{1, 3, 7, 7}, 1, 1}, Form{{2, 2, 5, 9}, 3, 4}, Form{{4, 3, 5}, 5, 2},
                        Form{{1, 2, 3, 3}, 5, 7}, Form{{1, 2, 4, 4}, 0, 2}}) {
    for (const DType t : {DType::kF32, DType::kF16}) {
      const TestTensor x = random(t, f.x);
      const int64_t h = f.x[f.x.rank() - 2];
      const int64_t w = f.x[f.x.rank() - 1];
      Dims dims = f.x;
      dims[dims.rank() - 2] = f.h;
      dims[dims.rank() - 1] = f.w;
      TestTensor mean{t, dims, {}};
      TestTensor largest{t, dims, {}};
      TestTensor index{DType::kI64, dims, {}};
      for (int64_t i = 0; i < numel(dims); ++i) {
        double sum = 0;
        double count = 0;
        double best = -kInf;
        double best_at = 0;
        for (int64_t r = 0; r < h; ++r) {
          for (int64_t c = 0; c < w; ++c) {
            // Element r is in window o if [r, r + 1) meets [o h / out, (o + 1) h / out).
            const int64_t o = i / f.w % f.h;
            const int64_t q = i % f.w;
            if ((r + 1) * f.h <= o * h || r * f.h >= (o + 1) * h) continue;
            if ((c + 1) * f.w <= q * w || c * f.w >= (q + 1) * w) continue;
            const double v = x.data[static_cast<size_t>((i / f.w / f.h * h + r) * w + c)];
            sum += v;
            count += 1;
            if (v > best) best_at = static_cast<double>(r * w + c);
            best = std::max(best, v);
          }
        }
        mean.data.push_back(sum / count);
        largest.data.push_back(best);
        index.data.push_back(best_at);
      }
      expect_op(Case("aten._adaptive_avg_pool2d.default").in(x).ints({f.h, f.w}).out(t, dims),
                {mean}, tolerance(t));
      expect_op(
          Case("aten.adaptive_max_pool2d.default").in(x).ints({f.h, f.w}).outs({largest, index}),
          {largest, index}, kExact);
    }
  }
}

TEST(Pool, SaysWhatDoesNotFit) {
  const TestTensor x = random(DType::kF32, {1, 2, 4, 4});
  const auto mean = [&](std::vector<int64_t> kernel, std::vector<int64_t> stride,
                        std::vector<int64_t> padding) {
    return Case("aten.avg_pool2d.default")
        .in(x)
        .ints(std::move(kernel))
        .ints(std::move(stride))
        .ints(std::move(padding))
        .flag(false)
        .flag(true)
        .none()
        .out(DType::kF32, {1, 2, 4, 4});
  };
  expect_error(mean({5}, {}, {0}),
               "a kernel of size 5 (dilated) exceeds the padded input of size 4");
  expect_error(mean({2}, {}, {2}),
               "padding (value 3) entry: expected at most half of the kernel's 2, got 2");
  expect_error(mean({2, 2, 2}, {}, {0}), "kernel_size (value 1) length: expected 1 or 2, got 3");
  expect_error(mean({2}, {0}, {0}), "stride (value 2) entry: expected 1 to");
  expect_error(mean({}, {}, {0}), "kernel_size (value 1) length");
  expect_error(Case("aten._adaptive_avg_pool2d.default")
                   .in(random(DType::kF32, {4, 4}))
                   .ints({2})
                   .out(DType::kF32, {2, 2}),
               "x (value 0) rank: expected 3 or 4, got 2");
}

}  // namespace
}  // namespace pteryx::ops::testing
