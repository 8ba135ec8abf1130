// Language models that draw their own next token. SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/session/steps.h"

#include <algorithm>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "pteryx/base/testing/allocations.h"
#include "pteryx/gpu/device.h"
#include "pteryx/gpu/testing/compute.h"
#include "pteryx/program/testing/damaged_program.h"

namespace pteryx {
namespace {

const std::shared_ptr<gpu::Device>& device() { return gpu::shared_device(); }

std::string fixture(const std::string& name) {
  return std::string(PTERYX_TEST_DATA) + "/fixtures/llm/" + name + ".pte";
}

Result<Session> load_path(const std::string& path, bool sampling) {
  LoadOptions options;
  options.device = device();
  options.sampling = sampling;
  return Session::load(path, options);
}

Result<Session> load(const std::string& name, bool sampling) {
  return load_path(fixture(name), sampling);
}

using Ids = std::vector<int64_t>;
const Ids kPrompt = {1, 2, 3, 4, 5};

// Greedy text by way of the logits.
Ids by_logits(const std::string& name, const Ids& prompt, size_t count) {
  auto session = load(name, false);
  Ids tokens = prompt;
  Ids text;
  int64_t position = 0;
  while (text.size() < count) {
    const Value inputs[] = {tensor<int64_t>({1, static_cast<int64_t>(tokens.size())}, tokens),
                            tensor<int64_t>({1}, std::span<const int64_t>(&position, 1))};
    const auto outputs = session->run("forward", inputs);
    if (!outputs.ok()) return {};
    const auto y = outputs->front().tensor()->as<float>();
    position += static_cast<int64_t>(tokens.size());
    text.push_back(std::max_element(y.begin(), y.end()) - y.begin());
    tokens = {text.back()};
  }
  return text;
}

Ids by_steps(Steps& steps, const Ids& prompt, int64_t position, size_t count) {
  Ids text;
  EXPECT_TRUE(steps.start(prompt, position).ok());
  position += static_cast<int64_t>(prompt.size());
  for (size_t started = 1; text.size() < count;) {
    for (; started < count && steps.under_way() < steps.depth(); ++started)
      EXPECT_TRUE(steps.start_next(position++).ok());
    const auto token = steps.take();
    EXPECT_TRUE(token.ok());
    if (!token.ok()) break;
    text.push_back(*token);
  }
  return text;
}

TEST(Steps, GreedyTextIsThatOfTheLogits) {
  for (const char* name : {"qwen3_like_q4", "qwen2_like_fp32"}) {
    const Ids want = by_logits(name, kPrompt, 24);
    ASSERT_EQ(want.size(), 24U);
    for (const uint32_t depth : {1U, 2U, 4U}) {
      auto session = load(name, true);
      ASSERT_TRUE(session.ok()) << session.status().message();
      auto steps = Steps::open(*session, "forward", depth);
      ASSERT_TRUE(steps.ok()) << steps.status().message();
      EXPECT_EQ(by_steps(*steps, kPrompt, 0, want.size()), want) << name << " depth " << depth;
    }
  }
}

TEST(Steps, AStepCostsOneSubmitAndFourBytes) {
  auto session = load("qwen3_like_q4", true);
  auto steps = Steps::open(*session, "forward", 2);
  ASSERT_TRUE(steps.ok());
  steps->set({.temperature = 0.8F, .top_p = 0.9F, .repetition = 1.1F, .top_k = 40, .seed = 7});
  by_steps(*steps, kPrompt, 0, 4);
  int64_t position = 20;
  ASSERT_TRUE(steps->start(kPrompt, position).ok());
  position += 5;
  ASSERT_TRUE(steps->take().ok());
  for (int i = 0; i < 3; ++i) {  // learns how the scalars move
    ASSERT_TRUE(steps->start_next(position++).ok());
    ASSERT_TRUE(steps->take().ok());
  }
  for (int i = 0; i < 20; ++i) {
    const gpu::Counters before = device()->counters();
    testing::AllocationCount count;
    const bool ok = steps->start_next(position++).ok() && steps->take().ok();
    const int allocated = count.stop();
    const gpu::Counters after = device()->counters();
    ASSERT_TRUE(ok);
    EXPECT_EQ(allocated, 0);
    EXPECT_EQ(after.submits - before.submits, 1U);
    EXPECT_EQ(after.passes - before.passes, 1U);
    EXPECT_EQ(after.writes - before.writes, 0U);
    EXPECT_LE(after.read_bytes - before.read_bytes, 4U);
    EXPECT_EQ(after.bind_groups_created, before.bind_groups_created);
    EXPECT_EQ(after.pipelines_created, before.pipelines_created);
    EXPECT_EQ(after.buffers_created, before.buffers_created);
  }
}

// Steps that ran ahead of a stop leave nothing behind that a later turn could see.
TEST(Steps, WhatRanAheadDoesNotShow) {
  auto session = load("qwen3_like_q4", true);
  auto steps = Steps::open(*session, "forward", 4);
  ASSERT_TRUE(steps.ok());
  const Ids text = by_steps(*steps, kPrompt, 0, 12);
  // Stopped after 6 of the 12: the next turn begins at position 5 + 6.
  Ids turn = {text[5], 9, 8, 7};
  const Ids answer = by_steps(*steps, turn, 10, 6);
  auto fresh = load("qwen3_like_q4", true);
  auto fresh_steps = Steps::open(*fresh, "forward", 1);
  Ids whole = kPrompt;
  whole.insert(whole.end(), text.begin(), text.begin() + 5);
  whole.insert(whole.end(), turn.begin(), turn.end());
  EXPECT_EQ(answer, by_steps(*fresh_steps, whole, 0, 6));
}

TEST(Steps, TokensCanBeFedInChunksWithoutLogits) {
  auto session = load("qwen3_like_q4", true);
  auto steps = Steps::open(*session, "forward", 2);
  ASSERT_TRUE(steps.ok());
  const Ids want = by_steps(*steps, {1, 2, 3, 4, 5, 6, 7}, 0, 8);
  const gpu::Counters before = device()->counters();
  ASSERT_TRUE(steps->feed(Ids{1, 2, 3}, 0).ok());
  EXPECT_EQ(device()->counters().read_bytes, before.read_bytes);
  ASSERT_TRUE(steps->feed(Ids{4, 5}, 3).ok());
  EXPECT_EQ(by_steps(*steps, {6, 7}, 5, 8), want);
}

TEST(Steps, EqualSeedsGiveEqualText) {
  auto session = load("qwen3_like_q4", true);
  auto steps = Steps::open(*session, "forward", 3);
  ASSERT_TRUE(steps.ok());
  const auto text = [&](uint64_t seed) {
    steps->set({.temperature = 1.5F, .seed = seed});
    return by_steps(*steps, kPrompt, 0, 20);
  };
  const Ids one = text(1);
  EXPECT_NE(text(2), one);
  EXPECT_EQ(text(1), one);
}

TEST(Steps, BadTokensAndPositionsAreRefusedAndChangeNothing) {
  auto session = load("qwen3_like_q4", true);
  auto steps = Steps::open(*session, "forward", 2);
  ASSERT_TRUE(steps.ok());
  const Ids want = by_steps(*steps, kPrompt, 0, 4);
  EXPECT_EQ(steps->start(Ids{1, 1 << 20}, 0).code(), Code::kInvalidArgument);
  EXPECT_EQ(steps->start(Ids{1}, 1 << 20).code(), Code::kInvalidArgument);
  EXPECT_EQ(steps->start(Ids{1}, -1).code(), Code::kInvalidArgument);
  EXPECT_EQ(steps->take().status().code(), Code::kInvalidArgument);
  EXPECT_EQ(by_steps(*steps, kPrompt, 0, 4), want);
}

// The steps that ran ahead read no token, and the error stands at the one that drew none.
TEST(Steps, LogitsThatAreNotFiniteAreAnError) {
  for (const char* name : {"qwen3_like_q4", "qwen2_like_fp32"}) {
    const program::testing::DamagedProgram damaged(fixture(name));
    for (const float temperature : {0.0F, 0.8F}) {
      for (const uint32_t depth : {1U, 3U}) {
        auto session = load_path(damaged.path(), true);
        ASSERT_TRUE(session.ok()) << session.status().message();
        auto steps = Steps::open(*session, "forward", depth);
        ASSERT_TRUE(steps.ok()) << steps.status().message();
        steps->set({.temperature = temperature});
        ASSERT_TRUE(steps->start(kPrompt, 0).ok());
        for (int64_t p = 5; steps->under_way() < depth; ++p) ASSERT_TRUE(steps->start_next(p).ok());
        const auto token = steps->take();
        ASSERT_FALSE(token.ok()) << name << " drew " << *token;
        EXPECT_EQ(token.status().code(), Code::kInvalidProgram);
        EXPECT_EQ(token.status().message(),
                  "the model's logits are not finite at position 4: the weights are damaged, or an "
                  "activation overflowed");
        EXPECT_TRUE(steps->discard().ok());
        EXPECT_EQ(steps->under_way(), 0U);
        const auto drawn = steps->run(kPrompt, 7);
        ASSERT_FALSE(drawn.ok());
        EXPECT_TRUE(drawn.status().message().starts_with(
            "the model's logits are not finite at position 11"))
            << drawn.status().message();
      }
    }
  }
}

TEST(Steps, AModelWithoutSamplingIsRefused) {
  auto session = load("qwen3_like_q4", false);
  ASSERT_TRUE(session.ok());
  const auto steps = Steps::open(*session, "forward", 2);
  EXPECT_EQ(steps.status().code(), Code::kUnsupported);
}

}  // namespace
}  // namespace pteryx
