// The tokenizers that GGUF files hold as arrays.
// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "pteryx/base/excerpt.h"
#include "pteryx/base/utf8.h"
#include "pteryx/llm/tokenizer/byte_tokens.h"
#include "pteryx/llm/tokenizer/limits.h"
#include "pteryx/llm/tokenizer/pipeline.h"
#include "pteryx/llm/tokenizer/presets.h"
#include "pteryx/llm/tokenizer/sentencepiece.h"
#include "pteryx/llm/tokenizer/special_names.h"
#include "pteryx/llm/tokenizer/tokenizer.h"

namespace pteryx::llm {
namespace {

Status check(const GgufVocabulary& g) {
  if (g.tokens.empty()) return invalid_program("GGUF tokenizer has no tokens");
  PTERYX_TRY(check_token_count(g.tokens.size()));
  if (!g.types.empty() && g.types.size() != g.tokens.size()) {
    return invalid_program(fmt::format("GGUF tokenizer: expected {} token types, got {}",
                                       g.tokens.size(), g.types.size()));
  }
  for (size_t id = 0; id < g.tokens.size(); ++id) {
    if (!is_utf8(g.tokens[id])) {
      return invalid_program(fmt::format("GGUF tokenizer: token {} is not UTF-8", id));
    }
    if (!g.types.empty() && (g.types[id] < 1 || g.types[id] > 6)) {
      return invalid_program(fmt::format(
          "GGUF tokenizer: token {} has the type {}: expected 1 to 6", id, g.types[id]));
    }
  }
  const std::pair<const char*, std::optional<TokenId>> ends[] = {
      {"bos", g.bos}, {"eos", g.eos}, {"unknown", g.unknown}};
  for (const auto& [name, id] : ends) {
    if (id && *id >= g.tokens.size()) {
      return invalid_program(fmt::format("GGUF tokenizer: {} token {}: expected below {}", name,
                                         *id, g.tokens.size()));
    }
  }
  return {};
}

SpmType type_of(const GgufVocabulary& g, size_t id) {
  return g.types.empty() ? SpmType::kNormal : static_cast<SpmType>(g.types[id]);
}

struct ByteLevel {
  Vocabulary vocabulary;
  PieceMap pieces;
  std::vector<AddedToken> added;
};

ByteLevel read_tokens(const GgufVocabulary& g) {
  ByteLevel b;
  b.pieces.reserve(g.tokens.size());
  b.vocabulary.tokens.reserve(g.tokens.size());
  for (TokenId id = 0; id < g.tokens.size(); ++id) {
    const SpmType type = type_of(g, id);
    const std::string& text = g.tokens[id];
    Token token = {.text = text, .bytes = text, .kind = TokenKind::kNormal};
    auto bytes = bytes_of_characters(text);
    if (type == SpmType::kControl || type == SpmType::kUserDefined) {
      const bool special = type == SpmType::kControl;
      token.kind = special ? TokenKind::kSpecial : TokenKind::kAdded;
      b.added.push_back({.text = text, .id = id, .special = special});
    } else if (bytes) {
      token.bytes = *bytes;
      b.pieces.try_emplace(std::move(*bytes), id);
    }
    b.vocabulary.tokens.push_back(std::move(token));
  }
  b.vocabulary.bos = g.bos;
  b.vocabulary.unknown = g.unknown;
  if (g.eos) b.vocabulary.eos = {*g.eos};
  add_known_ends(b.vocabulary);
  b.vocabulary.usual = {.add_bos = g.add_bos.value_or(false), .add_eos = g.add_eos.value_or(false)};
  return b;
}

// "left right" as bytes, two strings each.
Result<std::vector<std::string>> read_merges(const GgufVocabulary& g) {
  std::vector<std::string> sides;
  sides.reserve(g.merges.size() * 2);
  for (size_t i = 0; i < g.merges.size(); ++i) {
    const std::string_view merge = g.merges[i];
    const size_t space = merge.find(' ');
    auto left = bytes_of_characters(merge.substr(0, space));
    auto right = space == std::string_view::npos ? std::nullopt
                                                 : bytes_of_characters(merge.substr(space + 1));
    if (!left || !right || left->empty() || right->empty()) {
      return invalid_program(fmt::format("GGUF tokenizer: merge {} ('{}'): expected two tokens", i,
                                         excerpt(replace_invalid(merge))));
    }
    sides.push_back(std::move(*left));
    sides.push_back(std::move(*right));
  }
  return sides;
}

Result<TokenizerPtr> make_byte_level(const GgufVocabulary& g) {
  PTERYX_ASSIGN(const auto sides, read_merges(g));
  std::vector<Bpe::Merge> merges;
  merges.reserve(sides.size() / 2);
  for (size_t i = 0; i < sides.size(); i += 2) merges.push_back({sides[i], sides[i + 1]});
  ByteLevel b = read_tokens(g);
  const std::string_view pre = g.pre.empty() ? "default" : std::string_view(g.pre);
  PTERYX_ASSIGN(auto pre_tokenizers, preset_pre_tokenizers(pre));
  PTERYX_ASSIGN(Bpe bpe, Bpe::from_merges(
                             std::move(b.pieces), merges,
                             {.whole_words = preset_takes_whole_words(pre), .unknown = g.unknown}));
  Pipeline pipeline = {.added = AddedTokens(std::move(b.added)),
                       .pre_tokenizers = std::move(pre_tokenizers),
                       .model = std::move(bpe)};
  return TokenizerPtr(
      std::make_unique<PipelineTokenizer>(std::move(b.vocabulary), std::move(pipeline)));
}

Result<TokenizerPtr> make_scored(const GgufVocabulary& g) {
  if (g.scores.size() != g.tokens.size()) {
    return invalid_program(fmt::format("GGUF tokenizer: expected {} scores, got {}",
                                       g.tokens.size(), g.scores.size()));
  }
  SpmModel m = {.byte_fallback = true,
                .dummy_prefix = g.add_space_prefix.value_or(true),
                .bos = g.bos,
                .eos = g.eos};
  for (size_t id = 0; id < g.tokens.size(); ++id) {
    m.pieces.push_back({.text = g.tokens[id], .score = g.scores[id], .type = type_of(g, id)});
  }
  return make_sentencepiece(std::move(m));
}

}  // namespace

Result<TokenizerPtr> make_gguf_tokenizer(const GgufVocabulary& gguf) {
  PTERYX_TRY(check(gguf));
  if (gguf.model == "gpt2") return make_byte_level(gguf);
  if (gguf.model == "llama") return make_scored(gguf);
  return unsupported(fmt::format("GGUF tokenizer '{}' is not supported (expected gpt2 or llama)",
                                 excerpt(gguf.model)));
}

}  // namespace pteryx::llm
