// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/llm/tokenizer/merges.h"

#include <algorithm>
#include <functional>
#include <utility>

#include <fmt/format.h>

#include "pteryx/base/excerpt.h"
#include "pteryx/base/utf8.h"

namespace pteryx::llm {
namespace {

constexpr size_t kCacheEntries = 4096;
constexpr size_t kCacheFromBytes = 4096;  // below, filling a cache costs more than it saves

size_t unit_bytes(std::string_view text, size_t at, Unit unit) {
  return unit == Unit::kByte ? 1 : char_at(text, at).size_bytes;
}

uint64_t queued(uint32_t rank, uint32_t at) { return uint64_t{rank} << 32 | at; }

}  // namespace

WordCache::WordCache(size_t text_bytes)
    : entries_(text_bytes < kCacheFromBytes ? 0 : kCacheEntries) {}

WordCache::Entry* WordCache::entry(std::string_view word) {
  if (entries_.empty() || word.size() > kKeyBytes) return nullptr;
  return &entries_[std::hash<std::string_view>()(word) % kCacheEntries];
}

void Bpe::index_units() {
  if (options_.unit == Unit::kByte) {
    for (size_t b = 0; b < byte_ids_.size(); ++b) {
      const auto it = pieces_.find(std::string(1, static_cast<char>(b)));
      byte_ids_[b] = it == pieces_.end() ? kNone : it->second;
    }
  }
}

Result<Bpe> Bpe::from_merges(PieceMap pieces, const std::vector<Merge>& merges,
                             BpeOptions options) {
  Bpe bpe(std::move(pieces), options);
  bpe.merges_ = PairTable(merges.size());
  const auto id_of = [&](std::string_view piece) {
    const auto it = bpe.pieces_.find(piece);
    return it == bpe.pieces_.end() ? kNone : it->second;
  };
  std::string joined;
  for (uint32_t rank = 0; rank < merges.size(); ++rank) {
    const auto [left, right] = merges[rank];
    joined.assign(left).append(right);
    const uint32_t ids[] = {id_of(left), id_of(right), id_of(joined)};
    for (size_t i = 0; i < 3; ++i) {
      if (ids[i] != kNone) continue;
      const std::string_view missing[] = {left, right, joined};
      return invalid_program(
          fmt::format("merge {} ('{}' '{}'): token '{}' is not in the vocabulary", rank,
                      excerpt(replace_invalid(left)), excerpt(replace_invalid(right)),
                      excerpt(replace_invalid(missing[i]))));
    }
    bpe.merges_.insert(ids[0], ids[1], rank, ids[2]);
  }
  bpe.index_units();
  return bpe;
}

Bpe Bpe::from_ranks(PieceMap pieces, const std::vector<uint32_t>& rank_by_id, BpeOptions options) {
  Bpe bpe(std::move(pieces), options);
  bpe.first_extra_ = static_cast<uint32_t>(rank_by_id.size());
  bpe.merges_ = PairTable(rank_by_id.size() * 2);
  for (const auto& [piece, id] : bpe.pieces_) {
    for (size_t at = 0, size = 0; at < piece.size(); at += size) {
      size = unit_bytes(piece, at, options.unit);
      std::string unit = piece.substr(at, size);
      if (size == piece.size() || bpe.pieces_.contains(unit)) continue;
      bpe.extra_.try_emplace(std::move(unit),
                             bpe.first_extra_ + static_cast<uint32_t>(bpe.extra_.size()));
    }
  }
  for (const auto& [piece, id] : bpe.pieces_) {
    const std::string_view text = piece;
    for (size_t at = 0; at < text.size();) {
      at += unit_bytes(text, at, options.unit);
      if (at >= text.size()) break;
      const uint32_t left = bpe.unit_id(text.substr(0, at));
      const uint32_t right = left == kNone ? kNone : bpe.unit_id(text.substr(at));
      if (right != kNone) bpe.merges_.insert(left, right, rank_by_id[id], id);
    }
  }
  bpe.index_units();
  return bpe;
}

uint32_t Bpe::unit_id(std::string_view unit) const {
  if (const auto it = pieces_.find(unit); it != pieces_.end()) return it->second;
  const auto it = extra_.find(unit);
  return it == extra_.end() ? kNone : it->second;
}

void Bpe::split(std::string_view word, std::vector<Symbol>& symbols) const {
  symbols.clear();
  for (size_t at = 0; at < word.size();) {
    const size_t size = unit_bytes(word, at, options_.unit);
    const auto i = static_cast<uint32_t>(symbols.size());
    const uint32_t id = options_.unit == Unit::kByte ? byte_ids_[static_cast<uint8_t>(word[at])]
                                                     : unit_id(word.substr(at, size));
    symbols.push_back({.id = id,
                       .begin = static_cast<uint32_t>(at),
                       .size_bytes = static_cast<uint32_t>(size),
                       .previous = i - 1,
                       .next = i + 1});
    at += size;
  }
  if (!symbols.empty()) symbols.back().next = kNone;
}

// The queue holds places by rank. A place whose pair has changed since is found out when it comes
// up.
void Bpe::join(std::vector<Symbol>& symbols, std::vector<uint64_t>& queue) const {
  queue.clear();
  const auto pair_at = [&](uint32_t at) -> const PairTable::Entry* {
    const Symbol& s = symbols[at];
    if (s.next == kNone || s.id == kNone || symbols[s.next].id == kNone) return nullptr;
    return merges_.find(s.id, symbols[s.next].id);
  };
  for (uint32_t at = 0; at < symbols.size(); ++at) {
    if (const auto* const pair = pair_at(at)) queue.push_back(queued(pair->rank, at));
  }
  const auto later = std::greater<>();
  std::make_heap(queue.begin(), queue.end(), later);
  const auto push = [&](uint32_t at) {
    const auto* const pair = pair_at(at);
    if (pair == nullptr) return;
    queue.push_back(queued(pair->rank, at));
    std::push_heap(queue.begin(), queue.end(), later);
  };
  while (!queue.empty()) {
    std::pop_heap(queue.begin(), queue.end(), later);
    const uint64_t top = queue.back();
    queue.pop_back();
    const auto at = static_cast<uint32_t>(top);
    Symbol& s = symbols[at];
    if (s.size_bytes == 0) continue;
    const auto* const pair = pair_at(at);
    if (pair == nullptr || pair->rank != top >> 32) continue;
    Symbol& right = symbols[s.next];
    s.id = pair->id;
    s.size_bytes += std::exchange(right.size_bytes, 0);
    s.next = right.next;
    if (s.next != kNone) symbols[s.next].previous = at;
    if (at != 0) push(s.previous);
    push(at);
  }
}

void Bpe::emit(std::string_view word, const std::vector<Symbol>& symbols,
               std::vector<TokenId>& ids) const {
  bool after_unknown = false;
  for (uint32_t at = 0; at < symbols.size(); at = symbols[at].next) {
    const Symbol& s = symbols[at];
    if (s.id < first_extra_) {
      ids.push_back(s.id);
      after_unknown = false;
    } else if (options_.byte_tokens) {
      for (const char c : word.substr(s.begin, s.size_bytes)) {
        ids.push_back((*options_.byte_tokens)[static_cast<uint8_t>(c)]);
      }
    } else if (options_.unknown) {
      if (!after_unknown || !options_.fuse_unknown) ids.push_back(*options_.unknown);
      after_unknown = true;
    }
  }
}

void Bpe::encode(std::string_view word, WordCache& cache, std::vector<TokenId>& ids) const {
  WordCache::Entry* const entry = cache.entry(word);
  if (entry != nullptr && entry->key_bytes == word.size() &&
      std::equal(word.begin(), word.end(), entry->key.begin())) {
    ids.insert(ids.end(), entry->ids.begin(), entry->ids.begin() + entry->count);
    return;
  }
  const size_t start = ids.size();
  const auto whole = options_.whole_words ? pieces_.find(word) : pieces_.end();
  if (whole != pieces_.end()) {
    ids.push_back(whole->second);
  } else {
    split(word, cache.symbols_);
    join(cache.symbols_, cache.queue_);
    emit(word, cache.symbols_, ids);
  }
  const size_t count = ids.size() - start;
  if (entry == nullptr || count > WordCache::kIds) return;
  entry->key_bytes = static_cast<uint8_t>(word.size());
  entry->count = static_cast<uint8_t>(count);
  std::copy(word.begin(), word.end(), entry->key.begin());
  std::copy(ids.begin() + static_cast<std::ptrdiff_t>(start), ids.end(), entry->ids.begin());
}

}  // namespace pteryx::llm
