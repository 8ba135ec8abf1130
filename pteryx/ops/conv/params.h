// What the plans of every convolution route put in their params, options and bindings.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "pteryx/ops/conv/conv.h"
#include "pteryx/ops/op.h"

namespace pteryx::ops::conv {

inline int64_t up(int64_t n, int64_t step) { return (n + step - 1) / step * step; }

// A product cut into tiles of y, whose terms `splits` workgroups share.
struct Tiling {
  int64_t tile_m = 0;
  int64_t tile_n = 0;
  int64_t tiles = 0;
  int64_t k = 0;  // terms, with what fills them up
  int64_t splits = 1;
  int64_t wide_in = 0;   // channels of a tap with what fills them up
  int64_t wide_out = 0;  // output channels likewise
};

inline std::array<uint32_t, 4> packed(const Sizes& s) {
  return {u32(s[0]), u32(s[1]), u32(s[2]), u32(product(s))};
}

// The Params of every route are those of common/conv.wgsl.
template <typename Params>
Params make_params(const Node& n, const Conv& c, int64_t items, const Tiling& t = {}) {
  const Finish f = read_finish(n);
  return {.in_size = packed(c.in),
          .out_size = packed(c.out),
          .kernel = packed(c.kernel),
          .stride = packed(c.stride),
          .padding = packed(c.padding),
          .dilation = packed(c.dilation),
          .groups = u32(c.groups),
          .in_channels = u32(c.in_channels),
          .out_channels = u32(c.out_channels),
          .items = u32(items),
          .lo = static_cast<float>(f.lo.value_or(0)),
          .hi = static_cast<float>(f.hi.value_or(0)),
          .eps = static_cast<float>(f.eps),
          .k = u32(t.k),
          .splits = u32(t.splits),
          .wide_in = u32(t.wide_in),
          .wide_out = u32(t.wide_out),
          .tile_m = u32(t.tile_m),
          .tile_n = u32(t.tile_n)};
}

// What becomes of sums: the results of the node, or a temporary that takes them as they are.
struct Target {
  Tensor y;
  bool finished = true;  // as Finish says, with the bias
};

// Options and bindings of common/results.wgsl; `row` is the length of a row of y, of which `most`
// are written at once.
void add_results(const Node& n, const Target& to, int64_t row, Options& options,
                 std::vector<Bind>& bind, int64_t most = 4);

// The end of a product whose terms were split.
Status merge(const Node& n, Plan& p, const Conv& c, const Tensor& sums, const Tiling& t);

// How many workgroups share the steps of one tile, so that `busy` of them have work.
int64_t choose_splits(int64_t busy, int64_t tiles, int64_t steps, int64_t tile_bytes,
                      const gpu::Caps& caps);

// A constant in the layout of a route, made once; other weights are put in order each time.
// `make` has the shader, its options, params and grid.
Result<Tensor> packed_weight(const Node& n, Plan& p, std::string layout, DType dtype,
                             const Dims& dims, DispatchDesc make);

// The product of tiles by itself: `c` is what it computes, x and weight its operands as conv_tile
// reads them.
enum class Order : uint8_t { kTaps, kChannels, kRows };
Status plan_product(const Node& n, Plan& p, const Conv& c, const Tensor& x, const Tensor& weight,
                    Order order, const Target& to);

// Routes.
bool fits_matrix(const Node& n, const gpu::Caps& caps);
Status plan_matrix(const Node& n, Plan& p);
bool fits_matrix_halves(const Node& n, const gpu::Caps& caps);
bool suits_matrix_halves(const Node& n, const gpu::Caps& caps);
Status plan_matrix_halves(const Node& n, Plan& p);
bool fits_tile(const Node& n, const gpu::Caps& caps);
Status plan_tile(const Node& n, Plan& p);
// F(outputs x outputs, 3 x 3), for 2 and 4 outputs.
template <int64_t outputs>
bool fits_winograd(const Node& n, const gpu::Caps& caps);
template <int64_t outputs>
bool suits_winograd(const Node& n, const gpu::Caps& caps);
template <int64_t outputs>
Status plan_winograd(const Node& n, Plan& p);

}  // namespace pteryx::ops::conv
