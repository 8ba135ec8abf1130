// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/llm/tokenizer/embedded.h"

#include <optional>
#include <utility>

#include <fmt/format.h>

#include "pteryx/base/checked.h"
#include "pteryx/program/vocabulary.h"

namespace pteryx::llm {
namespace {

// Negative: the file has none.
Result<std::optional<TokenId>> id_of(const program::Vocabulary& v, std::string_view key) {
  const auto at = v.numbers.find(key);
  if (at == v.numbers.end() || at->second < 0) return std::optional<TokenId>();
  if (!fits<TokenId>(at->second)) {
    return invalid_program(
        fmt::format("GGUF tokenizer: {} {}: expected below {}", key, at->second, v.tokens.size()));
  }
  return std::optional(static_cast<TokenId>(at->second));
}
std::optional<bool> flag_of(const program::Vocabulary& v, std::string_view key) {
  const auto at = v.numbers.find(key);
  return at == v.numbers.end() ? std::nullopt : std::optional(at->second != 0);
}

}  // namespace

Result<TokenizerPtr> read_gguf_tokenizer(Bytes bytes) {
  PTERYX_ASSIGN(program::Vocabulary v, program::read_vocabulary(bytes));
  PTERYX_ASSIGN(const auto bos, id_of(v, "bos_token_id"));
  PTERYX_ASSIGN(const auto eos, id_of(v, "eos_token_id"));
  PTERYX_ASSIGN(const auto unknown, id_of(v, "unknown_token_id"));
  return make_gguf_tokenizer({.model = v.model,
                              .pre = v.pre,
                              .tokens = std::move(v.tokens),
                              .scores = std::move(v.scores),
                              .types = std::move(v.types),
                              .merges = std::move(v.merges),
                              .bos = bos,
                              .eos = eos,
                              .unknown = unknown,
                              .add_bos = flag_of(v, "add_bos_token"),
                              .add_eos = flag_of(v, "add_eos_token"),
                              .add_space_prefix = flag_of(v, "add_space_prefix")});
}

Result<TokenizerPtr> read_embedded_tokenizer(Bytes tokenizer, std::string_view kind) {
  return kind == "gguf" ? read_gguf_tokenizer(tokenizer) : read_tokenizer(tokenizer);
}

Status check_fit(const Tokenizer& tokenizer, int64_t vocabulary) {
  if (std::cmp_less_equal(tokenizer.size(), vocabulary)) return {};
  return invalid_program(fmt::format(
      "the tokenizer has {} tokens, the model's vocabulary {}: it belongs to another model",
      tokenizer.size(), vocabulary));
}

}  // namespace pteryx::llm
