// Sessions on the device of machines without a GPU. SPDX-License-Identifier: BSD-3-Clause
#include <bit>
#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "pteryx/base/source.h"
#include "pteryx/base/testing/locked.h"
#include "pteryx/cpu/processors.h"
#include "pteryx/gpu/cpu_device.h"
#include "pteryx/gpu/testing/compute.h"
#include "pteryx/pteryx.h"
#include "pteryx/session/testing/cpu_runs.h"

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

// Weights stay as the file has them; x, the caches and scales of 4 bits are rounded.
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

// Kernels with vectors and threads compute what the plain ones do.
TEST(Cpu, FastKernelsGiveWhatTheReferencesGive) {
  for (const testing::CpuProgram& program : testing::cpu_programs()) {
    SCOPED_TRACE(program.name);
    Session fast = program.load(2);
    Session plain = testing::load_on_cpu(
        program.name, {.precision = program.precision, .testing = {.reference = true}});
    EXPECT_EQ(plain.memory().scratch, 0U);
    EXPECT_GT(fast.memory().scratch, 0U);
    const testing::Bits got = program.run(fast);
    const testing::Bits want = program.run(plain);
    ASSERT_EQ(got.size(), want.size());
    // Of x that is rounded to 8 bits, which the references do not do.
    const float tolerance = program.precision == Precision::kF16 ? 2e-2F : 1e-4F;
    for (size_t i = 0; i < got.size(); ++i) {
      const auto y = std::bit_cast<float>(want[i]);
      ASSERT_NEAR(std::bit_cast<float>(got[i]), y, tolerance * (1 + std::fabs(y))) << i;
    }
  }
}

// All memory is known before: what is used where the file has it, and what is not.
TEST(Cpu, WeightsStayWhereTheFileHasThem) {
  for (const char* name : {"llm/qwen3_like_q4", "llm/qwen2_like_fp32", "ops/net_vit"}) {
    SCOPED_TRACE(name);
    const auto session = Session::load(fixture(name), {.device = gpu::cpu_device()});
    ASSERT_TRUE(session.ok()) << session.status().message();
    const MethodInfo& m = session->methods().front();
    const MemoryUse& use = session->memory();
    EXPECT_EQ(use.in_place, m.in_place_bytes);
    EXPECT_EQ(use.copied, m.copied_bytes);
    EXPECT_EQ(use.host, m.host_bytes);
    EXPECT_GT(use.host, 0U);
    EXPECT_GT(use.scratch, 0U);
    const uint64_t file = std::filesystem::file_size(fixture(name));
    EXPECT_LE(use.in_place, file);
    EXPECT_GT(use.in_place, file / 2);
    EXPECT_LT(use.copied, use.in_place / 20);
  }
}

// Scales that are held as f16 are copies, counted once for all methods.
TEST(Cpu, ScalesInAnotherFormAreCopies) {
  const std::string path = fixture("llm/qwen3_like_q4");
  const auto exact = Session::load(path, {.device = gpu::cpu_device()});
  const auto rounded =
      Session::load(path, {.device = gpu::cpu_device(), .precision = Precision::kF16});
  ASSERT_TRUE(exact.ok() && rounded.ok()) << rounded.status().message();
  const uint64_t scales = exact->memory().in_place - rounded->memory().in_place;
  EXPECT_GT(scales, 0U);
  EXPECT_EQ(rounded->memory().copied - exact->memory().copied, scales / 2);
  EXPECT_EQ(rounded->methods().front().copied_bytes, rounded->memory().copied);
}

TEST(Cpu, LocksFilesAndScalesInAnotherForm) {
  if (testing::kLocksArePretended) return;  // other builds show it
  const std::string path = fixture("llm/qwen3_like_q4");
  const auto source = map_source(path);
  ASSERT_TRUE(source.ok()) << source.status().message();
  const int64_t before = testing::locked_kib();
  SessionLoad load(*source, {},
                   {.device = gpu::cpu_device(), .precision = Precision::kF16, .lock = true});
  for (;;) {
    const auto there = load.advance();
    ASSERT_TRUE(there.ok()) << there.status().message();
    if (*there) break;
  }
  const Session session = load.take();
  const uint64_t locked = std::filesystem::file_size(path) + session.memory().copied;
  EXPECT_GE(testing::locked_kib() - before, static_cast<int64_t>(locked / 1024));
}

TEST(Cpu, LimitOfMemoryIsThatOfWhatIsAllocated) {
  const std::string path = fixture("llm/qwen2_like_fp32");
  const auto all = Session::load(path, {.device = gpu::cpu_device()});
  ASSERT_TRUE(all.ok()) << all.status().message();
  const MemoryUse use = all->memory();
  const uint64_t enough = use.host + use.scratch + use.copied;
  EXPECT_TRUE(Session::load(path, {.device = gpu::cpu_device(), .memory_limit = enough}).ok());
  const auto less = Session::load(path, {.device = gpu::cpu_device(), .memory_limit = enough - 1});
  EXPECT_EQ(less.status().code(), Code::kMemory);
  EXPECT_EQ(
      less.status().message(),
      fmt::format("{} needs {} bytes of memory, the limit is {}: {} for activations and state, "
                  "{} for temporaries, {} for weights in another form, 0 for locked files",
                  path, enough, enough - 1, use.host, use.scratch, use.copied));
  const uint64_t file = std::filesystem::file_size(path);
  const auto locked = Session::load(
      path, {.device = gpu::cpu_device(), .memory_limit = enough + file - 1, .lock = true});
  EXPECT_EQ(locked.status().code(), Code::kMemory);
  EXPECT_NE(locked.status().message().find(fmt::format("{} for locked files", file)),
            std::string_view::npos)
      << locked.status().message();
}

TEST(Cpu, ThreadsAreThoseAskedFor) {
  for (const uint32_t threads : {1U, 3U}) {
    const auto session =
        Session::load(fixture("ops/add"), {.device = gpu::cpu_device(), .threads = threads});
    ASSERT_TRUE(session.ok()) << session.status().message();
    EXPECT_EQ(session->threads(), threads);
  }
  const auto usual = Session::load(fixture("ops/add"), {.device = gpu::cpu_device()});
  ASSERT_TRUE(usual.ok());
  EXPECT_EQ(usual->threads(), cpu::usable_cores());
  const auto absurd = Session::load(
      fixture("ops/add"), {.device = gpu::cpu_device(), .threads = LoadOptions::kMostThreads + 1});
  EXPECT_EQ(absurd.status().code(), Code::kInvalidArgument);
  EXPECT_NE(absurd.status().message().find("threads: expected at most 1024, got 1025"),
            std::string_view::npos)
      << absurd.status().message();
}

TEST(Cpu, ThreadsAreStartedWhereANodeRunsThere) {
  const auto device = gpu::shared_device();
  const auto session = Session::load(fixture("ops/add"), {.device = device, .threads = 3});
  ASSERT_TRUE(session.ok()) << session.status().message();
  EXPECT_EQ(session->threads(), device->caps().cpu ? 3U : 1U);
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
