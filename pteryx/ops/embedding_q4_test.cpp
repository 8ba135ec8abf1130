// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include "pteryx/ops/testing/op_harness.h"

namespace pteryx::ops::testing {
namespace {

size_t at(int64_t i) { return static_cast<size_t>(i); }

// A table of codes and how it is packed.
struct Codes {
  int64_t vocabulary, width, group;
  bool low_first = true;

  int64_t groups() const { return width / group; }
  double code(int64_t token, int64_t e) const {
    return static_cast<double>((token * 7 + e * 5 + e / 3) % 16 - 8);
  }
  TestTensor weight() const {
    return make(DType::kU8, {vocabulary, width / 2}, [&](int64_t i) {
      const int64_t token = i / (width / 2);
      const int64_t e = i % (width / 2) * 2;
      const double even = code(token, e) + 8;
      const double odd = code(token, e + 1) + 8;
      return low_first ? odd * 16 + even : even * 16 + odd;
    });
  }
};

// zeros may be empty.
TestTensor reference(const Codes& c, const TestTensor& scales, const TestTensor& zeros,
                     const TestTensor& ids, DType t) {
  Dims dims = ids.dims;
  dims.push_back(c.width);
  TestTensor y{t, dims, {}};
  for (const double id : ids.data) {
    for (int64_t e = 0; e < c.width; ++e) {
      const size_t s = at(static_cast<int64_t>(id) * c.groups() + e / c.group);
      const double zero = zeros.data.empty() ? 0.0 : zeros.data[s];
      y.data.push_back((c.code(static_cast<int64_t>(id), e) - zero) * scales.data[s]);
    }
  }
  return y;
}

TestTensor some_ids(DType t, const Dims& dims, int64_t vocabulary) {
  return make(t, dims, [&](int64_t i) {
    return i == 0 ? static_cast<double>(vocabulary - 1) : static_cast<double>(i * 3 % vocabulary);
  });
}

void check(const Codes& c, const Dims& ids_dims, DType t = DType::kF32,
           DType id_type = DType::kI32) {
  const TestTensor scales = random(t, {c.vocabulary, c.groups()}, 3, 0.01, 0.1);
  const TestTensor ids = some_ids(id_type, ids_dims, c.vocabulary);
  const TestTensor want = reference(c, scales, {}, ids, t);
  expect_op(Case("et_vk.embedding_q4gsw.default")
                .in(c.weight())
                .in(scales)
                .integer(c.group)
                .in(ids)
                .flag(c.low_first)
                .out(t, want.dims),
            {want}, t == DType::kF16 ? Tolerance{0, 1e-3} : Tolerance{0, 1e-6});
}

TEST(EmbeddingQ4, VectorsOfTheCpuTakeGroupsOfWholeBytes) {
  for (const int64_t group : {64, 32, 6, 3}) {
    const Codes c{16, 192, group};
    const TestTensor scales = random(DType::kF32, {c.vocabulary, c.groups()}, 3);
    Case call("et_vk.embedding_q4gsw.default");
    call.in(c.weight()).in(scales).integer(group).in(some_ids(DType::kI64, {70}, 16)).flag(true);
    EXPECT_EQ(is_fast(call.out(DType::kF32, {70, 192})), group % 2 == 0) << group;
    check(c, {70});
  }
}

TEST(EmbeddingQ4, BothNibbleOrders) {
  for (const bool low_first : {true, false}) {
    check({64, 64, 32, low_first}, {1, 5});
    check({10, 32, 32, low_first}, {3});
    check({33, 96, 32, low_first}, {2, 3, 2});
    check({7, 288, 32, low_first}, {});
  }
  check({5, 6, 2}, {4});
}

TEST(EmbeddingQ4, TypesOfScalesAndIds) {
  check({33, 96, 32}, {1, 7}, DType::kF16);
  check({33, 96, 32}, {1, 7}, DType::kF32, DType::kI64);
}

// As in a model of two thousand columns.
TEST(EmbeddingQ4, RealWidths) {
  check({512, 2048, 64}, {1, 9});
  check({512, 2048, 64, false}, {1, 1});
}

TEST(EmbeddingQ4, NoIds) { check({10, 32, 32}, {1, 0}); }

TEST(EmbeddingQ4, ScalesAsTheLinearLayerHasThem) {
  const Codes c{10, 64, 32};
  const TestTensor scales = random(DType::kF32, {c.vocabulary, c.groups()}, 3, 0.01, 0.1);
  const auto scale = [&](int64_t token, int64_t group) {
    return token < c.vocabulary ? scales.data[at(token * c.groups() + group)] : 0.0;
  };
  const TestTensor padded =
      make(DType::kF32, {c.groups(), 12}, [&](int64_t i) { return scale(i % 12, i / 12); });
  const TestTensor blocks = make(DType::kF32, {2, c.groups(), 8}, [&](int64_t i) {
    return scale(i / 8 / c.groups() * 8 + i % 8, i / 8 % c.groups());
  });
  const TestTensor ids = some_ids(DType::kI32, {1, 4}, c.vocabulary);
  for (const TestTensor& given : {padded, blocks}) {
    expect_op(Case("et_vk.embedding_q4gsw.default")
                  .in(c.weight())
                  .in(given)
                  .integer(32)
                  .in(ids)
                  .integer(1)
                  .out(DType::kF32, {1, 4, 64}),
              {reference(c, scales, {}, ids, DType::kF32)}, {0, 1e-6});
  }
}

TEST(EmbeddingQ4, OneScaleARow) {
  const Codes c{6, 20, 20};
  const TestTensor scales = random(DType::kF32, {6}, 3, 0.01, 0.1);
  const TestTensor ids = some_ids(DType::kI32, {3}, 6);
  expect_op(Case("et_vk.embedding_q4gsw.default")
                .in(c.weight())
                .in(scales)
                .integer(20)
                .in(ids)
                .flag(true)
                .out(DType::kF32, {3, 20}),
            {reference(c, scales, {}, ids, DType::kF32)}, {0, 1e-6});
}

TEST(EmbeddingQ4, Decomposed) {
  const Codes c{9, 72, 36, false};
  const TestTensor scales = random(DType::kF32, {9, 2}, 3, 0.01, 0.1);
  const TestTensor zeros = random(DType::kF32, {9, 2}, 4, -3, 3);
  const TestTensor ids = some_ids(DType::kI64, {1, 5}, 9);
  const std::string op = "quantized_decomposed.embedding_4bit";
  expect_op(Case(op + ".dtype")
                .in(c.weight())
                .in(scales)
                .none()
                .integer(-8)
                .integer(7)
                .in(ids)
                .none()
                .out(DType::kF32, {1, 5, 72}),
            {reference(c, scales, {}, ids, DType::kF32)}, {0, 1e-6});
  expect_op(Case(op + ".default")
                .in(c.weight())
                .in(scales)
                .in(zeros)
                .integer(-8)
                .integer(7)
                .in(ids)
                .out(DType::kF32, {1, 5, 72}),
            {reference(c, scales, zeros, ids, DType::kF32)}, {1e-6, 1e-5});
}

TEST(EmbeddingQ4, Bytes) {
  const TestTensor weight = random(DType::kI8, {5, 7}, 8, -128, 127);
  const TestTensor scales = random(DType::kF32, {5}, 9, 0.01, 0.1);
  const TestTensor ids = some_ids(DType::kI32, {4}, 5);
  TestTensor want{DType::kF32, {4, 7}, {}};
  for (const double id : ids.data) {
    for (int64_t e = 0; e < 7; ++e)
      want.data.push_back(weight.data[at(static_cast<int64_t>(id) * 7 + e)] *
                          scales.data[at(static_cast<int64_t>(id))]);
  }
  expect_op(Case("quantized_decomposed.embedding_byte.default")
                .in(weight)
                .in(scales)
                .none()
                .integer(-128)
                .integer(127)
                .in(ids)
                .out(DType::kF32, {4, 7}),
            {want}, {0, 1e-6});
}

TEST(EmbeddingQ4, Contradictions) {
  const Codes c{4, 8, 8};
  const TestTensor ids = some_ids(DType::kI32, {3}, 4);
  const auto call = [&](const TestTensor& scales, int64_t group) {
    return Case("et_vk.embedding_q4gsw.default")
        .in(c.weight())
        .in(scales)
        .integer(group)
        .in(ids)
        .flag(true)
        .out(DType::kF32, {3, 8});
  };
  expect_error(call(random(DType::kF32, {4, 1}), 3),
               "group_size 3 does not divide the 8 elements of a row");
  expect_error(call(random(DType::kF32, {4, 1}), 0), "group_size 0");
  expect_error(call(random(DType::kF32, {4, 3}), 4),
               "scales (value 1) shape: expected [4, 2], got [4, 3]");
}

}  // namespace
}  // namespace pteryx::ops::testing
