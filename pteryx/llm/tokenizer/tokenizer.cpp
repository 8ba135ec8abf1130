// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/llm/tokenizer/tokenizer.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "pteryx/base/utf8.h"

namespace pteryx::llm {
namespace {

constexpr size_t kLongestText = size_t{1} << 30;  // places in a text are 32 bits

}  // namespace

Tokenizer::Tokenizer(Vocabulary vocabulary) : vocabulary_(std::move(vocabulary)) {
  by_text_.reserve(size());
  for (TokenId id = 0; id < size(); ++id) {
    const Token& token = vocabulary_.tokens[id];
    if (token.kind != TokenKind::kHole) by_text_.try_emplace(token.text, id);
  }
}

Result<std::vector<TokenId>> Tokenizer::encode(std::string_view text,
                                               const EncodeOptions& options) const {
  if (text.size() > kLongestText) {
    return invalid_argument(
        fmt::format("text of {} bytes: expected at most {}", text.size(), kLongestText));
  }
  std::vector<TokenId> ids;
  ids.reserve(text.size() / 4 + 4);
  const Vocabulary& v = vocabulary_;
  if (options.add_bos) {
    ids.insert(ids.end(), v.prefix.begin(), v.prefix.end());
    if (v.prefix.empty() && v.bos) ids.push_back(*v.bos);
  }
  PTERYX_TRY(encode_text(text, options, ids));
  if (options.add_eos) {
    ids.insert(ids.end(), v.suffix.begin(), v.suffix.end());
    if (v.suffix.empty() && !v.eos.empty()) ids.push_back(v.eos.front());
  }
  return ids;
}

Status Tokenizer::append_token(TokenId id, Specials specials, uint32_t& spaces,
                               std::string& text) const {
  if (id >= size() || vocabulary_.tokens[id].kind == TokenKind::kHole) {
    return invalid_argument(
        fmt::format("token {} is not in the vocabulary: expected below {}", id, size()));
  }
  const Token& token = vocabulary_.tokens[id];
  if (token.kind == TokenKind::kSpecial) {
    if (specials == Specials::kSkip) return {};
    spaces = 0;
    text += token.text;
    return {};
  }
  std::string_view bytes = token.bytes;
  while (spaces > 0 && bytes.starts_with(' ') && token.kind != TokenKind::kUnknown) {
    bytes.remove_prefix(1);
    --spaces;
  }
  if (!bytes.empty() || vocabulary_.leading.first_token_only) spaces = 0;
  text += bytes;
  return {};
}

Result<std::string> Tokenizer::decode(std::span<const TokenId> ids, Specials specials,
                                      TextStart start) const {
  std::string text;
  uint32_t spaces = leading_spaces(start);
  for (const TokenId id : ids) PTERYX_TRY(append_token(id, specials, spaces, text));
  return text;
}

std::optional<TokenId> Tokenizer::find(std::string_view token_text) const {
  const auto it = by_text_.find(token_text);
  if (it == by_text_.end()) return std::nullopt;
  return it->second;
}

bool Tokenizer::ends_text(TokenId id) const {
  return std::find(vocabulary_.eos.begin(), vocabulary_.eos.end(), id) != vocabulary_.eos.end();
}

StreamDecoder::StreamDecoder(const Tokenizer& tokenizer, Specials specials, TextStart start)
    : tokenizer_(tokenizer), specials_(specials), spaces_(tokenizer.leading_spaces(start)) {}

Result<std::string> StreamDecoder::push(TokenId id) {
  PTERYX_TRY(tokenizer_.append_token(id, specials_, spaces_, held_));
  const size_t ready = complete_prefix(held_);
  std::string text = replace_invalid(std::string_view(held_).substr(0, ready));
  held_.erase(0, ready);
  return text;
}

std::string StreamDecoder::finish() { return replace_invalid(std::exchange(held_, {})); }

}  // namespace pteryx::llm
