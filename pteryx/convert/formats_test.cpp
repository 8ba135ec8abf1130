// Against what the gguf package makes of the same bytes. SPDX-License-Identifier: BSD-3-Clause
#include <cmath>
#include <cstring>
#include <set>

#include <gtest/gtest.h>

#include "pteryx/convert/checkpoint.h"
#include "pteryx/convert/matrix.h"
#include "pteryx/convert/testing/tiny_model.h"

namespace pteryx::convert {
namespace {

struct Golden {
  std::string name;
  std::string raw;
  std::vector<float> values;
};

std::vector<Golden> goldens() {
  const std::string file =
      testing::read_file(std::string(PTERYX_TEST_DATA) + "/fixtures/convert/formats.bin");
  std::vector<Golden> out;
  for (size_t at = 0; at + 16 <= file.size();) {
    Golden g;
    g.name = file.substr(at, 8).c_str();
    uint32_t bytes = 0;
    uint32_t count = 0;
    std::memcpy(&bytes, &file[at + 8], 4);
    std::memcpy(&count, &file[at + 12], 4);
    g.raw = file.substr(at + 16, bytes);
    g.values.resize(count);
    std::memcpy(g.values.data(), &file[at + 16 + bytes], count * sizeof(float));
    at += 16 + bytes + count * sizeof(float);
    out.push_back(std::move(g));
  }
  return out;
}

TEST(Formats, DecodeAsTheirOwnLibraryDoes) {
  std::set<SourceType> seen;
  for (const Golden& g : goldens()) {
    for (int t = 0; t <= static_cast<int>(SourceType::kQ6_K); ++t) {
      const auto type = static_cast<SourceType>(t);
      if (name(type) != g.name) continue;
      seen.insert(type);
      const auto cols = static_cast<int64_t>(g.values.size());
      const SourceTensor tensor = testing::tensor_of(g.name, type, {cols}, g.raw);
      ASSERT_EQ(data_bytes(type, tensor.dims.span()), g.raw.size()) << g.name;
      std::vector<float> got(g.values.size());
      ASSERT_TRUE(tensor.read_row(0, got).ok());
      for (size_t i = 0; i < got.size(); ++i) {
        EXPECT_NEAR(got[i], g.values[i], 1e-6F * std::fabs(g.values[i]) + 1e-7F)
            << g.name << " " << i;
      }
    }
  }
  EXPECT_EQ(seen.size(), static_cast<size_t>(SourceType::kQ6_K) + 1);
}

// Codes, scales and minimums stand for exactly what the blocks do.
TEST(Formats, OfFourBitsGiveTheirCodes) {
  std::set<SourceType> seen;
  for (const Golden& g : goldens()) {
    for (const SourceType type : {SourceType::kQ4_0, SourceType::kQ4_1, SourceType::kQ4_K}) {
      if (name(type) != g.name) continue;
      seen.insert(type);
      const Encoding e{Target::kQ4, 32, type != SourceType::kQ4_0};
      const auto cols = static_cast<int64_t>(g.values.size());
      const auto rows = rows_of(testing::tensor_of(g.name, type, {1, cols}, g.raw));
      EXPECT_TRUE(rows->has_codes(e));
      EXPECT_FALSE(rows->has_codes({Target::kQ4, 32, !e.minimums}));
      EXPECT_FALSE(rows->has_codes({Target::kQ4, 64, e.minimums}));
      EXPECT_FALSE(rows->has_codes({Target::kQ8}));
      std::vector<int8_t> codes(g.values.size());
      std::vector<float> scales(codes.size() / 32);
      std::vector<float> minimums(e.minimums ? scales.size() : 0);
      ASSERT_TRUE(rows->codes(0, e, {codes, scales, minimums}).ok());
      for (size_t i = 0; i < codes.size(); ++i) {
        ASSERT_TRUE(codes[i] >= -8 && codes[i] <= 7);
        const double scale = double{scales[i / 32]};
        const double minimum = e.minimums ? double{minimums[i / 32]} : 0;
        const double value = static_cast<double>(codes[i]) * scale + minimum;
        EXPECT_NEAR(value, double{g.values[i]}, 1e-6 * (std::fabs(minimum) + 8 * std::fabs(scale)))
            << g.name << " " << i;
      }
    }
  }
  EXPECT_EQ(seen.size(), 3U);
}

// The numbers of a group lie beside those of the other rows, as layers read them.
TEST(Formats, MinimumsAreWrittenByGroup) {
  struct Text final : Sink {
    std::string text;
    Status write(Bytes bytes) override {
      text.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
      return {};
    }
  };
  constexpr int64_t kRows = 4;
  constexpr int64_t kCols = 96;
  std::vector<float> values(kRows * kCols);
  for (size_t i = 0; i < values.size(); ++i) {
    const size_t code = i % 32 == 0 ? 0 : i % 32 == 1 ? 15 : i * 7 % 16;
    values[i] = static_cast<float>(code) / 32 - static_cast<float>(i / 32) / 16;
  }
  const std::string raw = testing::as_q4_1(values);
  const auto m = std::make_shared<EncodedMatrix>(
      Matrix{"w", "Q4_1", kRows, kCols,
             rows_of(testing::tensor_of("w", SourceType::kQ4_1, {kRows, kCols}, raw))},
      Encoding{Target::kQ4, 32, true});
  const Blob blobs[] = {m->weight(), m->linear_scales(), m->minimums()};
  Text texts[3];
  for (size_t i = 0; i < 3; ++i) {
    ASSERT_TRUE(blobs[i].write(texts[i]).ok());
    EXPECT_EQ(texts[i].text.size(), blobs[i].size);
  }
  EXPECT_EQ(m->error().relative(), 0);
  for (int64_t i = 0; i < kRows * kCols; ++i) {
    const int64_t row = i / kCols;
    const int64_t at = i % kCols / 32 * kRows + row;
    float scale = 0;
    float minimum = 0;
    std::memcpy(&scale, &texts[1].text[static_cast<size_t>(at) * 4], 4);
    std::memcpy(&minimum, &texts[2].text[static_cast<size_t>(at) * 4], 4);
    const int byte = static_cast<unsigned char>(texts[0].text[static_cast<size_t>(i / 2)]);
    const int code = (i % 2 == 0 ? byte & 15 : byte >> 4) - 8;
    EXPECT_EQ(static_cast<float>(code) * scale + minimum, values[static_cast<size_t>(i)]) << i;
  }
}

TEST(Formats, RowsStartAtWholeBlocks) {
  std::vector<float> values(3 * 64);
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = i % 32 == 0 ? -8.0F : static_cast<float>(i % 16) - 8;
  const std::string raw = testing::as_q4_0(values);
  const SourceTensor t = testing::tensor_of("w", SourceType::kQ4_0, {3, 64}, raw);
  ASSERT_EQ(raw.size(), data_bytes(t.type, t.dims.span()));
  for (int64_t r = 0; r < 3; ++r) {
    std::vector<float> row(64);
    ASSERT_TRUE(t.read_row(r, row).ok());
    EXPECT_EQ(row, std::vector<float>(values.begin() + r * 64, values.begin() + (r + 1) * 64));
  }
}

TEST(Formats, SizesThatCannotBe) {
  const std::vector<int64_t> odd = {2, 33};
  const std::vector<int64_t> huge = {int64_t{1} << 40, int64_t{1} << 40};
  const std::vector<int64_t> negative = {-1, 32};
  EXPECT_FALSE(data_bytes(SourceType::kQ4_0, odd));
  EXPECT_EQ(data_bytes(SourceType::kF16, odd), 132U);
  EXPECT_FALSE(data_bytes(SourceType::kF32, huge));
  EXPECT_FALSE(data_bytes(SourceType::kF32, negative));
}

}  // namespace
}  // namespace pteryx::convert
