// Constants that pass through host memory in pieces. SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/session/constant_pieces.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include <gtest/gtest.h>

#include "pteryx/base/testing/late_source.h"

namespace pteryx {
namespace {

using graph::Tensor;

template <typename T>
std::vector<T> counting(size_t n) {
  std::vector<T> numbers(n);
  std::iota(numbers.begin(), numbers.end(), T{0});
  return numbers;
}

// All of it, and how large the largest piece is.
struct Passed {
  std::vector<std::byte> bytes;
  size_t largest = 0;
  size_t pieces = 0;
  Status status;
};
Passed pass(const Tensor& t, std::span<const SourcePtr> sources) {
  Passed all;
  ConstantPieces pieces(t, sources);
  while (!pieces.done()) {
    auto there = pieces.advance();
    if (!there.ok()) {
      all.status = std::move(there).status();
      return all;
    }
    if (!*there) continue;
    auto piece = pieces.take("weight");
    if (!piece.ok()) {
      all.status = std::move(piece).status();
      return all;
    }
    all.bytes.insert(all.bytes.end(), piece->begin(), piece->end());
    all.largest = std::max(all.largest, piece->size());
    ++all.pieces;
    pieces.next();
  }
  return all;
}
template <typename T>
std::vector<T> as(const std::vector<std::byte>& bytes) {
  std::vector<T> numbers(bytes.size() / sizeof(T));
  std::memcpy(numbers.data(), bytes.data(), bytes.size());
  return numbers;
}

// Rows of two matrices in turn, as layers are joined that read the same input.
TEST(ConstantPieces, RowsOfJoinedMatricesAreReadTogether) {
  constexpr uint64_t kRows = 600;
  constexpr uint64_t kWide = 400;
  constexpr uint64_t kNarrow = 150;
  const auto numbers = counting<float>(kRows * (kWide + kNarrow));
  const Bytes file = std::as_bytes(std::span(numbers));
  const auto source = std::make_shared<testing::LateSource>("file", file, 0);
  Tensor t{.dtype = DType::kF32, .max = {kRows, kWide + kNarrow}};
  std::vector<float> want;
  for (uint64_t r = 0; r < kRows; ++r) {
    t.data.push_back({0, r * kWide * 4, kWide * 4});
    t.data.push_back({0, (kRows * kWide + r * kNarrow) * 4, kNarrow * 4});
    const auto begin = numbers.begin();
    want.insert(want.end(), begin + static_cast<ptrdiff_t>(r * kWide),
                begin + static_cast<ptrdiff_t>((r + 1) * kWide));
    want.insert(want.end(), begin + static_cast<ptrdiff_t>(kRows * kWide + r * kNarrow),
                begin + static_cast<ptrdiff_t>(kRows * kWide + (r + 1) * kNarrow));
  }
  const SourcePtr sources[] = {source};
  const Passed all = pass(t, sources);
  ASSERT_TRUE(all.status.ok()) << all.status.message();
  EXPECT_EQ(as<float>(all.bytes), want);
  EXPECT_EQ(all.largest, size_t{1} << 20);
  EXPECT_EQ(all.pieces, 2U);
  EXPECT_EQ(source->asked(), 4);  // each matrix once for each piece
}

TEST(ConstantPieces, ComeLaterAndInAnotherType) {
  constexpr size_t kCount = 400'000;
  const auto numbers = counting<double>(kCount);
  const Bytes file = std::as_bytes(std::span(numbers));
  const SourcePtr sources[] = {std::make_shared<testing::LateSource>("file", file, 3)};
  const Tensor t{.dtype = DType::kF32,
                 .max = {400, 1000},
                 .data = {{0, 0, file.size()}},
                 .stored = DType::kF64};
  const Passed all = pass(t, sources);
  ASSERT_TRUE(all.status.ok()) << all.status.message();
  EXPECT_EQ(as<float>(all.bytes), counting<float>(kCount));
  EXPECT_EQ(all.pieces, 4U);
}

TEST(ConstantPieces, WhatIsNotRowMajorIsOnePiece) {
  const std::vector<int32_t> columns = {1, 4, 2, 5, 3, 6};
  const Bytes file = std::as_bytes(std::span(columns));
  const SourcePtr sources[] = {std::make_shared<MemorySource>("file", file)};
  const Tensor t{
      .dtype = DType::kI32, .max = {2, 3}, .data = {{0, 0, file.size()}}, .dim_order = {1, 0}};
  const Passed all = pass(t, sources);
  EXPECT_EQ(all.pieces, 1U);
  EXPECT_EQ(as<int32_t>(all.bytes), (std::vector<int32_t>{1, 2, 3, 4, 5, 6}));
}

TEST(ConstantPieces, AnIndexThatIsTooLargeIsNamedByItsPlace) {
  constexpr size_t kBad = 300'000;
  auto numbers = counting<int64_t>(400'000);
  const Tensor t{
      .dtype = DType::kI64, .max = {400'000}, .data = {{0, 0, numbers.size() * sizeof(int64_t)}}};
  const SourcePtr sources[] = {
      std::make_shared<MemorySource>("file", std::as_bytes(std::span(numbers)))};
  EXPECT_EQ(as<int32_t>(pass(t, sources).bytes), counting<int32_t>(400'000));
  numbers[kBad] = int64_t{1} << 40;
  const Passed all = pass(t, sources);
  ASSERT_FALSE(all.status.ok());
  EXPECT_NE(all.status.message().find("constant weight: element 300000 is 1099511627776"),
            std::string_view::npos)
      << all.status.message();
}

TEST(ConstantPieces, NothingIsNoPiece) {
  const SourcePtr sources[] = {std::make_shared<MemorySource>("file", Bytes())};
  EXPECT_EQ(pass({.dtype = DType::kF32, .max = {0, 4}, .data = {{0, 0, 0}}}, sources).pieces, 0U);
}

}  // namespace
}  // namespace pteryx
