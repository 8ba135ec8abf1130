// i64 at the border of the GPU, which has i32: what does not fit is refused, never cut.
// SPDX-License-Identifier: BSD-3-Clause
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "pteryx/session/testing/graphs.h"

namespace pteryx {
namespace {

using graph::Tensor;
using graph::ValueId;

constexpr int64_t kFar = int64_t{1} << 32;  // 0 when it is cut

// y = x[index]: rows that i64 indices choose. Those of an input go through a sum on the CPU, which
// says nothing of their values.
graph::Graph choice(Tensor indices) {
  testing::GraphDraft d;
  const bool constant = indices.has_data();
  const ValueId x = d.tensor({4, 8});
  const ValueId index = d.value(std::move(indices));
  const ValueId y = d.tensor({3, 8});
  ValueId chosen = index;
  if (!constant) {
    chosen = d.value(*d.g.tensor(index));
    d.call("aten.add.Scalar", {index, d.value(int64_t{0}), d.value(int64_t{1}), chosen});
  }
  d.call("aten.index_select.default", {x, d.value(int64_t{0}), chosen, y});
  d.g.method = "forward";
  d.g.inputs = {x};
  if (!constant) d.g.inputs.push_back(index);
  d.g.outputs = {y};
  return std::move(d.g);
}

std::string error_of(const Result<std::span<const Value>>& r, Code code) {
  if (r.ok()) return "no error";
  EXPECT_EQ(r.status().code(), code);
  return std::string(r.status().message());
}

const std::vector<float> kRows(size_t{4} * 8, 1.0F);

TEST(Narrowing, OfAnInputOnItsWayToTheGpu) {
  testing::LoadedGraph loaded(choice(Tensor{.dtype = DType::kI64, .max = {3}}), {});
  ASSERT_TRUE(loaded.status().ok()) << loaded.status().message();
  const std::vector<int64_t> good = {0, 3, 1};
  const std::vector<int64_t> far = {0, kFar, 1};
  const Value x = tensor<float>({4, 8}, kRows);
  const Value wrong[] = {x, tensor<int64_t>({3}, far)};
  const Value right[] = {x, tensor<int64_t>({3}, good)};
  EXPECT_TRUE(loaded.run(right).ok());
  EXPECT_EQ(error_of(loaded.run(wrong), Code::kInvalidArgument),
            "value 3: element 1 is 4294967296, which does not fit i32");
  EXPECT_TRUE(loaded.run(right).ok());
}

TEST(Narrowing, OfAnInputThatTheProgramHasInFewerBits) {
  testing::LoadedGraph loaded(choice(Tensor{.dtype = DType::kI32, .max = {3}}), {});
  ASSERT_TRUE(loaded.status().ok()) << loaded.status().message();
  const std::vector<int64_t> far = {0, 2, kFar};
  const Value wrong[] = {tensor<float>({4, 8}, kRows), tensor<int64_t>({3}, far)};
  EXPECT_EQ(error_of(loaded.run(wrong), Code::kInvalidArgument),
            "input 1 of 'forward': element 2 is 4294967296, which does not fit i32");
}

TEST(Narrowing, OfAConstant) {
  for (const int64_t first : {int64_t{1}, -kFar}) {
    const std::vector<int64_t> indices = {first, 2, 3};
    const Bytes bytes = std::as_bytes(std::span(indices));
    testing::LoadedGraph loaded(
        choice(Tensor{.dtype = DType::kI64, .max = {3}, .data = {{0, 0, bytes.size()}}}),
        {std::make_shared<MemorySource>("indices", bytes)});
    EXPECT_EQ(loaded.status().ok(), first == 1);
    if (loaded.status().ok()) continue;
    EXPECT_EQ(loaded.status().code(), Code::kInvalidProgram);
    EXPECT_EQ(loaded.status().message(),
              "constant value 1: element 0 is -4294967296, which does not fit i32");
  }
}

}  // namespace
}  // namespace pteryx
