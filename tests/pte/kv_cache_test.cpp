// Programs whose caches update_cache writes and custom_sdpa reads, with caches of another type than
// the file's.
// SPDX-License-Identifier: BSD-3-Clause
#include <cmath>

#include <gtest/gtest.h>

#include "programs.h"

namespace pteryx::testing {
namespace {

constexpr int32_t kCapacity = 16;
constexpr int32_t kRows = 3;
constexpr int32_t kHeads = 4;
constexpr int32_t kKvHeads = 2;
constexpr int32_t kSize = 8;

enum class Initial : uint8_t { kZeros, kNumbers };
enum class Readers : uint8_t { kAttention, kAlsoRelu };  // of the keys

// q, k, v and the position to the result of attention and, where somebody else reads the keys, the
// positive ones.
std::string program(Initial initial, Readers readers, int32_t capacity = kCapacity) {
  DelegateProgram p;
  BlobBuilder& b = p.blob;
  const auto rows = [&](int32_t heads) {
    return p.input(vk::VkDataType::FLOAT32, {1, kRows, heads, kSize});
  };
  const int32_t q = rows(kHeads);
  const int32_t k = rows(kKvHeads);
  const int32_t v = rows(kKvHeads);
  const int32_t position = p.input(vk::VkDataType::INT32, {1});
  const int32_t none = b.add_null();
  const int32_t zero = b.add_int(0);
  const int32_t start = b.add_symint();
  b.add_call("et_vk.select_as_symint.default", {position, zero, zero, start});
  const std::vector<int32_t> dims = {1, capacity, kKvHeads, kSize};
  const auto cache = [&](uint32_t seed) {
    return p.prepacked(initial == Initial::kZeros ? p.zeros(dims) : p.weights(dims, seed), dims);
  };
  const int32_t keys = cache(1);
  const int32_t values = cache(2);
  b.add_call("update_cache.default", {k, keys, start, p.floats({1})});
  b.add_call("update_cache.default", {v, values, start, p.floats({1})});
  const int32_t y = p.floats({1, kRows, kHeads, kSize});
  b.add_call("llama.custom_sdpa.default",
             {q, keys, values, start, none, zero, b.add_bool(true), none, y});
  // Another one, so that what the first leaves behind is met.
  const int32_t again = p.floats({1, kRows, kHeads, kSize});
  b.add_call("llama.custom_sdpa.default",
             {y, keys, values, start, none, zero, b.add_bool(true), none, again});
  p.output(again);
  if (readers == Readers::kAlsoRelu) {
    const int32_t positive = p.floats(dims);
    b.add_call("aten.relu.default", {keys, positive});
    p.output(positive);
  }
  return p.finish();
}

std::vector<float> run(Session& session, int64_t position, size_t output = 0) {
  const auto seed = static_cast<uint32_t>(position);
  const auto numbers = [&](int32_t heads, uint32_t which) {
    return repeated_weights(static_cast<size_t>(kRows * heads * kSize), 10 * seed + which);
  };
  const std::vector<float> q = numbers(kHeads, 3);
  const std::vector<float> k = numbers(kKvHeads, 4);
  const std::vector<float> v = numbers(kKvHeads, 5);
  const Value inputs[] = {tensor<float>({1, kRows, kHeads, kSize}, q),
                          tensor<float>({1, kRows, kKvHeads, kSize}, k),
                          tensor<float>({1, kRows, kKvHeads, kSize}, v),
                          tensor<int64_t>({1}, std::span<const int64_t>(&position, 1))};
  const auto outputs = session.run("forward", inputs);
  EXPECT_TRUE(outputs.ok()) << outputs.status().message();
  if (!outputs.ok()) return {};
  const auto y = (*outputs)[output].tensor()->as<float>();
  return {y.begin(), y.end()};
}

void expect_near(const std::vector<float>& got, const std::vector<float>& want) {
  ASSERT_EQ(got.size(), want.size());
  EXPECT_NE(got, want) << "nothing was rounded";
  for (size_t i = 0; i < got.size(); ++i)
    ASSERT_NEAR(got[i], want[i], 5e-3F * (1 + std::fabs(want[i]))) << i;
}

// Rows 0 to 3 are those of the file.
TEST(KvCache, InitialValuesAreConverted) {
  for (const auto& on : gpu::gpu_and_cpu()) {
    for (const Initial initial : {Initial::kZeros, Initial::kNumbers}) {
      const std::string file = program(initial, Readers::kAttention);
      auto plain = load_bytes(file, {.device = on});
      auto halves = load_bytes(file, {.device = on, .kv_cache = DType::kF16});
      ASSERT_TRUE(plain.ok()) << plain.status().message();
      ASSERT_TRUE(halves.ok()) << halves.status().message();
      EXPECT_EQ(halves->methods()[0].state_bytes, plain->methods()[0].state_bytes / 2);
      EXPECT_EQ(halves->methods()[0].note, "");
      const std::vector<float> first = run(*halves, 4);
      expect_near(first, run(*plain, 4));
      expect_near(run(*halves, 7), run(*plain, 7));
      ASSERT_TRUE(halves->reset().ok());
      EXPECT_EQ(run(*halves, 4), first);
    }
  }
}

TEST(KvCache, IsRoundedWhereProductsMayBe) {
  const std::string file = program(Initial::kNumbers, Readers::kAttention);
  auto plain = load_bytes(file);
  auto rounded = load_bytes(file, {.precision = Precision::kF16});
  auto exact = load_bytes(file, {.precision = Precision::kF16, .kv_cache = DType::kF32});
  ASSERT_TRUE(plain.ok() && rounded.ok() && exact.ok());
  EXPECT_EQ(rounded->methods()[0].state_bytes, plain->methods()[0].state_bytes / 2);
  EXPECT_EQ(exact->methods()[0].state_bytes, plain->methods()[0].state_bytes);
  // Where it cannot be, nobody asked.
  auto fixed =
      load_bytes(program(Initial::kNumbers, Readers::kAlsoRelu), {.precision = Precision::kF16});
  ASSERT_TRUE(fixed.ok()) << fixed.status().message();
  EXPECT_EQ(fixed->methods()[0].note, "");
}

// Two batches of an odd number of halves share a word, which the GPU cannot write: there threads of
// the CPU do, and the GPU reads what they wrote.
TEST(KvCache, WhatTheGpuCannotWriteIsWrittenByThreads) {
  const std::vector<int32_t> rows = {2, 3, 1, 5};
  DelegateProgram p;
  BlobBuilder& b = p.blob;
  const int32_t q = p.input(vk::VkDataType::FLOAT32, rows);
  const int32_t k = p.input(vk::VkDataType::FLOAT32, rows);
  const int32_t position = p.input(vk::VkDataType::INT32, {1});
  const int32_t none = b.add_null();
  const int32_t zero = b.add_int(0);
  const int32_t start = b.add_symint();
  b.add_call("et_vk.select_as_symint.default", {position, zero, zero, start});
  const int32_t keys = p.half_zeros({2, 7, 1, 5});
  b.add_call("update_cache.default", {k, keys, start, p.floats({1})});
  const int32_t y = p.floats(rows);
  b.add_call("llama.custom_sdpa.default",
             {q, keys, keys, start, none, zero, b.add_bool(true), none, y});
  p.output(y);
  const std::string file = p.finish();
  auto mixed = load_bytes(file, {.threads = 3});
  auto plain = load_bytes(file, {.device = gpu::cpu_device(), .testing = {.reference = true}});
  ASSERT_TRUE(mixed.ok()) << mixed.status().message();
  ASSERT_TRUE(plain.ok()) << plain.status().message();
  EXPECT_EQ(mixed->threads(), 3U);
  EXPECT_EQ(plain->threads(), 1U);
  const std::vector<float> x = repeated_weights(30, 3);
  const auto run_at = [&](Session& session, int64_t at) -> std::vector<float> {
    const std::vector<float> added = repeated_weights(30, static_cast<uint32_t>(at));
    const Value inputs[] = {tensor<float>({2, 3, 1, 5}, x), tensor<float>({2, 3, 1, 5}, added),
                            tensor<int64_t>({1}, std::span<const int64_t>(&at, 1))};
    const auto outputs = session.run("forward", inputs);
    EXPECT_TRUE(outputs.ok()) << outputs.status().message();
    if (!outputs.ok()) return {};
    const auto got = outputs->front().tensor()->as<float>();
    return {got.begin(), got.end()};
  };
  const uint64_t dispatches = device()->counters().dispatches;
  for (const int64_t at : {0, 3, 4, 1}) {
    const std::vector<float> got = run_at(*mixed, at);
    const std::vector<float> want = run_at(*plain, at);
    ASSERT_EQ(got.size(), want.size());
    for (size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], want[i], 1e-5F) << at << ": " << i;
  }
  EXPECT_EQ(device()->counters().dispatches > dispatches, !device()->caps().cpu);
}

// Contexts on both sides of those where keys are split over workgroups, back and forth: what
// workgroups count is 0 again after each of them.
TEST(KvCache, LongContextsAgreeWithTheCpu) {
  const std::string file = program(Initial::kNumbers, Readers::kAttention, 600);
  auto gpu = load_bytes(file);
  auto cpu = load_bytes(file, {.device = gpu::cpu_device()});
  ASSERT_TRUE(gpu.ok()) << gpu.status().message();
  ASSERT_TRUE(cpu.ok()) << cpu.status().message();
  for (const int64_t position : {3, 254, 300, 590, 17, 590, 511, 597}) {
    const std::vector<float> got = run(*gpu, position);
    const std::vector<float> want = run(*cpu, position);
    ASSERT_EQ(got.size(), want.size());
    for (size_t i = 0; i < got.size(); ++i)
      ASSERT_NEAR(got[i], want[i], 1e-4F * (1 + std::fabs(want[i]))) << position << ": " << i;
  }
}

TEST(KvCache, OneThatSomebodyElseReadsStaysAndIsNoted) {
  const std::string file = program(Initial::kNumbers, Readers::kAlsoRelu);
  auto plain = load_bytes(file);
  auto halves = load_bytes(file, {.kv_cache = DType::kF16});
  ASSERT_TRUE(plain.ok()) << plain.status().message();
  ASSERT_TRUE(halves.ok()) << halves.status().message();
  EXPECT_EQ(halves->methods()[0].state_bytes, plain->methods()[0].state_bytes / 4 * 3);
  const std::string& note = halves->methods()[0].note;
  EXPECT_EQ(note.find("1 of 2 KV caches of 'forward' are not f16: delegate 0 value "), 0U) << note;
  EXPECT_NE(note.find("(f32 [1, 16, 2, 8]) is also used by aten.relu.default (delegate 0, node "),
            std::string::npos)
      << note;
  expect_near(run(*halves, 4), run(*plain, 4));
  EXPECT_EQ(run(*halves, 7, 1), run(*plain, 7, 1));
}

TEST(KvCache, WhereThereIsNoneTheReasonIsSaid) {
  const auto load = [](std::string_view name, DType type) {
    return Session::load(program::testing::fixture_path(name),
                         {.device = device(), .kv_cache = type});
  };
  const auto expect = [&](std::string_view name, DType type, Code code, std::string_view text) {
    const auto session = load(name, type);
    ASSERT_FALSE(session.ok()) << name;
    EXPECT_EQ(session.status().code(), code) << session.status().message();
    EXPECT_NE(session.status().message().find(text), std::string_view::npos)
        << session.status().message();
  };
  constexpr DType kF16 = DType::kF16;
  expect("state/cache.pte", kF16, Code::kUnsupported,
         "cache.pte: no KV cache can be f16: value 0 (f32 [");
  expect("state/cache.pte", kF16, Code::kUnsupported, "), which takes no KV cache");
  expect("ops/add.pte", kF16, Code::kUnsupported,
         "add.pte: no KV cache can be f16: the program has none");
  expect("llm/qwen3_like_q4.pte", DType::kI8, Code::kInvalidArgument,
         "kv_cache: expected f32 or f16, got i8");
  EXPECT_TRUE(load("state/cache.pte", DType::kF32).ok()) << "it is f32 as it is";
}

}  // namespace
}  // namespace pteryx::testing
