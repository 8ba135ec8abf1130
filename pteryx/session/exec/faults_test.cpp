// What becomes of a run whose indices are outside their tensor, and of the runs after it.
// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/session/exec/faults.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "pteryx/gpu/native/blocking.h"
#include "pteryx/session/testing/graphs.h"

namespace pteryx {
namespace {

using graph::Tensor;
using graph::ValueId;
using testing::GraphDraft;
using testing::LoadedGraph;

gpu::Device& device() { return *gpu::shared_device(); }

enum class From : uint8_t {
  kInput,
  kSum,  // one more, computed
};

// A KV cache that index_put writes at a position: [1, capacity, 2], and all of it comes back.
constexpr int64_t kCapacity = 4;
graph::Graph cache_graph(From from) {
  GraphDraft d;
  d.g.method = "forward";
  const DType type = from == From::kSum ? DType::kI32 : DType::kI64;
  const ValueId k = d.tensor({1, 1, 2});
  ValueId position = d.value(Tensor{.dtype = type, .max = {1}});
  const ValueId cache =
      d.value(Tensor{.dtype = DType::kF32, .max = {1, kCapacity, 2}, .state = true});
  const ValueId y = d.tensor({1, kCapacity, 2});
  d.g.inputs = {k, position};
  if (from == From::kSum) {
    const ValueId next = d.value(Tensor{.dtype = type, .max = {1}});
    d.call("aten.add.Scalar", {position, d.value(int64_t{1}), d.value(int64_t{1}), next});
    position = next;
  }
  d.call("aten.index_put_.default",
         {cache, d.value(graph::ValueList{{graph::kNoValue, position}}), k, d.value(false), cache});
  d.call("aten.add.Tensor", {cache, cache, d.value(int64_t{1}), y});
  d.g.outputs = {y};
  return std::move(d.g);
}

struct CacheRuns {
  LoadedGraph& loaded;
  std::vector<float> k = {0.5F, 0.5F};
  std::vector<int64_t> position = {0};

