// Convolution as a product of tiles in f32: which tile, which order of terms, how many splits.
// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <optional>

#include "pteryx/ops/conv/params.h"
#include "pteryx/ops/shaders/conv_merge.h"
#include "pteryx/ops/shaders/conv_pack.h"
#include "pteryx/ops/shaders/conv_tile.h"

namespace pteryx::ops::conv {
namespace {

constexpr int64_t kDepth = 16;  // of k in a step

struct Shape {
  std::string_view name;  // in conv_tile.wgsl
  int64_t m, n;
};
constexpr Shape kSmall{"small", 32, 64};
constexpr Shape kMedium{"medium", 64, 64};
constexpr Shape kLarge{"large", 128, 128};
constexpr Shape kTall{"tall", 128, 64};
constexpr Shape kFew{"few", 64, 64};  // by few invocations

constexpr int64_t kMostBytes = 32768;  // of workgroup memory, so that two workgroups have room

// Results from which large tiles are enough to fill a large GPU, with their terms split.
constexpr int64_t kManyResults = 300'000;

int64_t workgroup_bytes(const Shape& s, Order order, int64_t buffers) {
  return kDepth * (s.m + s.n) * 4 * buffers + (order == Order::kChannels ? 2 * kDepth * 16 : 0);
}
bool fits(const Shape& s, Order order, const gpu::Caps& caps) {
  return workgroup_bytes(s, order, 1) <= caps.max_workgroup_bytes;
}

int64_t tiles_of(const Conv& c, const Shape& s) {
  return c.images() * (up(c.out_channels, s.m) / s.m) * (up(c.positions(), s.n) / s.n);
}

// What a product is cut into: tiles, and workgroups that share the terms of all of them.
struct Cut {
  Shape shape;
  int64_t workgroups = 0;
};

// Small images, as measured on an H200: 256 -> 256, 3 x 3 at 14 x 14, takes 23.9 us in one tall
// tile for each processor and 27.0 in medium ones; 16 parts of each tile are the most that pay.
// 1024 -> 256, 1 x 1, has 14.3 and 16.1 by few invocations, two workgroups for each processor. Both
// leave a processor idle rather than one with a workgroup more.
std::optional<Cut> choose_split(const Conv& c, Order order, int64_t steps, const gpu::Caps& caps) {
  constexpr int64_t kMostParts = 16;
  constexpr int64_t kManyParts = 8;
  constexpr int64_t kManySteps = 4;  // of a part
  const int64_t processors = caps.sizes.processors;
  const int64_t tall = tiles_of(c, kTall);
  const int64_t tall_parts = processors / tall;
  const bool fills_tall = up(c.out_channels, kTall.m) * 8 <= c.out_channels * 9 &&
                          tall * tall_parts * 8 >= processors * 7;
  if (order == Order::kTaps && product(c.kernel) > 1 && fills_tall && tall_parts > 1 &&
      tall_parts <= kMostParts && steps >= tall_parts * kManySteps && fits(kTall, order, caps))
    return Cut{kTall, tall * tall_parts};
  const int64_t few = tiles_of(c, kFew);
  const int64_t few_parts = 2 * processors / few;
  if (order == Order::kRows && c.out_channels % kFew.m == 0 && few_parts >= kManyParts &&
      steps >= few_parts * kManySteps)
    return Cut{kFew, few * few_parts};
  return std::nullopt;
}

Shape choose_shape(const Conv& c, Order order, const gpu::Caps& caps) {
  const int64_t m = c.out_channels;
  const int64_t columns = c.positions();
  const bool fills_large = up(m, kLarge.m) * 8 <= m * 9 && up(columns, kLarge.n) * 4 <= columns * 5;
  if (fills_large && m * columns * c.images() >= kManyResults && fits(kLarge, order, caps))
    return kLarge;
  return up(m, kSmall.m) * 5 <= up(m, kMedium.m) * 4 ? kSmall : kMedium;
}

// By taps a step has one tap, so that what lies outside is found once; few channels would leave
// most of a step empty.
Order choose_order(const Conv& c) {
  if (c.is_pointwise() && c.positions() % 4 == 0) return Order::kRows;
  const bool full = up(c.in_channels, kDepth) * 4 <= c.in_channels * 5;
  return product(c.kernel) == 1 || full ? Order::kTaps : Order::kChannels;
}

int64_t steps_of(const Conv& c, Order order) {
  if (order == Order::kChannels) return up(c.terms(), kDepth) / kDepth;
  return product(c.kernel) * up(c.in_channels, kDepth) / kDepth;
}

std::string_view name(Order order) {
  if (order == Order::kRows) return "rows";
  return order == Order::kTaps ? "taps" : "channels";
}

Result<Tensor> pack(const Node& n, Plan& p, const Conv& c, Order order) {
  const int64_t steps = steps_of(c, order);
  const int64_t wide_out = up(c.out_channels, 4);
  const int64_t items = c.groups * steps * kDepth * wide_out / 4;
  const std::string_view by = order == Order::kChannels ? "channels" : "taps";
  const shaders::ConvPackParams params{.taps = u32(product(c.kernel)),
                                       .in_channels = u32(c.in_channels),
                                       .out_channels = u32(c.out_channels),
                                       .wide_in = u32(up(c.in_channels, kDepth)),
                                       .wide_out = u32(wide_out),
                                       .steps = u32(steps),
                                       .items = u32(items)};
  return packed_weight(n, p, fmt::format("conv tile by {}, groups {}", by, c.groups),
                       n.in(kWeight).dtype, {c.groups, steps * kDepth, wide_out},
                       {.shader = &shaders::conv_pack,
                        .options = {{"order", std::string(by)}},
                        .params = bytes_of(params),
                        .grid = per_element(items, p.caps())});
}

}  // namespace

int64_t choose_splits(int64_t busy, int64_t tiles, int64_t steps, int64_t tile_bytes,
                      const gpu::Caps& caps) {
  constexpr int64_t kMostSplits = 32;
  constexpr int64_t kLeastSteps = 2;  // of a split
  if (tiles == 0) return 1;
  const auto most_bytes = static_cast<int64_t>(caps.max_binding_bytes);
  const int64_t held = most_bytes / (tiles * tile_bytes);
  const int64_t wanted = (busy + tiles / 2) / tiles;
  return std::max<int64_t>(std::min({wanted, kMostSplits, steps / kLeastSteps, held}), 1);
}

Result<Tensor> packed_weight(const Node& n, Plan& p, std::string layout, DType dtype,
                             const Dims& dims, DispatchDesc make) {
  const Tensor weight = n.in(kWeight);
  if (n.is_constant(weight))
    return p.relaid(n, weight, std::move(layout), dtype, dims, std::move(make));
  const Tensor y = p.scratch(dtype, dims);
  make.bind = {{"source", weight}, {"y", y}};
  PTERYX_TRY(p.dispatch(n, std::move(make)));
  return y;
}

void add_results(const Node& n, const Target& to, int64_t row, Options& options,
                 std::vector<Bind>& bind, int64_t most) {
  const Finish f = to.finished ? read_finish(n) : Finish();
  const bool bias = to.finished && n.has(kBias);
  const bool fours = row % 4 == 0 && most == 4;
  options.set("has_bias", bias ? 1 : 0)
      .set("activation", std::string(kActivations[static_cast<size_t>(f.activation)]))
      .set("has_norm", f.norm ? 1 : 0)
      .set("has_residual", static_cast<int64_t>(f.residual))
      .set("has_lo", f.lo ? 1 : 0)
      .set("has_hi", f.hi ? 1 : 0)
      .set("y_rows", fours ? "fours" : (row % 2 == 0 ? "pairs" : "ones"));
  if (bias) bind.push_back({"bias", n.in(kBias)});
  if (f.norm) bind.push_back({"norm", n.in(kNorm)});
  if (f.residual != Finish::Residual::kNone) bind.push_back({"residual", n.in(kResidual)});
  bind.push_back({"y", to.y});
}

Status merge(const Node& n, Plan& p, const Conv& c, const Tensor& sums, const Tiling& t) {
  Options options;
  std::vector<Bind> bind = {{"sums", sums}};
  add_results(n, {n.out()}, c.positions(), options, bind);
  const Tensor y = n.out();
  int64_t items = c.batch * c.channels() * up(c.positions(), 4) / 4;
  int64_t invocations = items;
  if (y.dtype == DType::kF16 && c.positions() % 2 != 0) {  // rows share words
    options.set("y_rows", "any");
    items = y.numel();
    invocations = words(items, y.dtype);
  }
  const auto params = make_params<shaders::ConvMergeParams>(n, c, items, t);
  return p.dispatch(n, {.shader = &shaders::conv_merge,
                        .options = std::move(options),
                        .bind = std::move(bind),
                        .params = bytes_of(params),
                        .grid = per_element(invocations, p.caps())});
}

Status plan_product(const Node& n, Plan& p, const Conv& c, const Tensor& x, const Tensor& weight,
                    Order order, const Target& to) {
  const int64_t steps = steps_of(c, order);
  Cut cut{choose_shape(c, order, p.caps()), 2 * int64_t{p.caps().sizes.processors}};
  if (to.finished && cut.shape.name != kLarge.name)
    cut = choose_split(c, order, steps, p.caps()).value_or(cut);
  const Shape& s = cut.shape;
  Tiling t{.tile_m = s.m,
           .tile_n = s.n,
           .tiles = tiles_of(c, s),
           .k = steps * kDepth,
           .wide_in = up(c.in_channels, kDepth),
           .wide_out = up(c.out_channels, 4)};
  if (to.finished)
    t.splits = choose_splits(cut.workgroups, t.tiles, steps, s.m * s.n * 4, p.caps());
  const int64_t most_bytes = std::min<int64_t>(p.caps().max_workgroup_bytes, kMostBytes);
  const int64_t buffers = workgroup_bytes(s, order, 2) <= most_bytes ? 2 : 1;
  const bool split = t.splits > 1;
  Options options = {{"shape", std::string(s.name)},
                     {"x_from", std::string(name(order))},
                     {"buffers", buffers},
                     {"unrolled", p.caps().software ? 1 : 4},
                     {"split", split ? 1 : 0}};
  std::vector<Bind> bind = {{"x", x}, {"weight", weight}};
  Tensor sums;
  if (split) {
    sums = p.scratch(DType::kF32, {t.splits, t.tiles, s.m * s.n});
    bind.push_back({"y", sums});
  } else {
    add_results(n, to, c.positions(), options, bind);
  }
  const int64_t items = t.tiles * t.splits;
  const auto params = make_params<shaders::ConvTileParams>(n, c, items, t);
  PTERYX_TRY(p.dispatch(n, {.shader = &shaders::conv_tile,
                            .options = std::move(options),
                            .variant = s.name,
                            .bind = std::move(bind),
                            .params = bytes_of(params),
                            .grid = per_group(items, p.caps())}));
  return split ? merge(n, p, c, sums, t) : Status();
}

bool fits_tile(const Node& n, const gpu::Caps& caps) {
  const auto c = read_conv(n);
  if (!c.ok() || c->transposed || c->terms() == 0) return false;
  if (c->spatial == 3 && !c->is_pointwise()) return false;
  const Order order = choose_order(*c);
  const int64_t weights = c->groups * steps_of(*c, order) * kDepth * up(c->out_channels, 4);
  const auto element = static_cast<int64_t>(size_bytes(n.in(kWeight).dtype));
  return caps.max_invocations >= 256 && fits(kMedium, order, caps) &&
         weights * element <= static_cast<int64_t>(caps.max_binding_bytes);
}

Status plan_tile(const Node& n, Plan& p) {
  PTERYX_ASSIGN(const Conv read, read_conv(n));
  const Conv c = read.flattened();
  if (c.images() * c.out_channels * c.positions() == 0) return {};
  const Order order = choose_order(c);
  PTERYX_ASSIGN(const Tensor weight, pack(n, p, c, order));
  return plan_product(n, p, c, n.in(kX), weight, order, {n.out()});
}

}  // namespace pteryx::ops::conv
