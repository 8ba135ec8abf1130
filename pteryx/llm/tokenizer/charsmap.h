// SentencePiece's table of replacements: a double-array trie over the strings it leads to.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pteryx/base/status.h"

namespace pteryx::llm {

class Charsmap {
 public:
  Charsmap() = default;  // replaces nothing
  // Errors: kInvalidProgram when the sizes contradict each other.
  static Result<Charsmap> read(std::string_view blob);

  struct Match {
    size_t size_bytes = 0;
    std::string_view replacement;
  };
  // The longest entry that the text starts with.
  std::optional<Match> longest(std::string_view text) const;

 private:
  std::vector<uint32_t> units_;
  std::string strings_;  // each ends with a zero byte
};

}  // namespace pteryx::llm
