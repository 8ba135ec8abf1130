// A hash table from two 32-bit numbers to two: merges of a vocabulary, and the edges of a trie.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace pteryx::llm {

class PairTable {
 public:
  struct Entry {
    uint64_t key = kFree;
    uint32_t rank = 0;
    uint32_t id = 0;
  };

  explicit PairTable(size_t expected = 0)
      : slots_(std::bit_ceil(expected * 2 < 16 ? size_t{16} : expected * 2)) {}

  const Entry* find(uint32_t a, uint32_t b) const {
    const Entry& slot = slots_[slot_of(key_of(a, b))];
    return slot.key == kFree ? nullptr : &slot;
  }

  // False, and nothing changes, if the pair is there already. No pair is (2^32 - 1, 2^32 - 1).
  bool insert(uint32_t a, uint32_t b, uint32_t rank, uint32_t id) {
    if ((count_ + 1) * 2 > slots_.size()) grow();
    Entry& slot = slots_[slot_of(key_of(a, b))];
    if (slot.key != kFree) return false;
    slot = {.key = key_of(a, b), .rank = rank, .id = id};
    ++count_;
    return true;
  }

 private:
  static constexpr uint64_t kFree = ~uint64_t{0};

  static uint64_t key_of(uint32_t a, uint32_t b) { return uint64_t{a} << 32 | b; }

  size_t slot_of(uint64_t key) const {
    const size_t mask = slots_.size() - 1;
    const uint64_t mixed = (key ^ key >> 29) * 0x9E3779B97F4A7C15U;
    size_t at = static_cast<size_t>(mixed >> 20) & mask;
    while (slots_[at].key != kFree && slots_[at].key != key) at = (at + 1) & mask;
    return at;
  }

  void grow() {
    std::vector<Entry> old(slots_.size() * 2);
    old.swap(slots_);
    for (const Entry& e : old) {
      if (e.key != kFree) slots_[slot_of(e.key)] = e;
    }
  }

  std::vector<Entry> slots_;  // a power of two, at most half full
  size_t count_ = 0;
};

}  // namespace pteryx::llm
