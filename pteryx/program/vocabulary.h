// A vocabulary as a named blob of a program: what GGUF files say about their tokenizer, in a small
// container.
//
//   "PTVOCAB1", model, pre, numbers, tokens, scores, types, merges
//
// A string is its length (u32) and its bytes; a list is its length (u32) and its items; numbers are
// pairs of a string and an i64; scores are f32, types i32. All little-endian, nothing between.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "pteryx/base/bytes.h"
#include "pteryx/base/status.h"

namespace pteryx::program {

// Under which names a program carries the texts of a language model.
inline constexpr std::string_view kTokenizerKey = "pteryx.tokenizer";
// "tokenizer.json", "sentencepiece", "llama2c" or "gguf" (what follows).
inline constexpr std::string_view kTokenizerKindKey = "pteryx.tokenizer_kind";
inline constexpr std::string_view kTokenizerConfigKey = "pteryx.tokenizer_config";
inline constexpr std::string_view kChatTemplateKey = "pteryx.chat_template";

struct Vocabulary {
  std::string model;  // "llama" (SentencePiece), "gpt2" (byte-level BPE), ...
  std::string pre;    // name of the rule that splits text first; may be empty
  // "bos_token_id", "add_bos_token", ...: the keys of tokenizer.ggml that are integers or flags.
  std::map<std::string, int64_t, std::less<>> numbers;
  std::vector<std::string> tokens;  // an id is a place here
  std::vector<float> scores;        // as many, or none
  std::vector<int32_t> types;       // as many, or none: 1 normal, 2 unknown, 3 control, 6 byte
  std::vector<std::string> merges;  // "left right", best first

  friend bool operator==(const Vocabulary&, const Vocabulary&) = default;
};

std::string write_vocabulary(const Vocabulary& v);
// Errors: kInvalidProgram.
Result<Vocabulary> read_vocabulary(Bytes bytes);

}  // namespace pteryx::program
