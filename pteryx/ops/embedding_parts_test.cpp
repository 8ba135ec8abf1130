// SPDX-License-Identifier: BSD-3-Clause
#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "pteryx/ops/testing/op_harness.h"

namespace pteryx::ops::testing {
namespace {

constexpr int64_t kAsTheyAre = 0;
constexpr int64_t kBytes = 1;
constexpr int64_t kLowFirst = 2;
constexpr int64_t kHighFirst = 3;

size_t at(int64_t i) { return static_cast<size_t>(i); }

// Rows [first, first + count) of a matrix.
TestTensor rows(const TestTensor& t, int64_t first, int64_t count) {
  const int64_t width = t.dims[1];
  return make(t.dtype, {count, width}, [&](int64_t i) { return t.data[at(first * width + i)]; });
}
TestTensor turned(const TestTensor& t) {
  return make(t.dtype, {t.dims[1], t.dims[0]},
              [&](int64_t i) { return t.data[at(i % t.dims[0] * t.dims[1] + i / t.dims[0])]; });
}

struct Form {
  DType table = DType::kF32;
  int64_t codes = kAsTheyAre;
  int64_t width = 6;
  int64_t group = 6;
  bool by_group = false;
  bool zeros = false;
  DType y = DType::kF32;
  std::vector<int64_t> parts = {3, 1, 4};
};

double code(const Form& f, const TestTensor& table, int64_t row, int64_t e) {
  if (f.codes == kAsTheyAre || f.codes == kBytes) return table.data[at(row * f.width + e)];
  const auto byte = static_cast<int64_t>(table.data[at(row * (f.width / 2) + e / 2)]);
  return static_cast<double>(((e % 2 == 0) == (f.codes == kLowFirst) ? byte : byte >> 4) & 15) - 8;
}

void check(const Form& f, const Dims& ids_dims, Tolerance tol) {
  int64_t vocabulary = 0;
  for (const int64_t count : f.parts) vocabulary += count;
  const bool nibbles = f.codes == kLowFirst || f.codes == kHighFirst;
  const bool coded = f.codes != kAsTheyAre;
  const TestTensor table =
      random(f.table, {vocabulary, f.width / (nibbles ? 2 : 1)}, 5,
             f.table == DType::kU8 ? 0 : -100, f.table == DType::kU8 ? 255 : 100);
  const TestTensor scales = random(f.y, {vocabulary, f.width / f.group}, 6, 0.01, 0.1);
  const TestTensor zeros = random(DType::kI8, {vocabulary, f.width / f.group}, 7, -9, 9);
  const TestTensor ids = make(DType::kI32, ids_dims, [&](int64_t i) {
    return static_cast<double>((i * 5 + vocabulary - 1) % vocabulary);
  });
  std::vector<TestTensor> tables, all_scales, all_zeros;
  int64_t first = 0;
  for (const int64_t count : f.parts) {
    tables.push_back(rows(table, first, count));
    const TestTensor s = rows(scales, first, count);
    const TestTensor z = rows(zeros, first, count);
    if (coded) all_scales.push_back(f.by_group ? turned(s) : s);
    if (f.zeros) all_zeros.push_back(f.by_group ? turned(z) : z);
    first += count;
  }
  Dims dims = ids.dims;
  dims.push_back(f.width);
  TestTensor want{f.y, dims, {}};
  for (const double id : ids.data) {
    const auto row = static_cast<int64_t>(id);
    for (int64_t e = 0; e < f.width; ++e) {
      const size_t s = at(row * (f.width / f.group) + e / f.group);
      const double zero = f.zeros ? zeros.data[s] : 0.0;
      want.data.push_back((code(f, table, row, e) - zero) * (coded ? scales.data[s] : 1.0));
    }
  }
  Case call("pteryx.embedding_parts");
  call.list(tables).list(all_scales).list(all_zeros).integer(f.codes).integer(f.group);
  call.flag(f.by_group).in(ids).out(f.y, dims);
  expect_op(call, {want}, tol);
}

// Rows of an odd number of halves or bytes share words with their neighbours.
TEST(EmbeddingParts, ElementsAsTheyAre) {
  for (const DType t : {DType::kF32, DType::kF16, DType::kI8, DType::kI32}) {
    for (const int64_t width : {1, 5, 6, 64})
      check({.table = t, .width = width, .group = width, .y = t}, {2, 7}, kExact);
  }
  check({.parts = {1}}, {3}, kExact);
  check({.parts = std::vector<int64_t>(20, 3)}, {50}, kExact);
  check({}, {1, 0}, kExact);
}

TEST(EmbeddingParts, Codes) {
  const Tolerance tol{1e-6, 1e-6};
  for (const bool by_group : {false, true}) {
    for (const bool zeros : {false, true}) {
      for (const int64_t codes : {kLowFirst, kHighFirst}) {
        check({DType::kU8, codes, 64, 32, by_group, zeros}, {1, 9}, tol);
        check({DType::kU8, codes, 10, 2, by_group, zeros}, {3}, tol);
      }
      check({DType::kI8, kBytes, 48, 16, by_group, zeros}, {1, 9}, tol);
      check({DType::kU8, kBytes, 5, 5, by_group, zeros}, {4}, tol);
      check({DType::kI8, kBytes, 5, 5, by_group, zeros, DType::kF16}, {4}, {0, 1e-3});
    }
  }
}

TEST(EmbeddingParts, WhatDoesNotGoTogetherIsNamed) {
  const TestTensor table = random(DType::kF32, {3, 4});
  const TestTensor bytes = random(DType::kI8, {3, 4});
  const TestTensor ids = make(DType::kI32, {2}, [](int64_t) { return 0.0; });
  const auto call = [&](std::vector<TestTensor> tables, std::vector<TestTensor> scales,
                        int64_t codes, int64_t group) {
    return Case("pteryx.embedding_parts")
        .list(std::move(tables))
        .list(std::move(scales))
        .list({})
        .integer(codes)
        .integer(group)
        .flag(false)
        .in(ids)
        .out(DType::kF32, {2, 4});
  };
  const TestTensor scales = random(DType::kF32, {3, 2});
  expect_error(call({}, {}, kAsTheyAre, 4), "tables");
  expect_error(call({table}, {}, 4, 4), "expected 0 to 3, got 4");
  expect_error(call({table, random(DType::kF32, {3, 5})}, {}, kAsTheyAre, 4),
               "expected [3, 4], got [3, 5]");
  expect_error(call({bytes}, {}, kBytes, 2), "scales");
  expect_error(call({bytes}, {random(DType::kF32, {3, 3})}, kBytes, 2),
               "expected [3, 2], got [3, 3]");
  expect_error(call({bytes}, {scales}, kBytes, 3), "expected one that divides a row of 4, got 3");
}

}  // namespace
}  // namespace pteryx::ops::testing
