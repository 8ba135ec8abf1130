// Language models that draw their own next token. SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/session/steps.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "pteryx/base/testing/allocations.h"
#include "pteryx/gpu/device.h"
#include "pteryx/gpu/native/blocking.h"
#include "pteryx/gpu/testing/compute.h"
#include "pteryx/program/testing/damaged_program.h"
#include "pteryx/session/exec/state.h"
#include "pteryx/session/native/blocking.h"

namespace pteryx {
namespace {

const std::shared_ptr<gpu::Device>& device() { return gpu::shared_device(); }

std::string fixture(const std::string& name) {
  return std::string(PTERYX_TEST_DATA) + "/fixtures/llm/" + name + ".pte";
}

std::string decoder(const std::string& name) {
  return std::string(PTERYX_TEST_DATA) + "/fixtures/decoders/" + name + ".pte";
}

using CacheType = std::optional<DType>;

Result<Session> load_path(const std::string& path, bool sampling, CacheType caches = {}) {
  LoadOptions options;
  options.device = device();
  options.sampling = sampling;
  options.kv_cache = caches;
  return Session::load(path, options);
}

Result<Session> load(const std::string& name, bool sampling, CacheType caches = {}) {
  return load_path(fixture(name), sampling, caches);
}

// Null, and a failure, where they cannot be opened.
std::unique_ptr<Steps> open(Session& session, uint32_t depth,
                            Steps::Caches caches = Steps::Caches::kSession) {
  auto steps = Steps::open(session, depth, caches);
  EXPECT_TRUE(steps.ok()) << steps.status().message();
  return steps.ok() ? std::move(steps).value() : nullptr;
}

using Ids = std::vector<TokenId>;
const Ids kPrompt = {1, 2, 3, 4, 5};

// Greedy text by way of the logits.
Ids by_logits(const std::string& name, const Ids& prompt, size_t count, CacheType caches = {}) {
  auto session = load(name, false, caches);
  Ids tokens = prompt;
  Ids text;
  int64_t position = 0;
  while (text.size() < count) {
    const std::vector<int64_t> wide(tokens.begin(), tokens.end());
    const Value inputs[] = {tensor<int64_t>({1, static_cast<int64_t>(wide.size())}, wide),
                            tensor<int64_t>({1}, std::span<const int64_t>(&position, 1))};
    const auto outputs = session->run("forward", inputs);
    if (!outputs.ok()) return {};
    const auto y = outputs->front().tensor()->as<float>();
    position += static_cast<int64_t>(tokens.size());
    text.push_back(static_cast<TokenId>(std::max_element(y.begin(), y.end()) - y.begin()));
    tokens = {text.back()};
  }
  return text;
}

Ids by_steps(Steps& steps, const Ids& prompt, int64_t position, size_t count) {
  Ids text;
  EXPECT_TRUE(blocking::start(steps, prompt, position).ok());
  position += static_cast<int64_t>(prompt.size());
  for (size_t started = 1; text.size() < count;) {
    for (; started < count && steps.can_start(); ++started)
      EXPECT_TRUE(blocking::start_next(steps, position++).ok());
    const auto token = blocking::take(steps);
    EXPECT_TRUE(token.ok());
    if (!token.ok()) break;
    text.push_back(*token);
  }
  return text;
}

TEST(Steps, GreedyTextIsThatOfTheLogits) {
  for (const char* name : {"qwen3_like_q4", "qwen2_like_fp32"}) {
    for (const CacheType caches : {CacheType(), CacheType(DType::kF16)}) {
      const Ids want = by_logits(name, kPrompt, 24, caches);
      ASSERT_EQ(want.size(), 24U);
      for (const uint32_t depth : {1U, 2U, 4U}) {
        auto session = load(name, true, caches);
        ASSERT_TRUE(session.ok()) << session.status().message();
        const auto steps = open(*session, depth);
        ASSERT_NE(steps, nullptr);
        EXPECT_EQ(by_steps(*steps, kPrompt, 0, want.size()), want)
            << name << " depth " << depth << (caches ? ", f16 caches" : "");
      }
    }
  }
}

// A token that never left the GPU is as much part of the history as one that was given.
TEST(Steps, TokensThatAreFedAreHeldBack) {
  auto session = load("qwen3_like_q4", true);
  ASSERT_TRUE(session.ok()) << session.status().message();
  const auto steps = open(*session, 3);
  ASSERT_NE(steps, nullptr);
  Ids text[2];
  for (const float presence : {0.0F, 9.0F}) {
    steps->set(Sampling{.presence = presence});
    Ids& fed = text[presence > 0 ? 1 : 0];
    fed = by_steps(*steps, kPrompt, 0, 20);
    Ids given;
    Ids tokens = kPrompt;
    for (int64_t position = 0; given.size() < fed.size();) {
      ASSERT_TRUE(blocking::start(*steps, tokens, position).ok());
      position += static_cast<int64_t>(tokens.size());
      const auto token = blocking::take(*steps);
      ASSERT_TRUE(token.ok());
      given.push_back(*token);
      tokens = {*token};
    }
    EXPECT_EQ(fed, given) << "presence " << presence;
  }
  EXPECT_NE(text[0], text[1]);
}

// Models of the same weights: one position, one of each token, methods that share their caches; and
// caches with heads before rows.
TEST(Steps, EveryFormOfAModelGivesTheSameText) {
  const std::vector<std::string> groups[] = {
      {"positions", "prefill_decode_shared", "prefill_decode_named"},
      {"llama_static", "llama_unfused"}};
  for (const auto& names : groups) {
    Ids expected;
    for (const std::string& name : names) {
      auto session = load_path(decoder(name), true);
      ASSERT_TRUE(session.ok()) << session.status().message();
      const auto capacity = Steps::capacity(*session);
      ASSERT_TRUE(capacity.ok()) << capacity.status().message();
      EXPECT_EQ(*capacity, 64) << name;
      for (const Steps::Caches caches : {Steps::Caches::kSession, Steps::Caches::kOwn}) {
        const auto steps = open(*session, 3, caches);
        ASSERT_NE(steps, nullptr);
        Ids prompt = kPrompt;
        if (name.starts_with("llama")) {  // one token at a time
          for (int64_t i = 0; i < 4; ++i)
            ASSERT_TRUE(
                blocking::feed(*steps, std::span(kPrompt).subspan(static_cast<size_t>(i), 1), i)
                    .ok());
          prompt = {kPrompt.back()};
        }
        const auto read = static_cast<int64_t>(kPrompt.size() - prompt.size());
        const Ids text = by_steps(*steps, prompt, read, 12);
        if (expected.empty()) expected = text;
        EXPECT_EQ(text, expected) << name;
        // A second text: nothing of the first is fed into it.
        EXPECT_EQ(by_steps(*steps, prompt, read, 12), expected) << name;
      }
    }
  }
}

TEST(Steps, MethodsThatShareNoCachesAreRefused) {
  auto session = load_path(decoder("prefill_decode_apart"), true);
  ASSERT_TRUE(session.ok()) << session.status().message();
  const auto steps = Steps::open(*session, 2);
  EXPECT_EQ(steps.status().code(), Code::kUnsupported);
  EXPECT_NE(steps.status().message().find("do not share their caches"), std::string_view::npos);
}

TEST(Steps, AStepCostsOneSubmitAndFourBytes) {
  auto session = load("qwen3_like_q4", true);
  const auto steps = open(*session, 2);
  ASSERT_NE(steps, nullptr);
  steps->set({.temperature = 0.8F, .top_p = 0.9F, .repetition = 1.1F, .top_k = 40, .seed = 7});
  by_steps(*steps, kPrompt, 0, 4);
  int64_t position = 20;
  ASSERT_TRUE(blocking::start(*steps, kPrompt, position).ok());
  position += 5;
  ASSERT_TRUE(blocking::take(*steps).ok());
  for (int i = 0; i < 3; ++i) {  // brings the rule to the GPU, and the memory that steps need
    ASSERT_TRUE(blocking::start_next(*steps, position++).ok());
    ASSERT_TRUE(blocking::take(*steps).ok());
  }
  for (int i = 0; i < 20; ++i) {
    const gpu::Counters before = device()->counters();
    testing::AllocationCount count;
    const bool ok = blocking::start_next(*steps, position++).ok() && blocking::take(*steps).ok();
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
  const auto steps = open(*session, 4);
  ASSERT_NE(steps, nullptr);
  const Ids text = by_steps(*steps, kPrompt, 0, 12);
  // Stopped after 6 of the 12: the next turn begins at position 5 + 6.
  Ids turn = {text[5], 9, 8, 7};
  const Ids answer = by_steps(*steps, turn, 10, 6);
  auto fresh = load("qwen3_like_q4", true);
  const auto fresh_steps = open(*fresh, 1);
  Ids whole = kPrompt;
  whole.insert(whole.end(), text.begin(), text.begin() + 5);
  whole.insert(whole.end(), turn.begin(), turn.end());
  EXPECT_EQ(answer, by_steps(*fresh_steps, whole, 0, 6));
}

TEST(Steps, TokensCanBeFedInChunksWithoutLogits) {
  auto session = load("qwen3_like_q4", true);
  const auto steps = open(*session, 2);
  ASSERT_NE(steps, nullptr);
  const Ids want = by_steps(*steps, {1, 2, 3, 4, 5, 6, 7}, 0, 8);
  const gpu::Counters before = device()->counters();
  ASSERT_TRUE(blocking::feed(*steps, Ids{1, 2, 3}, 0).ok());
  EXPECT_EQ(device()->counters().read_bytes, before.read_bytes);
  ASSERT_TRUE(blocking::feed(*steps, Ids{4, 5}, 3).ok());
  EXPECT_EQ(by_steps(*steps, {6, 7}, 5, 8), want);
}

TEST(Steps, EqualSeedsGiveEqualText) {
  auto session = load("qwen3_like_q4", true);
  const auto steps = open(*session, 3);
  ASSERT_NE(steps, nullptr);
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
  const auto steps = open(*session, 2);
  ASSERT_NE(steps, nullptr);
  const Ids want = by_steps(*steps, kPrompt, 0, 4);
  EXPECT_EQ(blocking::start(*steps, Ids{1, 1 << 20}, 0).code(), Code::kInvalidArgument);
  EXPECT_EQ(blocking::start(*steps, Ids{1}, 1 << 20).code(), Code::kInvalidArgument);
  EXPECT_EQ(blocking::start(*steps, Ids{1}, -1).code(), Code::kInvalidArgument);
  EXPECT_EQ(blocking::take(*steps).status().code(), Code::kInvalidArgument);
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
        const auto steps = open(*session, depth);
        ASSERT_NE(steps, nullptr);
        steps->set({.temperature = temperature});
        ASSERT_TRUE(blocking::start(*steps, kPrompt, 0).ok());
        for (int64_t p = 5; steps->under_way() < depth; ++p)
          ASSERT_TRUE(blocking::start_next(*steps, p).ok());
        const auto token = blocking::take(*steps);
        ASSERT_FALSE(token.ok()) << name << " drew " << *token;
        EXPECT_EQ(token.status().code(), Code::kInvalidProgram);
        EXPECT_EQ(token.status().message(),
                  "the model's logits are not finite at position 4: the weights are damaged, or an "
                  "activation overflowed");
        steps->discard();
        EXPECT_EQ(steps->under_way(), 0U);
        const auto drawn = blocking::run(*steps, kPrompt, 7);
        ASSERT_FALSE(drawn.ok());
        EXPECT_TRUE(drawn.status().message().starts_with(
            "the model's logits are not finite at position 11"))
            << drawn.status().message();
      }
    }
  }
}

