// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/base/utf8.h"

#include <string>

#include <gtest/gtest.h>

namespace pteryx {
namespace {

TEST(Utf8, ReadsWhatItWrites) {
  for (char32_t c = 0; c <= 0x10FFFF; c += c < 0x3000 ? 1 : 0x101) {
    if (c >= 0xD800 && c < 0xE000) continue;
    std::string text;
    append_utf8(text, c);
    const Utf8Char read = char_at(text, 0);
    ASSERT_TRUE(read.valid) << static_cast<uint32_t>(c);
    ASSERT_EQ(read.code, c);
    ASSERT_EQ(read.size_bytes, text.size());
  }
}

TEST(Utf8, ReplacesLongestStartsOfCharacters) {
  EXPECT_EQ(replace_invalid("a\xE2\x82z"), "a\xEF\xBF\xBDz");
  EXPECT_EQ(replace_invalid("\xF0\x9F\x98"), "\xEF\xBF\xBD");
  EXPECT_EQ(replace_invalid("\xC0\xAF"), "\xEF\xBF\xBD\xEF\xBF\xBD");  // a long form
  EXPECT_EQ(replace_invalid("\xED\xA0\x80"),
            "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD");  // a surrogate
  EXPECT_EQ(replace_invalid("\xF5"), "\xEF\xBF\xBD");
}

TEST(Utf8, FindsWhatIsComplete) {
  EXPECT_EQ(complete_prefix("abc"), 3U);
  EXPECT_EQ(complete_prefix("ab\xE2"), 2U);
  EXPECT_EQ(complete_prefix("ab\xE2\x82"), 2U);
  EXPECT_EQ(complete_prefix("ab\xE2\x82\xAC"), 5U);
  EXPECT_EQ(complete_prefix("\xF0\x9F\x98"), 0U);
  EXPECT_EQ(complete_prefix("a\x80"), 2U);      // never becomes a character
  EXPECT_EQ(complete_prefix("a\xE2\x28"), 3U);  // nor does this
  EXPECT_EQ(complete_prefix("\xED\xA0"), 2U);   // nor the start of a surrogate
}

}  // namespace
}  // namespace pteryx
