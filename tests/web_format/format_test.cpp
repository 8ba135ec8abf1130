// What stands in for {fmt} in the web build writes what {fmt} does. SPDX-License-Identifier:
// BSD-3-Clause
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

namespace {

TEST(Format, TextsAndBraces) {
  EXPECT_EQ(fmt::format("plain"), "plain");
  EXPECT_EQ(fmt::format("{{{}}}", 1), "{1}");
  EXPECT_EQ(fmt::format("{} {} {}", "a", std::string("b"), std::string_view("c")), "a b c");
  EXPECT_EQ(fmt::format("{1} {0} {1}", "a", "b"), "b a b");
  EXPECT_EQ(fmt::format("{}{}", 'x', true), "xtrue");
  EXPECT_EQ(fmt::format("[{:6}] [{:>6}] [{:<6}] [{:^6}] [{:*^7}]", "ab", "ab", "ab", "ab", "ab"),
            "[ab    ] [    ab] [ab    ] [  ab  ] [**ab***]");
  EXPECT_EQ(fmt::format("[{:{}}] [{:>{}}]", "ab", 4, 7, 3), "[ab  ] [  7]");
}

TEST(Format, Integers) {
  EXPECT_EQ(fmt::format("{} {} {}", 0, -7, uint8_t{200}), "0 -7 200");
  EXPECT_EQ(fmt::format("{} {}", std::numeric_limits<int64_t>::min(),
                        std::numeric_limits<uint64_t>::max()),
            "-9223372036854775808 18446744073709551615");
  EXPECT_EQ(fmt::format("{:02x} {:02X} {:08x} {:x}", 10, 171, 0xBEEFU, 255), "0a AB 0000beef ff");
  EXPECT_EQ(fmt::format("[{:5}] [{:<5}] [{:05}] [{:05}]", 42, 42, 42, -42),
            "[   42] [42   ] [00042] [-0042]");
}

TEST(Format, NumbersHaveTheFewestDigits) {
  EXPECT_EQ(fmt::format("{} {} {} {}", 0.0, 1.0, -0.5, 0.1), "0 1 -0.5 0.1");
  EXPECT_EQ(fmt::format("{} {}", 0.1F, 1.0F / 3), "0.1 0.33333334");
  EXPECT_EQ(fmt::format("{} {} {}", 1.0 / 3, 123456.789, 1e-4),
            "0.3333333333333333 123456.789 0.0001");
  EXPECT_EQ(fmt::format("{} {} {}", 1e15, 1e16, 1.5e-5), "1000000000000000 1e+16 1.5e-05");
  EXPECT_EQ(fmt::format("{} {}", std::numeric_limits<double>::max(), 5e-324),
            "1.7976931348623157e+308 5e-324");
  EXPECT_EQ(fmt::format("{} {} {}", std::numeric_limits<double>::infinity(),
                        -std::numeric_limits<double>::infinity(),
                        std::numeric_limits<double>::quiet_NaN()),
            "inf -inf nan");
}

TEST(Format, NumbersWithAPrecision) {
  // Halfway between two results a script takes the larger, and {fmt} the even one.
  EXPECT_EQ(fmt::format("{:.0f} {:.1f} {:.3f}", 2.6, -2.26, 1.0), "3 -2.3 1.000");
  EXPECT_EQ(fmt::format("[{:>8.1f}] [{:.2f}]", 3.14159, 1e10), "[     3.1] [10000000000.00]");
}

TEST(Format, Lists) {
  EXPECT_EQ(fmt::format("[{}]", fmt::join(std::vector<int>{1, 2, 3}, ", ")), "[1, 2, 3]");
  EXPECT_EQ(fmt::format("{}", fmt::join(std::vector<std::string>{"a", "b"}, " | ")), "a | b");
  EXPECT_EQ(fmt::format("[{}]", fmt::join(std::vector<double>{}, ", ")), "[]");
}

}  // namespace
