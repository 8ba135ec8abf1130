// The routes of a matrix product by its description, for operators that are one and for those that
// have one inside.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "pteryx/ops/matmul/matmul.h"
#include "pteryx/ops/subgroup_matrix.h"

namespace pteryx::ops::matmul {

bool fits_gemv(const MatMul& d, const gpu::Caps& caps);
Status plan_gemv(const Node& n, Plan& p, const MatMul& d);

bool fits_gemv_subgroup(const MatMul& d, const gpu::Caps& caps);
Status plan_gemv_subgroup(const Node& n, Plan& p, const MatMul& d);

template <MatrixSize Size>
bool fits_subgroup_matrix(const MatMul& d, const gpu::Caps& caps);
template <MatrixSize Size>
bool suits_subgroup_matrix(const MatMul& d, const gpu::Caps& caps);
template <MatrixSize Size>
Status plan_subgroup_matrix(const Node& n, Plan& p, const MatMul& d);

// A tile of matmul_tiled, each invocation `thread` x `thread` of it.
struct Tile {
  std::string_view name;
  int64_t thread, threads_m;
  constexpr int64_t rows() const { return thread * threads_m; }
  constexpr int64_t columns() const { return thread * 16; }
  constexpr int64_t workgroup_bytes() const { return (rows() + columns()) * 16 * 4; }
  int64_t count(const MatMul& d) const;
};
inline constexpr Tile kLargeTile{"128x128", 8, 16};
inline constexpr Tile kWideTile{"64x128", 8, 8};
inline constexpr Tile kSmallTile{"64x64", 4, 16};

template <const Tile& tile>
bool fits_tiled(const MatMul& d, const gpu::Caps& caps);
bool suits_large(const MatMul& d, const gpu::Caps& caps);
bool suits_wide(const MatMul& d, const gpu::Caps& caps);
template <const Tile& tile>
Status plan_tiled(const Node& n, Plan& p, const MatMul& d);

bool fits_naive(const MatMul& d, const gpu::Caps& caps);
bool suits_naive(const MatMul& d, const gpu::Caps& caps);
Status plan_naive(const Node& n, Plan& p, const MatMul& d);

// A table of all of them, for templates that make functions of a node out of these; templates of
// other names in every file, as g++ takes those of unnamed namespaces for one.
template <template <auto> typename Choice, template <auto> typename Planned>
struct Routes {
  template <MatrixSize Size>
  static constexpr Route matrix(std::string_view name) {
    return {name, Choice<fits_subgroup_matrix<Size>>::call,
            Planned<plan_subgroup_matrix<Size>>::call, Choice<suits_subgroup_matrix<Size>>::call,
            Precision::kF16};
  }
  static constexpr Route kAll[] = {
      {"gemv_subgroup", Choice<fits_gemv_subgroup>::call, Planned<plan_gemv_subgroup>::call},
      {"gemv", Choice<fits_gemv>::call, Planned<plan_gemv>::call},
      matrix<MatrixSize::kLarge>("matrix"),
      matrix<MatrixSize::kSmall>("matrix_small"),
      matrix<MatrixSize::kFew>("matrix_few"),
      {"tiled_large", Choice<fits_tiled<kLargeTile>>::call, Planned<plan_tiled<kLargeTile>>::call,
       Choice<suits_large>::call},
      {"tiled_wide", Choice<fits_tiled<kWideTile>>::call, Planned<plan_tiled<kWideTile>>::call,
       Choice<suits_wide>::call},
      {"tiled", Choice<fits_tiled<kSmallTile>>::call, Planned<plan_tiled<kSmallTile>>::call},
      {"naive", Choice<fits_naive>::call, Planned<plan_naive>::call, Choice<suits_naive>::call},
  };
};

}  // namespace pteryx::ops::matmul
