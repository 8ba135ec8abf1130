// tiktoken's rank files, with the special tokens of Llama 3 behind the ranks.
// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "pteryx/llm/tokenizer/limits.h"
#include "pteryx/llm/tokenizer/pipeline.h"
#include "pteryx/llm/tokenizer/presets.h"
#include "pteryx/llm/tokenizer/tokenizer.h"

namespace pteryx::llm {
namespace {

constexpr size_t kLongestToken = 1024;
constexpr TokenId kSpecials = 256;
// By place behind the ranks; the others are reserved.
constexpr std::pair<TokenId, std::string_view> kNamed[] = {
    {0, "<|begin_of_text|>"},   {1, "<|end_of_text|>"},   {4, "<|finetune_right_pad_id|>"},
    {6, "<|start_header_id|>"}, {7, "<|end_header_id|>"}, {8, "<|eom_id|>"},
    {9, "<|eot_id|>"},          {10, "<|python_tag|>"},
};

std::optional<uint32_t> base64_digit(char c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  if (c >= '0' && c <= '9') return c - '0' + 52;
  if (c == '+') return 62;
  if (c == '/') return 63;
  return std::nullopt;
}

std::optional<std::string> base64_bytes(std::string_view text) {
  if (text.empty() || text.size() % 4 != 0) return std::nullopt;
  const size_t padding = text.ends_with("==") ? 2 : text.ends_with('=') ? 1 : 0;
  text.remove_suffix(padding);
  std::string bytes;
  uint32_t bits = 0;
  uint32_t held = 0;
  for (const char c : text) {
    const auto digit = base64_digit(c);
    if (!digit) return std::nullopt;
    held = (held << 6 | *digit) & 0xFFFFU;
    bits += 6;
    if (bits < 8) continue;
    bits -= 8;
    bytes += static_cast<char>(held >> bits);
  }
  return bytes;
}

struct Line {
  std::string token;
  TokenId rank = 0;
};

Result<Line> read_line(std::string_view line, size_t number) {
  const size_t space = line.find(' ');
  Line l;
  const std::string_view rank = space == std::string_view::npos ? "" : line.substr(space + 1);
  const auto [end, error] = std::from_chars(rank.data(), rank.data() + rank.size(), l.rank);
  auto token = base64_bytes(line.substr(0, space));
  if (!token || rank.empty() || error != std::errc() || end != rank.data() + rank.size()) {
    return invalid_program(
        fmt::format("tiktoken file, line {}: expected a base64 token and its rank", number));
  }
  if (token->size() > kLongestToken) {
    return invalid_program(
        fmt::format("tiktoken file, line {}: token of {} bytes: expected at most {}", number,
                    token->size(), kLongestToken));
  }
  l.token = std::move(*token);
  return l;
}

Result<PieceMap> read_ranks(std::string_view text) {
  PieceMap pieces;
  std::vector<bool> seen;
  for (size_t number = 1; !text.empty(); ++number) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty()) continue;
    PTERYX_ASSIGN(Line l, read_line(line, number));
    PTERYX_TRY(check_token_count(size_t{l.rank} + 1));
    if (l.rank >= seen.size()) seen.resize(size_t{l.rank} + 1);
    if (seen[l.rank] || !pieces.try_emplace(std::move(l.token), l.rank).second) {
      return invalid_program(
          fmt::format("tiktoken file, line {}: rank {} or its token comes twice", number, l.rank));
    }
    seen[l.rank] = true;
  }
  if (pieces.empty()) return invalid_program("tiktoken file has no tokens");
  return pieces;
}

std::string special_name(TokenId place) {
  TokenId reserved = 0;
  for (const auto& [at, name] : kNamed) {
    if (at == place) return std::string(name);
    if (at < place) ++reserved;
  }
  return fmt::format("<|reserved_special_token_{}|>", place - reserved);
}

}  // namespace

Result<TokenizerPtr> read_tiktoken(Bytes file) {
  PTERYX_ASSIGN(PieceMap pieces,
                read_ranks({reinterpret_cast<const char*>(file.data()), file.size()}));
  TokenId count = 0;
  for (const auto& [piece, id] : pieces) count = std::max(count, id + 1);
  for (uint32_t byte = 0; byte < 256; ++byte) {
    if (pieces.contains(std::string(1, static_cast<char>(byte)))) continue;
    return invalid_program(fmt::format("tiktoken file has no token for the byte 0x{:02X}", byte));
  }
  Vocabulary v;
  v.tokens.resize(size_t{count} + kSpecials);
  for (const auto& [piece, id] : pieces) {
    v.tokens[id] = {.text = piece, .bytes = piece, .kind = TokenKind::kNormal};
  }
  std::vector<AddedToken> specials;
  for (TokenId place = 0; place < kSpecials; ++place) {
    const std::string name = special_name(place);
    specials.push_back({.text = name, .id = count + place, .special = true});
    v.tokens[count + place] = {.text = name, .bytes = name, .kind = TokenKind::kSpecial};
  }
  v.bos = count;
  v.eos = {count + 1, count + 8, count + 9};
  v.usual = {.add_bos = true};
  std::vector<uint32_t> ranks(v.tokens.size());
  for (uint32_t i = 0; i < ranks.size(); ++i) ranks[i] = i;
  PTERYX_ASSIGN(auto pre_tokenizers, preset_pre_tokenizers("llama-bpe"));
  Pipeline pipeline = {
      .added = AddedTokens(std::move(specials)),
      .pre_tokenizers = std::move(pre_tokenizers),
      .model =
          Bpe::from_ranks(std::move(pieces), ranks, {.unit = Unit::kByte, .whole_words = true}),
  };
  return TokenizerPtr(std::make_unique<PipelineTokenizer>(std::move(v), std::move(pipeline)));
}

}  // namespace pteryx::llm
