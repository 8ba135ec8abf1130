// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/llm/chat/time_text.h"

#include <array>
#include <clocale>
#include <ctime>
#include <string>

#include <gtest/gtest.h>

namespace pteryx::llm::chat {
namespace {

std::tm time_of(std::time_t seconds) {
  std::tm t = {};
  gmtime_r(&seconds, &t);
  return t;
}

// The tests run in the C locale, in which the C library writes the same.
TEST(TimeText, WritesWhatStrftimeDoes) {
  constexpr const char* kFormat =
      "%a %A %b %B %h %C %d %e %D %F %G %g %H %I %j %k %l %M %m %n %P %p %R %r %S %T %t %U %u %V "
      "%W "
      "%w %X %x %Y %y %c %% %-d %-m %-H %-I %-j %-M";
  constexpr std::time_t kDay = 86400;
  for (std::time_t day = 0; day < 40 * 366; day += day % 366 < 8 ? 1 : 17) {
    const std::tm t = time_of(day * kDay + day * 7919 % kDay);
    std::array<char, 1024> expected = {};
    ASSERT_GT(std::strftime(expected.data(), expected.size(), kFormat, &t), 0U);
    ASSERT_EQ(time_text(kFormat, t), expected.data()) << day;
  }
}

TEST(TimeText, WritesTheDayOfATemplate) {
  const std::tm t = time_of(1721952000);  // 26 July 2024
  EXPECT_EQ(time_text("%d %b %Y", t), "26 Jul 2024");
  EXPECT_EQ(time_text("Today is %B %-d, %Y.", time_of(1720224000)), "Today is July 6, 2024.");
  EXPECT_EQ(time_text("", t), "");
  EXPECT_EQ(time_text("\xC3\xA9%Y", t),
            "\xC3\xA9"
            "2024");
}

TEST(TimeText, LeavesWhatItDoesNotKnow) {
  const std::tm t = time_of(0);
  EXPECT_EQ(time_text("%Q %-Q %", t), "%Q %-Q %");
  EXPECT_EQ(time_text("%-", t), "%-");
  EXPECT_EQ(time_text("[%z%Z]", t), "[]");
}

}  // namespace
}  // namespace pteryx::llm::chat
