// A fuzzer's input in memory of exactly its size, where a sanitizer sees the first byte past it.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>

#include "pteryx/base/bytes.h"

namespace pteryx::fuzz {

// Starts at an address aligned to 64, as a mapped file does.
class Input {
 public:
  Input(const void* data, size_t size)
      : start_(static_cast<std::byte*>(::operator new(size, kAlignment))), size_(size) {
    if (size != 0) std::memcpy(start_, data, size);
  }
  Input(const Input&) = delete;
  Input& operator=(const Input&) = delete;
  ~Input() { ::operator delete(start_, kAlignment); }

  Bytes bytes() const { return {start_, size_}; }

 private:
  static constexpr std::align_val_t kAlignment{64};
  std::byte* start_;
  size_t size_;
};

}  // namespace pteryx::fuzz