// Each has its own tokens under way; who starts next takes the caches as they are.
TEST(Steps, OpenedTwiceBothWork) {
  auto session = load("qwen3_like_q4", true);
  const auto one = open(*session, 3);
  const Ids want = by_steps(*one, kPrompt, 0, 10);
  const auto two = open(*session, 2);
  EXPECT_EQ(by_steps(*two, kPrompt, 0, 10), want);
  EXPECT_EQ(by_steps(*one, kPrompt, 0, 10), want);
  // The same text from both at once: what one writes into the caches is what the other would.
  ASSERT_TRUE(blocking::start(*one, kPrompt, 0).ok());
  ASSERT_TRUE(blocking::start(*two, kPrompt, 0).ok());
  Ids first;
  Ids second;
  for (int64_t position = 5; first.size() < want.size(); ++position) {
    ASSERT_TRUE(blocking::start_next(*one, position).ok());
    ASSERT_TRUE(blocking::start_next(*two, position).ok());
    const auto a = blocking::take(*one);
    const auto b = blocking::take(*two);
    ASSERT_TRUE(a.ok() && b.ok());
    first.push_back(*a);
    second.push_back(*b);
  }
  EXPECT_EQ(first, want);
  EXPECT_EQ(second, want);
}

// Conversations with caches of their own, in turn: each gives what it gives alone, though tokens
// of both are under way.
TEST(Steps, ConversationsDoNotHearOfEachOther) {
  for (const char* name : {"qwen3_like_q4", "qwen2_like_fp32"}) {
    auto session = load(name, true);
    const auto alone = open(*session, 4);
    const Ids other_prompt = {9, 8, 7};
    const Ids want = by_steps(*alone, kPrompt, 0, 16);
    const Ids other_want = by_steps(*alone, other_prompt, 0, 16);
    const auto one = open(*session, 4);
    const auto two = open(*session, 3, Steps::Caches::kOwn);
    ASSERT_TRUE(blocking::start(*one, kPrompt, 0).ok());
    ASSERT_TRUE(blocking::start(*two, other_prompt, 0).ok());
    Ids first;
    Ids second;
    for (int64_t i = 0; first.size() < want.size(); ++i) {
      for (int more = 0; more < (i == 0 ? 2 : 1); ++more) {
        const auto ahead = static_cast<int64_t>(one->under_way() + first.size());
        ASSERT_TRUE(blocking::start_next(*one, 4 + ahead).ok());
      }
      ASSERT_TRUE(blocking::start_next(*two, 3 + i).ok());
      const auto a = blocking::take(*one);
      const auto b = blocking::take(*two);
      ASSERT_TRUE(a.ok() && b.ok());
      first.push_back(*a);
      second.push_back(*b);
    }
    EXPECT_EQ(first, want) << name;
    EXPECT_EQ(second, other_want) << name;
  }
}

