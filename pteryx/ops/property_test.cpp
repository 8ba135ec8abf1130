// Every family of operators against a plain reference, over calls drawn at random. A failing call
// prints its seed; PTERYX_SEED=n draws that call alone, for every family.
// SPDX-License-Identifier: BSD-3-Clause
#include <cstdlib>
#include <optional>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "pteryx/ops/table.h"
#include "pteryx/ops/testing/draw.h"
#include "pteryx/ops/testing/workgroup.h"

namespace pteryx::ops::testing {
namespace {

constexpr uint32_t kCalls = 200;  // per family, at least
constexpr uint32_t kFirstSeed = 1;

// Why an operator of the table has no random calls here.
struct Exception {
  std::string_view op;
  std::string_view reason;
};
constexpr Exception kWithout[] = {
    {"executorch_prim::et_copy_index.tensor", "runs on the CPU only; CopyIndex tests"},
    {"pteryx.remember", "Sample tests, against the definition"},
    {"pteryx.sample", "draws: Sample tests compare frequencies and every setting"},
    {"aten.masked_scatter.default", "runs on the CPU only; Put tests"},
    {"pteryx.view", "takes its dims from the file, which the harness makes larger; Views tests"},
    {"pteryx.linear_q4gsw", "the kernels of et_vk.linear_q4gsw with other results; QLinear tests"},
    {"pteryx.linear", "the kernels of aten.linear with other results; Linear tests"},
    {"pteryx.linear_rope", "the same with caches; Linear tests"},
    {"pteryx.embedding_parts", "takes lists that go together; EmbeddingParts tests"},
    {"pteryx.linear_q8", "the kernels of _weight_int8pack_mm with other results; QLinear tests"},
    {"pteryx.linear_q4gsw_rope", "the same with caches; QLinear tests"},
    {"pteryx.linear_q8_rope", "the same with caches; QLinear tests"},
    {"pteryx.item", "reads host memory, no kernel; LiveScalar tests"},
    {"et_vk.select_as_symint.default", "reads host memory, no kernel; LiveScalar tests"},
};

class Property : public ::testing::TestWithParam<Generator> {};

TEST_P(Property, GpuMatchesReference) {
  const Generator& g = GetParam();
  const auto call = [&](uint32_t seed) {
    Draw d(seed);
    const std::string_view op = g.ops[seed % g.ops.size()];
    const Drawn drawn = g.draw(op, d);
    const std::string wrong = check(drawn, d);
    if (wrong.empty()) return true;
    ADD_FAILURE() << "PTERYX_SEED=" << seed << " " << describe(drawn.call) << "\n  " << wrong;
    return false;
  };
  if (const char* seed = std::getenv("PTERYX_SEED")) {
    call(static_cast<uint32_t>(std::strtoul(seed, nullptr, 10)));
    return;
  }
  // Every operator of the family gets its turn; a broken kernel is told a few times, not hundreds.
  const auto calls = std::max<uint32_t>(kCalls, static_cast<uint32_t>(g.ops.size()) * 2);
  int failures = 0;
  for (uint32_t i = 0; i < calls && failures < 5; ++i) failures += call(kFirstSeed + i) ? 0 : 1;
}

INSTANTIATE_TEST_SUITE_P(, Property, ::testing::ValuesIn(every_generator()),
                         [](const auto& test) { return std::string(test.param.family); });

// Every WebGPU device has workgroups of 256; no kernel asks for more where the device has no more.
// Those that fold long rows in large workgroups follow smaller limits as well.
TEST_P(Property, SmallWorkgroupsGiveTheSameResults) {
  const Generator& g = GetParam();
  const std::set<std::string_view> folds = {"ChooseQparams", "Matmul",  "Norm",   "QLinear",
                                            "Reduce",        "RmsNorm", "Softmax"};
  for (uint32_t seed = 1001; seed <= 1012; ++seed) {
    Draw d(seed);
    const Drawn drawn = g.draw(g.ops[seed % g.ops.size()], d);
    const auto want =
        drawn.want ? Result<std::vector<TestTensor>>(*drawn.want) : run(drawn.call, Where::kCpu);
    ASSERT_TRUE(want.ok()) << want.status().message();
    const uint32_t limit = !folds.contains(g.family) ? 256 : (seed % 2 == 0 ? 64 : 128);
    const auto got = run_within(drawn.call, limit);
    ASSERT_TRUE(got.ok()) << describe(drawn.call) << ": " << got.status().message();
    EXPECT_EQ(compare(*got, *want, drawn.tolerance), "") << describe(drawn.call);
  }
}

// Routes that this GPU cannot take, too: planning needs no GPU.
TEST_P(Property, EveryRouteCanBePlanned) {
  const Generator& g = GetParam();
  for (uint32_t seed = kFirstSeed; seed < kFirstSeed + kCalls; ++seed) {
    Draw d(seed);
    const Drawn drawn = g.draw(g.ops[seed % g.ops.size()], d);
    const auto plans = plan_all(drawn.call);
    ASSERT_TRUE(plans.ok()) << describe(drawn.call) << ": " << plans.status().message();
  }
}

// What a symbolic operator gives for 32-bit operands; nothing where it must refuse.
std::optional<int64_t> symbolic(std::string_view op, int64_t a, int64_t b) {
  if (op == "floordiv" && b == 0) return std::nullopt;
  int64_t v = op == "add" ? a + b : (op == "sub" ? a - b : a * b);
  if (op == "floordiv") {
    v = a / b;
    while (v * b > a && b > 0) --v;
    while (v * b < a && b < 0) --v;
  }
  if (v < INT32_MIN || v > INT32_MAX) return std::nullopt;
  return v;
}

TEST(ScalarProperty, SymbolicArithmeticMatchesReference) {
  Draw d(kFirstSeed);
  for (int i = 0; i < 1000; ++i) {
    const auto op = d.pick<std::string>({"add", "sub", "mul", "floordiv"});
    const auto operand = [&] {
      return d.chance(0.2) ? d.pick<int64_t>({INT32_MIN, -1, 0, 1, INT32_MAX})
                           : d.integer(-70000, 70000);
    };
    const int64_t a = operand();
    const int64_t b = operand();
    Case call(op);
    call.live(a);
    d.chance(0.5) ? call.live(b) : call.integer(b);
    const auto got = run_scalar(call.scalar_out());
    const std::optional<int64_t> want = symbolic(op, a, b);
    ASSERT_EQ(got.ok(), want.has_value()) << describe(call);
    if (want) {
      ASSERT_EQ(got->i, *want) << describe(call);
    }
  }
}

TEST(PropertyTable, EveryOperatorHasAGeneratorOrAReason) {
  std::set<std::string_view> drawn;
  for (const Generator& g : every_generator()) {
    for (const std::string_view op : g.ops) {
      EXPECT_TRUE(drawn.insert(op).second) << op << " is in two generators";
    }
  }
  for (const auto& [op, reason] : kWithout) {
    EXPECT_TRUE(drawn.insert(op).second) << op << " has a generator and a reason to have none";
  }
  for (const OpDef& def : all_ops()) {
    if (def.op_class == OpClass::kScalar) continue;  // host arithmetic: ScalarProperty
    EXPECT_EQ(drawn.erase(def.name), 1U) << def.name << " has no generator";
  }
  for (const std::string_view op : drawn) ADD_FAILURE() << op << " is not in the table";
}

TEST(PropertyTable, EveryOperatorHasAShapeRule) {
  for (const OpDef& def : all_ops()) {
    EXPECT_TRUE(def.shape != nullptr || def.op_class == OpClass::kItem) << def.name;
    EXPECT_TRUE(def.plan != nullptr || def.cpu != nullptr || def.op_class == OpClass::kScalar ||
                def.op_class == OpClass::kItem)
        << def.name << " runs nowhere";
  }
}

}  // namespace
}  // namespace pteryx::ops::testing
