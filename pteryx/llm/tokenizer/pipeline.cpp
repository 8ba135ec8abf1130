// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/llm/tokenizer/pipeline.h"

#include <string>
#include <utility>

#include "pteryx/base/utf8.h"

namespace pteryx::llm {

struct PipelineTokenizer::Call {
  const EncodeOptions& options;
  std::vector<TokenId>& ids;
  WordCache cache;
};

PipelineTokenizer::PipelineTokenizer(Vocabulary vocabulary, Pipeline pipeline)
    : Tokenizer(std::move(vocabulary)), pipeline_(std::move(pipeline)) {}

Status PipelineTokenizer::encode_text(std::string_view text, const EncodeOptions& options,
                                      std::vector<TokenId>& ids) const {
  Call call{options, ids, WordCache(text.size())};
  if (pipeline_.unit == Unit::kChar) {
    return is_utf8(text) ? encode_valid(text, true, call)
                         : encode_valid(replace_invalid(text), true, call);
  }
  // A vocabulary of bytes keeps what is not UTF-8 as it is, between the texts around it.
  for (size_t begin = 0; begin < text.size();) {
    size_t end = begin;
    while (end < text.size()) {
      const Utf8Char c = char_at(text, end);
      if (!c.valid) break;
      end += c.size_bytes;
    }
    if (end != begin) {
      PTERYX_TRY(encode_valid(text.substr(begin, end - begin), begin == 0, call));
    }
    if (end != text.size()) {
      const size_t size = char_at(text, end).size_bytes;
      encode_word(text.substr(end, size), call);
      end += size;
    }
    begin = end;
  }
  return {};
}

Status PipelineTokenizer::encode_valid(std::string_view text, bool at_start, Call& call) const {
  for (const auto& [span, token] : pipeline_.added.split(text, call.options)) {
    if (token != nullptr) {
      call.ids.push_back(token->id);
      continue;
    }
    const std::string_view part = text.substr(span.begin, span.end - span.begin);
    PTERYX_TRY(encode_normal(part, at_start && span.begin == 0, call));
  }
  return {};
}

Status PipelineTokenizer::encode_normal(std::string_view text, bool at_start, Call& call) const {
  std::string normal;
  if (!pipeline_.normalizers.empty()) {
    PTERYX_ASSIGN(normal, apply_normalizers(pipeline_.normalizers, text));
    text = normal;
  }
  for (const auto& [span, token] : pipeline_.added_normalized.split(text, call.options)) {
    if (token != nullptr) {
      call.ids.push_back(token->id);
      continue;
    }
    const std::string_view part = text.substr(span.begin, span.end - span.begin);
    PTERYX_TRY(encode_words(part, at_start && span.begin == 0, call));
  }
  return {};
}

Status PipelineTokenizer::encode_words(std::string_view text, bool at_start, Call& call) const {
  PTERYX_ASSIGN(const Pieces pieces,
                pre_tokenize(pipeline_.pre_tokenizers, std::string(text), at_start));
  for (const Span span : pieces.spans) {
    const std::string_view piece = pieces[span];
    for (size_t begin = 0; begin < piece.size();) {
      const size_t end = pipeline_.cuts.next_cut(piece, begin);
      encode_word(piece.substr(begin, end - begin), call);
      begin = end;
    }
  }
  return {};
}

void PipelineTokenizer::encode_word(std::string_view word, Call& call) const {
  if (const auto* const bpe = std::get_if<Bpe>(&pipeline_.model)) {
    bpe->encode(word, call.cache, call.ids);
  } else {
    std::get_if<Unigram>(&pipeline_.model)->encode(word, call.ids);
  }
}

}  // namespace pteryx::llm
