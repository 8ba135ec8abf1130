// SPDX-License-Identifier: BSD-3-Clause
#include <cmath>

#include <gtest/gtest.h>

#include "pteryx/ops/testing/op_harness.h"

namespace pteryx::ops::testing {
namespace {

size_t at(int64_t i) { return static_cast<size_t>(i); }

// Statistics of equal groups of elements: member(i) names the group of element i.
struct Stats {
  std::vector<double> mean, rstd;
};
Stats stats(const TestTensor& x, size_t groups, double eps, bool centred,
            const std::function<size_t(size_t)>& member) {
  Stats s{std::vector<double>(groups), std::vector<double>(groups)};
  const double count = static_cast<double>(x.data.size()) / static_cast<double>(groups);
  for (size_t i = 0; i < x.data.size() && centred; ++i) s.mean[member(i)] += x.data[i] / count;
  for (size_t i = 0; i < x.data.size(); ++i)
    s.rstd[member(i)] += std::pow(x.data[i] - s.mean[member(i)], 2) / count;
  for (double& v : s.rstd) v = 1 / std::sqrt(v + eps);
  return s;
}
TestTensor normalised(const TestTensor& x, const Stats& s,
                      const std::function<size_t(size_t)>& member, const TestTensor* weight,
                      const TestTensor* bias, const std::function<size_t(size_t)>& channel) {
  TestTensor y = x;
  for (size_t i = 0; i < y.data.size(); ++i) {
    double& v = y.data[i];
    v = (v - s.mean[member(i)]) * s.rstd[member(i)];
    if (weight != nullptr) v *= weight->data[channel(i)];
    if (bias != nullptr) v += bias->data[channel(i)];
  }
  return y;
}

constexpr double kEps5 = 9.999999747378752e-06;
constexpr double kEps6 = 9.999999974752427e-07;

void check_rms(DType t, const Dims& d, double scale, double eps, Tolerance tol) {
  const TestTensor x = random(t, d, 1, -scale, scale);
  const TestTensor w = random(t, {d.back()}, 2, 0.5, 1.5);
  const auto width = at(d.back());
  const auto row = [&](size_t i) { return i / width; };
  const Stats s = stats(x, x.data.size() / width, eps, false, row);
  expect_op(Case("et_vk.rms_norm.default").in(x).in(w).number(eps).out(t, d),
            {normalised(x, s, row, &w, nullptr, [&](size_t i) { return i % width; })}, tol);
}

TEST(Norm, RmsOfEveryWidth) {
  for (const int64_t w :
       {1, 32, 48, 64, 100, 128, 130, 256, 288, 768, 896, 1024, 2048, 3072, 4096, 8192}) {
    check_rms(DType::kF32, {1, w}, 2, kEps5, {1e-5, 1e-5});
    check_rms(DType::kF32, {1, 7, w}, 2, kEps6, {1e-5, 1e-5});
  }
  check_rms(DType::kF32, {3, 17, 2, 64}, 2, kEps5, {1e-5, 1e-5});
  check_rms(DType::kF32, {2, 20000}, 2, kEps5, {1e-5, 1e-5});
}

TEST(Norm, RmsOfSmallAndLargeValues) {
  check_rms(DType::kF32, {5, 100}, 1e-4, kEps5, {1e-5, 1e-5});
  check_rms(DType::kF32, {5, 100}, 1e3, kEps6, {1e-5, 1e-5});
}

TEST(Norm, RmsOfHalves) {
  for (const Dims& d : {Dims{1, 9, 48}, Dims{3, 33}, Dims{2, 2048}})
    check_rms(DType::kF16, d, 2, 1e-5, {2e-3, 5e-3});
}

TEST(Norm, RmsOfMoreRowsThanAGridHolds) {
  check_rms(DType::kF32, {70000, 4}, 2, kEps5, {1e-5, 1e-5});
}

TEST(Norm, RmsWithoutEpsTakesTheStepOfFloat) {
  const TestTensor x = random(DType::kF32, {2, 8}, 1, -1e-3, 1e-3);
  const TestTensor w = make(DType::kF32, {8}, [](int64_t) { return 1.0; });
  const auto row = [](size_t i) { return i / 8; };
  const Stats s = stats(x, 2, 1.1920929e-07, false, row);
  expect_op(Case("et_vk.rms_norm.default").in(x).in(w).none().out(DType::kF32, {2, 8}),
            {normalised(x, s, row, nullptr, nullptr, row)}, {1e-5, 1e-5});
  expect_op(Case("aten.rms_norm.default").in(x).ints({8}).none().none().out(DType::kF32, {2, 8}),
            {normalised(x, s, row, nullptr, nullptr, row)}, {1e-5, 1e-5});
}

TEST(Norm, RmsRefusals) {
  const auto c = [](const Dims& x, const TestTensor& w) {
    return Case("et_vk.rms_norm.default")
        .in(random(DType::kF32, x))
        .in(w)
        .number(1e-5)
        .out(DType::kF32, x);
  };
  expect_error(c({2, 8}, random(DType::kF32, {4})),
               "weight (value 1) shape: expected [8], got [4]");
  expect_error(c({2, 8}, random(DType::kF16, {8})), "weight (value 1) type: expected f32, got f16");
  expect_error(c({0, 8}, random(DType::kF32, {8})), "zero rows");
  expect_error(c({2, 0}, random(DType::kF32, {0})), "zero width");
}

void check_layer(DType t, const Dims& d, size_t trailing, bool affine, double middle,
                 Tolerance tol) {
  const TestTensor x = random(t, d, 3, middle - 2, middle + 2);
  Dims tail;
  Dims lead = d;
  for (size_t i = d.rank() - trailing; i < d.rank(); ++i) tail.push_back(d[i]), lead[i] = 1;
  const TestTensor w = random(t, tail, 4, 0.5, 1.5);
  const TestTensor b = random(t, tail, 5);
  const size_t width = w.data.size();
  const auto row = [&](size_t i) { return i / width; };
  const auto column = [&](size_t i) { return i % width; };
  const Stats s = stats(x, at(numel(lead)), 1e-5, true, row);
  Case c("aten.native_layer_norm.default");
  c.in(x).ints({tail.begin(), tail.end()});
  affine ? c.in(w).in(b) : c.none().none();
  expect_op(c.number(1e-5).outs({{t, d, {}}, {t, lead, {}}, {t, lead, {}}}),
            {normalised(x, s, row, affine ? &w : nullptr, affine ? &b : nullptr, column),
             {t, lead, s.mean},
             {t, lead, s.rstd}},
            tol);
}

TEST(Norm, LayersOfAnyTrailingDims) {
  check_layer(DType::kF32, {2, 5, 12}, 1, true, 0, {1e-5, 1e-5});
  check_layer(DType::kF32, {2, 1, 3, 2, 4}, 1, false, 0, {1e-5, 1e-5});
  check_layer(DType::kF32, {4, 5, 13}, 2, true, 0, {1e-5, 1e-5});
  check_layer(DType::kF32, {3, 769}, 1, true, 0, {1e-5, 1e-5});
  check_layer(DType::kF32, {7}, 1, true, 0, {1e-5, 1e-5});
  check_layer(DType::kF32, {0, 12}, 1, true, 0, {1e-5, 1e-5});
  check_layer(DType::kF16, {3, 5, 12}, 1, true, 0, {1e-2, 5e-3});
  check_layer(DType::kF16, {3, 33}, 1, true, 0, {1e-2, 5e-3});
}

TEST(Norm, LayersFarFromZero) { check_layer(DType::kF32, {3, 500}, 1, true, 4000, {1e-4, 1e-5}); }

// Few long rows, cut into parts of which the last has a few elements; far from zero as well.
TEST(Norm, GroupsInPartsWithSilu) {
  const auto check = [](DType t, double middle, Tolerance tol) {
    const Dims d = {2, 4, 2052};
    const TestTensor x = random(t, d, 6, middle - 1, middle + 1);
    const TestTensor w = random(t, {4}, 7, 0.5, 1.5);
    const TestTensor b = random(t, {4}, 8);
    const auto group = [](size_t i) { return i / 4104; };
    TestTensor y = normalised(x, stats(x, 4, 1e-5, true, group), group, &w, &b,
                              [](size_t i) { return i / 2052 % 4; });
    for (double& v : y.data) v /= 1 + std::exp(-v);
    Case c("pteryx.group_norm");
    c.in(x).in(w).in(b).integer(2).integer(4).integer(2052).integer(2).number(1e-5);
    expect_op(c.text("silu").out(t, d), {y}, tol);
  };
  check(DType::kF32, 0, {1e-5, 1e-5});
  check(DType::kF32, 500, {2e-4, 1e-4});
  check(DType::kF16, 0, {1e-2, 5e-3});
  expect_error(Case("pteryx.group_norm")
                   .in(random(DType::kF32, {1, 2, 4}))
                   .none()
                   .none()
                   .integer(1)
                   .integer(2)
                   .integer(4)
                   .integer(1)
                   .number(1e-5)
                   .text("tanh")
                   .out(DType::kF32, {1, 2, 4}),
               "expected none or silu, got tanh");
}

void check_group(DType t, const Dims& d, int64_t groups, bool affine, Tolerance tol) {
  const TestTensor x = random(t, d, 6);
  const TestTensor w = random(t, {d[1]}, 7, 0.5, 1.5);
  const TestTensor b = random(t, {d[1]}, 8);
  const size_t inner = x.data.size() / at(d[0] * d[1]);
  const size_t size = at(d[1] / groups) * inner;
  const auto row = [&](size_t i) { return i / size; };
  const auto channel = [&](size_t i) { return i / inner % at(d[1]); };
  const Stats s = stats(x, at(d[0] * groups), 1e-5, true, row);
  Case c("aten.native_group_norm.default");
  affine ? c.in(x).in(w).in(b) : c.in(x).none().none();
  c.integer(99).integer(99).integer(99).integer(groups).number(
      1e-5);  // the file's sizes are not the live ones
  const Dims per{d[0], groups};
  expect_op(c.outs({{t, d, {}}, {t, per, {}}, {t, per, {}}}),
            {normalised(x, s, row, affine ? &w : nullptr, affine ? &b : nullptr, channel),
             {t, per, s.mean},
             {t, per, s.rstd}},
            tol);
}

TEST(Norm, GroupsOfAnyRank) {
  check_group(DType::kF32, {2, 6, 3, 5}, 3, true, {1e-5, 1e-5});
  check_group(DType::kF32, {2, 6, 7}, 2, true, {1e-5, 1e-5});
  check_group(DType::kF32, {3, 4}, 2, false, {1e-5, 1e-5});
  check_group(DType::kF32, {1, 8, 20, 19}, 1, true, {1e-5, 1e-5});
  check_group(DType::kF16, {2, 6, 3, 5}, 3, true, {1e-2, 5e-3});
  expect_error(
      Case("aten.native_group_norm.default")
          .in(random(DType::kF32, {1, 5, 2}))
          .none()
          .none()
          .integer(1)
          .integer(5)
          .integer(2)
          .integer(2)
          .number(1e-5)
          .outs(
              {{DType::kF32, {1, 5, 2}, {}}, {DType::kF32, {1, 2}, {}}, {DType::kF32, {1, 2}, {}}}),
      "5 channels do not make 2 groups");
}

TEST(Norm, BatchByItsOwnStatistics) {
  for (const Dims& d : {Dims{3, 4, 5}, Dims{5, 3}, Dims{2, 3, 20, 21}}) {
    const TestTensor x = random(DType::kF32, d, 9);
    const TestTensor w = random(DType::kF32, {d[1]}, 10);
    const TestTensor b = random(DType::kF32, {d[1]}, 11);
    const size_t inner = x.data.size() / at(d[0] * d[1]);
    const auto channel = [&](size_t i) { return i / inner % at(d[1]); };
    const Stats s = stats(x, at(d[1]), 1e-5, true, channel);
    const Dims per{d[1]};
    expect_op(Case("aten._native_batch_norm_legit.no_stats")
                  .in(x)
                  .in(w)
                  .in(b)
                  .flag(true)
                  .number(0.1)
                  .number(1e-5)
                  .outs({{DType::kF32, d, {}}, {DType::kF32, per, {}}, {DType::kF32, per, {}}}),
              {normalised(x, s, channel, &w, &b, channel),
               {DType::kF32, per, s.mean},
               {DType::kF32, per, s.rstd}},
              {1e-5, 1e-5});
  }
}

TEST(Norm, BatchByStoredStatistics) {
  for (const DType t : {DType::kF32, DType::kF16}) {
    for (const Dims& d :
         {Dims{2, 3, 4, 5}, Dims{3, 5}, Dims{1, 4, 7}, Dims{2, 3, 2, 2, 3}, Dims{0, 3, 4}}) {
      const TestTensor x = random(t, d, 12);
      const TestTensor w = random(t, {d[1]}, 13);
      const TestTensor mean = random(t, {d[1]}, 14);
      const TestTensor variance = random(t, {d[1]}, 15, 0.5, 2);
      Stats s{mean.data, variance.data};
      for (double& v : s.rstd) v = 1 / std::sqrt(v + 1e-3);
      int64_t inner = 1;
      for (size_t i = 2; i < d.rank(); ++i) inner *= d[i];
      const auto channel = [&](size_t i) { return i / at(inner) % at(d[1]); };
      expect_op(Case("aten._native_batch_norm_legit_no_training.default")
                    .in(x)
                    .in(w)
                    .none()
                    .in(mean)
                    .in(variance)
                    .number(0.1)
                    .number(1e-3)
                    .outs({{t, d, {}}, {t, {0}, {}}, {t, {0}, {}}}),
                {normalised(x, s, channel, &w, nullptr, channel)},
                t == DType::kF16 ? Tolerance{2e-3, 5e-3} : Tolerance{1e-5, 1e-5});
    }
  }
}

}  // namespace
}  // namespace pteryx::ops::testing
