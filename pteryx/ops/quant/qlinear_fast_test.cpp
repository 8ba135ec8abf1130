// Linear layers with threads and vectors: what only they have. That their results are right is
// tested with every other kernel of linear layers.
// SPDX-License-Identifier: BSD-3-Clause
#include <cmath>
#include <limits>
#include <numeric>

#include <gtest/gtest.h>

#include "pteryx/ops/testing/op_runner.h"
#include "pteryx/ops/testing/quantised_weight.h"

namespace pteryx::ops::testing {
namespace {

constexpr DType kF32 = DType::kF32;

// Layers with one x whose weights are joined, and where a case has them.
struct Joined {
  std::string op;
  int64_t m, k;
  std::vector<int64_t> widths;
  bool blocks = false;    // scales of 4 bits in f16, of eight columns together
  bool minimums = false;  // of 4 bits

  bool four() const { return op == "pteryx.linear_q4gsw"; }
  bool floats() const { return op == "pteryx.linear"; }
  int64_t n() const { return std::accumulate(widths.begin(), widths.end(), int64_t{0}); }
  static constexpr int64_t kGroup = 32;
  static constexpr uint32_t kWeightArg = 3;
  static constexpr uint32_t kScalesArg = 4;
  static constexpr uint32_t kMinimumsArg = 6;
};

Case call(const Joined& j, const TestTensor& x) {
  Case c(j.op);
  c.in(x).none().none();
  if (j.floats()) {
    c.constant(random(kF32, {j.n(), j.k}, 2)).none();
  } else if (j.four()) {
    const QuantisedWeight w(j.n(), j.k, -8, 7);
    const int64_t groups = j.k / Joined::kGroup;
    c.constant(w.nibbles(j.k / 2, true))
        .constant(j.blocks ? random(DType::kF16, {j.n() / 8, groups, 8}, 3, 0.01, 0.05)
                           : random(kF32, {groups, j.n()}, 3, 0.01, 0.05))
        .integer(Joined::kGroup);
    if (!j.minimums) {
      c.none();
    } else if (j.blocks) {
      c.constant(random(DType::kF16, {j.n() / 8, groups, 8}, 4, -0.1, 0.1));
    } else {
      c.constant(random(kF32, {groups, j.n()}, 4, -0.1, 0.1));
    }
    c.none();
  } else {
    const QuantisedWeight w(j.n(), j.k, -100, 100);
    c.constant(w.bytes()).constant(random(kF32, {j.n()}, 3, 0.001, 0.003)).none();
  }
  c.none().none().none().ints(j.widths);
  std::vector<TestTensor> outs;
  for (const int64_t width : j.widths) outs.push_back({kF32, {1, j.m, width}, {}});
  return c.outs(outs);
}

// Rows of a constant, cut as the layers are: each of them lies somewhere else.
using Places = std::vector<std::vector<std::byte>>;
Places cut_rows(const std::vector<std::byte>& all, const Joined& j) {
  const size_t row = all.size() / static_cast<size_t>(j.n());
  Places places;
  size_t at = 0;
  for (const int64_t width : j.widths) {
    const auto* const from = all.data() + at;
    places.emplace_back(from, from + static_cast<size_t>(width) * row);
    at += static_cast<size_t>(width) * row;
  }
  return places;
}

// Scales [groups, n] as those of each layer, [groups, width], and the ranges that make up the rows.
Places cut_columns(const std::vector<std::byte>& all, const Joined& j, std::vector<Bytes>& ranges) {
  const auto groups = static_cast<size_t>(j.k / Joined::kGroup);
  Places places(j.widths.size());
  size_t at = 0;
  for (size_t group = 0; group < groups; ++group) {
    for (size_t i = 0; i < j.widths.size(); ++i) {
      const size_t bytes = static_cast<size_t>(j.widths[i]) * sizeof(float);
      places[i].insert(places[i].end(), all.data() + at, all.data() + at + bytes);
      at += bytes;
    }
  }
  for (size_t group = 0; group < groups; ++group) {
    for (size_t i = 0; i < j.widths.size(); ++i) {
      const size_t bytes = static_cast<size_t>(j.widths[i]) * sizeof(float);
      ranges.push_back(Bytes(places[i]).subspan(group * bytes, bytes));
    }
  }
  return places;
}

std::vector<Bytes> views(const Places& places) { return {places.begin(), places.end()}; }

std::vector<TestTensor> run_fast(Runner& r) {
  auto got = r.run_cpu(Where::kFast);
  EXPECT_TRUE(got.ok()) << got.status().message();
  EXPECT_TRUE(r.was_fast);
  return got.ok() ? *std::move(got) : std::vector<TestTensor>();
}

void expect_same_in_parts(const Joined& j) {
  SCOPED_TRACE(fmt::format("{} m {} k {}", j.op, j.m, j.k));
  const Case c = call(j, random(kF32, {1, j.m, j.k}, 1, -1, 1));
  for (const Precision precision : {Precision::kF32, Precision::kF16}) {
    Runner whole;
    ASSERT_TRUE(whole.build(c).ok());
    whole.precision = precision;
    const std::vector<TestTensor> want = run_fast(whole);
    Runner apart;
    ASSERT_TRUE(apart.build(c).ok());
    apart.precision = precision;
    const auto bytes_of = [&](size_t arg, uint32_t& id) {
      id = graph::index(apart.g.nodes[0].args[arg]);
      const TestTensor& t = apart.inputs.at(id);
      return encode(t, t.dtype);
    };
    uint32_t weight = 0;
    const Places weights = cut_rows(bytes_of(Joined::kWeightArg, weight), j);
    apart.parts[weight] = views(weights);
    Places scales;
    Places minimums;
    if (j.minimums && !j.blocks) {
      uint32_t id = 0;
      const std::vector<std::byte> all = bytes_of(Joined::kMinimumsArg, id);
      minimums = cut_columns(all, j, apart.parts[id]);
    }
    if (!j.floats() && !j.blocks) {
      uint32_t id = 0;
      const std::vector<std::byte> all = bytes_of(Joined::kScalesArg, id);
      if (j.four()) {
        scales = cut_columns(all, j, apart.parts[id]);
      } else {
        scales = cut_rows(all, j);
        apart.parts[id] = views(scales);
      }
    }
    EXPECT_EQ(compare(run_fast(apart), want, kExact), "");
  }
}

TEST(QLinearFast, WeightsInPartsGiveTheSameBits) {
  for (const std::string op : {"pteryx.linear_q4gsw", "pteryx.linear_q8", "pteryx.linear"}) {
    for (const int64_t m : {1, 3, 20}) {
      expect_same_in_parts({op, m, 96, {64, 20, 4}});
      expect_same_in_parts({op, m, 320, {200, 132}});
    }
  }
  for (const int64_t m : {1, 3, 20}) {
    expect_same_in_parts({"pteryx.linear_q4gsw", m, 96, {64, 24, 8}, true});
    expect_same_in_parts({"pteryx.linear_q4gsw", m, 96, {64, 24, 8}, true, true});
    expect_same_in_parts({"pteryx.linear_q4gsw", m, 320, {64, 20, 4}, false, true});
  }
}

TEST(QLinearFast, ScalesInBlocksAndMinimumsGiveWhatTheReferenceGives) {
  for (const auto& [blocks, minimums] : {std::pair(true, false), {true, true}, {false, true}}) {
    for (const int64_t m : {1, 3, 20}) {
      const Joined j{"pteryx.linear_q4gsw", m, 160, {64, 24}, blocks, minimums};
      const Case c = call(j, random(kF32, {1, m, j.k}, 1, -1, 1));
      const auto want = run(c, Where::kCpu);
      ASSERT_TRUE(want.ok()) << want.status().message();
      Runner r;
      ASSERT_TRUE(r.build(c).ok());
      EXPECT_EQ(compare(run_fast(r), *want, quantised_tolerance(kF32)), "") << m;
    }
  }
}

// In f32 a row of x with an infinity gives what plain loops give; at f16 precision codes make it
// NaN. Rows beside it know nothing of it.
TEST(QLinearFast, CarriesInfinities) {
  for (const std::string op : {"pteryx.linear_q4gsw", "pteryx.linear_q8", "pteryx.linear"}) {
    for (const int64_t m : {3, 9}) {
      const Joined j{op, m, 64, {12}};
      TestTensor x = random(kF32, {1, m, 64}, 1, -1, 1);
      x.data[64 + 40] = std::numeric_limits<double>::infinity();
      const Case c = call(j, x);
      auto want = run(c, Where::kCpu);
      ASSERT_TRUE(want.ok()) << want.status().message();
      EXPECT_EQ(compare_fast(c, *want, quantised_tolerance(kF32)), "") << op;
      for (size_t i = 12; i < 24 && !j.floats(); ++i) (*want)[0].data[i] = NAN;
      EXPECT_EQ(compare_fast(c, *want, quantised_tolerance(DType::kF16), Precision::kF16), "")
          << op;
    }
  }
}

// What it leaves to the reference: scales in blocks, of f32, and groups that are no multiples
// of 32.
TEST(QLinearFast, LeavesSomeCallsToTheReference) {
  const QuantisedWeight w(8, 64, -8, 7);
  const auto grouped = [&](int64_t group, TestTensor scales) {
    Case c("et_vk.linear_q4gsw.default");
    c.in(random(kF32, {2, 64}, 1))
        .constant(w.nibbles(32, true))
        .in(std::move(scales))
        .integer(group)
        .none();
    return c.out(kF32, {2, 8});
  };
  EXPECT_TRUE(is_fast(grouped(32, random(kF32, {2, 8}, 2))));
  EXPECT_TRUE(is_fast(grouped(64, random(kF32, {1, 8}, 2))));
  EXPECT_FALSE(is_fast(grouped(16, random(kF32, {4, 8}, 2))));
  EXPECT_TRUE(is_fast(grouped(32, random(DType::kF16, {1, 2, 8}, 2))));
  EXPECT_FALSE(is_fast(grouped(32, random(kF32, {1, 2, 8}, 2))));
}

}  // namespace
}  // namespace pteryx::ops::testing
