// What a profile tells of runs. SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/profile.h"

#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "pteryx/gpu/cpu_device.h"
#include "pteryx/gpu/native/blocking.h"
#include "pteryx/gpu/testing/compute.h"
#include "pteryx/gpu/testing/late_device.h"
#include "pteryx/pteryx.h"
#include "pteryx/session/native/blocking.h"

namespace pteryx {
namespace {

using Phase = Profile::Phase;

std::string program(const std::string& name) {
  return std::string(PTERYX_TEST_DATA) + "/fixtures/" + name + ".pte";
}

Session load_or_die(const std::string& name, const LoadOptions& options = {}) {
  LoadOptions with = options;
  if (with.device == nullptr) with.device = gpu::shared_device();
  auto session = Session::load(program(name), with);
  EXPECT_TRUE(session.ok()) << session.status().message();
  if (!session.ok()) std::abort();
  return std::move(session).value();
}

size_t count(const Profile& p, Phase phase) {
  return static_cast<size_t>(std::ranges::count(p.host(), phase, &Profile::HostSpan::phase));
}

void expect_ordered(const Profile& p) {
  double end = -1e18;
  for (const Profile::GpuSpan& g : p.gpu()) {
    EXPECT_GE(g.begin_us, end - 1e-3) << g.kernel;
    EXPECT_GE(g.end_us, g.begin_us);
    end = g.end_us;
  }
  for (const Profile::HostSpan& h : p.host()) EXPECT_GE(h.end_us, h.begin_us) << name(h.phase);
}

TEST(Profile, EveryDispatchWithItsNode) {
  Session session = load_or_die("ops/net_vit");
  const std::vector<float> x(size_t{3} * 32 * 32, 0.5F);
  const Value inputs[] = {tensor<float>({1, 3, 32, 32}, x)};
  ASSERT_TRUE(session.run("forward", inputs).ok());
  gpu::Device& device = *session.device();
  const gpu::Counters before = device.counters();
  const auto plain = session.run("forward", inputs);
  ASSERT_TRUE(plain.ok());
  const uint64_t dispatches = device.counters().dispatches - before.dispatches;
  const std::span<const float> values = plain->front().tensor()->as<float>();
  const std::vector<float> expected(values.begin(), values.end());

  Profile profile(session.device());
  const auto profiled = session.run("forward", inputs, {.profile = &profile});
  ASSERT_TRUE(profiled.ok());
  ASSERT_TRUE(gpu::finish(device, profile).ok());
  EXPECT_TRUE(std::ranges::equal(profiled->front().tensor()->as<float>(), expected));
  ASSERT_EQ(profile.gpu().size(), dispatches);
  expect_ordered(profile);
  double flops = 0;
  for (const Profile::GpuSpan& g : profile.gpu()) {
    EXPECT_FALSE(g.kernel.empty() || g.op.empty()) << g.node;
    EXPECT_EQ(g.method, "forward");
    EXPECT_GT(g.bytes, 0) << g.kernel;
    flops += g.flops;
    // Between the moment of submission and the end of the wait.
    EXPECT_GE(g.begin_us, 0);
    EXPECT_LE(g.end_us, profile.host().back().end_us);
  }
  EXPECT_GT(flops, 1e5);
  for (const Phase p : {Phase::kEncode, Phase::kSubmit, Phase::kWait, Phase::kRead})
    EXPECT_EQ(count(profile, p), 1U) << name(p);
  EXPECT_GE(count(profile, Phase::kShapes), 1U);
  EXPECT_GE(count(profile, Phase::kWrites), 1U);
  profile.clear();
  EXPECT_TRUE(profile.gpu().empty() && profile.host().empty());
}

// Where a run is only timed as a whole, it is what it is without: one pass.
TEST(Profile, SubmitsAsAWhole) {
  Session session = load_or_die("ops/net_vit");
  const std::vector<float> x(size_t{3} * 32 * 32, 0.5F);
  const Value inputs[] = {tensor<float>({1, 3, 32, 32}, x)};
  Profile profile(session.device(), Profile::Detail::kSubmits);
  for (size_t turn = 1; turn < 4; ++turn) {
    const gpu::Counters before = session.device()->counters();
    ASSERT_TRUE(session.run("forward", inputs, {.profile = &profile}).ok());
    EXPECT_EQ(session.device()->counters().passes - before.passes, 1U);
    ASSERT_TRUE(gpu::finish(*session.device(), profile).ok());
    ASSERT_EQ(profile.gpu().size(), turn);
    EXPECT_TRUE(profile.gpu().back().kernel.empty());
    EXPECT_GT(profile.gpu().back().end_us, profile.gpu().back().begin_us);
  }
  expect_ordered(profile);
}

auto runs(const Profile& profile, std::string_view kernel) {
  return std::ranges::count_if(
      profile.gpu(), [&](const Profile::GpuSpan& span) { return span.kernel.starts_with(kernel); });
}

// Steps that run ahead are submitted before the times of those before are read.
TEST(Profile, StepsThatRunAhead) {
  Session session = load_or_die("llm/qwen3_like_q4", {.sampling = true});
  auto steps = Steps::open(session, 4);
  ASSERT_TRUE(steps.ok()) << steps.status().message();
  Steps& s = **steps;
  const TokenId first = 1;
  ASSERT_TRUE(blocking::start(s, std::span(&first, 1), 0).ok());
  Profile profile(session.device());
  s.set(&profile);
  for (int64_t i = 1; i < 4; ++i) ASSERT_TRUE(blocking::start_next(s, i).ok());
  for (int64_t i = 0; i < 4; ++i) ASSERT_TRUE(blocking::take(s).ok());
  s.set(nullptr);
  ASSERT_TRUE(gpu::finish(*session.device(), profile).ok());
  expect_ordered(profile);
  EXPECT_EQ(count(profile, Phase::kSubmit), 3U);
  // What is drawn goes to the next step, embedded, and into its history, by itself.
  EXPECT_EQ(runs(profile, "sample"), 3);
  EXPECT_EQ(runs(profile, "remember") + runs(profile, "advance") + runs(profile, "embedding"), 0);
  EXPECT_EQ(profile.gpu().size() % 3, 0U);
  EXPECT_GE(count(profile, Phase::kWait), 1U);
}

// Another one's run leaves the history, and nothing else.
TEST(Profile, AStepBehindAnotherOnesEmbedsItsToken) {
  Session session = load_or_die("llm/qwen3_like_q4", {.sampling = true});
  auto steps = Steps::open(session, 4);
  auto others = Steps::open(session, 4, Steps::Caches::kOwn);
  ASSERT_TRUE(steps.ok() && others.ok());
  const TokenId first = 1;
  ASSERT_TRUE(blocking::start(**steps, std::span(&first, 1), 0).ok());
  ASSERT_TRUE(blocking::start(**others, std::span(&first, 1), 0).ok());
  Profile profile(session.device());
  (*steps)->set(&profile);
  ASSERT_TRUE(blocking::start_next(**steps, 1).ok());
  ASSERT_TRUE(blocking::start_next(**steps, 2).ok());
  for (int64_t i = 0; i < 3; ++i) ASSERT_TRUE(blocking::take(**steps).ok());
  (*steps)->set(nullptr);
  ASSERT_TRUE(blocking::take(**others).ok());
  ASSERT_TRUE(gpu::finish(*session.device(), profile).ok());
  EXPECT_EQ(runs(profile, "sample"), 2);
  EXPECT_EQ(runs(profile, "embedding"), 1);
  EXPECT_EQ(runs(profile, "remember"), 0);
}

TEST(Profile, OnTheCpuAndWithoutTimestamps) {
  const auto masked = gpu::open_or_die({.disable = "timestamps"});
  const std::vector<float> x(size_t{7} * 33, 1);
  const Value inputs[] = {tensor<float>({7, 33}, x), tensor<float>({7, 33}, x)};
  for (const auto& on : {masked, gpu::cpu_device()}) {
    const bool cpu = on->caps().cpu;
    Session session = load_or_die("ops/add", {.device = on});
    Profile profile(session.device());
    ASSERT_TRUE(session.run("forward", inputs, {.profile = &profile}).ok());
    ASSERT_TRUE(gpu::finish(*on, profile).ok());
    EXPECT_FALSE(profile.has_timestamps());
    EXPECT_TRUE(profile.gpu().empty());
    EXPECT_EQ(count(profile, Phase::kHost), cpu ? 1U : 0U);
    EXPECT_EQ(count(profile, Phase::kSubmit), cpu ? 0U : 1U);
  }
}

// Nothing waits: a device that is late has the times later.
TEST(Profile, TimesThatComeLate) {
  const auto late = std::make_shared<gpu::LateDevice>(gpu::open_or_die(), 3);
  Session session = load_or_die("ops/add", {.device = late});
  const std::vector<float> x(size_t{7} * 33, 1);
  const Value inputs[] = {tensor<float>({7, 33}, x), tensor<float>({7, 33}, x)};
  Profile profile(late);
  ASSERT_TRUE(session.run("forward", inputs, {.profile = &profile}).ok());
  for (bool done = false; !done;) {
    const auto there = profile.advance();
    ASSERT_TRUE(there.ok()) << there.status().message();
    done = *there;
    late->idle(0);
  }
  EXPECT_EQ(profile.gpu().size(), 1U);
}

}  // namespace
}  // namespace pteryx
