// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/base/excerpt.h"

#include <algorithm>
#include <cstdint>

namespace pteryx {
namespace {

bool continues_character(char c) { return (static_cast<uint8_t>(c) & 0xC0) == 0x80; }
bool is_control(char c) { return static_cast<uint8_t>(c) < 0x20 || c == 0x7F; }

}  // namespace

std::string excerpt(std::string_view text) {
  const std::string_view head = text.substr(0, kLongestExcerpt + 1);
  const size_t line = std::min(head.find_first_of("\r\n"), head.size());
  size_t size = std::min(line, kLongestExcerpt);
  // A character of UTF-8 is kept or dropped whole.
  for (size_t i = 0; i < 3 && size < line && size > 0 && continues_character(text[size]); ++i) {
    --size;
  }
  std::string out(text.substr(0, size));
  std::replace_if(out.begin(), out.end(), is_control, '?');
  if (size < text.size()) out += "...";
  return out;
}

}  // namespace pteryx
