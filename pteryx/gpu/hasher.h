// 128 bits that stand for what was added: to find things by, and to notice damage.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>

namespace pteryx::gpu {

struct Hash128 {
  uint64_t a = 0;
  uint64_t b = 0;
  friend bool operator==(const Hash128&, const Hash128&) = default;
};

// Two lanes of multiply-and-fold over 8 bytes at a time; each item is preceded by its length.
class Hasher {
 public:
  void add(uint64_t word) {
    a_ = fold(a_ ^ word, 0x9E3779B97F4A7C15);
    b_ = fold(b_ + word + 0xD6E8FEB86659FD93, 0xC2B2AE3D27D4EB4F | b_ << 1);
  }
  void add(std::string_view s) {
    add(uint64_t{s.size()});
    for (; s.size() >= 8; s.remove_prefix(8)) add(word(s, 8));
    if (!s.empty()) add(word(s, s.size()));
  }
  Hash128 hash() const { return {a_, b_}; }

 private:
  static uint64_t fold(uint64_t x, uint64_t y) {
    const auto product = static_cast<unsigned __int128>(x) * y;
    return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
  }
  static uint64_t word(std::string_view s, size_t n) {
    uint64_t w = 0;
    std::memcpy(&w, s.data(), n);
    return w;
  }
  uint64_t a_ = 0x243F6A8885A308D3;
  uint64_t b_ = 0x13198A2E03707344;
};

}  // namespace pteryx::gpu
