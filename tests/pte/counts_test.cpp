// What programs cost, counted on devices of their own. SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include "programs.h"

namespace pteryx::testing {
namespace {

std::shared_ptr<gpu::Device> new_device() {
  auto d = gpu::open_device();
  EXPECT_TRUE(d.ok()) << d.status().message();
  return d.ok() ? *d : nullptr;
}

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
  const auto own = new_device();
  auto session = load_bytes(p.finish(), {.device = own});
  ASSERT_TRUE(session.ok()) << session.status().message();
  const std::vector<float> x(48, 1);
  const Value inputs[] = {tensor<float>({1, 2, 6, 4}, x),
                          tensor<float>({1, 2, 1, 4}, std::span<const float>(x).first(8))};
  const auto y = session->run("forward", inputs);
  ASSERT_TRUE(y.ok()) << y.status().message();
  EXPECT_EQ(own->counters().pipelines_created, 1U);
  // The results are not swapped.
  EXPECT_EQ(y->front().tensor()->dims, (Dims{1, 2, 6, 4}));
  EXPECT_EQ(y->back().tensor()->dims, (Dims{1, 2, 1, 4}));
}

// The second layer of a model brings no kernels that the first has not.
TEST(Counts, AModelHasAsManyPipelinesAsDistinctKernels) {
  const auto own = new_device();
  auto session =
      Session::load(program::testing::fixture_path("llm/qwen2_like_fp32.pte"), {.device = own});
  ASSERT_TRUE(session.ok()) << session.status().message();
  const gpu::Counters before = own->counters();
  ASSERT_TRUE(run_step(*session, {1, 0}).ok());
  const uint64_t dispatches = own->counters().dispatches - before.dispatches;
  const uint64_t pipelines = own->counters().pipelines_created;
  EXPECT_GT(dispatches, 20U);
  EXPECT_LT(pipelines, dispatches) << "two layers share their kernels";
  // The same program again, on the same device: all of them are there.
  auto again =
      Session::load(program::testing::fixture_path("llm/qwen2_like_fp32.pte"), {.device = own});
  ASSERT_TRUE(again.ok());
  ASSERT_TRUE(run_step(*again, {1, 0}).ok());
  EXPECT_EQ(own->counters().pipelines_created, pipelines);
}

// Bytes up and down follow the live length, not the bound.
TEST(Counts, OnlyLiveBytesMove) {
  const TinyModel model;
  auto session = load_bytes(model.build());
  ASSERT_TRUE(session.ok()) << session.status().message();
  ASSERT_TRUE(run_step(*session, {1, 0}).ok());
  const gpu::Counters before = device()->counters();
  ASSERT_TRUE(run_step(*session, {1, 0}).ok());
  const gpu::Counters after = device()->counters();
  EXPECT_LE(after.write_bytes - before.write_bytes, 64U);
  EXPECT_EQ(after.read_bytes - before.read_bytes, static_cast<uint64_t>(model.width) * 4);
}

}  // namespace
}  // namespace pteryx::testing
