// Constants in another layout than the file's, made by the session. SPDX-License-Identifier:
// BSD-3-Clause
#include <gtest/gtest.h>

#include "pteryx/fuse/passes.h"
#include "pteryx/session/testing/graphs.h"

namespace pteryx {
namespace {

using graph::Tensor;
using graph::ValueId;

constexpr int64_t kIn = 24;  // rows of 12 bytes: no whole vectors
constexpr int64_t kOut = 6;

const std::shared_ptr<gpu::Device>& device() { return gpu::shared_device(); }

struct Weights {
  std::vector<std::byte> codes = std::vector<std::byte>(kOut * kIn / 2);
  std::vector<float> scales = {0.5F, 1, 0.25F, 2, 1, 0.5F};
  Weights() {
    for (size_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<std::byte>(i * 37 + 11);
  }
  std::vector<SourcePtr> sources() const {
    return {std::make_shared<MemorySource>("codes", codes),
            std::make_shared<MemorySource>("scales", std::as_bytes(std::span(scales)))};
  }
};

// Two layers that share a weight: y is their sum.
graph::Graph two_layers(const Weights& w) {
  testing::GraphDraft d;
  const ValueId x = d.value(Tensor{.dtype = DType::kF32, .max = {8, kIn}, .dynamic = true});
  const ValueId codes = d.value(
      Tensor{.dtype = DType::kU8, .max = {kOut, kIn / 2}, .data = {{0, 0, w.codes.size()}}});
  const ValueId scales =
      d.value(Tensor{.dtype = DType::kF32, .max = {kOut}, .data = {{1, 0, 4 * kOut}}});
  const ValueId a = d.tensor({8, kOut});
  const ValueId b = d.tensor({8, kOut});
  const ValueId y = d.tensor({8, kOut});
  d.call("et_vk.linear_qcs4w.default", {x, codes, scales, a});
  d.call("et_vk.linear_qcs4w.default", {x, codes, scales, b});
  d.call("aten.add.Tensor", {a, b, d.value(int64_t{1}), y});
  d.g.inputs = {x};
  d.g.outputs = {y};
  return std::move(d.g);
}

struct Loaded : testing::LoadedGraph {
  Loaded(const Weights& w, const std::string& routes)
      : LoadedGraph(two_layers(w), w.sources(), routes) {}
  std::vector<float> run_rows(int64_t rows) {
    std::vector<float> x(static_cast<size_t>(rows * kIn));
    for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 7) - 2.5F;
    const Value inputs[] = {tensor<float>({rows, kIn}, x)};
    const auto y = LoadedGraph::run(inputs);
    EXPECT_TRUE(y.ok()) << (y.ok() ? "" : y.status().message());
    if (!y.ok()) return {};
    const auto values = y->front().tensor()->as<float>();
    return {values.begin(), values.end()};
  }
};

TEST(Relaid, GivesTheSameNumbersAndIsMadeOnce) {
  const Weights w;
  Loaded naive(w, "qlinear:naive");
  Loaded relaid(w, "qlinear:gemv");
  ASSERT_TRUE(naive.status().ok()) << naive.status().message();
  ASSERT_TRUE(relaid.status().ok()) << relaid.status().message();
  const std::vector<float> first = relaid.run_rows(8);
  ASSERT_EQ(first.size(), size_t{8 * kOut});
  EXPECT_EQ(first, naive.run_rows(8));  // small integers and powers of two: exact
  const gpu::Counters before = device()->counters();
  EXPECT_EQ(relaid.run_rows(3), naive.run_rows(3));
  const gpu::Counters after = device()->counters();
  EXPECT_EQ(after.submits - before.submits, 2U);  // a new size makes no constant again
}

// y = x + a + b + ..., of constants whose sizes are no multiples of what offsets are.
struct Sums {
  static constexpr int64_t kCount = 12;
  std::vector<std::vector<float>> values;
  testing::GraphDraft draft;
  ValueId x;
  Sums() {
    x = draft.tensor({1});
    const ValueId one = draft.value(int64_t{1});
    ValueId sum = x;
    for (uint32_t i = 0; i < kCount; ++i) {
      values.emplace_back(1 + 37 * i, static_cast<float>(i + 1));
      const auto n = static_cast<int64_t>(values.back().size());
      const ValueId c = draft.value(
          Tensor{.dtype = DType::kF32, .max = {n}, .data = {{i, 0, values.back().size() * 4}}});
      const ValueId first = draft.tensor({1});
      const ValueId y = draft.tensor({1});
      const ValueId zero = draft.value(int64_t{0});
      draft.call("aten.slice_copy.Tensor",
                 {c, zero, draft.value(n - 1), draft.value(n), draft.value(int64_t{1}), first});
      draft.call("aten.add.Tensor", {sum, first, one, y});
      sum = y;
    }
    draft.g.inputs = {x};
    draft.g.outputs = {sum};
  }
  std::vector<SourcePtr> sources() const {
    std::vector<SourcePtr> all;
    for (const auto& v : values)
      all.push_back(std::make_shared<MemorySource>("weight", std::as_bytes(std::span(v))));
    return all;
  }
};

TEST(Constants, LieTogetherInFewBuffers) {
  Sums sums;
  const gpu::Counters before = device()->counters();
  testing::LoadedGraph loaded(std::move(sums.draft.g), sums.sources());
  ASSERT_TRUE(loaded.status().ok()) << loaded.status().message();
  // The constants, slots, scalars, params, what is read back.
  EXPECT_LT(device()->counters().buffers_created - before.buffers_created,
            static_cast<uint64_t>(Sums::kCount));
  const std::vector<float> x = {0.5F};
  const Value inputs[] = {tensor<float>({1}, x)};
  const auto got = loaded.run(inputs);
  ASSERT_TRUE(got.ok()) << got.status().message();
  EXPECT_EQ(got->front().tensor()->as<float>()[0], 0.5F + 78);
}

// Gives an error in place of its bytes, once.
class FaultySource final : public Source {
 public:
  explicit FaultySource(Bytes bytes) : Source("faulty"), bytes_(bytes) {}
  uint64_t size() const override { return bytes_.size(); }
  Result<bool> read(uint64_t offset, MutableBytes out) const override {
    if (!std::exchange(failed_, true)) return Status(Code::kIo, "a bad sector");
    std::ranges::copy(bytes_.subspan(offset, out.size()), out.begin());
    return true;
  }

