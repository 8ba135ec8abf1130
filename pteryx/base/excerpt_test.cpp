// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/base/excerpt.h"

#include <string>
#include <string_view>

#include <gtest/gtest.h>

namespace pteryx {
namespace {

TEST(Excerpt, IsOneShortLine) {
  const std::string full(200, 'x');
  const struct {
    std::string text, expected;
  } cases[] = {
      {"", ""},
      {"as it is", "as it is"},
      {"one\ntwo", "one..."},
      {"one\r\ntwo", "one..."},
      {full, full},
      {full + "y", full + "..."},
      {full.substr(1) + "\xC3\xA9", full.substr(1) + "..."},
      {full.substr(3) + "\xF0\x9F\x98\x80", full.substr(3) + "..."},
      {"\xC3\xA9\x1B[2J\t", "\xC3\xA9?[2J?"},
      {std::string(300, '\x80'), std::string(197, '\x80') + "..."},
  };
  for (const auto& c : cases) EXPECT_EQ(excerpt(c.text), c.expected) << c.text;
}

}  // namespace
}  // namespace pteryx
