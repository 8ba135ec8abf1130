// The GPU routes of convolution: which one a call takes, and how each is dispatched.
// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>

#include "pteryx/ops/conv/conv.h"
#include "pteryx/ops/fold.h"
#include "pteryx/ops/shaders/conv_depthwise.h"
#include "pteryx/ops/shaders/conv_direct.h"
#include "pteryx/ops/shaders/conv_merge.h"
#include "pteryx/ops/shaders/conv_pointwise.h"
#include "pteryx/ops/shaders/conv_tiled.h"
#include "pteryx/ops/shaders/conv_transposed.h"

namespace pteryx::ops::conv {
namespace {

// Workgroups that fill a large GPU. Fewer tiles than this are made smaller, then their sums are
// split.
constexpr int64_t kManyGroups = 512;
constexpr int64_t kLeastTerms = 64;  // of a split

std::array<uint32_t, 4> packed(const Sizes& s) {
  return {u32(s[0]), u32(s[1]), u32(s[2]), u32(product(s))};
}

// Terms cut in `count` parts of `terms` each.
struct Splits {
  int64_t count = 1;
  int64_t terms = 0;
};

// The Params of every route are those of common/conv.wgsl.
template <typename Params>
Params make_params(const Node& n, const Conv& c, int64_t items, const Splits& splits = {}) {
  const Bounds bounds = read_bounds(n);
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
          .lo = static_cast<float>(bounds.lo.value_or(0)),
          .hi = static_cast<float>(bounds.hi.value_or(0)),
          .splits = u32(splits.count),
          .split_terms = u32(splits.terms),
          .split_size = u32(c.images() * c.out_channels * c.positions())};
}

// Of common/conv.wgsl, for rows of `row` results.
Options make_options(const Node& n, const Tensor& y, int64_t row) {
  const Bounds b = read_bounds(n);
  return {{"has_bias", n.has(kBias) ? 1 : 0},
          {"has_lo", b.lo ? 1 : 0},
          {"has_hi", b.hi ? 1 : 0},
          {"row_words", in_row_words(y.dtype, row) ? 1 : 0}};
}

std::vector<Bind> bindings(const Node& n, std::vector<Bind> operands, const Tensor& y) {
  if (n.has(kBias)) operands.push_back({"bias", n.in(kBias)});
  operands.push_back({"y", y});
  return operands;
}

// The routes of four neighbouring results per invocation.
template <typename Params>
Status plan_rows(const Node& n, Plan& p, const Shader& shader) {
  PTERYX_ASSIGN(const Conv c, read_conv(n));
  const Tensor y = n.out();
  const int64_t items = c.batch * c.channels() * c.out[0] * c.out[1] * ((c.out[2] + 3) / 4);
  const Params params = make_params<Params>(n, c, items);
  return p.dispatch(n, {.shader = &shader,
                        .options = make_options(n, y, c.out[2]),
                        .bind = bindings(n, {{"x", n.in(kX)}, {"weight", n.in(kWeight)}}, y),
                        .params = bytes_of(params),
                        .grid = per_element(items, p.caps())});
}

// Side of the square tile, its number, and how its sums are split.
struct Tiling {
  int64_t side = 64;
  int64_t tiles = 0;
  Splits splits;
};

Tiling choose_tiling(const Conv& c) {
  Tiling t;
  const auto count = [&](int64_t side) {
    return (c.out_channels + side - 1) / side * ((c.positions() + side - 1) / side) * c.images();
  };
  if (count(t.side) < kManyGroups) t.side = 32;
  t.tiles = count(t.side);
  t.splits.terms = c.terms();
  if (t.tiles > 0 && t.tiles < kManyGroups / 2) {
    const int64_t parts = std::clamp<int64_t>(c.terms() / kLeastTerms, 1, kManyGroups / t.tiles);
    t.splits.terms = (c.terms() + parts - 1) / parts;
    t.splits.count = t.splits.terms == 0 ? 1 : (c.terms() + t.splits.terms - 1) / t.splits.terms;
  }
  return t;
}

Status merge(const Node& n, Plan& p, const Conv& c, const Tensor& sums, const Splits& splits) {
  const Tensor y = n.out();
  const auto params = make_params<shaders::ConvMergeParams>(n, c, y.numel(), splits);
  return p.dispatch(n, {.shader = &shaders::conv_merge,
                        .options = make_options(n, y, y.numel()).set("row_words", 1),
                        .bind = bindings(n, {{"sums", sums}}, y),
                        .params = bytes_of(params),
                        .grid = per_element(words(y.numel(), y.dtype), p.caps())});
}

// The routes of one tile of a matrix product per workgroup.
template <typename Params>
Status plan_tiles(const Node& n, Plan& p, const Shader& shader) {
  PTERYX_ASSIGN(const Conv c, read_conv(n));
  const Tiling t = choose_tiling(c);
  const bool split = t.splits.count > 1;
  const Tensor y = split ? p.scratch(DType::kF32, {t.splits.count, n.out().numel()}) : n.out();
  const int64_t items = t.tiles * t.splits.count;
  const Params params = make_params<Params>(n, c, items, t.splits);
  PTERYX_TRY(p.dispatch(n, {.shader = &shader,
                            .options = make_options(n, y, c.positions())
                                           .set("quads", t.side / 32)
                                           .set("split", split ? 1 : 0)
                                           .set("whole_tiles", p.caps().software ? 0 : 1),
                            .variant = t.side == 64 ? "64" : "32",
                            .bind = bindings(n, {{"x", n.in(kX)}, {"weight", n.in(kWeight)}}, y),
                            .params = bytes_of(params),
                            .grid = per_group(items, p.caps())}));
  return split ? merge(n, p, c, y, t.splits) : Status();
}

// What the routes ask of a call that shape() has accepted.
bool holds(const Node& n, bool (*test)(const Conv&)) {
  const auto c = read_conv(n);
  return c.ok() && test(*c);
}
bool is_transposed(const Node& n, const gpu::Caps&) {
  return holds(n, [](const Conv& c) { return c.transposed; });
}
bool is_plain(const Node& n, const gpu::Caps&) {
  return holds(n, [](const Conv& c) { return !c.transposed; });
}
bool is_flat(const Node& n, const gpu::Caps&) {
  return holds(n, [](const Conv& c) { return !c.transposed && c.spatial < 3; });
}
// With many output channels a group, tiles use the input better.
bool is_depthwise(const Node& n, const gpu::Caps&) {
  return holds(n, [](const Conv& c) {
    return !c.transposed && c.spatial < 3 && c.in_channels == 1 && c.out_channels <= 8;
  });
}
bool is_pointwise(const Node& n, const gpu::Caps&) {
  return holds(n, [](const Conv& c) {
    return !c.transposed && product(c.kernel) == 1 && product(c.stride) == 1 &&
           c.padding == Sizes{0, 0, 0};
  });
}
// Tiles of 32 x 32 would be less than an eighth full.
bool wastes_tiles(const Node& n, const gpu::Caps&) {
  return holds(n, [](const Conv& c) {
    const auto up = [](int64_t v) { return (v + 31) / 32 * 32; };
    const int64_t tiled = up(c.out_channels) * up(c.positions());
    return !c.transposed && c.in_channels > 1 && c.terms() < 4 * kLeastTerms &&
           c.out_channels * c.positions() * 8 <= tiled;
  });
}

// "direct" stands twice: where it is the better choice, and last as what always works.
constexpr Route kRoutes[] = {
    {"transposed", is_transposed,
     [](const Node& n, Plan& p) {
       return plan_rows<shaders::ConvTransposedParams>(n, p, shaders::conv_transposed);
     }},
    {"depthwise", is_depthwise,
     [](const Node& n, Plan& p) {
       return plan_rows<shaders::ConvDepthwiseParams>(n, p, shaders::conv_depthwise);
     }},
    {"direct", wastes_tiles,
     [](const Node& n, Plan& p) {
       return plan_rows<shaders::ConvDirectParams>(n, p, shaders::conv_direct);
     }},
    {"pointwise", is_pointwise,
     [](const Node& n, Plan& p) {
       return plan_tiles<shaders::ConvPointwiseParams>(n, p, shaders::conv_pointwise);
     }},
    {"tiled", is_flat,
     [](const Node& n, Plan& p) {
       return plan_tiles<shaders::ConvTiledParams>(n, p, shaders::conv_tiled);
     }},
    {"direct", is_plain,
     [](const Node& n, Plan& p) {
       return plan_rows<shaders::ConvDirectParams>(n, p, shaders::conv_direct);
     }},
};

}  // namespace

std::span<const Route> routes() { return kRoutes; }

}  // namespace pteryx::ops::conv
