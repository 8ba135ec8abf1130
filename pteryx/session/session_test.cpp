// Whole sessions over the committed programs. SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cmath>
#include <cstring>
#include <thread>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "pteryx/base/testing/allocations.h"
#include "pteryx/gpu/cpu_device.h"
#include "pteryx/gpu/device.h"
#include "pteryx/gpu/testing/compute.h"
#include "pteryx/pteryx.h"

namespace pteryx {
namespace {

std::string program(const std::string& name) {
  return std::string(PTERYX_TEST_DATA) + "/fixtures/ops/" + name + ".pte";
}

const std::shared_ptr<gpu::Device>& device() { return gpu::shared_device(); }

Result<Session> load(const std::string& name, LoadOptions options = {}) {
  options.device = device();
  return Session::load(program(name), options);
}

std::vector<float> ramp(size_t n) {
  std::vector<float> v(n);
  for (size_t i = 0; i < n; ++i) v[i] = static_cast<float>(i % 17) * 0.25F - 2.0F;
  return v;
}

void expect_message(const Status& s, Code code, std::string_view text) {
  EXPECT_EQ(s.code(), code) << s.message();
  EXPECT_NE(s.message().find(text), std::string_view::npos) << s.message();
}

TEST(Session, SecondRunOfAStaticGraphCostsItsSubmitsAndNothingElse) {
  auto session = load("net_vit");
  ASSERT_TRUE(session.ok()) << session.status().message();
  std::vector<float> x = ramp(1 * 3 * 32 * 32);
  const Value inputs[] = {tensor<float>({1, 3, 32, 32}, x)};
  ASSERT_TRUE(session->run("forward", inputs).ok());
  const uint64_t writes = device()->counters().writes;
  ASSERT_TRUE(session->run("forward", inputs).ok());
  EXPECT_EQ(device()->counters().writes, writes);  // the GPU has these inputs already
  for (float& v : x) v += 1;
  const gpu::Counters before = device()->counters();
  testing::AllocationCount count;
  const bool ok = session->run("forward", inputs).ok();
  const int allocated = count.stop();
  const gpu::Counters after = device()->counters();
  ASSERT_TRUE(ok);
  EXPECT_EQ(allocated, 0);
  // What an idle GPU starts on, and the rest.
  EXPECT_EQ(after.submits - before.submits, 2U);
  EXPECT_EQ(after.passes - before.passes, 2U);
  EXPECT_EQ(after.writes - before.writes, 1U);
  EXPECT_EQ(after.write_bytes - before.write_bytes, x.size() * 4);
  EXPECT_EQ(after.pipelines_created, before.pipelines_created);
  EXPECT_EQ(after.bind_groups_created, before.bind_groups_created);
  EXPECT_EQ(after.buffers_created, before.buffers_created);
  EXPECT_EQ(after.read_bytes - before.read_bytes, 40U);
}

// A language model from the committed programs: forward(tokens [1, S], position [1]) -> logits.
class Model {
 public:
  explicit Model(const std::string& name, LoadOptions options = {}) {
    if (options.device == nullptr) options.device = device();
    auto loaded =
        Session::load(std::string(PTERYX_TEST_DATA) + "/fixtures/llm/" + name + ".pte", options);
    if (loaded.ok()) session_ = std::make_unique<Session>(std::move(*loaded));
  }
  bool ok() const { return session_ != nullptr; }
  Session& session() { return *session_; }
  const MethodInfo& info() const {
    return *std::ranges::find(session_->methods(), "forward", &MethodInfo::name);
  }
  Result<std::span<const Value>> run(const std::vector<int64_t>& tokens, int64_t position) {
    position_ = position;
    const Value inputs[] = {tensor<int64_t>({1, static_cast<int64_t>(tokens.size())}, tokens),
                            tensor<int64_t>({1}, std::span<const int64_t>(&position_, 1))};
    return session_->run("forward", inputs);
  }
  std::vector<float> logits(const std::vector<int64_t>& tokens, int64_t position) {
    const auto outputs = run(tokens, position);
    if (!outputs.ok()) return {};
    const auto y = outputs->front().tensor()->as<float>();
    return {y.begin(), y.end()};
  }

