// NaN, infinities and denormals: what the fast kernels of the CPU make of them is what the
// reference makes of them. Calls are drawn as for the property tests.
// SPDX-License-Identifier: BSD-3-Clause
#include <cmath>
#include <functional>
#include <limits>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "pteryx/ops/testing/draw.h"
#include "pteryx/ops/testing/op_runner.h"

namespace pteryx::ops::testing {
namespace {

constexpr uint32_t kCalls = 60;  // of each family, at least

// Families of which x alone is changed: an infinite weight or scale times a code of 0, or times
// what is around an image, is anything.
const std::set<std::string_view> first_alone = {"Conv", "QLinear"};

using Tensors = std::vector<TestTensor>;
using Compare = std::function<std::string(const Tensors& got, const Tensors& want, Tolerance)>;

// Draws calls of every family that has fast kernels, changes their inputs, and compares. Gives the
// operators whose fast kernel took a call.
std::set<std::string_view> compare_kernels(const std::function<void(TestTensor&, Draw&)>& change,
                                           const Compare& compare_results) {
  std::set<std::string_view> taken;
  for (const Generator& g : every_generator()) {
    if (g.family == "Attention") continue;  // tokens that a row does not see: pteryx/cpu has tests
    const auto calls = std::max<uint32_t>(kCalls, static_cast<uint32_t>(g.ops.size()) * 4);
    for (uint32_t seed = 1; seed <= calls; ++seed) {
      Draw d(seed);
      const std::string_view op = g.ops[seed % g.ops.size()];
      const Drawn drawn = g.draw(op, d);
      Runner r;
      const Status s = r.build(drawn.call);
      EXPECT_TRUE(s.ok()) << s.message();
      if (!s.ok() || r.def->fast == nullptr) continue;
      for (auto& [id, t] : r.inputs) {
        if (is_float(t.dtype)) {
          change(t, d);
          t = round_to(t, t.dtype);
        }
        if (first_alone.contains(g.family)) break;
      }
      const auto got = r.run_cpu(Where::kFast);
      if (!r.was_fast) continue;
      taken.insert(op);
      const auto want = r.run_cpu(Where::kCpu);
      EXPECT_TRUE(got.ok() && want.ok()) << describe(drawn.call);
      if (!got.ok() || !want.ok()) continue;
      const std::string wrong = compare_results(*got, *want, drawn.tolerance);
      EXPECT_EQ(wrong, "") << op << ", seed " << seed << ": " << describe(drawn.call);
      if (!wrong.empty()) break;  // a broken kernel is told once
    }
  }
  return taken;
}

TEST(Extremes, NanAndInfinitiesAreThoseOfTheReference) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  const auto change = [&](TestTensor& t, Draw& d) {
    const auto size = static_cast<int64_t>(t.data.size());
    for (int64_t n = d.integer(0, 2); n > 0 && size > 0; --n)
      t.data[at(d.integer(0, size - 1))] = d.pick({std::nan(""), kInf, -kInf});
  };
  const auto taken = compare_kernels(change, compare);
  EXPECT_GT(taken.size(), 20U);
}

// As large as denormals of f32: to take them for 0 would be an error of their size.
TEST(Extremes, DenormalsAreNoZeros) {
  constexpr double kSmall = 1e-39;
  const auto change = [&](TestTensor& t, Draw&) {
    if (t.dtype != DType::kF32) return;
    for (double& v : t.data) v *= kSmall;
  };
  // Of small results to a thousandth; those that hang on something else as well are not small.
  const auto compare_small = [](const Tensors& got, const Tensors& want, Tolerance t) {
    for (size_t k = 0; k < want.size(); ++k) {
      for (size_t i = 0; i < want[k].data.size(); ++i) {
        const double w = want[k].data[i];
        if (std::fabs(w) < 1e-30 && std::fabs(got[k].data[i] - w) > kSmall * 1e-3)
          return fmt::format("result {} element {}: want {}, got {}", k, i, w, got[k].data[i]);
      }
    }
    return compare(got, want, t);
  };
  const auto taken = compare_kernels(change, compare_small);
  EXPECT_GT(taken.size(), 20U);
}

}  // namespace
}  // namespace pteryx::ops::testing
