// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/base/numbers.h"

#include <cmath>
#include <limits>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

namespace pteryx {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

TEST(ReadReal, ReadsDecimals) {
  const struct {
    std::string text;
    double value;
  } cases[] = {
      {"0", 0},
      {"-0", 0},
      {"12", 12},
      {"+12.5", 12.5},
      {"-.5", -0.5},
      {"1.e5", 1e5},
      {"1E+2", 100},
      {"0.1", 0.1},
      {"9007199254740993", 9007199254740992},
      {"1.7976931348623157e308", std::numeric_limits<double>::max()},
      {"5e-324", std::numeric_limits<double>::denorm_min()},
      {"1e999", kInfinity},
      {"-1e999", -kInfinity},
      {"1e-999", 0},
      {"-1e-999", 0},
      {"1e99999999999999999999", kInfinity},
      {"1e-99999999999999999999", 0},
      {"0." + std::string(400, '0') + "1", 0},
      {"0." + std::string(400, '0') + "1e9", 0},
      {"1" + std::string(400, '0') + "e-9", kInfinity},
      {"1" + std::string(400, '0') + "e-400", 1},
      {"inf", kInfinity},
      {"-Infinity", -kInfinity},
  };
  for (const auto& c : cases) {
    const auto value = read_real(c.text);
    ASSERT_TRUE(value) << c.text;
    EXPECT_EQ(*value, c.value) << c.text;
  }
  EXPECT_TRUE(std::isnan(read_real("NaN").value()));
}

TEST(ReadReal, RefusesOtherTexts) {
  for (const std::string_view text : {"", "+", ".", "e5", ".e5", "1e", "1e+", "1 ", " 1", "0x10",
                                      "1,5", "1.5.2", "--1", "infinit", "nan1", "1_000"}) {
    EXPECT_FALSE(read_real(text)) << text;
  }
}

}  // namespace
}  // namespace pteryx
