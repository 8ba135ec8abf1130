// How a table of operators refers to kernels of the CPU. SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>

namespace pteryx::ops {

// Whether this program has kernels for the CPU. One that says no, and is optimised as a whole, has
// none of their code either.
bool has_cpu_kernels();

// A function, or null where there are no such kernels.
template <typename Function>
class CpuKernel {
 public:
  constexpr CpuKernel(std::nullptr_t = nullptr) {}                       // NOLINT: as a function is
  CpuKernel(Function f) : function_(has_cpu_kernels() ? f : nullptr) {}  // NOLINT
  // A small one that programs on a GPU often need: it is there all the same.
  static CpuKernel everywhere(Function f) {
    CpuKernel kernel;
    kernel.function_ = f;
    return kernel;
  }
  constexpr operator Function() const { return function_; }  // NOLINT

 private:
  Function function_ = nullptr;
};

}  // namespace pteryx::ops
