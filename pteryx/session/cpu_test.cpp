// Sessions on the device of machines without a GPU. SPDX-License-Identifier: BSD-3-Clause
#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "pteryx/gpu/cpu_device.h"
#include "pteryx/gpu/testing/compute.h"
#include "pteryx/pteryx.h"

namespace pteryx {
namespace {

std::string fixture(const std::string& name) {
  return std::string(PTERYX_TEST_DATA) + "/fixtures/" + name + ".pte";
}

// Logits of two calls, of which the second reads what the first left in the caches.
std::vector<float> logits(Session& session) {
  std::vector<float> all;
  for (const auto& [tokens, at] :
       std::vector<std::pair<std::vector<int64_t>, int64_t>>{{{3, 1, 4, 1, 5}, 0}, {{9}, 5}}) {
    const std::vector<int64_t> position = {at};
    const Value inputs[] = {tensor<int64_t>({1, static_cast<int64_t>(tokens.size())}, tokens),
                            tensor<int64_t>({1}, position)};
    const auto outputs = session.run("forward", inputs);
    EXPECT_TRUE(outputs.ok()) << outputs.status().message();
    if (!outputs.ok()) return all;
    const auto y = outputs->front().tensor()->as<float>();
    all.insert(all.end(), y.begin(), y.end());
  }
  return all;
}

TEST(Cpu, NothingIsPlannedUploadedOrSubmitted) {
  const auto device = gpu::cpu_device();
  auto session = Session::load(fixture("llm/qwen3_like_q4"), {.device = device});
  ASSERT_TRUE(session.ok()) << session.status().message();
  EXPECT_FALSE(logits(*session).empty());
  const gpu::Counters c = device->counters();
  EXPECT_EQ(c.pipelines_created + c.dispatches + c.submits + c.writes + c.reads, 0U);
  EXPECT_LT(c.buffer_bytes_alive, uint64_t{16} << 10);  // some words for each method
  for (const MethodInfo& m : session->methods()) {
    EXPECT_EQ(m.state_bytes, 0U) << m.name;
    EXPECT_LT(m.gpu_bytes, 4096U) << m.name;
  }
}

// Scales and weights stay as the file has them; x and the caches are rounded.
TEST(Cpu, F16PrecisionRoundsXAndCaches) {
  for (const char* name : {"llm/qwen3_like_q4", "llm/qwen2_like_fp32"}) {
    auto exact = Session::load(fixture(name), {.device = gpu::cpu_device()});
    auto asked =
        Session::load(fixture(name), {.device = gpu::cpu_device(), .precision = Precision::kF16});
    ASSERT_TRUE(exact.ok()) << exact.status().message();
    ASSERT_TRUE(asked.ok()) << asked.status().message();
    const std::vector<float> want = logits(*exact);
    const std::vector<float> got = logits(*asked);
    ASSERT_EQ(got.size(), want.size());
    EXPECT_NE(got, want) << name;
    for (size_t i = 0; i < got.size(); ++i)
      ASSERT_NEAR(got[i], want[i], 5e-3F * (1 + std::fabs(want[i]))) << name << " " << i;
    EXPECT_LT(asked->methods().front().host_bytes, exact->methods().front().host_bytes) << name;
  }
}

TEST(Cpu, IsTakenWhereNoDeviceIsGivenAndNoGpuIsThere) {
  auto session = Session::load(fixture("ops/add"));
  ASSERT_TRUE(session.ok()) << session.status().message();
  EXPECT_EQ(session->device()->caps().cpu, !gpu::open_device().ok());
  EXPECT_FALSE(session->device()->caps().software);
  const std::vector<float> x(size_t{7} * 33, 1.5F);
  const Value inputs[] = {tensor<float>({7, 33}, x), tensor<float>({7, 33}, x)};
  const auto outputs = session->run("forward", inputs);
  ASSERT_TRUE(outputs.ok()) << outputs.status().message();
  EXPECT_EQ(outputs->front().tensor()->as<float>()[230], 3.0F);
}

}  // namespace
}  // namespace pteryx
