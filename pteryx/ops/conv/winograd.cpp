// Convolution with kernels of 3 x 3 by Winograd's transform: fewer products, more memory.
// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>

#include "pteryx/ops/conv/params.h"
#include "pteryx/ops/shaders/conv_winograd_weight.h"
#include "pteryx/ops/shaders/conv_winograd_x.h"
#include "pteryx/ops/shaders/conv_winograd_y.h"

namespace pteryx::ops::conv {
namespace {

// Where 4 x 4 beats products of tiles, as measured on an H200: from so many channels and results of
// a channel on. Below that 2 x 2 does, between so many channels, by little, and with very many of
// them, whose tiles of 4 x 4 are too few.
constexpr int64_t kMany = 320;
constexpr int64_t kManyPositions = 32 * 32;
constexpr int64_t kFew = 64;
constexpr int64_t kFewMost = 128;
constexpr int64_t kFewPositions = 28 * 28;
constexpr int64_t kVeryMany = 1024;
constexpr int64_t kVeryManyPositions = 16 * 16;

constexpr int64_t kDepth = 16;  // steps of conv_tile

int64_t tiles_of(const Conv& c, int64_t outputs) {
  return c.batch * (up(c.out[1], outputs) / outputs) * (up(c.out[2], outputs) / outputs);
}

// The products of all entries of a tile: one for each, with weights of its own.
Conv product_of(const Conv& c, int64_t outputs) {
  Conv all;
  all.groups = (outputs + 2) * (outputs + 2);
  all.in_channels = c.in_channels;
  all.out_channels = c.out_channels;
  all.in = all.out = {1, 1, up(tiles_of(c, outputs), 4)};
  return all;
}

Result<Tensor> transform_weight(const Node& n, Plan& p, const Conv& c, int64_t outputs) {
  const int64_t wide_in = up(c.in_channels, kDepth);
  const int64_t wide_out = up(c.out_channels, 4);
  const int64_t items = wide_in * wide_out / 4;
  const shaders::ConvWinogradWeightParams params{.in_channels = u32(c.in_channels),
                                                 .out_channels = u32(c.out_channels),
                                                 .wide_out = u32(wide_out),
                                                 .items = u32(items)};
  return packed_weight(n, p, fmt::format("conv winograd {}", outputs), DType::kF32,
                       {(outputs + 2) * (outputs + 2), wide_in, wide_out},
                       {.shader = &shaders::conv_winograd_weight,
                        .options = {{"outputs", outputs}},
                        .params = bytes_of(params),
                        .grid = per_element(items, p.caps())});
}

}  // namespace

template <int64_t outputs>
bool fits_winograd(const Node& n, const gpu::Caps& caps) {
  const auto c = read_conv(n);
  if (!c.ok() || c->transposed || c->spatial != 2 || c->groups != 1 || c->in_channels == 0)
    return false;
  if (c->kernel != Sizes{1, 3, 3} || product(c->stride) != 1 || product(c->dilation) != 1)
    return false;
  const Conv all = product_of(*c, outputs);
  const int64_t wide_in = up(c->in_channels, kDepth);
  const int64_t wide_out = up(c->out_channels, 4);
  const int64_t most = std::max(
      {wide_in * wide_out, all.in_channels * all.positions(), all.out_channels * all.positions()});
  return fits_tile(n, caps) &&
         all.groups * most * 4 <= static_cast<int64_t>(caps.max_binding_bytes);
}

template <int64_t outputs>
bool suits_winograd(const Node& n, const gpu::Caps& /*caps*/) {
  const auto c = read_conv(n);
  if (!c.ok()) return false;
  const int64_t least = std::min(c->in_channels, c->out_channels);
  if constexpr (outputs == 4) return least >= kMany && c->positions() >= kManyPositions;
  if (least >= kVeryMany) return c->positions() >= kVeryManyPositions;
  return least >= kFew && std::max(c->in_channels, c->out_channels) <= kFewMost &&
         c->positions() >= kFewPositions;
}

template <int64_t outputs>
Status plan_winograd(const Node& n, Plan& p) {
  PTERYX_ASSIGN(const Conv c, read_conv(n));
  const Conv all = product_of(c, outputs);
  const int64_t tiles = tiles_of(c, outputs);
  if (tiles * c.out_channels == 0) return {};
  PTERYX_ASSIGN(const Tensor weight, transform_weight(n, p, c, outputs));
  const Tensor x = p.scratch(DType::kF32, {all.groups, c.in_channels, all.positions()});
  const Tensor sums = p.scratch(DType::kF32, {all.groups, c.out_channels, all.positions()});
  const int64_t x_items = c.in_channels * tiles;
  const auto x_params = make_params<shaders::ConvWinogradXParams>(n, c, x_items);
  PTERYX_TRY(p.dispatch(n, {.shader = &shaders::conv_winograd_x,
                            .options = {{"outputs", outputs}},
                            .bind = {{"x", n.in(kX)}, {"y", x}},
                            .params = bytes_of(x_params),
                            .grid = per_element(x_items, p.caps())}));
  PTERYX_TRY(plan_product(n, p, all, x, weight, Order::kRows, {.y = sums, .finished = false}));
  const int64_t y_items = c.out_channels * tiles;
  Options options = {{"outputs", outputs}};
  std::vector<Bind> bind = {{"sums", sums}};
  add_results(n, {n.out()}, c.out[2], options, bind, outputs);
  const auto y_params = make_params<shaders::ConvWinogradYParams>(n, c, y_items);
  return p.dispatch(n, {.shader = &shaders::conv_winograd_y,
                        .options = std::move(options),
                        .bind = std::move(bind),
                        .params = bytes_of(y_params),
                        .grid = per_element(y_items, p.caps())});
}

template bool fits_winograd<2>(const Node&, const gpu::Caps&);
template bool fits_winograd<4>(const Node&, const gpu::Caps&);
template bool suits_winograd<2>(const Node&, const gpu::Caps&);
template bool suits_winograd<4>(const Node&, const gpu::Caps&);
template Status plan_winograd<2>(const Node&, Plan&);
template Status plan_winograd<4>(const Node&, Plan&);

}  // namespace pteryx::ops::conv