 private:
  std::unique_ptr<Session> session_;
  int64_t position_ = 0;
};

struct Cost {
  gpu::Counters before = device()->counters();
  testing::AllocationCount count;
  // What happened since.
  void expect_one_submit() {
    const int allocated = count.stop();
    const gpu::Counters after = device()->counters();
    EXPECT_EQ(allocated, 0);
    EXPECT_EQ(after.submits - before.submits, 1U);
    EXPECT_EQ(after.passes - before.passes, 1U);
    EXPECT_LE(after.writes - before.writes, 1U);
    EXPECT_EQ(after.pipelines_created, before.pipelines_created);
    EXPECT_EQ(after.bind_groups_created, before.bind_groups_created);
    EXPECT_EQ(after.buffers_created, before.buffers_created);
  }
};

TEST(Session, ADecodeStepCostsOneSubmitOneWriteAndNothingElse) {
  for (const char* name : {"qwen3_like_q4", "qwen2_like_fp32"}) {
    Model model(name);
    ASSERT_TRUE(model.ok());
    ASSERT_FALSE(model.logits({1, 2, 3, 4, 5}, 0).empty());
    ASSERT_FALSE(model.logits({6}, 5).empty());
    const std::vector<int64_t> token = {7};
    for (int64_t position = 6; position < 30; ++position) {
      SCOPED_TRACE(fmt::format("{} at position {}", name, position));
      Cost cost;
      const bool ok = model.run(token, position).ok();
      cost.expect_one_submit();
      ASSERT_TRUE(ok);
    }
  }
}

TEST(Session, KnownPrefillLengthsAreCacheHits) {
  Model model("qwen3_like_q4");
  ASSERT_TRUE(model.ok());
  const std::vector<int64_t> five = {1, 2, 3, 4, 5};
  const std::vector<int64_t> nine = {9, 8, 7, 6, 5, 4, 3, 2, 1};
  ASSERT_TRUE(model.run(five, 0).ok());
  ASSERT_TRUE(model.run(nine, 5).ok());
  int64_t position = 14;
  for (const auto& tokens : {five, nine, five, five, nine}) {
    Cost cost;
    const bool ok = model.run(tokens, position).ok();
    cost.expect_one_submit();
    ASSERT_TRUE(ok);
    position += static_cast<int64_t>(tokens.size());
  }
}

TEST(Session, TokenIdsOutsideTheVocabularyAreRefused) {
  Model model("qwen3_like_q4");
  ASSERT_TRUE(model.ok());
  const std::vector<float> want = model.logits({1, 2, 3}, 0);
  const auto vocabulary = static_cast<int64_t>(want.size());
  for (const int64_t bad : {int64_t{-1}, vocabulary, int64_t{1} << 31, int64_t{1} << 40}) {
    const gpu::Counters before = device()->counters();
    expect_message(model.run({1, bad, 3}, 0).status(), Code::kInvalidArgument,
                   fmt::format("input 0 of 'forward': element 1 is {}", bad));
    EXPECT_EQ(device()->counters().submits, before.submits);
    EXPECT_EQ(model.logits({1, 2, 3}, 0), want);
  }
}

TEST(Session, FusedOperatorsGiveWhatTheirPartsGive) {
  for (const char* name : {"qwen3_like_q4", "qwen2_like_fp32"}) {
    Model fused(name);
    Model plain(name, {.testing = {.fuse = false}});
    ASSERT_TRUE(fused.ok() && plain.ok());
    int64_t position = 0;
    for (const auto& tokens : {std::vector<int64_t>{3, 1, 4, 1, 5}, {9}, {2, 6}}) {
      const gpu::Counters start = device()->counters();
      const std::vector<float> got = fused.logits(tokens, position);
      const gpu::Counters middle = device()->counters();
      const std::vector<float> want = plain.logits(tokens, position);
      EXPECT_LT(middle.dispatches - start.dispatches,
                device()->counters().dispatches - middle.dispatches);
      ASSERT_EQ(got.size(), want.size());
      for (size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], want[i], 2e-5) << i;
      position += static_cast<int64_t>(tokens.size());
    }
  }
}

TEST(Session, KvCachesOfHalvesTakeHalfTheMemory) {
  constexpr const char* kNames[] = {"qwen3_like_q4", "qwen2_like_fp32"};
  const LoadOptions kinds[] = {{},
                               {.device = gpu::cpu_device()},
                               {.device = gpu::open_or_die({.disable = "f16,subgroups"})}};
  for (size_t kind = 0; kind < std::size(kinds); ++kind) {
    for (const char* name : kNames) {
      const bool cpu = kind == 1;
      if (kind == 2 && name != kNames[0]) continue;  // shaders to compile
      SCOPED_TRACE(fmt::format("{}, kind {}", name, kind));
      LoadOptions options = kinds[kind];
      Model plain(name, options);
      options.kv_cache = DType::kF16;
      Model halves(name, options);
      ASSERT_TRUE(plain.ok() && halves.ok());
      constexpr uint64_t kState = uint64_t{4} * 160 * 2 * 32 * 4;
      EXPECT_EQ(plain.info().state_bytes, cpu ? 0 : kState);
      EXPECT_EQ(halves.info().state_bytes, plain.info().state_bytes / 2);
      EXPECT_EQ(plain.info().host_bytes - halves.info().host_bytes, cpu ? kState / 2 : 0);
      EXPECT_EQ(halves.info().note, "");
      const std::vector<float> first = halves.logits({3, 1, 4, 1, 5}, 0);
      int64_t position = 0;
      for (const auto& tokens :
           {std::vector<int64_t>{3, 1, 4, 1, 5}, {9}, {2, 6}, {5}, {3, 5, 8, 9, 7, 9, 3, 2}}) {
        const std::vector<float> want = plain.logits(tokens, position);
        const std::vector<float> got = halves.logits(tokens, position);
        ASSERT_EQ(got.size(), want.size());
        EXPECT_NE(got, want) << "nothing was rounded";
        for (size_t i = 0; i < got.size(); ++i)
          ASSERT_NEAR(got[i], want[i], 5e-3F * (1 + std::fabs(want[i]))) << position << ", " << i;
        position += static_cast<int64_t>(tokens.size());
      }
      ASSERT_TRUE(halves.session().reset().ok());
      EXPECT_EQ(halves.logits({3, 1, 4, 1, 5}, 0), first);
    }
  }
}

// Also of nodes behind the position, which no load knows: the first prompt of the longest chunk
// finds all it needs.
TEST(Session, TheShadersOfTheLargestSizesAreCompiledAtLoad) {
  auto session = load("../llm/qwen3_like_q4");
  ASSERT_TRUE(session.ok()) << session.status().message();
  const int64_t length = session->methods().front().inputs[0].dims[1];
  const std::vector<int64_t> tokens(static_cast<size_t>(length), 1);
  const int64_t zero = 0;
  const Value inputs[] = {tensor<int64_t>({1, length}, tokens),
                          tensor<int64_t>({1}, std::span<const int64_t>(&zero, 1))};
  const gpu::Counters before = device()->counters();
  const auto outputs = session->run("forward", inputs);
  ASSERT_TRUE(outputs.ok()) << outputs.status().message();
  const gpu::Counters after = device()->counters();
  EXPECT_EQ(after.pipelines_created, before.pipelines_created);
  EXPECT_EQ(after.bind_groups_created, before.bind_groups_created) << "planned again";
  EXPECT_EQ(after.buffers_created, before.buffers_created);
}

TEST(Session, EqualKernelsShareOnePipeline) {
  auto session = load("net_vit");
  ASSERT_TRUE(session.ok());
  const gpu::Counters before = device()->counters();
  auto again = load("net_vit");
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(device()->counters().pipelines_created, before.pipelines_created);
}

TEST(Session, ReleasesEverythingItMade) {
  const gpu::Counters before = device()->counters();
  {
    auto session = load("net_cnn");
    ASSERT_TRUE(session.ok()) << session.status().message();
    EXPECT_GT(device()->counters().buffers_alive, before.buffers_alive);
  }
  const gpu::Counters after = device()->counters();
  EXPECT_EQ(after.buffers_alive, before.buffers_alive);
  EXPECT_EQ(after.buffer_bytes_alive, before.buffer_bytes_alive);
  EXPECT_EQ(after.bind_groups_alive, before.bind_groups_alive);
}

TEST(Session, WrongInputsNameInputDimGotAndAllowed) {
  auto session = load("add");
  ASSERT_TRUE(session.ok());
  const std::vector<float> x = ramp(7 * 33);
  const std::vector<int64_t> ints(7 * 33);
  const TensorView good = tensor<float>({7, 33}, x);
  expect_message(session->run("backward", {}).status(), Code::kInvalidArgument,
                 "no method 'backward'");
  expect_message(session->run("forward", std::array<Value, 1>{good}).status(),
                 Code::kInvalidArgument, "takes 2 inputs, got 1");
  expect_message(session->run("forward", std::array<Value, 2>{good, Value(3.0)}).status(),
                 Code::kInvalidArgument, "input 1 of 'forward': expected a tensor, got 3");
  expect_message(
      session->run("forward", std::array<Value, 2>{good, tensor<int64_t>({7, 33}, ints)}).status(),
      Code::kInvalidArgument, "input 1 of 'forward' type: expected f32, got i64");
  expect_message(
      session->run("forward", std::array<Value, 2>{good, tensor<float>({231}, x)}).status(),
      Code::kInvalidArgument, "input 1 of 'forward' rank: expected 2 ([7, 33]), got 1 ([231])");
  expect_message(
      session->run("forward", std::array<Value, 2>{tensor<float>({7, 32}, x), good}).status(),
      Code::kInvalidArgument, "input 0 of 'forward' dim 1: expected 33, got 32 ([7, 32])");
  TensorView short_view = good;
  short_view.size_bytes = 900;
  expect_message(session->run("forward", std::array<Value, 2>{short_view, good}).status(),
                 Code::kInvalidArgument,
                 "input 0 of 'forward' size: expected 924 bytes, got 900 bytes");
  const auto outputs = session->run("forward", std::array<Value, 2>{good, good});
  ASSERT_TRUE(outputs.ok());
  EXPECT_FLOAT_EQ(outputs->front().tensor()->as<float>()[5], 2 * x[5]);
}

TEST(Session, TakesStridedAndConvertibleInputs) {
  auto session = load("add");
  ASSERT_TRUE(session.ok());
  const std::vector<float> x = ramp(7 * 33);
  std::vector<double> columns(7 * 33);  // the same matrix, column by column, in double
  for (size_t r = 0; r < 7; ++r) {
    for (size_t c = 0; c < 33; ++c) columns[c * 7 + r] = static_cast<double>(x[r * 33 + c]);
  }
  TensorView strided = tensor<double>({7, 33}, columns);
  strided.strides = {1, 7};
  const auto outputs =
      session->run("forward", std::array<Value, 2>{strided, tensor<float>({7, 33}, x)});
  ASSERT_TRUE(outputs.ok()) << outputs.status().message();
  const auto y = outputs->front().tensor()->as<float>();
  for (size_t i = 0; i < x.size(); ++i) EXPECT_FLOAT_EQ(y[i], 2 * x[i]);
}

// Their products and sums are beyond 64 bits.
TEST(Session, RefusesStridesThatReachBeyondAllMemory) {
  auto session = load("add");
  ASSERT_TRUE(session.ok());
  const std::vector<float> x = ramp(7 * 33);
  constexpr int64_t kHuge = int64_t{1} << 62U;
  for (const Dims& strides : {Dims{0, kHuge}, Dims{kHuge, kHuge}, Dims{0, kHuge / 8 + 1}}) {
    TensorView strided = tensor<float>({7, 33}, x);
    strided.strides = strides;
    const std::array<Value, 2> inputs = {strided, tensor<float>({7, 33}, x)};
    expect_message(session->run("forward", inputs).status(), Code::kInvalidArgument,
                   "input 0 of 'forward' size: expected 18446744073709551615 bytes, got 924 bytes");
  }
}

TEST(Session, RefusesWhatNeedsMoreMemoryThanAllowed) {
  LoadOptions options;
  options.memory_limit = 1000;
  const gpu::Counters before = device()->counters();
  expect_message(load("net_vit", options).status(), Code::kMemory,
                 "bytes of GPU memory, the limit is 1000");
  EXPECT_EQ(device()->counters().buffers_created, before.buffers_created);
}

TEST(Session, LoadReportsProgressAndCanBeCancelled) {
  LoadOptions options;
  std::vector<std::string> seen;
  options.progress = [&](std::string_view what, uint64_t, uint64_t) {
    seen.emplace_back(what);
    return true;
  };
  ASSERT_TRUE(load("net_vit", options).ok());
  EXPECT_EQ(seen.front(), "reading the program");
  EXPECT_EQ(seen.back(), "uploading weights");
  const gpu::Counters before = device()->counters();
  options.progress = [](std::string_view what, uint64_t, uint64_t) {
    return what != "uploading weights";
  };
  expect_message(load("net_vit", options).status(), Code::kCancelled,
                 "load cancelled while uploading weights");
  EXPECT_EQ(device()->counters().buffers_alive, before.buffers_alive);
}

TEST(Session, MissingExternalDataIsNamed) {
  expect_message(load("external_weights").status(), Code::kInvalidProgram, ".ptd");
}

TEST(Session, TwoThreadsShareADevice) {
  const std::vector<float> x = ramp(1 * 3 * 32 * 32);
  std::vector<std::vector<float>> results(2);
  std::vector<std::thread> threads;
  for (size_t t = 0; t < 2; ++t) {
    threads.emplace_back([&, t] {
      auto session = load("net_cnn");
      if (!session.ok()) return;
      const Value inputs[] = {tensor<float>({1, 3, 32, 32}, x)};
      for (int i = 0; i < 20; ++i) {
        const auto y = session->run("forward", inputs);
        if (!y.ok()) return;
        const auto scores = y->front().tensor()->as<float>();
        results[t].assign(scores.begin(), scores.end());
      }
    });
  }
  for (std::thread& t : threads) t.join();
  ASSERT_EQ(results[0].size(), 10U);
  EXPECT_EQ(results[0], results[1]);
}

TEST(Session, ForcedRoutesMustExist) {
  LoadOptions options;
  options.testing.routes = "matmul:teleport";
  expect_message(load("mm", options).status(), Code::kInvalidArgument,
                 "there is no route 'matmul:teleport'");
}

}  // namespace
}  // namespace pteryx
