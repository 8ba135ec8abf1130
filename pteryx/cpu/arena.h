// Memory for one call at a time, which is kept: calls that need no more than those before them
// allocate nothing.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <vector>

namespace pteryx::cpu {

class Arena {
 public:
  static constexpr size_t kAlignment = 64;

  // Stands until reset(); its contents are anything.
  std::byte* take(size_t bytes) {
    bytes = (bytes + kAlignment - 1) / kAlignment * kAlignment;
    if (blocks_.empty() || blocks_.back().used + bytes > blocks_.back().size) add(bytes);
    Block& block = blocks_.back();
    std::byte* const at = block.memory.get() + block.used;
    block.used += bytes;
    return at;
  }
  template <typename T>
  T* take_array(size_t count) {
    return reinterpret_cast<T*>(take(count * sizeof(T)));
  }
  // What was taken is free again, in one piece from now on.
  void reset() {
    if (blocks_.size() > 1) {
      size_t all = 0;
      for (const Block& b : blocks_) all += b.size;
      blocks_.clear();
      add(all);
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
  void add(size_t bytes) {
    void* const memory = ::operator new(bytes, std::align_val_t{kAlignment});
    Block& block = blocks_.emplace_back();
    block.memory.reset(static_cast<std::byte*>(memory));
    block.size = bytes;
  }

  std::vector<Block> blocks_;
};

}  // namespace pteryx::cpu
