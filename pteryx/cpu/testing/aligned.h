// Memory as kernels want theirs: aligned, and with no byte to spare behind it, so that sanitizers
// see what reaches further.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <memory>
#include <new>

namespace pteryx::cpu::testing {

class Aligned {
 public:
  explicit Aligned(size_t bytes)
      : memory_(static_cast<std::byte*>(::operator new(bytes, std::align_val_t{64}))) {}
  void* data() const { return memory_.get(); }

 private:
  struct Free {
    void operator()(std::byte* p) const { ::operator delete(p, std::align_val_t{64}); }
  };
  std::unique_ptr<std::byte, Free> memory_;
};

}  // namespace pteryx::cpu::testing