 private:
  Bytes bytes_;
  mutable bool failed_ = false;
};

TEST(Constants, WhatLiesWithOneThatFailedCanBeAskedForAgain) {
  const std::vector<float> values(100, 1.0F);
  const Bytes bytes = std::as_bytes(std::span(values));
  std::vector<SourcePtr> sources = {std::make_shared<MemorySource>("good", bytes),
                                    std::make_shared<FaultySource>(bytes),
                                    std::make_shared<MemorySource>("good", bytes)};
  std::vector<Tensor> tensors;
  std::vector<exec::ConstantPool::Wanted> wanted;
  for (uint32_t i = 0; i < 3; ++i)
    tensors.push_back({.dtype = DType::kF32, .max = {100}, .data = {{i, 0, 400}}});
  for (const Tensor& t : tensors) wanted.push_back({&t, "weight"});
  const gpu::Counters before = device()->counters();
  {
    exec::ConstantPool pool(device(), std::move(sources));
    pool.upload(wanted);
    const auto first = pool.advance();
    ASSERT_FALSE(first.ok());
    EXPECT_NE(first.status().message().find("a bad sector"), std::string_view::npos);
    const std::vector<gpu::Binding> at = pool.upload(wanted);
    EXPECT_EQ(at[0].buffer, at[2].buffer);
    EXPECT_NE(at[0].offset, at[2].offset);
    const auto again = pool.advance();
    ASSERT_TRUE(again.ok()) << again.status().message();
    EXPECT_TRUE(*again);
  }
  EXPECT_EQ(device()->counters().buffers_alive, before.buffers_alive);
}

// Two pairs of layers that are joined, both beginning with the same weight.
TEST(Constants, JoinsThatBeginAlikeAreNotTheSame) {
  constexpr int64_t kRows = 4;
  constexpr int64_t kColumns = 16;
  std::vector<int8_t> weights[3];
  for (int w = 0; w < 3; ++w) weights[w].assign(kRows * kColumns, static_cast<int8_t>(w + 1));
  const std::vector<float> scales(kRows, 1.0F);
  testing::GraphDraft d;
  const ValueId scale =
      d.value(Tensor{.dtype = DType::kF32, .max = {kRows}, .data = {{3, 0, 4 * kRows}}});
  ValueId weight[3];
  for (int w = 0; w < 3; ++w) {
    weight[w] = d.value(Tensor{.dtype = DType::kI8,
                               .max = {kRows, kColumns},
                               .data = {{static_cast<uint32_t>(w), 0, kRows * kColumns}}});
  }
  for (const int second : {1, 2}) {
    const ValueId x = d.tensor({1, kColumns});
    d.g.inputs.push_back(x);
    for (const int w : {0, second}) {
      const ValueId y = d.tensor({1, kRows});
      d.call("aten._weight_int8pack_mm.default", {x, weight[w], scale, y});
      d.g.outputs.push_back(y);
    }
  }
  fuse::run_passes(d.g, ops::lookup());
  ASSERT_EQ(d.g.nodes.size(), 2U);
  std::vector<SourcePtr> sources;
  for (const auto& w : weights)
    sources.push_back(std::make_shared<MemorySource>("weight", std::as_bytes(std::span(w))));
  sources.push_back(std::make_shared<MemorySource>("scales", std::as_bytes(std::span(scales))));
  testing::LoadedGraph loaded(std::move(d.g), std::move(sources));
  ASSERT_TRUE(loaded.status().ok()) << loaded.status().message();
  const std::vector<float> ones(kColumns, 1.0F);
  const Value inputs[] = {tensor<float>({1, kColumns}, ones), tensor<float>({1, kColumns}, ones)};
  const auto outputs = loaded.run(inputs);
  ASSERT_TRUE(outputs.ok()) << outputs.status().message();
  const float want[] = {1, 2, 1, 3};
  for (size_t i = 0; i < 4; ++i)
    EXPECT_EQ((*outputs)[i].tensor()->as<float>()[0], want[i] * kColumns) << "output " << i;
}

// x + a + b, where a and b are constants of types that the GPU does not hold, b in another order.
TEST(Constants, CastsAreMadeAtLoad) {
  const std::vector<int64_t> a = {1, -2, 3, 40};
  const std::vector<double> b = {0.5, 0.25, 1.5, -8};  // [2, 2] by columns
  testing::GraphDraft d;
  const ValueId x = d.tensor({2, 2});
  const ValueId wide = d.value(Tensor{.dtype = DType::kI64, .max = {2, 2}, .data = {{0, 0, 32}}});
  const ValueId turned = d.value(
      Tensor{.dtype = DType::kF64, .max = {2, 2}, .data = {{1, 0, 32}}, .dim_order = {1, 0}});
  const ValueId one = d.value(int64_t{1});
  const ValueId none = d.value(graph::Null{});
  const auto cast = [&](ValueId from) {
    const ValueId y = d.tensor({2, 2});
    d.call("aten._to_copy.default", {from, none, none, none, none, none, none, y});
    return y;
  };
  const ValueId first = d.tensor({2, 2});
  const ValueId y = d.tensor({2, 2});
  d.call("aten.add.Tensor", {x, cast(wide), one, first});
  d.call("aten.add.Tensor", {first, cast(turned), one, y});
  d.g.inputs = {x};
  d.g.outputs = {y};
  fuse::run_passes(d.g, ops::lookup());
  testing::LoadedGraph loaded(std::move(d.g),
                              {std::make_shared<MemorySource>("a", std::as_bytes(std::span(a))),
                               std::make_shared<MemorySource>("b", std::as_bytes(std::span(b)))});
  ASSERT_TRUE(loaded.status().ok()) << loaded.status().message();
  EXPECT_TRUE(loaded.method().layout().one_stretch);
  const std::vector<float> zeros(4);
  const Value inputs[] = {tensor<float>({2, 2}, zeros)};
  const auto got = loaded.run(inputs);
  ASSERT_TRUE(got.ok()) << got.status().message();
  const auto values = got->front().tensor()->as<float>();
  EXPECT_EQ(std::vector<float>(values.begin(), values.end()),
            (std::vector<float>{1.5F, -0.5F, 3.25F, 32}));
}

}  // namespace
}  // namespace pteryx
