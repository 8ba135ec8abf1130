// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/session/half_scales.h"

#include <cstring>

#include <gtest/gtest.h>

#include "pteryx/session/testing/graphs.h"

namespace pteryx {
namespace {

using graph::Tensor;
using graph::ValueId;

constexpr int64_t kGroups = 3;
constexpr int64_t kColumns = 16;
constexpr int64_t kGroupSize = 32;

// [groups, columns], all different.
std::vector<float> some_scales() {
  std::vector<float> v(kGroups * kColumns);
  for (size_t i = 0; i < v.size(); ++i) v[i] = 0.001F * static_cast<float>(i + 1);
  return v;
}

// A layer; its scales are in two parts, as those of joined layers are.
struct Layer {
  testing::GraphDraft d;
  ValueId scales;
  std::vector<float> values;
  std::vector<SourcePtr> sources;

  explicit Layer(std::vector<float> v) : values(std::move(v)) {
    sources = {std::make_shared<MemorySource>("scales", std::as_bytes(std::span(values)))};
    const uint64_t size = values.size() * 4;
    scales = d.value(Tensor{.dtype = DType::kF32,
                            .max = {kGroups, kColumns},
                            .data = {{0, 0, 20}, {0, 20, size - 20}}});
    const ValueId x = d.tensor({1, kGroups * kGroupSize});
    const ValueId weight = d.value(Tensor{.dtype = DType::kU8, .max = {kColumns, 48}});
    const ValueId y = d.tensor({1, kColumns});
    d.call("et_vk.linear_q4gsw.default",
           {x, weight, scales, d.value(kGroupSize), d.value(graph::Null{}), y});
  }
  const Tensor& tensor() const { return *d.g.tensor(scales); }
};

// Kernels on the CPU read them where they lie; the same bytes as a GPU gets.
TEST(HalfScales, AreHeldInMemoryForTheCpu) {
  Layer layer(some_scales());
  Layer same(some_scales());
  HalfScales read(layer.sources);
  HalfScales held(layer.sources, HalfScales::Kept::kInMemory);
  Layer other(some_scales());
  read.convert(other.d.g);
  held.convert(layer.d.g);
  held.convert(same.d.g);
  const uint64_t size = kGroups * kColumns * 2;
  EXPECT_EQ(layer.tensor().data, same.tensor().data);
  const Source& source = *held.sources()[layer.tensor().data[0].source];
  const auto bytes = source.view(0, size);
  ASSERT_TRUE(bytes.has_value());
  std::vector<std::byte> want(size);
  ASSERT_TRUE(read.sources()[other.tensor().data[0].source]->read(0, want).ok());
  EXPECT_TRUE(std::ranges::equal(*bytes, want));
  std::vector<std::byte> part(5);
  ASSERT_TRUE(source.read(3, part).ok());
  EXPECT_TRUE(std::ranges::equal(part, std::span(want).subspan(3, 5)));
  EXPECT_FALSE(source.view(size - 1, 2).has_value());
  EXPECT_FALSE(source.read(size - 1, std::span(part).first(2)).ok());
}

TEST(HalfScales, ComeInBlocksOfEightColumns) {
  Layer layer(some_scales());
  HalfScales half(layer.sources);
  half.convert(layer.d.g);
  const Tensor& t = layer.tensor();
  ASSERT_EQ(t.dtype, DType::kF16);
  EXPECT_EQ(t.max, (Dims{kColumns / 8, kGroups, 8}));
  ASSERT_EQ(t.data.size(), 1U);
  ASSERT_EQ(half.sources().size(), 2U);
  const Source& source = *half.sources()[t.data[0].source];
  std::vector<uint16_t> got(kGroups * kColumns);
  ASSERT_EQ(t.data[0].size, got.size() * 2);
  // In pieces that begin in the middle of numbers.
  const auto bytes = std::as_writable_bytes(std::span(got));
  for (size_t at = 0; at < bytes.size(); at += 7) {
    const auto there = source.read(at, bytes.subspan(at, std::min<size_t>(7, bytes.size() - at)));
    ASSERT_TRUE(there.ok() && *there);
  }
  for (int64_t i = 0; i < kGroups * kColumns; ++i) {
    const int64_t column = i / 8 / kGroups * 8 + i % 8;
    const int64_t from = i / 8 % kGroups * kColumns + column;
    EXPECT_EQ(got[static_cast<size_t>(i)], float_to_half(layer.values[static_cast<size_t>(from)]))
        << i;
  }
  EXPECT_FALSE(source.read(got.size() * 2 - 1, bytes.first(2)).ok());
}

// The same bytes twice are made once.
TEST(HalfScales, AreMadeOnceForAllMethods) {
  Layer layer(some_scales());
  Layer other(some_scales());  // known by the same ranges of the same source
  HalfScales half(layer.sources);
  half.convert(layer.d.g);
  half.convert(other.d.g);
  EXPECT_EQ(half.sources().size(), 2U);
  EXPECT_EQ(other.tensor().data, layer.tensor().data);
}

TEST(HalfScales, StayWhereF16WouldLoseThem) {
  for (const float bad : {6.0e-5F, 65520.0F, -1e-7F, std::numeric_limits<float>::quiet_NaN()}) {
    std::vector<float> v = some_scales();
    v[41] = bad;
    Layer layer(v);
    HalfScales half(layer.sources);
    half.convert(layer.d.g);
    EXPECT_EQ(layer.tensor().dtype, DType::kF32) << bad;
    EXPECT_EQ(half.sources().size(), 1U);
  }
  for (const float good : {0.0F, -0.0F, 6.2e-5F, -65504.0F}) {
    std::vector<float> v = some_scales();
    v[41] = good;
    Layer layer(v);
    HalfScales(layer.sources).convert(layer.d.g);
    EXPECT_EQ(layer.tensor().dtype, DType::kF16) << good;
  }
}

// A product with minimums, whose scales and minimums lie one behind the other.
struct ProductWithMinimums {
  testing::GraphDraft d;
  ValueId scales, minimums;
  std::vector<float> values;
  std::vector<SourcePtr> sources;

