// What the attention kernels have in common: the WGSL in front of them, their bindings and their
// params.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "pteryx/ops/attention/attention.h"

namespace pteryx::ops::attention {

inline int64_t quads(int64_t size) { return (size + 3) / 4; }

// Rows of whole groups of four elements are read and written as vectors.
inline bool vectors(const Attention& a) { return a.size % 4 == 0; }

Bind reader(std::string_view name, const Tensor& t, bool vector);
Bind writer(std::string_view name, const Tensor& t, bool vector);

// load4_NAME(at, j) and put4_NAME(at, j, four): four elements of the row at `at`, from 4 j on.
std::string load_function(std::string_view name, const Tensor& t, bool vector);
std::string put_function(std::string_view name, const Tensor& t, bool vector);

// The constants `size` and `size4`.
std::string size_constants(const Attention& a);
// Those, the loads of q, k and v, and the mask.
std::string call_functions(const Attention& a);
// q, k, v and the mask.
std::vector<Bind> call_bindings(const Attention& a);

// Keys cut in `count` parts of `keys` each.
struct Splits {
  int64_t count = 1;
  int64_t keys = 0;
};

// The Params of every route are those of attention/common/attention.wgsl.
template <typename Params>
Params make_params(const Attention& a, LiveInt start, int64_t items, const Splits& splits) {
  const auto& m = a.mask_strides;
  const auto packed = [](const Strides& s) {
    return std::array<uint32_t, 4>{u32(s.batch), u32(s.head), u32(s.row), 0};
  };
  return {.q_strides = packed(a.q_strides),
          .k_strides = packed(a.k_strides),
          .mask_strides = {u32(m[0]), u32(m[1]), u32(m[2]), u32(m[3])},
          .heads = u32(a.heads),
          .group = u32(a.group),
          .rows = u32(a.rows),
          .fixed_keys = u32(a.keys),
          .start = start.word,
          .causal = a.causal ? 1U : 0U,
          .scale = static_cast<float>(a.scale),
          .splits = u32(splits.count),
          .split_keys = u32(splits.keys),
          .items = u32(items),
          .quads = u32(quads(a.size))};
}

// Routes. Each writes the new rows of a call into its caches itself.
Status plan_decode_subgroup(const Node& n, Plan& p);
Status plan_decode(const Node& n, Plan& p);
Status plan_naive(const Node& n, Plan& p);
Status plan_matrix(const Node& n, Plan& p);
Status plan_tiled(const Node& n, Plan& p);
bool fits_decode_subgroup(const Node& n, const gpu::Caps& caps);
bool fits_decode(const Node& n, const gpu::Caps& caps);
bool fits_matrix(const Node& n, const gpu::Caps& caps);
bool fits_tiled(const Node& n, const gpu::Caps& caps);

}  // namespace pteryx::ops::attention
