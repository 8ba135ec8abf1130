// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/llm/tokenizer/added_tokens.h"

#include <algorithm>
#include <utility>

#include "pteryx/base/utf8.h"
#include "pteryx/llm/tokenizer/unicode.h"

namespace pteryx::llm {
namespace {

bool word_before(std::string_view text, size_t end) {
  size_t start = end;
  while (start > 0 && end - start < 4) {
    --start;
    if ((static_cast<uint8_t>(text[start]) & 0xC0U) != 0x80) break;
  }
  return start != end && is_word(char_at(text, start).code);
}

bool word_after(std::string_view text, size_t at) {
  return at < text.size() && is_word(char_at(text, at).code);
}

}  // namespace

AddedTokens::AddedTokens(std::vector<AddedToken> tokens) : tokens_(std::move(tokens)) {
  for (uint32_t i = 0; i < tokens_.size(); ++i) {
    const std::string& text = tokens_[i].text;
    if (text.empty()) continue;
    starts_[static_cast<uint8_t>(text[0])] = true;
    trie_.insert(text, i);
  }
}

bool AddedTokens::fits(const AddedToken& token, std::string_view text, size_t begin,
                       size_t end) const {
  return !token.single_word || (!word_before(text, begin) && !word_after(text, end));
}

std::vector<AddedTokens::Part> AddedTokens::split(std::string_view text,
                                                  const EncodeOptions& options) const {
  std::vector<Part> parts;
  size_t done = 0;
  const auto add = [&](size_t begin, size_t end, const AddedToken* token) {
    if (begin == end && token == nullptr) return;
    parts.push_back({{static_cast<uint32_t>(begin), static_cast<uint32_t>(end)}, token});
  };
  for (size_t at = 0; at < text.size() && !trie_.empty();) {
    const auto match = starts_[static_cast<uint8_t>(text[at])] ? trie_.longest(text, at)
                                                               : std::optional<Trie::Match>();
    if (!match) {
      ++at;
      continue;
    }
    const AddedToken& token = tokens_[match->value];
    size_t begin = at;
    size_t end = at + match->size_bytes;
    at = end;
    if ((token.special && !options.parse_special) || !fits(token, text, begin, end)) continue;
    if (token.left_strip && begin > done) {
      begin -= trailing_space(text.substr(done, begin - done));
    }
    if (token.right_strip) end += leading_space(text.substr(end));
    if (begin > done) add(done, begin, nullptr);
    add(begin, end, &token);  // also where the one before took its first spaces
    done = end;
  }
  add(done, text.size(), nullptr);
  return parts;
}

}  // namespace pteryx::llm
