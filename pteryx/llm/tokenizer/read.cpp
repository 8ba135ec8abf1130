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

}  // namespace

Result<TokenizerPtr> read_tokenizer(Bytes file) {
  const std::string_view text(reinterpret_cast<const char*>(file.data()), file.size());
  const size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return invalid_program("tokenizer file is empty");
  if (text[first] == '{') return read_hf_tokenizer(file);
  if (looks_like_tiktoken(text)) return read_tiktoken(file);
  // A protocol buffer of tokens starts with its field 1; a table starts with a number of three
  // zero bytes or so, which as a first field would be an empty token.
  if (text[0] == '\n' && text.size() > 1 && text[1] != '\0') return read_sentencepiece(file);
  return read_llama2c_tokenizer(file);
}

}  // namespace pteryx::llm
