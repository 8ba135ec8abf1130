// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/convert/quantize.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "pteryx/convert/sha256.h"

namespace pteryx::convert {
namespace {

// Not on any grid.
std::vector<float> waves(size_t n) {
  std::vector<float> v(n);
  for (size_t i = 0; i < n; ++i) {
    const auto x = static_cast<float>(i);
    v[i] = std::sin(x * 1.7F) + 0.4F * std::sin(x * 0.31F + 1) * std::sin(x * 7.1F);
  }
  return v;
}

double squared_error(const std::vector<float>& x, const std::vector<int8_t>& codes, float scale) {
  Error e;
  e.add(x, codes, scale);
  return e.squared_error;
}

TEST(Quantize, Q8KeepsItsGrid) {
  std::vector<float> x;
  for (int c = -127; c <= 127; ++c) x.push_back(static_cast<float>(c) * 0.125F);
  std::vector<int8_t> codes(x.size());
  EXPECT_FLOAT_EQ(quantize_q8(x, codes), 0.125F);
  for (size_t i = 0; i < x.size(); ++i) EXPECT_EQ(codes[i], static_cast<int>(i) - 127);
}

TEST(Quantize, Q8ErrorIsBelowHalfAStep) {
  const std::vector<float> x = waves(300);
  std::vector<int8_t> codes(x.size());
  const float scale = quantize_q8(x, codes);
  for (size_t i = 0; i < x.size(); ++i) {
    EXPECT_LE(std::fabs(x[i] - static_cast<float>(codes[i]) * scale), scale * 0.5001F) << i;
  }
}

TEST(Quantize, Q4KeepsItsGridWithEitherSign) {
  for (const float scale : {0.25F, -0.25F, 3.0F}) {
    std::vector<float> x;
    for (int c = -8; c <= 7; ++c) x.push_back(static_cast<float>(c) * scale);
    std::vector<int8_t> codes(x.size());
    EXPECT_FLOAT_EQ(quantize_q4(x, codes), scale);
    for (size_t i = 0; i < x.size(); ++i) EXPECT_EQ(codes[i], static_cast<int>(i) - 8) << scale;
  }
}

TEST(Quantize, Q4SearchBeatsPlainRounding) {
  const std::vector<float> all = waves(32 * 40);
  double plain = 0;
  double searched = 0;
  for (size_t g = 0; g < all.size(); g += 32) {
    const std::vector<float> x(all.begin() + static_cast<ptrdiff_t>(g),
                               all.begin() + static_cast<ptrdiff_t>(g) + 32);
    const float most = *std::max_element(
        x.begin(), x.end(), [](float a, float b) { return std::fabs(a) < std::fabs(b); });
    std::vector<int8_t> codes(32);
    const float scale = most / -8;
    for (size_t i = 0; i < 32; ++i) {
      codes[i] = static_cast<int8_t>(std::clamp(std::lround(x[i] / scale), -8L, 7L));
    }
    plain += squared_error(x, codes, scale);
    const float best = quantize_q4(x, codes);
    searched += squared_error(x, codes, best);
  }
  EXPECT_LT(searched, plain * 0.9);
}

TEST(Quantize, ZerosStayZeros) {
  const std::vector<float> x(32, 0.0F);
  std::vector<int8_t> codes(32, 5);
  EXPECT_EQ(quantize_q8(x, codes), 0.0F);
  EXPECT_EQ(codes, std::vector<int8_t>(32, 0));
  codes.assign(32, 5);
  EXPECT_EQ(quantize_q4(x, codes), 0.0F);
  EXPECT_EQ(codes, std::vector<int8_t>(32, 0));
}

TEST(Quantize, SubnormalRowsStayFinite) {
  const std::vector<float> x(32, 1e-44F);
  std::vector<int8_t> codes(32);
  EXPECT_TRUE(std::isfinite(quantize_q8(x, codes)));
  EXPECT_TRUE(std::isfinite(quantize_q4(x, codes)));
}

TEST(Sha256, KnownAnswers) {
  const auto hash = [](std::string_view text, size_t step) {
    Sha256 h;
    for (size_t i = 0; i < text.size(); i += step) {
      h.add(std::as_bytes(std::span(text.substr(i, step))));
    }
    return h.hex();
  };
  EXPECT_EQ(hash("", 1), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(hash("abc", 3), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  const std::string million(1'000'000, 'a');
  for (const size_t step : {1U, 63U, 64U, 65U, 1000000U}) {
    EXPECT_EQ(hash(million, step),
              "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
  }
}

}  // namespace
}  // namespace pteryx::convert
