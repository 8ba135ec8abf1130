// Memory for one call at a time, which is kept: calls that need no more than those before them
// allocate nothing. One that only counts says what a call would take, before there is any memory.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <new>
#include <vector>

#include "pteryx/base/checked.h"

namespace pteryx::cpu {

class Arena {
 public:
  static constexpr size_t kAlignment = 64;
  // No more can be taken. What would be counts as this much, which nobody can reserve.
  static constexpr size_t kMost = std::numeric_limits<ptrdiff_t>::max() / kAlignment * kAlignment;
  struct CountOnly {};

  Arena() = default;
  explicit Arena(CountOnly /*tag*/) : counts_only_(true) {}

  // What is taken is only counted: there is no memory, and touching it crashes.
  bool counts_only() const { return counts_only_; }
  // Bytes that were taken since the last reset().
  size_t taken() const { return taken_; }
  // Bytes of memory that it has.
  size_t size() const {
    size_t all = 0;
    for (const Block& b : blocks_) all += b.size;
    return all;
  }
  // An address where nothing is, for what must not be touched.
  static std::byte* no_memory() {
    return reinterpret_cast<std::byte*>(kAlignment);  // NOLINT(performance-no-int-to-ptr)
  }
  // Makes room for calls that take so many bytes, while nothing is taken. False: there is no such
  // memory.
  bool reserve(uint64_t bytes) {
    if (bytes <= (blocks_.empty() ? 0 : blocks_.back().size)) return true;
    if (bytes >= kMost) return false;
    const auto size = static_cast<size_t>(bytes);
    void* const memory = ::operator new(size, std::align_val_t{kAlignment}, std::nothrow);
    if (memory == nullptr) return false;
    blocks_.clear();
    add(memory, size);
    return true;
  }

  // Stands until reset(); its contents are anything.
  std::byte* take(uint64_t wanted) {
    const auto bytes = static_cast<size_t>(
        wanted >= kMost ? kMost : (wanted + kAlignment - 1) / kAlignment * kAlignment);
    taken_ = std::min(taken_ + bytes, kMost);
    if (counts_only_) return no_memory();
    if (blocks_.empty() || blocks_.back().used + bytes > blocks_.back().size) grow(bytes);
    Block& block = blocks_.back();
    std::byte* const at = block.memory.get() + block.used;
    block.used += bytes;
    return at;
  }
  // So many elements, of each of which there are so many, and so on.
  template <typename T, typename... More>
  T* take_array(uint64_t count, More... more) {
    uint64_t bytes = saturating_mul<uint64_t>(count, sizeof(T));
    ((bytes = saturating_mul<uint64_t>(bytes, more)), ...);
    return reinterpret_cast<T*>(take(bytes));
  }
  // What was taken is free again, in one piece from now on.
  void reset() {
    taken_ = 0;
    if (blocks_.size() > 1) {
      size_t all = 0;
      for (const Block& b : blocks_) all += b.size;
      blocks_.clear();
      grow(all);
    }
    if (!blocks_.empty()) blocks_.back().used = 0;
  }

 private:
  struct Free {
    void operator()(std::byte* p) const { ::operator delete(p, std::align_val_t{kAlignment}); }
  };
  struct Block {
    std::unique_ptr<std::byte, Free> memory;
    size_t size = 0;
    size_t used = 0;
  };
  void grow(size_t bytes) { add(::operator new(bytes, std::align_val_t{kAlignment}), bytes); }
  void add(void* memory, size_t bytes) {
    Block& block = blocks_.emplace_back();
    block.memory.reset(static_cast<std::byte*>(memory));
    block.size = bytes;
  }

  std::vector<Block> blocks_;
  size_t taken_ = 0;
  bool counts_only_ = false;
};

}  // namespace pteryx::cpu
