// Programs without a delegate: calls of ExecuTorch's kernels, in the arrangement that files have.
// SPDX-License-Identifier: BSD-3-Clause
#include <cmath>

#include <gtest/gtest.h>

#include "programs.h"

namespace pteryx::testing {
namespace {

using program::testing::ProgramBuilder;
using program::testing::TensorSpec;

constexpr auto kLong = pte::ScalarType::LONG;

TEST(Kernels, PowersOfAScalar) {
  ProgramBuilder p;
  const int32_t x = p.add_tensor({.sizes = {2, 3}});
  const int32_t y = p.add_tensor({.sizes = {2, 3}});
  p.inputs = {x};
  p.outputs = {y};
  p.add_kernel_call(p.add_operator("aten::pow", "Scalar_out"), {p.add_double(10000), x, y, y});
  auto session = load_bytes(p.finish().text());
  ASSERT_TRUE(session.ok()) << session.status().message();
  const std::vector<float> exponents = {0, 0.25F, 0.5F, 1, -0.5F, 0.75F};
  const Value inputs[] = {tensor<float>({2, 3}, exponents)};
  const auto got = session->run("forward", inputs);
  ASSERT_TRUE(got.ok()) << got.status().message();
  const std::span<const float> values = got->front().tensor()->as<float>();
  for (size_t i = 0; i < exponents.size(); ++i) {
    const float want = std::pow(10000.0F, exponents[i]);
    EXPECT_NEAR(values[i], want, 1e-5F * want);
  }
}

// Offsets and indices are inputs; all four results are read.
TEST(Kernels, BagsOfRows) {
  ProgramBuilder p;
  const int32_t weight = p.add_tensor({.sizes = {4, 2}});
  const int32_t indices = p.add_tensor({.dtype = kLong, .sizes = {5}});
  const int32_t offsets = p.add_tensor({.dtype = kLong, .sizes = {2}});
  const int32_t no = p.add_bool(false);
  const int32_t none = p.add_null();
  const std::vector<int32_t> results = {p.add_tensor({.sizes = {2, 2}}),
                                        p.add_tensor({.dtype = kLong, .sizes = {5}}),
                                        p.add_tensor({.dtype = kLong, .sizes = {2}}),
                                        p.add_tensor({.dtype = kLong, .sizes = {2, 2}})};
  std::vector<int32_t> args = {weight, indices, offsets, no,           p.add_int(2),
                               no,     none,    no,      p.add_int(-1)};
  args.insert(args.end(), results.begin(), results.end());
  args.push_back(p.add_tensor_list(results));
  p.inputs = {weight, indices, offsets};
  p.outputs = results;
  p.add_kernel_call(p.add_operator("aten::_embedding_bag_forward_only", "out"), args);
  const std::string file = p.finish().text();
  for (const auto& on : gpu::gpu_and_cpu()) {
    auto session = load_bytes(file, {.device = on});
    ASSERT_TRUE(session.ok()) << session.status().message();
    const std::vector<float> rows = {1, 8, 2, 7, 3, 6, 4, 5};
    const std::vector<int64_t> ids = {0, 3, 1, 1, 2};
    const std::vector<int64_t> starts = {0, 2};
    const Value inputs[] = {tensor<float>({4, 2}, rows), tensor<int64_t>({5}, ids),
                            tensor<int64_t>({2}, starts)};
    const auto got = session->run("forward", inputs);
    ASSERT_TRUE(got.ok()) << got.status().message();
    const auto numbers = [&](size_t i) {
      const auto v = (*got)[i].tensor()->as<int64_t>();
      return std::vector<int64_t>(v.begin(), v.end());
    };
    const auto y = (*got)[0].tensor()->as<float>();
    EXPECT_EQ(std::vector<float>(y.begin(), y.end()), (std::vector<float>{4, 8, 3, 7}));
    EXPECT_EQ(numbers(1), (std::vector<int64_t>{0, 0, 1, 1, 1}));
    EXPECT_EQ(numbers(2), (std::vector<int64_t>{2, 3}));
    EXPECT_EQ(numbers(3), (std::vector<int64_t>{3, 0, 2, 1}));
  }
}

}  // namespace
}  // namespace pteryx::testing
