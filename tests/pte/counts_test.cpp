// What programs cost, counted on devices of their own. SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include "programs.h"

#include "pteryx/gpu/testing/compute.h"
#include "pteryx/session/kernels.h"

namespace pteryx::testing {
namespace {

// Other head counts are other numbers, not another kernel.
TEST(Counts, TurningQAndKIsOnePipeline) {
  DelegateProgram p;
  const int32_t q = p.input(vk::VkDataType::FLOAT32, {1, 2, 6, 4});
  const int32_t k = p.input(vk::VkDataType::FLOAT32, {1, 2, 1, 4});
  const int32_t table = p.prepacked(p.weights({2, 2}, 1), {2, 2});
  const int32_t yq = p.floats({1, 2, 6, 4});
  const int32_t yk = p.floats({1, 2, 1, 4});
  p.blob.add_call("et_vk.apply_rotary_emb.default",
                  {q, k, table, table, p.blob.add_value_list({yq, yk})});
  p.output(yq);
  p.output(yk);
  const auto own = gpu::open_or_die();
  auto session = load_bytes(p.finish(), {.device = own});
  ASSERT_TRUE(session.ok()) << session.status().message();
  std::vector<float> x(48);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i) / 16 - 1;
  const auto short_x = std::span<const float>(x).subspan(5, 8);
  const Value inputs[] = {tensor<float>({1, 2, 6, 4}, x), tensor<float>({1, 2, 1, 4}, short_x)};
  const auto y = session->run("forward", inputs);
  ASSERT_TRUE(y.ok()) << y.status().message();
  EXPECT_EQ(own->counters().pipelines_created, 1U);
  // The results are not swapped, and each is turned by its own heads and the rows of the table,
  // which is both cosine and sine here.
  const std::vector<float> angles = repeated_weights(4, 1);
  const auto expect_turned = [&](const TensorView& got, const Dims& dims,
                                 std::span<const float> from) {
    ASSERT_EQ(got.dims, dims);
    const std::span<const float> values = got.as<float>();
    for (size_t i = 0; i < values.size(); i += 2) {
      const size_t position = i / 4 / static_cast<size_t>(dims[2]);
      const float t = angles[position * 2 + i % 4 / 2];
      EXPECT_NEAR(values[i], from[i] * t - from[i + 1] * t, 1e-6) << i;
      EXPECT_NEAR(values[i + 1], from[i] * t + from[i + 1] * t, 1e-6) << i;
    }
  };
  expect_turned(*y->front().tensor(), {1, 2, 6, 4}, x);
  expect_turned(*y->back().tensor(), {1, 2, 1, 4}, short_x);
}

// Layers bring no kernels that those before have not: pipelines are as many as distinct kernels,
// dispatches grow with the layers.
TEST(Counts, AModelHasAsManyPipelinesAsDistinctKernels) {
  struct Cost {
    uint64_t pipelines, dispatches;
  };
  const auto cost = [](int32_t layers) {
    const auto own = gpu::open_or_die();
    auto session = load_bytes(TinyModel{.layers = layers}.build(), {.device = own});
    EXPECT_TRUE(session.ok()) << session.status().message();
    if (!session.ok() || !run_step(*session, {1, 0}).ok()) return Cost{};
    const gpu::Counters before = own->counters();
    EXPECT_TRUE(run_step(*session, {1, 1}).ok());
    const gpu::Counters after = own->counters();
    EXPECT_EQ(after.pipelines_created, before.pipelines_created) << "by a second step";
    return Cost{after.pipelines_created, after.dispatches - before.dispatches};
  };
  const Cost two = cost(2);
  const Cost five = cost(5);
  ASSERT_GT(two.dispatches, 0U);
  EXPECT_EQ(five.pipelines, two.pipelines);
  EXPECT_EQ((five.dispatches - two.dispatches) % 3, 0U);
  EXPECT_GE(five.dispatches - two.dispatches, 3U * 3);
  // The same program twice on one device: the second finds all of them.
  const auto own = gpu::open_or_die();
  const std::string path = program::testing::fixture_path("llm/qwen2_like_fp32.pte");
  uint64_t pipelines = 0;
  for (int turn = 0; turn < 2; ++turn) {
    auto session = Session::load(path, {.device = own});
    ASSERT_TRUE(session.ok()) << session.status().message();
    ASSERT_TRUE(run_step(*session, {1, 0}).ok());
    if (turn == 0) pipelines = own->counters().pipelines_created;
  }
  EXPECT_EQ(own->counters().pipelines_created, pipelines);
}

// What `inspect --kernels` writes is what is compiled: as many as loading and running make.
TEST(Counts, ListedKernelsAreThoseThatAreCompiled) {
  for (const std::string name : {"ops/add.pte", "ops/linear.pte", "ops/conv2d.pte",
                                 "ops/mixed_cumsum.pte", "values/methods.pte"}) {
    SCOPED_TRACE(name);
    const auto own = gpu::open_or_die();
    const std::string path = program::testing::fixture_path(name);
    const auto kernels = list_kernels(path, {.caps = own->caps()});
    ASSERT_TRUE(kernels.ok()) << kernels.status().message();
    ASSERT_TRUE(Session::load(path, {.device = own}).ok());
    EXPECT_EQ(kernels->size(), own->counters().pipelines_created);
  }
}

// Bytes up and down follow the live length, not the bound. Other tokens than before, as what did
// not change is not written.
TEST(Counts, OnlyLiveBytesMove) {
  const TinyModel model;
  auto session = load_bytes(model.build());
  ASSERT_TRUE(session.ok()) << session.status().message();
  for (const int64_t length : {1, 40, 300}) {
    SCOPED_TRACE(length);
    ASSERT_TRUE(run_step(*session, {length, 0}).ok());
    const gpu::Counters before = device()->counters();
    ASSERT_TRUE(run_step(*session, {length, 1}).ok());
    const gpu::Counters after = device()->counters();
    const auto tokens = static_cast<uint64_t>(length) * 4;
    EXPECT_GE(after.write_bytes - before.write_bytes, tokens);
    EXPECT_LE(after.write_bytes - before.write_bytes, tokens + 64);
    EXPECT_EQ(after.read_bytes - before.read_bytes, tokens * static_cast<uint64_t>(model.width));
  }
}

}  // namespace
}  // namespace pteryx::testing
