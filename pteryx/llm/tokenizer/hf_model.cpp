// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/llm/tokenizer/hf_model.h"

#include <cmath>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "pteryx/base/excerpt.h"
#include "pteryx/llm/tokenizer/byte_tokens.h"
#include "pteryx/llm/tokenizer/limits.h"

namespace pteryx::llm {
namespace {

constexpr std::string_view kSpace = "\xE2\x96\x81";

Result<std::vector<Token>> read_vocab(const JsonField& vocab) {
  PTERYX_TRY(vocab.expect_object());
  PTERYX_TRY(check_token_count(vocab.size()));
  std::vector<Token> tokens(vocab.size());
  for (const auto& [text, number] : *vocab.value().object()) {
    const auto id = number.whole();
    if (!id || *id >= kMostTokens) {
      return invalid_program(fmt::format("{}: token '{}': expected an id below {}, got {}",
                                         vocab.path(), excerpt(text), kMostTokens,
                                         excerpt(number.dump())));
    }
    if (*id >= tokens.size()) tokens.resize(*id + 1);
    if (tokens[*id].kind != TokenKind::kHole) {
      return invalid_program(fmt::format("{}: tokens '{}' and '{}' have the same id {}",
                                         vocab.path(), excerpt(tokens[*id].text), excerpt(text),
                                         *id));
    }
    tokens[*id] = {.text = text, .bytes = {}, .kind = TokenKind::kNormal};
  }
  return tokens;
}

// What the model's words are made of: bytes, where the vocabulary is written in characters for
// them.
std::optional<std::string> piece_of(std::string_view text, Unit unit) {
  if (unit == Unit::kChar) return std::string(text);
  return bytes_of_characters(text);
}

// A merge is "left right" or ["left", "right"].
Status read_merge(const JsonField& json, Unit unit, std::vector<std::string>& sides) {
  std::string left;
  std::string right;
  if (json.value().array() != nullptr) {
    if (json.size() != 2) {
      return invalid_program(
          fmt::format("{}: expected two tokens, got {}", json.path(), json.size()));
    }
    PTERYX_ASSIGN(left, json.at(0).string());
    PTERYX_ASSIGN(right, json.at(1).string());
  } else {
    PTERYX_ASSIGN(const std::string both, json.string());
    const size_t space = both.find(' ');
    if (space == std::string::npos) {
      return invalid_program(
          fmt::format("{}: expected two tokens, got '{}'", json.path(), excerpt(both)));
    }
    left = both.substr(0, space);
    right = both.substr(space + 1);
  }
  auto left_piece = piece_of(left, unit);
  auto right_piece = piece_of(right, unit);
  if (!left_piece || !right_piece) {
    return invalid_program(fmt::format("{}: '{}' '{}' are not made of characters for bytes",
                                       json.path(), excerpt(left), excerpt(right)));
  }
  sides.push_back(std::move(*left_piece));
  sides.push_back(std::move(*right_piece));
  return {};
}

Result<std::vector<std::string>> read_merges(const JsonField& merges, Unit unit) {
  PTERYX_TRY(merges.expect_array());
  std::vector<std::string> sides;
  sides.reserve(merges.size() * 2);
  for (size_t i = 0; i < merges.size(); ++i) {
    PTERYX_TRY(read_merge(merges.at(i), unit, sides));
  }
  return sides;
}

std::optional<TokenId> id_of(const std::vector<Token>& tokens, std::string_view text) {
  for (TokenId id = 0; id < tokens.size(); ++id) {
    if (tokens[id].kind != TokenKind::kHole && tokens[id].text == text) return id;
  }
  return std::nullopt;
}

Result<BpeOptions> read_bpe_options(const JsonField& json, Unit unit, Vocabulary& v) {
  for (const char* const key : {"continuing_subword_prefix", "end_of_word_suffix"}) {
    PTERYX_ASSIGN(const std::string affix, json.member(key).string_or(""));
    if (!affix.empty()) return unsupported(fmt::format("{}.{} is not supported", json.path(), key));
  }
  BpeOptions options = {.unit = unit};
  PTERYX_ASSIGN(options.whole_words, json.member("ignore_merges").boolean(false));
  PTERYX_ASSIGN(options.fuse_unknown, json.member("fuse_unk").boolean(false));
  PTERYX_ASSIGN(const bool fallback, json.member("byte_fallback").boolean(false));
  if (fallback) {
    options.byte_tokens = find_byte_tokens(
        v.tokens.size(), [&](size_t id) -> std::string_view { return v.tokens[id].text; });
  }
  const JsonField unknown = json.member("unk_token");
  if (!unknown.is_null()) {
    PTERYX_ASSIGN(const std::string text, unknown.string());
    v.unknown = options.unknown = id_of(v.tokens, text);
    if (!v.unknown) {
      return invalid_program(
          fmt::format("{}: '{}' is not in the vocabulary", unknown.path(), excerpt(text)));
    }
  }
  return options;
}

WordCuts find_cuts(const std::vector<Token>& tokens) {
  WordCuts cuts{std::string(kSpace)};
  bool has_space = false;
  for (const Token& token : tokens) {
    cuts.see(token.text);
    has_space = has_space || token.text == kSpace;
  }
  return has_space ? cuts : WordCuts();
}

Result<HfModel> read_bpe(const JsonField& json, Unit unit) {
  Vocabulary v;
  PTERYX_ASSIGN(v.tokens, read_vocab(json.member("vocab")));
  PTERYX_ASSIGN(const BpeOptions options, read_bpe_options(json, unit, v));
  PieceMap pieces;
  pieces.reserve(v.tokens.size());
  for (TokenId id = 0; id < v.tokens.size(); ++id) {
    if (v.tokens[id].kind == TokenKind::kHole) continue;
    if (auto piece = piece_of(v.tokens[id].text, unit)) pieces.try_emplace(std::move(*piece), id);
  }
  PTERYX_ASSIGN(const auto sides, read_merges(json.member("merges"), unit));
  std::vector<Bpe::Merge> merges;
  merges.reserve(sides.size() / 2);
  for (size_t i = 0; i < sides.size(); i += 2) merges.push_back({sides[i], sides[i + 1]});
  PTERYX_ASSIGN(Bpe bpe, Bpe::from_merges(std::move(pieces), merges, options));
  // A word that is a token goes past the merges, so that no cut may take it apart.
  const bool may_cut = unit == Unit::kChar && !options.whole_words;
  WordCuts cuts = may_cut ? find_cuts(v.tokens) : WordCuts();
  return HfModel{std::move(v), std::move(bpe), std::move(cuts)};
}

Result<HfModel> read_unigram(const JsonField& json, Unit unit) {
  if (unit == Unit::kByte) {
    return unsupported(fmt::format("{}: Unigram over bytes is not supported", json.path()));
  }
  const JsonField vocab = json.member("vocab");
  PTERYX_TRY(vocab.expect_array());
  PTERYX_TRY(check_token_count(vocab.size()));
  Vocabulary v;
  v.tokens.reserve(vocab.size());  // the pieces below look into it
  std::vector<Unigram::Piece> pieces;
  PTERYX_ASSIGN(const TokenId unknown, json.member("unk_id").number());
  for (size_t i = 0; i < vocab.size(); ++i) {
    const JsonField entry = vocab.at(i);
    const bool is_pair = entry.value().array() != nullptr && entry.size() == 2;
    const auto number = is_pair ? entry.at(1).value().number() : std::nullopt;
    if (!number) {
      return invalid_program(fmt::format("{}: expected a token and its score", entry.path()));
    }
    PTERYX_ASSIGN(std::string text, entry.at(0).string());
    const auto score = static_cast<float>(*number);
    v.tokens.push_back({.text = std::move(text), .bytes = {}, .kind = TokenKind::kNormal});
    pieces.push_back({v.tokens.back().text, static_cast<TokenId>(i), score});
  }
  if (unknown >= v.tokens.size()) {
    return invalid_program(
        fmt::format("{}.unk_id: expected below {}, got {}", json.path(), v.tokens.size(), unknown));
  }
  v.unknown = unknown;
  std::optional<std::array<TokenId, 256>> bytes;
  PTERYX_ASSIGN(const bool fallback, json.member("byte_fallback").boolean(false));
  if (fallback) {
    bytes = find_byte_tokens(v.tokens.size(),
                             [&](size_t id) -> std::string_view { return v.tokens[id].text; });
  }
  Unigram model(pieces, unknown, bytes);
  WordCuts cuts = find_cuts(v.tokens);
  return HfModel{std::move(v), std::move(model), std::move(cuts)};
}

}  // namespace

Result<HfModel> read_hf_model(const JsonField& json, Unit unit) {
  const JsonField type_field = json.member("type");
  PTERYX_ASSIGN(const std::string type, type_field.string_or("BPE"));
  if (type == "BPE") return read_bpe(json, unit);
  if (type == "Unigram") return read_unigram(json, unit);
  return unsupported(fmt::format("{}: '{}' is not supported (expected BPE or Unigram)",
                                 type_field.path(), excerpt(type)));
}

}  // namespace pteryx::llm
