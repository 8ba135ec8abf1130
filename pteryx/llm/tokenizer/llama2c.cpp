// llama2.c's tokenizer.bin: a table of scores and strings.
// SPDX-License-Identifier: BSD-3-Clause
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "pteryx/base/bytes.h"
#include "pteryx/llm/tokenizer/byte_tokens.h"
#include "pteryx/llm/tokenizer/limits.h"
#include "pteryx/llm/tokenizer/sentencepiece.h"

namespace pteryx::llm {
namespace {

constexpr TokenId kFirstByte = 3;  // after unknown, begin and end

// The longest token stands alone before the table in llama2.c's own files; ExecuTorch's converter
// writes the size of the vocabulary and the two ends of a text before it.
constexpr uint64_t kShortHeader = 4;
constexpr uint64_t kLongHeader = 16;

struct Table {
  std::vector<SpmPiece> pieces;
  bool whole = false;  // the file ends with a token
};

// As many tokens as there are from a byte on, at most `most`, none empty or longer than `longest`.
Table read_table(Bytes file, uint64_t at, uint64_t most, uint32_t longest) {
  Table t;
  while (at < file.size() && t.pieces.size() < most) {
    const auto score = read_at<float>(file, at);
    const auto size = read_at<uint32_t>(file, at + 4);
    if (!score || !size || *size == 0 || *size > longest) return t;
    const auto text = slice(file, at + 8, *size);
    if (!text) return t;
    t.pieces.push_back(
        {.text = std::string(reinterpret_cast<const char*>(text->data()), text->size()),
         .score = *score});
    at += 8 + *size;
  }
  t.whole = at == file.size();
  return t;
}

void set_types(std::vector<SpmPiece>& pieces, TokenId bos, TokenId eos) {
  if (!pieces.empty()) pieces[0].type = SpmType::kUnknown;
  for (const TokenId id : {bos, eos}) {
    if (id < pieces.size()) pieces[id].type = SpmType::kControl;
  }
  for (TokenId id = kFirstByte; id < pieces.size() && id < kFirstByte + 256; ++id) {
    if (byte_of_token(pieces[id].text)) pieces[id].type = SpmType::kByte;
  }
}

}  // namespace

Result<TokenizerPtr> read_llama2c_tokenizer(Bytes file) {
  TokenId bos = 1;
  TokenId eos = 2;
  const auto longest = read_at<uint32_t>(file, 0);
  Table table;
  if (longest) table = read_table(file, kShortHeader, kMostTokens, *longest);
  if (!table.whole || table.pieces.empty()) {
    const auto size = read_at<uint32_t>(file, 0);
    const auto begin = read_at<uint32_t>(file, 4);
    const auto end = read_at<uint32_t>(file, 8);
    const auto most = read_at<uint32_t>(file, 12);
    if (!most) {
      return invalid_program(fmt::format("tokenizer.bin has {} bytes: expected a header of {}",
                                         file.size(), kLongHeader));
    }
    PTERYX_TRY(check_token_count(*size));
    table = read_table(file, kLongHeader, *size, *most);
    if (!table.whole || *begin >= *size || *end >= *size) {
      return invalid_program(fmt::format(
          "tokenizer.bin: token {} does not fit the header (size {}, begin {}, end {}, longest {})",
          table.pieces.size(), *size, *begin, *end, *most));
    }
    bos = *begin;
    eos = *end;
    table.pieces.resize(*size, {.text = "<pad>", .type = SpmType::kUnused});
  }
  set_types(table.pieces, bos, eos);
  SpmModel m = {.pieces = std::move(table.pieces), .byte_fallback = true, .space = " "};
  if (bos < m.pieces.size()) m.bos = bos;
  if (eos < m.pieces.size()) m.eos = eos;
  return make_sentencepiece(std::move(m));
}

}  // namespace pteryx::llm
