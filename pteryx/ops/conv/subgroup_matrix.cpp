// Convolution as a product of tiles with subgroup matrices, for callers who allow f16 operands.
// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/ops/subgroup_matrix.h"

#include <algorithm>

#include "pteryx/ops/conv/params.h"
#include "pteryx/ops/shaders/conv_halves.h"
#include "pteryx/ops/shaders/conv_matrix.h"
#include "pteryx/ops/shaders/conv_pack_halves.h"

namespace pteryx::ops::conv {
namespace {

struct Shape {
  std::string_view name;  // in conv_matrix.wgsl
  int64_t m, n, depth, threads;
};
constexpr Shape kSquare{"square", 64, 64, 64, 128};
constexpr Shape kShallow{"shallow", 64, 64, 32, 128};
constexpr Shape kOblong{"oblong", 64, 128, 32, 128};
constexpr Shape kLarge{"large", 128, 128, 32, 128};
constexpr Shape kDeep{"deep", 128, 128, 64, 256};
constexpr Shape kWhole{"whole", 128, 128, 64, 128};
constexpr Shape kTall{"tall", 160, 128, 32, 128};
constexpr Shape kHalf{"half", 64, 128, 64, 128};

// Results from which large tiles are enough to fill a large GPU, with their terms split; positions
// and terms from which tiles twice as wide as high are better than square ones.
constexpr int64_t kManyResults = 300'000;
constexpr int64_t kOblongPositions = 2048;
constexpr int64_t kOblongTerms = 512;

// Products from which on gathering x in every tile takes longer than a pass that puts it in order.
constexpr int64_t kManyProducts = 500'000'000;

// Of a workgroup; fewer are not worth its beginning and end, so that there is one for each of the
// GPU's processors and not two.
constexpr int64_t kManySteps = 64;

bool fits(const Shape& s, const gpu::Caps& caps) {
  const int64_t tiles = (s.m + s.n) * (s.depth / 8 + 1) * 16;
  const int64_t others = 2 * s.depth * 16 + s.threads / 32 * 256 * 4;  // terms, finished sums
  return tiles + others <= caps.max_workgroup_bytes && s.threads <= caps.max_invocations;
}

Shape choose_shape(const Conv& c, const gpu::Caps& caps) {
  const int64_t m = c.out_channels;
  const int64_t columns = c.positions();
  const bool fills_deep = up(c.in_channels, 64) * 8 <= c.in_channels * 9;
  const bool fills_large = up(m, kLarge.m) * 8 <= m * 9 && up(columns, kLarge.n) * 4 <= columns * 5;
  if (fills_large && m * columns * c.images() >= kManyResults) {
    if (fills_deep && fits(kDeep, caps)) return kDeep;
    if (fits(kLarge, caps)) return kLarge;
  }
  if (columns >= kOblongPositions && c.terms() >= kOblongTerms && fits(kOblong, caps))
    return kOblong;
  return fills_deep && fits(kSquare, caps) ? kSquare : kShallow;
}

// Of halves, which tiles read as products of matrices do: large ones, even where a fifth of their
// rows is empty. `part`: at most one row in so many.
Shape choose_halves_shape(const Conv& c, const gpu::Caps& caps) {
  const auto fills = [&](const Shape& s, int64_t part) {
    const int64_t m = c.out_channels;
    return (up(m, s.m) - m) * part <= m && fits(s, caps);
  };
  if (fills(kWhole, 8)) return kWhole;
  if (fills(kTall, 8)) return kTall;
  if (fills(kWhole, 4)) return kWhole;
  return fits(kHalf, caps) ? kHalf : kOblong;
}

// A processor is busy with one large tile: the splits with which all of them take the fewest steps,
// one after another where there are more than processors. A merge costs as much as a few steps, and
// what it reads of each tile.
int64_t choose_halves_splits(const Shape& shape, int64_t tiles, int64_t steps,
                             const gpu::Caps& caps) {
  constexpr int64_t kMost = 16;
  constexpr double kMerge = 3;  // steps of kWhole
  constexpr double kPart = 0.03;
  const int64_t processors = caps.sizes.processors;
  const int64_t tile_bytes = shape.m * shape.n * 4;
  const double area = static_cast<double>(shape.m * shape.n) / (kWhole.m * kWhole.n);
  const double step = area * static_cast<double>(shape.depth) / kWhole.depth;
  int64_t best = 1;
  double least = 0;
  for (int64_t s = 1; s <= kMost; ++s) {
    const int64_t splits = choose_splits(s * tiles, tiles, steps, tile_bytes, caps);
    const int64_t rounds = up(tiles * splits, processors) / processors;
    const double merge =
        splits == 1 ? 0 : kMerge + kPart * area * static_cast<double>(splits * tiles);
    const int64_t longest = up(steps, splits) / splits;
    const double cost = step * static_cast<double>(rounds * longest) + merge;
    if (s == 1 || cost < least) {
      best = splits;
      least = cost;
    }
  }
  return best;
}

// By taps a step has one tap, so that what lies outside is found once; few channels would leave
// most of a step empty.
bool goes_by_taps(const Conv& c, int64_t depth) {
  return product(c.kernel) == 1 || up(c.in_channels, depth) * 4 <= c.in_channels * 5;
}

// How tiles get x: from where it lies, or from halves that a pass before has put in order.
enum class X : uint8_t { kGathered, kHalves };

struct Terms {
  bool by_taps = true;
  int64_t wide_in = 0;
  int64_t k = 0;
};
Terms terms_of(const Conv& c, int64_t depth, X from) {
  Terms t{.by_taps = from == X::kHalves || goes_by_taps(c, depth),
          .wide_in = up(c.in_channels, depth)};
  t.k = t.by_taps ? product(c.kernel) * t.wide_in : up(c.terms(), depth);
  return t;
}

Result<Tensor> pack(const Node& n, Plan& p, const Conv& c, const Terms& t) {
  const std::string_view order = t.by_taps ? "taps" : "channels";
  const int64_t items = c.channels() * t.k / 8;
  const shaders::ConvPackHalvesParams params{.taps = u32(product(c.kernel)),
                                             .in_channels = u32(c.in_channels),
                                             .wide_in = u32(t.wide_in),
                                             .k = u32(t.k),
                                             .items = u32(items)};
  return packed_weight(n, p, fmt::format("conv matrix by {}, {} terms", order, t.k), DType::kF16,
                       {c.channels(), t.k},
                       {.shader = &shaders::conv_pack_halves,
                        .options = {{"order", std::string(order)}},
                        .params = bytes_of(params),
                        .grid = per_element(items, p.caps())});
}

// The convolution of what conv_halves makes of x: padded, so that it needs no padding of its own.
Conv padded(const Conv& c) {
  Conv p = c;
  for (size_t i = 0; i < 3; ++i) p.in[i] += 2 * p.padding[i];
  p.padding = {0, 0, 0};
  return p;
}

int64_t halves_bytes(const Conv& c, int64_t wide_in) {
  return c.images() * product(padded(c).in) * wide_in * 2;
}

Result<Tensor> plan_halves(const Node& n, Plan& p, const Conv& c, const Terms& terms) {
  Conv pass = c;
  pass.out = padded(c).in;
  const int64_t items = c.images() * terms.wide_in / 16 * pass.positions();
  const Tensor y = p.scratch(DType::kF16, {c.images(), pass.positions(), terms.wide_in});
  const auto params =
      make_params<shaders::ConvHalvesParams>(n, pass, items, {.wide_in = terms.wide_in});
  PTERYX_TRY(p.dispatch(n, {.shader = &shaders::conv_halves,
                            .bind = {{"x", n.in(kX)}, {"y", y}},
                            .params = bytes_of(params),
                            .grid = per_element(items, p.caps())}));
  return y;
}

bool has_matrices(const Conv& c, const gpu::Caps& caps) {
  return caps.subgroup_matrix && caps.f16 && caps.subgroup_min == 32 && caps.subgroup_max == 32 &&
         !c.transposed && c.terms() > 0 && fits(kShallow, caps) &&
         (c.spatial < 3 || c.is_pointwise());
}

Status plan(const Node& n, Plan& p, X from) {
  PTERYX_ASSIGN(const Conv read, read_conv(n));
  Conv c = read.flattened();
  if (c.images() * c.out_channels * c.positions() == 0) return {};
  const bool halves = from == X::kHalves;
  const Shape s = halves ? choose_halves_shape(c, p.caps()) : choose_shape(c, p.caps());
  const Terms terms = terms_of(c, s.depth, from);
  Tiling t{.tile_m = s.m,
           .tile_n = s.n,
           .tiles = c.images() * (up(c.out_channels, s.m) / s.m) * (up(c.positions(), s.n) / s.n),
           .k = terms.k,
           .wide_in = terms.wide_in,
           .wide_out = c.out_channels};
  const int64_t steps = terms.k / s.depth;
  const int64_t many = s.name == kOblong.name ? 3 : 2;  // of a processor
  const int64_t busy = int64_t{p.caps().sizes.processors} * (steps < kManySteps ? 1 : many);
  t.splits = halves ? choose_halves_splits(s, t.tiles, steps, p.caps())
                    : choose_splits(busy, t.tiles, steps, s.m * s.n * 4, p.caps());
  PTERYX_ASSIGN(const Tensor weight, pack(n, p, c, terms));
  Tensor x = n.in(kX);
  if (halves) {
    PTERYX_ASSIGN(x, plan_halves(n, p, c, terms));
    c = padded(c);
  }
  const bool split = t.splits > 1;
  Options options = {{"shape", std::string(s.name)},
                     {"x_from", halves ? "halves" : (terms.by_taps ? "taps" : "channels")},
                     {"split", split ? (stores_whole_matrices(p.caps()) ? 1 : 2) : 0}};
  std::vector<Bind> bind = {{"x", x}, {"weight", weight}};
  Tensor sums;
  if (split) {
    sums = p.scratch(DType::kF32, {t.splits, t.tiles, s.m * s.n});
    bind.push_back({"y", sums});
  } else {
    add_results(n, {n.out()}, c.positions(), options, bind);
  }
  const int64_t items = t.tiles * t.splits;
  const auto params = make_params<shaders::ConvMatrixParams>(n, c, items, t);
  PTERYX_TRY(p.dispatch(n, {.shader = &shaders::conv_matrix,
                            .options = std::move(options),
                            .variant = s.name,
                            .bind = std::move(bind),
                            .params = bytes_of(params),
                            .grid = per_group(items, p.caps())}));
  return split ? merge(n, p, c, sums, t) : Status();
}

}  // namespace

bool fits_matrix(const Node& n, const gpu::Caps& caps) {
  const auto c = read_conv(n);
  if (!c.ok() || !has_matrices(*c, caps)) return false;
  const int64_t k = terms_of(*c, choose_shape(*c, caps).depth, X::kGathered).k;
  return c->channels() * k * 2 <= static_cast<int64_t>(caps.max_binding_bytes);
}
Status plan_matrix(const Node& n, Plan& p) { return plan(n, p, X::kGathered); }

bool fits_matrix_halves(const Node& n, const gpu::Caps& caps) {
  const auto c = read_conv(n);
  if (!c.ok() || !has_matrices(*c, caps) || !fits(kOblong, caps)) return false;
  const Terms t = terms_of(*c, choose_halves_shape(*c, caps).depth, X::kHalves);
  return std::max(c->channels() * t.k * 2, halves_bytes(*c, t.wide_in)) <=
         static_cast<int64_t>(caps.max_binding_bytes);
}
bool suits_matrix_halves(const Node& n, const gpu::Caps& /*caps*/) {
  const auto c = read_conv(n);
  return c.ok() && goes_by_taps(*c, kWhole.depth) &&
         c->batch * c->channels() * c->positions() * c->terms() >= kManyProducts;
}
Status plan_matrix_halves(const Node& n, Plan& p) { return plan(n, p, X::kHalves); }

}  // namespace pteryx::ops::conv
