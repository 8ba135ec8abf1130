// Byte-pair encoding: units of a word are joined, the best pair first, until no pair of neighbours
// is in the table.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "pteryx/base/status.h"
#include "pteryx/llm/tokenizer/pair_table.h"
#include "pteryx/llm/tokenizer/tokenizer.h"

namespace pteryx::llm {

struct StringHash {
  using is_transparent = void;
  size_t operator()(std::string_view s) const { return std::hash<std::string_view>()(s); }
};
using PieceMap = std::unordered_map<std::string, TokenId, StringHash, std::equal_to<>>;

enum class Unit : uint8_t { kByte, kChar };

struct BpeOptions {
  Unit unit = Unit::kByte;
  bool whole_words = false;  // a word that is a token is that token, whatever the merges say
  bool fuse_unknown = false;
  std::optional<TokenId> unknown;                       // for a character without a token
  std::optional<std::array<TokenId, 256>> byte_tokens;  // comes before `unknown`
};

// What one call of encode keeps between words.
class WordCache;

class Bpe {
 public:
  // Merges by rank: the order of the list. Errors: kInvalidProgram for a merge of unknown tokens.
  struct Merge {
    std::string_view left;
    std::string_view right;
  };
  static Result<Bpe> from_merges(PieceMap pieces, const std::vector<Merge>& merges,
                                 BpeOptions options);

  // Any two neighbours whose concatenation is a token are joined. rank(id): lower goes first.
  static Bpe from_ranks(PieceMap pieces, const std::vector<uint32_t>& rank_by_id,
                        BpeOptions options);

  // Appends the ids of a word. A text of kChar units is UTF-8.
  void encode(std::string_view word, WordCache& cache, std::vector<TokenId>& ids) const;

 private:
  struct Symbol {
    uint32_t id =
        0;  // kNone, a token, or from first_extra_ on a character that only occurs in tokens
    uint32_t begin = 0;
    uint32_t size_bytes = 0;  // 0: joined into the one before
    uint32_t previous = 0;
    uint32_t next = 0;
  };
  friend class WordCache;
  static constexpr uint32_t kNone = ~uint32_t{0};

  Bpe(PieceMap pieces, BpeOptions options) : pieces_(std::move(pieces)), options_(options) {}
  void index_units();
  uint32_t unit_id(std::string_view unit) const;
  void split(std::string_view word, std::vector<Symbol>& symbols) const;
  void join(std::vector<Symbol>& symbols, std::vector<uint64_t>& queue) const;
  void emit(std::string_view word, const std::vector<Symbol>& symbols,
            std::vector<TokenId>& ids) const;

  PieceMap pieces_;
  BpeOptions options_;
  PairTable merges_;
  uint32_t first_extra_ = kNone;
  PieceMap extra_;  // characters without a token of their own that tokens are made of
  std::array<uint32_t, 256> byte_ids_ = {};
};

class WordCache {
 public:
  explicit WordCache(size_t text_bytes);

 private:
  friend class Bpe;
  static constexpr size_t kKeyBytes = 30;
  static constexpr size_t kIds = 8;
  struct Entry {
    uint8_t key_bytes = 0;
    uint8_t count = 0;
    std::array<char, kKeyBytes> key;
    std::array<TokenId, kIds> ids;
  };
  Entry* entry(std::string_view word);

  std::vector<Entry> entries_;  // none for a short text
  std::vector<Bpe::Symbol> symbols_;
  std::vector<uint64_t> queue_;
};

}  // namespace pteryx::llm
