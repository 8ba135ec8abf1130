// Which of a set of byte strings a text starts with.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "pteryx/llm/tokenizer/pair_table.h"

namespace pteryx::llm {

class Trie {
 public:
  struct Match {
    size_t size_bytes = 0;
    uint32_t value = 0;
  };

  bool empty() const { return values_.size() == 1; }

  // The first value of a key stays. The key is not empty, the value is below 2^32 - 1.
  void insert(std::string_view key, uint32_t value) {
    uint32_t node = 0;
    for (const char c : key) {
      const auto next = static_cast<uint32_t>(values_.size());
      if (edges_.insert(node, byte_of(c), 0, next)) values_.push_back(kNone);
      node = edges_.find(node, byte_of(c))->id;
    }
    if (values_[node] == kNone) values_[node] = value;
  }

  // Calls visit(size_bytes, value) for every key that the text has at a place, shortest first.
  template <typename Visit>
  void each_prefix(std::string_view text, size_t at, Visit visit) const {
    uint32_t node = 0;
    for (size_t i = at; i < text.size(); ++i) {
      const PairTable::Entry* const edge = edges_.find(node, byte_of(text[i]));
      if (edge == nullptr) return;
      node = edge->id;
      if (values_[node] != kNone) visit(i + 1 - at, values_[node]);
    }
  }

  std::optional<Match> longest(std::string_view text, size_t at) const {
    std::optional<Match> best;
    each_prefix(text, at, [&](size_t size, uint32_t value) { best = Match{size, value}; });
    return best;
  }

 private:
  static constexpr uint32_t kNone = ~uint32_t{0};
  static uint32_t byte_of(char c) { return static_cast<uint8_t>(c); }

  PairTable edges_;
  std::vector<uint32_t> values_ = {kNone};  // by node
};

}  // namespace pteryx::llm
