// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/llm/tokenizer/unicode.h"

#include <gtest/gtest.h>

namespace pteryx::llm {
namespace {

TEST(Unicode, MeasuresSpaceAtBothEnds) {
  EXPECT_EQ(leading_space(" \t\xE3\x80\x80x "), 5U);
  EXPECT_EQ(trailing_space(" x\xC2\xA0\n"), 3U);
  EXPECT_EQ(trailing_space("\xE1\xA0\x8E"), 0U);  // U+180E is no space any more
  EXPECT_EQ(leading_space(""), 0U);
}

}  // namespace
}  // namespace pteryx::llm
