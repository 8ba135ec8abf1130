// Bags of rows against PyTorch's rules in double. SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include "pteryx/ops/testing/op_harness.h"

namespace pteryx::ops::testing {
namespace {

constexpr Tolerance kSums{1e-6, 1e-6};
constexpr Tolerance kHalfSums{2e-3, 2e-3};

size_t at(int64_t i) { return static_cast<size_t>(i); }
TestTensor numbers(DType t, const std::vector<double>& v) {
  return {t, {static_cast<int64_t>(v.size())}, v};
}

struct Bag {
  int64_t mode = 0;
  std::vector<double> indices;
  std::vector<double> offsets;
  bool last = false;
  int64_t padding = -1;
  std::vector<double> weights = {};
};

Case call(const Bag& b, const TestTensor& table, DType index) {
  Case c("aten._embedding_bag_forward_only.default");
  c.in(table).in(numbers(index, b.indices)).in(numbers(index, b.offsets));
  c.flag(false).integer(b.mode).flag(false);
  b.weights.empty() ? c.none() : c.in(numbers(table.dtype, b.weights));
  return c.flag(b.last).integer(b.padding);
}

// y, offset2bag, bag_size, max_indices; offsets end with the indices where they include the last.
std::vector<TestTensor> reference(const Bag& b, const TestTensor& table, DType index) {
  const auto bags = static_cast<int64_t>(b.offsets.size()) - (b.last ? 1 : 0);
  const auto count = static_cast<int64_t>(b.indices.size());
  const int64_t width = table.dims[1];
  const TestTensor rows = round_to(table, table.dtype);
  TestTensor y = make(table.dtype, {bags, width}, [](int64_t) { return 0.0; });
  TestTensor largest = make(index, {bags, width}, [](int64_t) { return 0.0; });
  std::vector<double> of;
  std::vector<double> sizes;
  for (int64_t bag = 0; bag < bags; ++bag) {
    const auto begin = static_cast<int64_t>(b.offsets[at(bag)]);
    const int64_t end = bag + 1 < bags ? static_cast<int64_t>(b.offsets[at(bag + 1)]) : count;
    double counted = 0;
    for (int64_t i = begin; i < end; ++i) {
      of.push_back(static_cast<double>(bag));
      const auto row = static_cast<int64_t>(b.indices[at(i)]);
      if (row == b.padding) continue;
      for (int64_t e = 0; e < width; ++e) {
        const double v = rows.data[at(row * width + e)];
        double& to = y.data[at(bag * width + e)];
        if (b.mode == 2 && (counted == 0 || v > to)) {
          to = v;
          largest.data[at(bag * width + e)] = static_cast<double>(row);
        }
        if (b.mode < 2) to += v * (b.weights.empty() ? 1 : b.weights[at(i)]);
      }
      ++counted;
    }
    for (int64_t e = 0; b.mode == 1 && e < width; ++e)
      y.data[at(bag * width + e)] /= counted < 1 ? 1 : counted;
    sizes.push_back(b.mode == 0 ? 0 : counted);
  }
  const TestTensor by_bag = numbers(index, sizes);
  const bool plain_sum = b.mode == 0 && b.padding < 0 && table.dtype != DType::kF64;
  if (plain_sum) of.clear();
  if (b.mode == 0) sizes.resize(b.offsets.size());
  return {y, numbers(index, of), numbers(index, sizes), b.mode == 2 ? largest : by_bag};
}

void expect_bags(const Bag& b) {
  for (const DType t : {DType::kF32, DType::kF16, DType::kF64, DType::kBF16}) {
    for (const DType index : {DType::kI64, DType::kI32}) {
      const TestTensor table = random(t, {7, 5}, 3);
      const auto want = reference(b, table, index);
      expect_op(call(b, table, index).outs(want), want,
                t == DType::kF16 ? kHalfSums : (t == DType::kBF16 ? Tolerance{2e-2, 2e-2} : kSums));
    }
  }
}

TEST(EmbeddingBag, SumsMeansAndMaxima) {
  for (const int64_t mode : {0, 1, 2}) {
    expect_bags({.mode = mode, .indices = {1, 6, 0, 3, 3, 2, 5}, .offsets = {0, 2, 6}});
    expect_bags({.mode = mode, .indices = {4, 4, 2}, .offsets = {0}});
    expect_bags({.mode = mode, .indices = {4, 4, 2}, .offsets = {0, 1, 2}});
    // Empty bags: at the start, in the middle, at the end.
    expect_bags({.mode = mode, .indices = {1, 2, 3}, .offsets = {0, 0, 2, 2, 3}});
    expect_bags({.mode = mode, .indices = {1, 2, 3, 0}, .offsets = {0, 1, 4}, .last = true});
    expect_bags({.mode = mode, .indices = {1, 2, 3, 2}, .offsets = {0, 1, 3}, .padding = 2});
    expect_bags({.mode = mode,
                 .indices = {1, 2, 3, 2},
                 .offsets = {0, 1, 3, 4},
                 .last = true,
                 .padding = 2});
    // Nothing but padding.
    expect_bags({.mode = mode, .indices = {2, 2, 1}, .offsets = {0, 2}, .padding = 2});
    expect_bags({.mode = mode, .indices = {}, .offsets = {0, 0}});
    expect_bags({.mode = mode, .indices = {}, .offsets = {0}, .last = true});
  }
}

TEST(EmbeddingBag, WeighsSamples) {
  expect_bags({.indices = {1, 6, 0, 3}, .offsets = {0, 3}, .weights = {0.5, -1, 2, 0.25}});
  expect_bags(
      {.indices = {1, 6, 0, 3}, .offsets = {0, 3}, .padding = 0, .weights = {0.5, -1, 2, 0.25}});
}

// A last offset before the end of the indices: PyTorch leaves the rest out of plain sums and means,
// but counts it.
TEST(EmbeddingBag, LastOffsetBeforeTheEnd) {
  const TestTensor table =
      make(DType::kF32, {4, 1}, [](int64_t i) { return static_cast<double>(i + 1); });
  const Bag sum{.indices = {0, 1, 2, 3}, .offsets = {0, 1, 3}, .last = true};
  const DType i64 = DType::kI64;
  const std::vector<TestTensor> sums = {{DType::kF32, {2, 1}, {1, 5}},
                                        numbers(i64, {}),
                                        numbers(i64, {0, 0, 0}),
                                        numbers(i64, {0, 0})};
  expect_op(call(sum, table, i64).outs(sums), sums, kSums);
  Bag mean = sum;
  mean.mode = 1;
  const std::vector<TestTensor> means = {{DType::kF32, {2, 1}, {1, 5.0 / 3}},
                                         numbers(i64, {0, 1, 1, 1}),
                                         numbers(i64, {1, 3}),
                                         numbers(i64, {1, 3})};
  expect_op(call(mean, table, i64).outs(means), means, kSums);
}

TEST(EmbeddingBag, Refuses) {
  const TestTensor table = random(DType::kF32, {7, 5}, 3);
  const auto refused = [&](const Bag& b) {
    Bag shaped = b;  // results of the right sizes
    for (double& i : shaped.indices) i = 0;
    for (double& o : shaped.offsets) o = 0;
    shaped.mode = b.mode == 1 ? 1 : 0;
    shaped.weights.clear();
    return call(b, table, DType::kI64).outs(reference(shaped, table, DType::kI64));
  };
  expect_error(refused({.mode = 3, .indices = {1}, .offsets = {0}}),
               "mode (value 4) value: expected 0, 1 or 2, got 3");
  expect_error(refused({.indices = {1}, .offsets = {0}, .padding = 7}),
               "padding_idx (value 8) value: expected -1 to 6, got 7");
  expect_error(refused({.mode = 1, .indices = {1}, .offsets = {0}, .weights = {2}}),
               "per_sample_weights: only sums take them");
  expect_error(refused({.indices = {1, 2}, .offsets = {0}, .weights = {2}}),
               "per_sample_weights (value 6) shape: expected [2], got [1]");
  expect_error(refused({.indices = {1}, .offsets = {}, .last = true}),
               "offsets: expected at least 1 with the last, got 0");
  const auto on_cpu = [&](const Bag& b) {
    return std::string(run(refused(b), Where::kCpu).status().message());
  };
  EXPECT_NE(on_cpu({.indices = {1, 2}, .offsets = {0, 2, 1}})
                .find("offsets: 1 at position 2 is outside [2, 2]"),
            std::string::npos);
  EXPECT_NE(on_cpu({.indices = {1, 2}, .offsets = {1}})
                .find("offsets: 1 at position 0 is outside [0, 0]"),
            std::string::npos);
}

}  // namespace
}  // namespace pteryx::ops::testing
