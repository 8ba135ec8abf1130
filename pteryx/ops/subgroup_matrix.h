// Products with subgroup matrices: which tile, how k is cut, and what the kernels of plain and
// quantised operands (common/subgroup_matrix_tile.wgsl) have in common.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <string>

#include "pteryx/ops/op.h"

namespace pteryx::ops {

// What four subgroups of 32 make at once: each has pieces_m x pieces_n matrices of 16 x 16.
struct MatrixTile {
  int64_t pieces_m = 4;
  int64_t pieces_n = 4;
  int64_t subgroups_m = 2;
  int64_t depth = 64;  // of k at a time

  int64_t rows() const { return pieces_m * 16 * subgroups_m; }
  int64_t columns() const { return pieces_n * 16 * (4 / subgroups_m); }
  int64_t workgroup_bytes() const;
  std::string name() const;  // "128x128x64"
};

enum class MatrixSize : uint8_t {
  kLarge,  // 128 x 128
  kSmall,  // 64 x 64
  kFew,    // 16, 32, 48 or 64 rows, 64 or 128 columns
};
inline constexpr int64_t kMatrixMinRows = 9;   // below, other routes read weights once
inline constexpr int64_t kMatrixFewRows = 64;  // all in one tile

struct MatrixProduct {
  int64_t batches = 1;
  int64_t m = 0;
  int64_t n = 0;
  int64_t k = 0;
  bool paired = false;  // every subgroup has columns of both halves of n
};

// A product in tiles; k is cut where these are too few to keep a large GPU busy.
struct MatrixPlan {
  MatrixTile tile;
  int64_t tiles = 0;
  int64_t splits = 1;
  int64_t steps = 1;  // of k for each part

  int64_t row() const { return splits * steps * tile.depth; }  // elements of a row of `a`
  bool queue(const gpu::Caps& caps) const;  // more workgroups than the GPU runs at once
  // Of the tile. K that the file gives is written into the kernel, K that runs differ in is not.
  Options options(bool k_is_constant) const;
};

// Whether matrices go straight between registers and storage buffers. Where the library checks
// accesses, it makes their offsets and strides there depend on the size of the buffer, which costs
// more than the way through workgroup memory, whose size it knows.
bool stores_whole_matrices(const gpu::Caps& caps);
// How parts of sums leave a tile by that rule: `store` of the kernels.
std::string store_of_parts(const gpu::Caps& caps);

// Whether the device can run that size, for m rows.
bool has_matrix(MatrixSize size, const MatrixProduct& d, const gpu::Caps& caps);
// Whether it is the best of them.
bool suits_matrix(MatrixSize size, const MatrixProduct& d, const gpu::Caps& caps);
MatrixPlan plan_matrix(MatrixSize size, const MatrixProduct& d, const gpu::Caps& caps);

}  // namespace pteryx::ops
