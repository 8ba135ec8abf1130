// Products with subgroup matrices: what quantised and plain operands have in common.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "pteryx/ops/op.h"
#include "pteryx/ops/subgroup_matrix.h"

namespace pteryx::ops {

// The order of eight neighbours of k in a vector. Any will do, if both operands have the same: each
// packing has the one that costs least to unpack.
enum class KOrder : uint8_t {
  kNatural,
  kHalves,  // 0 4 1 5 2 6 3 7: nibbles of a word
  kEvens,   // 0 2 1 3 4 6 5 7: bytes of two words
};
// fn halves of common/halves.wgsl.
std::string_view halves_text(KOrder order);

// The sums of a subgroup and the steps over them, written out for a tile.
std::string matrix_sums_text(int64_t tile);

struct MatrixTiles {
  int64_t tile = 128;
  int64_t tiles = 0;
  int64_t splits = 1;
  int64_t chunk = 0;  // of k
};
// Cuts k where there are too few tiles to keep a large GPU busy.
MatrixTiles matrix_tiles(int64_t tile, int64_t batches, int64_t m, int64_t n, int64_t k);
// Small tiles are better where large ones would leave most of the GPU without work.
bool suits_matrix(int64_t tile, int64_t batches, int64_t m, int64_t n);
// The dispatch of a product: `shader` includes common/matrix_tile.wgsl, `text` and `bind` are its
// family's.
Status dispatch_matrix(const Node& n, Plan& p, const MatrixTiles& t, const Shader& shader,
                       std::string_view text, std::vector<Bind> bind, Bytes params);
// What the device must have.
bool has_matrix(int64_t tile, const gpu::Caps& caps);

inline int64_t matrix_row(int64_t k) { return (k + 63) / 64 * 64; }  // elements of a row of `a`

}  // namespace pteryx::ops
