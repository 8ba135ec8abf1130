// Runs on the CPU that give the thread back now and then.
// SPDX-License-Identifier: BSD-3-Clause
#include <vector>

#include <gtest/gtest.h>

#include "pteryx/gpu/cpu_device.h"
#include "pteryx/session/testing/graphs.h"

namespace pteryx {
namespace {

using graph::ValueId;
using testing::GraphDraft;
using testing::LoadedGraph;

constexpr int64_t kElements = int64_t{1} << 20;
constexpr int kNodes = 200;  // more than a gigabyte through memory

// x + 1 + 1 ...
graph::Graph long_chain() {
  GraphDraft d;
  d.g.method = "forward";
  const ValueId x = d.tensor({kElements});
  const ValueId one = d.value(int64_t{1});
  ValueId last = x;
  for (int i = 0; i < kNodes; ++i) {
    const ValueId y = d.tensor({kElements});
    d.call("aten.add.Scalar", {last, one, one, y});
    last = y;
  }
  d.g.inputs = {x};
  d.g.outputs = {last};
  return std::move(d.g);
}

class Turns : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(loaded_.status().ok()) << loaded_.status().message();
  }
  Result<uint64_t> begin(bool in_turns) {
    return runner().begin({.inputs = inputs_,
                           .state = &loaded_.method().states().state(),
                           .in_turns = in_turns});
  }
  exec::Runner& runner() { return loaded_.method().runner(); }

  LoadedGraph loaded_{long_chain(), {}, "", gpu::cpu_device()};
  std::vector<float> x_ = std::vector<float>(kElements, 0.5F);
  std::vector<Value> inputs_ = {tensor<float>({kElements}, x_)};
};

TEST_F(Turns, ALongRunTakesSeveralAndGivesTheSame) {
  for (const bool in_turns : {true, false}) {
    ASSERT_TRUE(begin(in_turns).ok());
    int turns = 0;
    for (;;) {
      const auto finished = runner().advance();
      ASSERT_TRUE(finished.ok()) << finished.status().message();
      ++turns;
      if (*finished) break;
    }
    if (in_turns) {
      EXPECT_GT(turns, 1);
    } else {
      EXPECT_EQ(turns, 1);
    }
    EXPECT_EQ(runner().outputs()[0].tensor()->as<float>()[kElements - 1], kNodes + 0.5F);
  }
}

TEST_F(Turns, BetweenThemARunCanBeCancelled) {
  const auto number = begin(true);
  ASSERT_TRUE(number.ok());
  const auto finished = runner().advance();
  ASSERT_TRUE(finished.ok());
  EXPECT_FALSE(*finished);
  runner().cancel(*number);
  EXPECT_FALSE(runner().is_running());
  EXPECT_TRUE(begin(false).ok());
  const auto next = runner().advance();
  ASSERT_TRUE(next.ok());
  EXPECT_TRUE(*next);
}

}  // namespace
}  // namespace pteryx
