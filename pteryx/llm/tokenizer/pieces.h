// A text and how it is cut so far.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace pteryx::llm {

struct Span {
  uint32_t begin = 0;
  uint32_t end = 0;
  bool empty() const { return begin == end; }
  bool operator==(const Span&) const = default;
};

struct Pieces {
  std::string text;
  std::vector<Span> spans;  // none is empty

  std::string_view operator[](Span s) const {
    return std::string_view(text).substr(s.begin, s.end - s.begin);
  }
};

}  // namespace pteryx::llm
