// Products of matrices of f32: y[m, n] = finish(sum over k of a[m, k] * b[k, n]). b comes as it
// lies in memory, as rows of weight, or as the patches of an image that a convolution sees: a panel
// of it is gathered at a time. A call does one of several items, so that threads can share the
// work; results do not depend on how it is cut.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>

#include "pteryx/cpu/finish.h"

namespace pteryx::cpu {

enum class RightKind : uint8_t {
  kRows,         // b[k, n] with rows `stride` apart
  kColumns,      // columns of b are rows of f32, `stride` apart: weight[n, k]
  kHalfColumns,  // the same of f16
  kPatches,      // see patches.h
};

struct Right {
  RightKind kind = RightKind::kRows;
  const void* data = nullptr;
  size_t stride = 0;  // in elements
  // Of patches: column n is position n of a result [depth, height, width], and b[k, n] lies at
  // starts[k] + its depth * plane + its height * row + its width. A vector may be read from there.
  const size_t* starts = nullptr;
  size_t width = 0;
  size_t height = 0;
  size_t row = 0;
  size_t plane = 0;
};

// What b takes when it is gathered, in memory that is aligned to 64 bytes.
struct Panels {
  size_t count = 0;  // 0: every item gathers for itself
  size_t bytes = 0;  // of all
};

struct Gemm {
  size_t m = 0;
  size_t n = 0;
  size_t k = 0;
  const float* a = nullptr;  // [m, k], rows a_row apart
  size_t a_row = 0;
  Right b;
  Finish finish;
  float* y = nullptr;  // [m, n], rows y_row apart
  size_t y_row = 0;
  void* panels = nullptr;  // for all of b, gathered; null: items gather for themselves
};

// How a product is cut.
struct GemmItems {
  size_t blocks = 0;  // of columns
  size_t ranges = 0;  // of rows
  size_t rows = 0;    // of a range
  size_t count() const { return blocks * ranges; }
};
// `others`: products like this one that are done in the same job.
GemmItems cut_gemm(const Gemm& g, size_t threads, size_t others = 0);

size_t gemm_scratch_bytes();  // for each thread, aligned to 64 bytes
// Where several ranges of rows need the same columns of b, these are gathered once, before the
// items, into g.panels.
Panels panels_of(const Gemm& g, const GemmItems& items);
// The most bytes of panels for products of as many rows and columns, or fewer.
size_t most_panel_bytes(const Gemm& g, size_t threads);
void gather_panel(const Gemm& g, const GemmItems& items, size_t panel, void* scratch);
void multiply(const Gemm& g, const GemmItems& items, size_t item, void* scratch);
// y = finish(y) for a dense matrix of sums.
void finish(const Finish& f, size_t rows, size_t columns, float* y);

}  // namespace pteryx::cpu