  exec::RunRequest request(int64_t at, uint64_t outputs, std::vector<Value>& inputs) {
    position = {at};
    inputs = {tensor<float>({1, 1, 2}, k), tensor<int64_t>({1}, position)};
    return {.inputs = inputs, .state = &loaded.method().states().state(), .outputs = outputs};
  }
  Status run(int64_t at, uint64_t outputs = exec::Wanted::kAll) {
    std::vector<Value> inputs;
    PTERYX_ASSIGN([[maybe_unused]] const uint64_t number,
                  loaded.method().runner().begin(request(at, outputs, inputs)));
    return gpu::wait_until(device(), [&] { return loaded.method().runner().advance(); });
  }
  std::vector<float> contents() {
    const auto y = loaded.method().runner().outputs()[0].tensor()->as<float>();
    return {y.begin(), y.end()};
  }
};

TEST(Faults, APositionPastTheEndOfACacheIsRefusedAndChangesNothing) {
  for (const auto& on : gpu::gpu_and_cpu()) {
    LoadedGraph loaded(cache_graph(From::kInput), {}, "", on);
    ASSERT_TRUE(loaded.status().ok()) << loaded.status().message();
    CacheRuns runs{loaded};
    for (int64_t i = 0; i < kCapacity; ++i) ASSERT_TRUE(runs.run(i).ok());
    EXPECT_EQ(runs.contents(), std::vector<float>(kCapacity * 2, 1.0F));
    runs.k = {2, 2};
    const Status s = runs.run(kCapacity);
    EXPECT_EQ(s.code(), Code::kInvalidArgument);
    EXPECT_EQ(s.message(),
              "input 1 of 'forward': element 0 is 4, outside [-4, 4), dim 1 of x (value 2) in "
              "aten.index_put_.default (instruction 0)");
    runs.k = {0.5F, 0.5F};
    ASSERT_TRUE(runs.run(0).ok());
    EXPECT_EQ(runs.contents(), std::vector<float>(kCapacity * 2, 1.0F));
  }
}

TEST(Faults, OfARunThatChangedStateSaySo) {
  LoadedGraph loaded(cache_graph(From::kSum), {});
  ASSERT_TRUE(loaded.status().ok()) << loaded.status().message();
  ASSERT_TRUE(loaded.method().layout().one_stretch);
  CacheRuns runs{loaded};
  for (int64_t i = 0; i < kCapacity; ++i) ASSERT_TRUE(runs.run(i - 1).ok());
  const Status s = runs.run(kCapacity - 1);
  EXPECT_EQ(s.code(), Code::kInvalidArgument);
  EXPECT_NE(s.message().find("element 0 is 4, outside [-4, 4), dim 1 of x (value 2)"),
            std::string::npos)
      << s.message();
  EXPECT_NE(s.message().find("state such as caches was changed"), std::string::npos);
  EXPECT_EQ(s.message().find("earlier"), std::string::npos) << s.message();
  ASSERT_TRUE(runs.run(0).ok());
  EXPECT_EQ(runs.contents(), std::vector<float>(kCapacity * 2, 1.0F));  // written nowhere
}

TEST(Faults, OfRunsThatReadNothingAreReportedByTheNextThatDoes) {
  LoadedGraph loaded(cache_graph(From::kSum), {});
  ASSERT_TRUE(loaded.status().ok()) << loaded.status().message();
  CacheRuns runs{loaded};
  ASSERT_TRUE(runs.run(0).ok());
  const gpu::Counters before = device().counters();
  EXPECT_TRUE(runs.run(kCapacity, 0).ok());
  EXPECT_EQ(device().counters().reads, before.reads);
  EXPECT_TRUE(runs.run(1, 0).ok());
  const Status s = runs.run(2);
  EXPECT_EQ(s.code(), Code::kInvalidArgument);
  EXPECT_NE(s.message().find("element 0 is 5, outside [-4, 4)"), std::string::npos) << s.message();
  EXPECT_NE(s.message().find("perhaps in an earlier run, of which nothing was read"),
            std::string::npos)
      << s.message();
  EXPECT_TRUE(runs.run(2).ok());
  // Putting everything back forgets them.
  EXPECT_TRUE(runs.run(kCapacity, 0).ok());
  ASSERT_TRUE(loaded.method().runner().reset().ok());
  EXPECT_TRUE(runs.run(2).ok());
}

// token -> table[token + position], on and on: runs ahead hand reports back in place of a token.
TEST(Faults, OfRunsAheadAreReportedWithTheToken) {
  GraphDraft d;
  d.g.method = "forward";
  const auto one = [&] { return d.value(Tensor{.dtype = DType::kI32, .max = {1}}); };
  const ValueId token = one();
  const ValueId position = one();
  const ValueId sum = one();
  const ValueId next = one();
  const std::vector<int32_t> entries = {1, 0, 0, 0, 0, 0};
  const Bytes bytes = std::as_bytes(std::span(entries));
  const ValueId table =
      d.value(Tensor{.dtype = DType::kI32, .max = {6}, .data = {{0, 0, bytes.size()}}});
  d.call("aten.add.Tensor", {token, position, d.value(int64_t{1}), sum});
  d.call("aten.index_select.default", {table, d.value(int64_t{0}), sum, next});
  d.g.inputs = {token, position};
  d.g.outputs = {next};
  LoadedGraph loaded(std::move(d.g), {std::make_shared<MemorySource>("table", bytes)});
  ASSERT_TRUE(loaded.status().ok()) << loaded.status().message();
  const exec::FeedRule rule{.token_input = 0, .position_input = 1, .token_output = 0};
  auto made = loaded.method().decode_ahead(rule, 2);
  ASSERT_TRUE(made.ok()) << made.status().message();
  exec::DecodeAhead& ahead = **made;
  exec::Runner& runner = loaded.method().runner();
  ASSERT_TRUE(gpu::wait_until(device(), [&] { return ahead.advance(); }).ok());
  const std::vector<int32_t> zero = {0};
  std::vector<int32_t> at = {0};
  const auto start = [&](bool fed) -> Status {
    const Value inputs[] = {tensor<int32_t>({1}, zero), tensor<int32_t>({1}, at)};
    PTERYX_ASSIGN([[maybe_unused]] const uint64_t number,
                  runner.begin({.inputs = inputs,
                                .state = &loaded.method().states().state(),
                                .ahead = &ahead,
                                .fed = fed}));
    return gpu::wait_until(device(), [&] { return runner.advance(); });
  };
  const auto take = [&]() -> Result<int32_t> {
    std::optional<int32_t> token_there;
    PTERYX_TRY(gpu::wait_until(device(), [&]() -> Result<bool> {
      PTERYX_ASSIGN(token_there, ahead.take());
      return token_there.has_value();
    }));
    return *token_there;
  };
  for (int turn = 0; turn < 2; ++turn) {  // the second time as if nothing had been
    at = {0};
    ASSERT_TRUE(start(false).ok());
    for (int32_t i = 1; i <= 5; ++i) {
      at = {i};
      const gpu::Counters before = device().counters();
      ASSERT_TRUE(start(true).ok());
      const auto drawn = take();
      const gpu::Counters after = device().counters();
      ASSERT_TRUE(drawn.ok()) << drawn.status().message();
      EXPECT_EQ(*drawn, i == 1 ? 1 : 0);
      EXPECT_EQ(after.submits - before.submits, 1U);
      EXPECT_EQ(after.reads - before.reads, 1U);
      EXPECT_EQ(after.read_bytes - before.read_bytes, 4U);
    }
    at = {6};
    ASSERT_TRUE(start(true).ok());
    ASSERT_TRUE(take().ok());  // of position 5
    const auto bad = take();
    ASSERT_FALSE(bad.ok());
    EXPECT_EQ(bad.status().code(), Code::kInvalidArgument);
    EXPECT_NE(bad.status().message().find("element 0 is 6, outside [0, 6), dim 0 of x (value 4)"),
              std::string::npos)
        << bad.status().message();
    EXPECT_EQ(bad.status().message().find("earlier"), std::string::npos) << bad.status().message();
    EXPECT_EQ(ahead.under_way(), 0U);
  }
}

}  // namespace
}  // namespace pteryx