  explicit ProductWithMinimums(std::vector<float> scale_values, std::vector<float> others)
      : values(std::move(scale_values)) {
    const uint64_t size = values.size() * 4;
    values.insert(values.end(), others.begin(), others.end());
    sources = {std::make_shared<MemorySource>("numbers", std::as_bytes(std::span(values)))};
    const auto numbers = [&](uint64_t at) {
      return d.value(
          Tensor{.dtype = DType::kF32, .max = {kGroups, kColumns}, .data = {{0, at, size}}});
    };
    scales = numbers(0);
    minimums = numbers(size);
    const ValueId none = d.value(graph::Null{});
    const ValueId y = d.value(graph::ValueList{{d.tensor({1, kColumns})}});
    d.call("pteryx.linear_q4gsw", {d.tensor({1, kGroups * kGroupSize}), none, none,
                                   d.value(Tensor{.dtype = DType::kU8, .max = {kColumns, 48}}),
                                   scales, d.value(kGroupSize), minimums, none, none, none, none,
                                   d.value(graph::IntList{{kColumns}}), y});
  }
  DType converted(std::vector<uint16_t>* halves = nullptr) {
    HalfScales half(sources);
    half.convert(d.g);
    const Tensor& t = *d.g.tensor(minimums);
    EXPECT_EQ(t.dtype, d.g.tensor(scales)->dtype);
    EXPECT_EQ(t.max, d.g.tensor(scales)->max);
    if (halves != nullptr && t.dtype == DType::kF16) {
      halves->resize(kGroups * kColumns);
      const Source& source = *half.sources()[t.data[0].source];
      EXPECT_TRUE(source.read(0, std::as_writable_bytes(std::span(*halves))).ok());
    }
    return t.dtype;
  }
};

// However small: next to the scales it counts for nothing.
TEST(HalfScales, MinimumsGoWithTheirScales) {
  std::vector<float> minimums = some_scales();
  minimums[3] = -minimums[3];
  minimums[7] = 3.1e-5F;
  minimums[9] = -2.2e-6F;
  minimums[11] = 1e-9F;
  minimums[13] = 0;
  std::vector<uint16_t> halves;
  ProductWithMinimums p(some_scales(), minimums);
  ASSERT_EQ(p.converted(&halves), DType::kF16);
  for (int64_t i = 0; i < kGroups * kColumns; ++i) {
    const int64_t column = i / 8 / kGroups * 8 + i % 8;
    const int64_t from = i / 8 % kGroups * kColumns + column;
    EXPECT_EQ(halves[static_cast<size_t>(i)], float_to_half(minimums[static_cast<size_t>(from)]))
        << i;
  }
}

TEST(HalfScales, ScalesAndMinimumsStayTogether) {
  std::vector<float> one_small = some_scales();
  one_small[5] = 1e-6F;
  std::vector<float> all_small = some_scales();
  for (float& v : all_small) v *= 1e-3F;
  std::vector<float> large = some_scales();
  large[5] = 65520.0F;
  EXPECT_EQ(ProductWithMinimums(one_small, one_small).converted(), DType::kF16);
  EXPECT_EQ(ProductWithMinimums(all_small, some_scales()).converted(), DType::kF32);
  EXPECT_EQ(ProductWithMinimums(some_scales(), all_small).converted(), DType::kF16);
  EXPECT_EQ(ProductWithMinimums(some_scales(), large).converted(), DType::kF32);
  EXPECT_EQ(ProductWithMinimums(large, some_scales()).converted(), DType::kF32);
}

TEST(HalfScales, StayWhereSomethingElseReadsThem) {
  Layer layer(some_scales());
  const ValueId sum = layer.d.tensor({kGroups, kColumns});
  layer.d.call("aten.add.Tensor", {layer.scales, layer.scales, layer.d.value(int64_t{1}), sum});
  HalfScales(layer.sources).convert(layer.d.g);
  EXPECT_EQ(layer.tensor().dtype, DType::kF32);
}

}  // namespace
}  // namespace pteryx
