// Which kind of tokenizer a file holds. SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <string_view>

#include "pteryx/llm/tokenizer/tokenizer.h"

namespace pteryx::llm {
namespace {

// A first line of base64, a space and a number.
bool looks_like_tiktoken(std::string_view text) {
  const std::string_view line = text.substr(0, text.find('\n')).substr(0, 2048);
  const size_t space = line.find(' ');
  if (space == 0 || space == std::string_view::npos || space % 4 != 0) return false;
  return std::all_of(line.begin(), line.end(), [](char c) { return c >= ' ' && c <= '~'; });
}

std::string_view text_of(Bytes file) {
  return {reinterpret_cast<const char*>(file.data()), file.size()};
}

constexpr std::string_view kSpaces = " \t\r\n";

}  // namespace

TokenizerFile tokenizer_file(Bytes file) {
  const std::string_view text = text_of(file);
  const size_t first = text.find_first_not_of(kSpaces);
  if (first != std::string_view::npos && text[first] == '{') return TokenizerFile::kHuggingFace;
  if (looks_like_tiktoken(text)) return TokenizerFile::kTiktoken;
  // A protocol buffer of tokens starts with its field 1; a table starts with a number of three
  // zero bytes or so, which as a first field would be an empty token.
  if (text.size() > 1 && text[0] == '\n' && text[1] != '\0') return TokenizerFile::kSentencePiece;
  return TokenizerFile::kLlama2c;
}

std::string_view name(TokenizerFile kind) {
  switch (kind) {
    case TokenizerFile::kHuggingFace: return "tokenizer.json";
    case TokenizerFile::kSentencePiece: return "sentencepiece";
    case TokenizerFile::kTiktoken: return "tiktoken";
    case TokenizerFile::kLlama2c: return "llama2c";
  }
  return "?";
}

Result<TokenizerPtr> read_tokenizer(Bytes file) {
  if (text_of(file).find_first_not_of(kSpaces) == std::string_view::npos) {
    return invalid_program("tokenizer file is empty");
  }
  switch (tokenizer_file(file)) {
    case TokenizerFile::kHuggingFace: return read_hf_tokenizer(file);
    case TokenizerFile::kTiktoken: return read_tiktoken(file);
    case TokenizerFile::kSentencePiece: return read_sentencepiece(file);
    case TokenizerFile::kLlama2c: break;
  }
  return read_llama2c_tokenizer(file);
}

}  // namespace pteryx::llm
