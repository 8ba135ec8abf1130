// Runs on the CPU that give the thread back now and then: here after every step, so that what there
// is of turns does not depend on the machine.
// SPDX-License-Identifier: BSD-3-Clause
#include <chrono>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "pteryx/fuse/passes.h"
#include "pteryx/gpu/cpu_device.h"
#include "pteryx/graph/build.h"
#include "pteryx/program/program.h"
#include "pteryx/session/testing/graphs.h"

namespace pteryx {
namespace {

using graph::LiveScalar;
using graph::ScalarKind;
using graph::Tensor;
using graph::ValueId;
using testing::LoadedGraph;

constexpr std::chrono::milliseconds kNoTime(0);

// The first of a run, copied.
using Output = std::vector<std::byte>;
Output output_of(exec::Runner& runner) {
  const TensorView& y = *runner.outputs()[0].tensor();
  Output bytes(y.size_bytes);
  std::memcpy(bytes.data(), y.data, bytes.size());
  return bytes;
}

uint64_t begin(LoadedGraph& loaded, std::span<const Value> inputs,
               std::optional<std::chrono::milliseconds> turn) {
  const auto number = loaded.method().runner().begin(
      {.inputs = inputs, .state = &loaded.method().states().state(), .turn = turn});
  EXPECT_TRUE(number.ok()) << number.status().message();
  return number.ok() ? *number : 0;
}

// Calls that it took.
size_t finish(exec::Runner& runner) {
  for (size_t turns = 1;; ++turns) {
    const auto finished = runner.advance();
    EXPECT_TRUE(finished.ok()) << finished.status().message();
    if (!finished.ok() || *finished) return turns;
  }
}

Output run_at_once(LoadedGraph& loaded, std::span<const Value> inputs) {
  begin(loaded, inputs, {});
  EXPECT_EQ(finish(loaded.method().runner()), 1U);
  return output_of(loaded.method().runner());
}

// Input 0 is a flag, input 1 is x, [4]: -x + 1, or relu(x) + 1 where the flag is set; in blocks of
// 1, 1 and 2 steps.
constexpr size_t kStepsOfBoth = 3;
constexpr size_t kStepsOfBranch = 1;
graph::Graph branch() {
  testing::GraphDraft d;
  d.g.method = "forward";
  d.g.has_jumps = true;
  const ValueId flag = d.value(Tensor{.dtype = DType::kBool, .max = {1}});
  const ValueId x = d.tensor({4});
  const ValueId yes = d.value(LiveScalar{.kind = ScalarKind::kBool});
  const ValueId one = d.value(int64_t{1});
  const ValueId chosen = d.tensor({4});
  const ValueId sum = d.tensor({4});
  const ValueId y = d.tensor({4});
  d.call(graph::kItemOp, {flag, yes});
  d.call("aten.neg.default", {x, chosen});
  graph::Node jump;
  jump.kind = graph::Node::Kind::kJumpFalse;
  jump.args = {yes};
  jump.target = 4;
  d.g.nodes.push_back(std::move(jump));
  d.call("aten.relu.default", {x, chosen});
  d.call("aten.add.Scalar", {chosen, one, one, sum});
  d.call("aten.abs.default", {sum, y});
  d.g.inputs = {flag, x};
  d.g.outputs = {y};
  return std::move(d.g);
}

TEST(Turns, ARunThroughSeveralBlocksGivesTheSame) {
  LoadedGraph loaded(branch(), {}, "", gpu::cpu_device());
  ASSERT_TRUE(loaded.status().ok()) << loaded.status().message();
  ASSERT_EQ(loaded.method().layout().blocks.size(), 3U);
  const std::vector<float> x = {1, -2, 3, -4};
  for (const bool yes : {true, false, true}) {
    const bool flag[] = {yes};
    const Value inputs[] = {
        TensorView{.dtype = DType::kBool, .dims = {1}, .data = flag, .size_bytes = 1},
        tensor<float>({4}, x)};
    const Output want = run_at_once(loaded, inputs);
    begin(loaded, inputs, kNoTime);
    // One more finds that there is no step left.
    EXPECT_EQ(finish(loaded.method().runner()), kStepsOfBoth + (yes ? kStepsOfBranch : 0) + 1);
    EXPECT_EQ(output_of(loaded.method().runner()), want);
  }
}

// Of the fixtures, with a prompt and steps behind it that read the caches.
class LanguageModel {
 public:
  explicit LanguageModel(const std::string& name) {
    const auto program =
        program::Program::open(std::string(PTERYX_TEST_DATA) + "/fixtures/llm/" + name + ".pte");
    EXPECT_TRUE(program.ok()) << program.status().message();
    auto graph = graph::build_graph(*program, *program->find("forward"), ops::lookup());
    EXPECT_TRUE(graph.ok()) << graph.status().message();
    fuse::run_passes(*graph, ops::lookup());
    const auto sources = program->sources();
    loaded_ = std::make_unique<LoadedGraph>(std::move(graph).value(),
                                            std::vector<SourcePtr>(sources.begin(), sources.end()),
                                            "", gpu::cpu_device());
    EXPECT_TRUE(loaded_->status().ok()) << loaded_->status().message();
  }
  exec::Runner& runner() { return loaded_->method().runner(); }
  size_t steps() { return loaded_->method().layout().blocks.front().steps.size(); }