TEST(Steps, CachesCanBeCopiedSavedAndRestored) {
  for (const auto& [name, caches] : {std::pair("qwen3_like_q4", CacheType()),
                                     {"qwen2_like_fp32", CacheType()},
                                     {"qwen3_like_q4", CacheType(DType::kF16)}}) {
    auto session = load(name, true, caches);
    const auto one = open(*session, 2);
    const Ids text = by_steps(*one, kPrompt, 0, 12);
    const Ids rest(text.begin() + 6, text.end());
    const auto position = static_cast<int64_t>(kPrompt.size()) + 5;
    const auto fork = open(*session, 2, Steps::Caches::kOwn);
    ASSERT_TRUE(blocking::feed(*fork, Ids{3}, 0).ok());  // so that it is there
    ASSERT_TRUE(fork->state().copy(one->state()).ok());
    exec::StateBytes bytes(one->state(), device());
    ASSERT_TRUE(gpu::finish(*device(), bytes).ok());
    const std::vector<std::byte> saved = bytes.take();
    ASSERT_TRUE(session->reset().ok());
    EXPECT_EQ(by_steps(*fork, {text[5]}, position, rest.size()), rest) << name;
    EXPECT_NE(by_steps(*one, {text[5]}, position, rest.size()), rest) << "the caches are empty";
    ASSERT_TRUE(one->state().restore(saved).ok());
    EXPECT_EQ(by_steps(*one, {text[5]}, position, rest.size()), rest) << name;
    EXPECT_EQ(one->state().restore(Bytes(saved).first(100)).code(), Code::kInvalidArgument);
  }
}

TEST(Steps, AModelWithoutSamplingIsRefused) {
  auto session = load("qwen3_like_q4", false);
  ASSERT_TRUE(session.ok());
  EXPECT_EQ(Steps::open(*session, 2).status().code(), Code::kUnsupported);
}

}  // namespace
}  // namespace pteryx
