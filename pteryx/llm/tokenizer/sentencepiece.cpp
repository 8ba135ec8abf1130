// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/llm/tokenizer/sentencepiece.h"

#include <cmath>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "pteryx/base/excerpt.h"
#include "pteryx/base/order.h"
#include "pteryx/base/utf8.h"
#include "pteryx/llm/tokenizer/byte_tokens.h"

namespace pteryx::llm {
namespace {

constexpr size_t kLongestPiece = 1024;

using Segmenter = std::variant<Bpe, Unigram>;

class SentencePieceTokenizer final : public Tokenizer {
 public:
  SentencePieceTokenizer(Vocabulary vocabulary, SpmModel model, Segmenter segmenter, WordCuts cuts);

 protected:
  Status encode_text(std::string_view text, const EncodeOptions& options,
                     std::vector<TokenId>& ids) const override;

 private:
  std::string normal_form(std::string_view text) const;
  // What the first characters of a text become, and how many bytes they are.
  std::pair<std::string_view, size_t> normal_prefix(std::string_view text) const;
  void encode_normal(std::string_view text, WordCache& cache, std::vector<TokenId>& ids) const;

  SpmModel model_;
  Segmenter segmenter_;
  WordCuts cuts_;
  AddedTokens controls_;
  Trie user_defined_;  // to ids
};

SentencePieceTokenizer::SentencePieceTokenizer(Vocabulary v, SpmModel model, Segmenter segmenter,
                                               WordCuts cuts)
    : Tokenizer(std::move(v)),
      model_(std::move(model)),
      segmenter_(std::move(segmenter)),
      cuts_(std::move(cuts)) {
  std::vector<AddedToken> controls;
  for (TokenId id = 0; id < model_.pieces.size(); ++id) {
    const SpmPiece& piece = model_.pieces[id];
    if (piece.text.empty()) continue;
    if (piece.type == SpmType::kUserDefined) user_defined_.insert(piece.text, id);
    if (piece.type == SpmType::kControl) {
      controls.push_back({.text = piece.text, .id = id, .special = true});
    }
  }
  controls_ = AddedTokens(std::move(controls));
}

std::pair<std::string_view, size_t> SentencePieceTokenizer::normal_prefix(
    std::string_view text) const {
  if (const auto own = user_defined_.longest(text, 0)) {
    return {text.substr(0, own->size_bytes), own->size_bytes};
  }
  if (const auto match = model_.charsmap.longest(text)) {
    return {match->replacement, match->size_bytes};
  }
  const Utf8Char c = char_at(text, 0);
  if (!c.valid) return {"\xEF\xBF\xBD", 1};
  return {text.substr(0, c.size_bytes), c.size_bytes};
}

std::string SentencePieceTokenizer::normal_form(std::string_view text) const {
  std::string out;
  out.reserve(text.size() * 5 / 4 + 8);
  bool after_space = model_.remove_extra_spaces;
  bool started = false;
  while (!text.empty()) {
    auto [normal, size] = normal_prefix(text);
    text.remove_prefix(size);
    while (after_space && normal.starts_with(' ')) normal.remove_prefix(1);
    if (normal.empty()) continue;
    if (!std::exchange(started, true) && model_.dummy_prefix) out += model_.space;
    for (const char c : normal) {
      if (c == ' ') {
        out += model_.space;
      } else {
        out += c;
      }
    }
    after_space = model_.remove_extra_spaces && normal.ends_with(' ');
  }
  while (model_.remove_extra_spaces && out.ends_with(model_.space)) {
    out.resize(out.size() - model_.space.size());
  }
  return out;
}

void SentencePieceTokenizer::encode_normal(std::string_view text, WordCache& cache,
                                           std::vector<TokenId>& ids) const {
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = cuts_.next_cut(text, begin);
    const std::string_view word = text.substr(begin, end - begin);
    if (const auto* const bpe = std::get_if<Bpe>(&segmenter_)) {
      bpe->encode(word, cache, ids);
    } else {
      std::get_if<Unigram>(&segmenter_)->encode(word, ids);
    }
    begin = end;
  }
}

Status SentencePieceTokenizer::encode_text(std::string_view text, const EncodeOptions& options,
                                           std::vector<TokenId>& ids) const {
  WordCache cache(text.size());
  for (const auto& [span, control] : controls_.split(text, options)) {
    if (control != nullptr) {
      ids.push_back(control->id);
      continue;
    }
    const std::string normal = normal_form(text.substr(span.begin, span.end - span.begin));
    // Pieces of the user's are never joined with what is beside them.
    size_t done = 0;
    for (size_t at = 0; at < normal.size() && !user_defined_.empty();) {
      const auto own = user_defined_.longest(normal, at);
      if (!own) {
        at += char_at(normal, at).size_bytes;
        continue;
      }
      encode_normal(std::string_view(normal).substr(done, at - done), cache, ids);
      ids.push_back(own->value);
      done = at += own->size_bytes;
    }
    encode_normal(std::string_view(normal).substr(done), cache, ids);
  }
  return {};
}

std::string spaces_back(std::string_view piece, std::string_view space) {
  std::string out;
  for (size_t at = 0; at < piece.size();) {
    const bool is_space = piece.substr(at).starts_with(space);
    out += is_space ? ' ' : piece[at];
    at += is_space ? space.size() : 1;
  }
  return out;
}

Vocabulary make_vocabulary(const SpmModel& m) {
  Vocabulary v;
  for (TokenId id = 0; id < m.pieces.size(); ++id) {
    const SpmPiece& piece = m.pieces[id];
    Token token = {.text = piece.text, .bytes = {}, .kind = TokenKind::kNormal};
    switch (piece.type) {
      case SpmType::kUnknown:
        token.kind = TokenKind::kUnknown;
        token.bytes = m.unknown_surface;
        v.unknown = id;
        break;
      case SpmType::kControl: token.kind = TokenKind::kSpecial; break;
      case SpmType::kByte:
        token.kind = TokenKind::kByte;
        token.bytes = std::string(1, static_cast<char>(*byte_of_token(piece.text)));
        break;
      case SpmType::kUserDefined: token.kind = TokenKind::kAdded; [[fallthrough]];
      default: token.bytes = spaces_back(piece.text, m.space);
    }
    v.tokens.push_back(std::move(token));
  }
  v.bos = m.bos;
  if (m.eos) v.eos = {*m.eos};
  v.usual = {.add_bos = m.bos.has_value()};
  if (m.dummy_prefix) v.leading = {.most = 1};
  if (m.remove_extra_spaces) v.leading = {.most = UINT32_MAX};
  return v;
}

Status check_pieces(const SpmModel& m) {
  if (m.pieces.empty()) return invalid_program("tokenizer has no tokens");
  for (TokenId id = 0; id < m.pieces.size(); ++id) {
    const SpmPiece& piece = m.pieces[id];
    if (piece.text.size() > kLongestPiece) {
      return invalid_program(fmt::format("token {} has {} bytes: expected at most {}", id,
                                         piece.text.size(), kLongestPiece));
    }
    if (std::isnan(piece.score)) {
      return invalid_program(fmt::format("token {} ('{}'): its score is not a number", id,
                                         excerpt(replace_invalid(piece.text))));
    }
    if (piece.type == SpmType::kByte && !byte_of_token(piece.text)) {
      return invalid_program(fmt::format("token {}: expected a byte such as '<0x0A>', got '{}'", id,
                                         excerpt(replace_invalid(piece.text))));
    }
  }
  for (const auto& end : {m.bos, m.eos}) {
    if (end && *end >= m.pieces.size()) {
      return invalid_program(
          fmt::format("begin or end token {}: expected below {}", *end, m.pieces.size()));
    }
  }
  return {};
}

bool segments(const SpmPiece& piece) {
  return !piece.text.empty() &&
         (piece.type == SpmType::kNormal || piece.type == SpmType::kUserDefined);
}

// Equal scores are one rank: then the pair further left goes first.
std::vector<uint32_t> ranks_by_score(const std::vector<SpmPiece>& pieces) {
  const std::vector<uint32_t> order = sorted_places(
      pieces.size(), [&](uint32_t a, uint32_t b) { return pieces[a].score > pieces[b].score; });
  std::vector<uint32_t> ranks(pieces.size());
  for (uint32_t i = 1; i < order.size(); ++i) {
    const bool tie = pieces[order[i]].score == pieces[order[i - 1]].score;
    ranks[order[i]] = tie ? ranks[order[i - 1]] : i;
  }
  return ranks;
}

Segmenter make_segmenter(const SpmModel& m, std::optional<TokenId> unknown) {
  std::optional<std::array<TokenId, 256>> bytes;
  if (m.byte_fallback) {
    bytes = find_byte_tokens(m.pieces.size(), [&](size_t id) -> std::string_view {
      return m.pieces[id].type == SpmType::kByte ? m.pieces[id].text : std::string_view();
    });
  }
  if (!m.unigram) {
    PieceMap pieces;
    for (TokenId id = 0; id < m.pieces.size(); ++id) {
      if (segments(m.pieces[id])) pieces.try_emplace(m.pieces[id].text, id);
    }
    const BpeOptions options = {
        .unit = Unit::kChar, .fuse_unknown = true, .unknown = unknown, .byte_tokens = bytes};
    return Bpe::from_ranks(std::move(pieces), ranks_by_score(m.pieces), options);
  }
  std::vector<Unigram::Piece> pieces;
  for (TokenId id = 0; id < m.pieces.size(); ++id) {
    const SpmPiece& p = m.pieces[id];
    if (p.type == SpmType::kNormal) pieces.push_back({p.text, id, p.score});
  }
  return Unigram(pieces, unknown.value_or(0), bytes);
}

}  // namespace

Result<TokenizerPtr> make_sentencepiece(SpmModel model) {
  PTERYX_TRY(check_pieces(model));
  Vocabulary vocabulary = make_vocabulary(model);
  WordCuts cuts(model.space);
  bool has_space = false;
  for (const SpmPiece& piece : model.pieces) {
    if (!segments(piece)) continue;
    cuts.see(piece.text);
    has_space = has_space || piece.text == model.space;
  }
  if (!has_space) cuts = WordCuts();
  Segmenter segmenter = make_segmenter(model, vocabulary.unknown);
  return TokenizerPtr(std::make_unique<SentencePieceTokenizer>(
      std::move(vocabulary), std::move(model), std::move(segmenter), std::move(cuts)));
}

}  // namespace pteryx::llm
