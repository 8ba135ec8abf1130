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

// A tile of matmul_tiled and who makes it: threads_m x threads_n invocations, thread_m x thread_n
// results each, in one or more teams that share k.
struct Tile {
  std::string_view name;
  int64_t thread_m, thread_n, threads_m, threads_n;
  int64_t most_teams = 1;

  constexpr int64_t rows() const { return thread_m * threads_m; }
  constexpr int64_t columns() const { return thread_n * threads_n; }
  constexpr int64_t team() const { return threads_m * threads_n; }
  constexpr int64_t team_bytes() const { return (rows() + columns()) * 16 * 4; }
  // As many as the device takes; 0: none.
  int64_t teams(const gpu::Caps& caps) const;
  int64_t count(const MatMul& d) const;
};
inline constexpr Tile kLargeTile{"128x128", 8, 8, 16, 16};
inline constexpr Tile kWideTile{"64x128", 8, 8, 8, 16};
inline constexpr Tile kSmallTile{"64x64", 4, 4, 16, 16};
inline constexpr Tile k56x128{"56x128", 7, 8, 8, 16};
inline constexpr Tile k40x128{"40x128", 5, 8, 8, 16};
// Teams of 384 invocations: what a processor has registers for.
inline constexpr Tile k56x96Teams{"56x96_teams", 7, 8, 8, 12, 4};
inline constexpr Tile k40x64Teams{"40x64_teams", 5, 8, 8, 8, 6};

// The tile that is estimated to take least time of those that fit.
bool fits_any_tile(const MatMul& d, const gpu::Caps& caps);
Status plan_best_tile(const Node& n, Plan& p, const MatMul& d);
// A certain one.
bool fits_tile(const MatMul& d, const Tile& tile, const gpu::Caps& caps);
Status plan_tile(const Node& n, Plan& p, const MatMul& d, const Tile& tile);
template <const Tile& tile>
bool fits_tiled(const MatMul& d, const gpu::Caps& caps) {
  return fits_tile(d, tile, caps);
}
template <const Tile& tile>
Status plan_tiled(const Node& n, Plan& p, const MatMul& d) {
  return plan_tile(n, p, d, tile);
}

bool fits_naive(const MatMul& d, const gpu::Caps& caps);
bool suits_never(const MatMul& d, const gpu::Caps& caps);
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
  template <const Tile& tile>
  static constexpr Route tiled(std::string_view name) {
    return {name, Choice<fits_tiled<tile>>::call, Planned<plan_tiled<tile>>::call,
            Choice<suits_never>::call};
  }
  static constexpr Route kAll[] = {
      {"gemv_subgroup", Choice<fits_gemv_subgroup>::call, Planned<plan_gemv_subgroup>::call},
      {"gemv", Choice<fits_gemv>::call, Planned<plan_gemv>::call},
      matrix<MatrixSize::kLarge>("matrix"),
      matrix<MatrixSize::kSmall>("matrix_small"),
      matrix<MatrixSize::kFew>("matrix_few"),
      {"tiled", Choice<fits_any_tile>::call, Planned<plan_best_tile>::call},
      tiled<kLargeTile>("tiled_large"),
      tiled<kWideTile>("tiled_wide"),
      tiled<kSmallTile>("tiled_small"),
      tiled<k56x128>("tiled_56x128"),
      tiled<k40x128>("tiled_40x128"),
      tiled<k56x96Teams>("tiled_56x96_teams"),
      tiled<k40x64Teams>("tiled_40x64_teams"),
      {"naive", Choice<fits_naive>::call, Planned<plan_naive>::call, Choice<suits_never>::call},
  };
};

}  // namespace pteryx::ops::matmul