  uint64_t begin(std::vector<int64_t> tokens, int64_t position,
                 std::optional<std::chrono::milliseconds> turn) {
    tokens_ = std::move(tokens);
    position_ = position;
    inputs_ = {tensor<int64_t>({1, static_cast<int64_t>(tokens_.size())}, tokens_),
               tensor<int64_t>({1}, std::span<const int64_t>(&position_, 1))};
    return pteryx::begin(*loaded_, inputs_, turn);
  }
  Output run(const std::vector<int64_t>& tokens, int64_t position,
             std::optional<std::chrono::milliseconds> turn = {}) {
    begin(tokens, position, turn);
    const size_t turns = finish(runner());
    EXPECT_EQ(turns, turn ? steps() + 1 : 1);
    return output_of(runner());
  }
  // A run that ends after so many turns.
  void cancel(const std::vector<int64_t>& tokens, int64_t position, size_t turns) {
    const uint64_t number = begin(tokens, position, kNoTime);
    for (size_t i = 0; i < turns; ++i) {
      const auto finished = runner().advance();
      ASSERT_TRUE(finished.ok()) << finished.status().message();
      ASSERT_FALSE(*finished);
    }
    runner().cancel(number);
    EXPECT_FALSE(runner().is_running());
  }

 private:
  std::unique_ptr<LoadedGraph> loaded_;
  std::vector<int64_t> tokens_;
  int64_t position_ = 0;
  std::vector<Value> inputs_;
};

const std::vector<int64_t> kPrompt = {3, 1, 4, 1, 5};

TEST(Turns, ALanguageModelGivesTheSame) {
  for (const char* name : {"qwen3_like_q4", "qwen2_like_fp32"}) {
    LanguageModel at_once(name);
    LanguageModel in_turns(name);
    EXPECT_GT(in_turns.steps(), 4U);
    EXPECT_EQ(in_turns.run(kPrompt, 0, kNoTime), at_once.run(kPrompt, 0)) << name;
    for (const int64_t at : {5, 6, 7})
      EXPECT_EQ(in_turns.run({at}, at, kNoTime), at_once.run({at}, at)) << name << " " << at;
  }
}

// Whatever it had written by then, the next run of the same positions gives what it would have.
TEST(Turns, BetweenThemARunCanBeCancelled) {
  LanguageModel model("qwen3_like_q4");
  const Output prompt = model.run(kPrompt, 0);
  const Output step = model.run({9}, 5);
  for (size_t turns = 0; turns <= model.steps(); ++turns) {
    model.cancel({7, 7, 7, 7, 7}, 0, turns);
    EXPECT_EQ(model.run(kPrompt, 0), prompt) << turns;
    model.cancel({8}, 5, turns);
    EXPECT_EQ(model.run({9}, 5), step) << turns;
  }
}

}  // namespace
}  // namespace pteryx
