// Methods that share state. SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "pteryx/gpu/cpu_device.h"
#include "pteryx/gpu/testing/compute.h"
#include "pteryx/pteryx.h"

namespace pteryx {
namespace {

// prefill (tokens [1, S], position [1]) -> logits, decode likewise with S = 1.
Result<Session> load(const std::string& name, LoadOptions options = {}) {
  if (options.device == nullptr) options.device = gpu::shared_device();
  return Session::load(std::string(PTERYX_TEST_DATA) + "/fixtures/decoders/" + name + ".pte",
                       options);
}

struct Call {
  std::vector<int64_t> tokens;
  std::vector<int64_t> position;
  std::vector<Value> inputs;
  Call(std::vector<int64_t> t, int64_t p) : tokens(std::move(t)), position{p} {
    inputs = {tensor<int64_t>({1, static_cast<int64_t>(tokens.size())}, tokens),
              tensor<int64_t>({1}, position)};
  }
};

std::vector<float> logits(Session& s, std::string_view method, const Call& call) {
  const auto outputs = s.run(method, call.inputs);
  EXPECT_TRUE(outputs.ok()) << outputs.status().message();
  if (!outputs.ok()) return {};
  const auto y = outputs->front().tensor()->as<float>();
  return {y.begin(), y.end()};
}

TEST(SharedState, WhatOneMethodWritesTheOtherReads) {
  for (const auto& on : gpu::gpu_and_cpu()) {
    auto session = load("prefill_decode_shared", {.device = on});
    ASSERT_TRUE(session.ok()) << session.status().message();
    const Call prompt({7, 11, 13}, 0);
    const Call next({17}, 3);
    const std::vector<float> empty = logits(*session, "decode", next);
    logits(*session, "prefill", prompt);
    const std::vector<float> full = logits(*session, "decode", next);
    EXPECT_NE(full, empty);
    ASSERT_TRUE(session->reset().ok());
    EXPECT_EQ(logits(*session, "decode", next), empty);
  }
}

TEST(SharedState, OneRunAtATimeUsesIt) {
  auto session = load("prefill_decode_shared");
  ASSERT_TRUE(session.ok()) << session.status().message();
  const Call prompt({7, 11, 13}, 0);
  const Call next({17}, 3);
  {
    const auto run = session->start("prefill", prompt.inputs);
    ASSERT_TRUE(run.ok()) << run.status().message();
    const auto other = session->start("decode", next.inputs);
    EXPECT_EQ(other.status().code(), Code::kInvalidArgument);
    EXPECT_NE(other.status().message().find("shares state with 'decode'"), std::string_view::npos);
    EXPECT_EQ(session->reset().code(), Code::kInvalidArgument);
  }
  EXPECT_FALSE(logits(*session, "decode", next).empty());
}

TEST(SharedState, OneMethodAloneRuns) {
  auto session = load("prefill_decode_shared", {.methods = {"decode"}});
  ASSERT_TRUE(session.ok()) << session.status().message();
  EXPECT_FALSE(logits(*session, "decode", Call({17}, 0)).empty());
}

TEST(SharedState, ItsMemoryCountsOnce) {
  uint64_t created[2] = {};
  uint64_t counted[2] = {};
  const char* const names[] = {"prefill_decode_apart", "prefill_decode_shared"};
  for (int i = 0; i < 2; ++i) {
    uint64_t low = 1;
    uint64_t high = 16U << 20;
    const uint64_t before = gpu::shared_device()->counters().buffer_bytes_alive;
    const auto session = load(names[i]);
    ASSERT_TRUE(session.ok()) << session.status().message();
    created[i] = gpu::shared_device()->counters().buffer_bytes_alive - before;
    while (low < high) {
      const uint64_t middle = (low + high) / 2;
      if (load(names[i], {.memory_limit = middle}).ok()) {
        high = middle;
      } else {
        low = middle + 1;
      }
    }
    counted[i] = low;
  }
  constexpr uint64_t kCaches = 4 * 64 * 32 * sizeof(float);
  uint64_t host[2] = {};
  for (int i = 0; i < 2; ++i) {
    const auto session = load(names[i], {.device = gpu::cpu_device()});
    ASSERT_TRUE(session.ok()) << session.status().message();
    host[i] = session->memory().host;
  }
  EXPECT_EQ(host[0] - host[1], kCaches);
  EXPECT_EQ(created[0] - created[1], kCaches);
  EXPECT_EQ(counted[0] - counted[1], kCaches);
}

}  // namespace
}  // namespace pteryx
