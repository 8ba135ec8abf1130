// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/llm/tokenizer/unigram.h"

#include <algorithm>
#include <limits>

#include "pteryx/base/utf8.h"

namespace pteryx::llm {
namespace {

constexpr float kUnknownPenalty = 10.0F;
constexpr uint32_t kUnknown = ~uint32_t{0};

// The best way to reach a place in a text.
struct Step {
  float score = -std::numeric_limits<float>::max();
  uint32_t begin = 0;
  uint32_t piece = kUnknown;
  bool reached = false;
};

void reach(Step& step, float score, size_t begin, uint32_t piece) {
  if (step.reached && score <= step.score) return;
  step = {.score = score, .begin = static_cast<uint32_t>(begin), .piece = piece, .reached = true};
}

}  // namespace

Unigram::Unigram(const std::vector<Piece>& pieces, TokenId unknown,
                 std::optional<std::array<TokenId, 256>> byte_tokens)
    : unknown_(unknown), byte_tokens_(byte_tokens) {
  float lowest = std::numeric_limits<float>::max();
  for (const Piece& piece : pieces) {
    if (piece.text.empty()) continue;
    trie_.insert(piece.text, static_cast<uint32_t>(ids_.size()));
    scores_.push_back(piece.score);
    ids_.push_back(piece.id);
    lowest = std::min(lowest, piece.score);
  }
  unknown_score_ = (ids_.empty() ? 0.0F : lowest) - kUnknownPenalty;
}

void Unigram::encode(std::string_view text, std::vector<TokenId>& ids) const {
  std::vector<Step> steps(text.size() + 1);
  steps[0] = {.score = 0, .reached = true};
  for (size_t at = 0, size = 0; at < text.size(); at += size) {
    size = char_at(text, at).size_bytes;
    const float here = steps[at].score;
    bool has_char = false;
    trie_.each_prefix(text, at, [&](size_t bytes, uint32_t piece) {
      reach(steps[at + bytes], here + scores_[piece], at, piece);
      has_char = has_char || bytes == size;
    });
    if (!has_char) reach(steps[at + size], here + unknown_score_, at, kUnknown);
  }
  std::vector<size_t> ends;
  for (size_t end = text.size(); end > 0; end = steps[end].begin) ends.push_back(end);
  bool after_unknown = false;
  for (auto end = ends.rbegin(); end != ends.rend(); ++end) {
    const Step& step = steps[*end];
    const bool is_unknown = step.piece == kUnknown;
    if (!is_unknown) {
      ids.push_back(ids_[step.piece]);
    } else if (byte_tokens_) {
      for (const char c : text.substr(step.begin, *end - step.begin)) {
        ids.push_back((*byte_tokens_)[static_cast<uint8_t>(c)]);
      }
    } else if (!after_unknown) {
      ids.push_back(unknown_);
    }
    after_unknown = is_unknown;
  }
}

}  // namespace pteryx::llm
