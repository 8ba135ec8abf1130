// Where a text may be cut before a space without a token that would have reached across: long texts
// then become short words, each merged on its own.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <string_view>

namespace pteryx::llm {

class WordCuts {
 public:
  WordCuts() = default;  // cuts nowhere
  explicit WordCuts(std::string space) : space_(std::move(space)) {}

  // Every token must pass here; one that has a space behind something else ends all cuts.
  void see(std::string_view token) {
    if (next_cut(token, 0) != token.size()) space_.clear();
  }

  // The end of the word that starts at `at`: before the first space that follows something else.
  size_t next_cut(std::string_view text, size_t at) const {
    if (space_.empty()) return text.size();
    size_t end = at;
    while (text.substr(end).starts_with(space_)) end += space_.size();
    const size_t cut = text.find(space_, end);
    return cut == std::string_view::npos ? text.size() : cut;
  }

 private:
  std::string space_;
};

}  // namespace pteryx::llm
