// The route of integer dot products: how many invocations share out k, how many columns they make,
// how many bytes x is rounded to.
// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/ops/quant/dot4.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "pteryx/ops/quant/parts.h"
#include "pteryx/ops/shaders/qlinear_dot4.h"
#include "pteryx/ops/shaders/qlinear_planes.h"

namespace pteryx::ops::qlinear {
namespace {

constexpr int64_t kMaxRows = 8;
constexpr uint64_t kMostBytes = 49152;     // of workgroup memory, of the kernel
constexpr int64_t kLargestSize = 1 << 24;  // of quant/kernels/common/params.wgsl
constexpr uint32_t kMostSets = 16;         // of the kernel
constexpr uint32_t kMostResults = 32;  // of an invocation, times units; beyond, compilers take long

struct Shape {
  uint32_t rows = 1;
  uint32_t planes = 2;
  uint32_t columns = 4;
  uint32_t lanes = 32;
  uint32_t across = 1;
  uint32_t steps = 1;
  uint32_t sets = 1;
  uint32_t squares = 0;   // of heads that are normed
  uint32_t terms = 32;    // of a unit of k
  bool normed = false;    // x is, as it is rounded
  bool prepared = false;  // x comes as planes, instead of being rounded in workgroup memory

  uint32_t team() const { return lanes * across; }
  // As qlinear_dot4.wgsl counts them.
  uint64_t workgroup_bytes() const {
    const uint64_t units = uint64_t{rows} * team() * steps;
    const uint64_t x =
        units * (planes * (terms + 4)) + (normed ? units * terms / 8 / lanes * 4 : 0);
    return (prepared ? 0 : x) + uint64_t{sets} * across * rows * columns * 4 +
           uint64_t{squares} * 4;
  }
  bool holds_row(int64_t units) const { return int64_t{team()} * steps >= units; }
  // Units of a row of planes: whole passes.
  int64_t x_wide(const QLinear& d) const {
    const int64_t pass = int64_t{team()} * steps;
    return up(up(d.k, unit(d)), pass) * pass;
  }
};

// x given as codes, or rounded to codes with a scale for each row: two bytes hold any code less its
// zero point.
bool coded(const QLinear& d) { return d.row_scale.has_value() || !is_float(d.x.dtype); }

// A zero point that a file may give beside the type of the codes must leave them in two bytes.
bool codes_fit(const QLinear& d) {
  if (d.row_zero && d.row_zero->dtype != DType::kI8) return false;
  return std::floor(d.x_zero) == d.x_zero && std::fabs(d.x_zero) <= 255;
}

// Two bytes round like f16 (3e-5 of the largest of 32), three like f32.
uint32_t planes_of(const QLinear& d, Precision precision) {
  return coded(d) || precision == Precision::kF16 ? 2 : 3;
}

// Columns are in pairs that are apart.
bool in_pairs(const QLinear& d) { return d.gated || (d.rotation && d.rotation->halves); }

// Heads that are normed are made by a workgroup each: by so many sets of eight columns.
bool norms_heads(const QLinear& d) { return d.rotation && d.rotation->q_norm; }
uint32_t sets_of_head(const QLinear& d) { return u32(d.rotation->size() / 8); }

// It has eight columns in pairs then, for each row of x.
bool makes_pairs(const QLinear& d, const gpu::Caps& caps) {
  return d.m <= kMaxRows && caps.subgroup_min >= 8;
}

// Buffers of a product that turns queries and keys: with the tables, caches and live scalars.
uint32_t rotated_buffers(const QLinear& d) {
  return 3 + rotation_buffers(d) + (d.minimums ? 1 : 0) + (d.norm ? 1 : 0) +
         (norms_heads(d) ? 2 : 0);
}

// Norms need the sums of a whole head: of one row, in pairs that are apart, if a workgroup can make
// one.
bool turns_itself(const QLinear& d, const gpu::Caps& caps) {
  if (!d.rotation || rotated_buffers(d) > caps.max_storage_buffers) return false;
  const bool halves = d.rotation->halves;
  if (!norms_heads(d)) return !halves || (makes_pairs(d, caps) && d.rotation->size() % 8 == 0);
  const int64_t size = d.rotation->size();
  const uint32_t limit = std::min(caps.max_invocations, 512U);
  return halves && d.m == 1 && caps.subgroup_min >= 8 && size >= 16 && size <= 8 * kMostSets &&
         std::has_single_bit(u32(size)) &&
         sets_of_head(d) * std::bit_floor(std::min(caps.subgroup_min, 32U)) <= limit;
}

std::string x_form(const QLinear& d) {
  if (d.row_scale) return "rounded";
  if (!is_float(d.x.dtype)) return "whole";
  return d.norm ? "norm" : "plain";
}

// Of several rows, x is better made once, apart, than held by a workgroup that has the processor to
// itself.
uint64_t most_bytes(const Shape& s, const gpu::Caps& caps) {
  return std::min<uint64_t>(caps.max_workgroup_bytes, s.rows > 1 ? 32768 : kMostBytes);
}

// Invocations for k: all of a row's units at once, as far as registers and workgroup memory go.
void share_out_k(Shape& s, const QLinear& d, uint32_t limit, const gpu::Caps& caps) {
  const auto subgroups = u32(up(up(d.k, unit(d)), s.lanes));  // that a row has units for
  uint32_t most = std::min(8U, limit / s.lanes);
  if (s.squares > 0) most = std::clamp(limit / (s.lanes * s.sets), 1U, most);
  // Several rows: more subgroups before more units, of which each is written out for every result.
  const uint32_t few = s.rows > 1 ? std::min(most, 4U) : most;
  const uint32_t results = s.rows * (in_pairs(d) ? 8 : 4);
  s.steps =
      std::clamp(u32(up(subgroups, few)), 1U, std::max(std::min(4U, kMostResults / results), 1U));
  s.across = std::clamp(u32(up(subgroups, s.steps)), 1U, most);
  while (s.across > 1 && s.workgroup_bytes() > most_bytes(s, caps)) --s.across;
  while (s.steps > 1 && s.workgroup_bytes() > most_bytes(s, caps)) --s.steps;
}

// Buffers of a layer that not every layer has.
uint32_t more_buffers(const QLinear& d) {
  return u32(static_cast<int64_t>(d.more.size())) + (d.minimums ? 1 : 0) + (d.bias ? 1 : 0) +
         (d.residual ? 1 : 0);
}

// Buffers of a product that norms x.
uint32_t normed_buffers(const QLinear& d) { return 5 + more_buffers(d); }

// Buffers of a product that has x as planes.
uint32_t prepared_buffers(const QLinear& d, uint32_t planes) {
  if (d.rotation) return rotated_buffers(d) + planes - 1;
  return planes + 4 + more_buffers(d);
}

// x is rounded once per workgroup: few of them, if they can all run at once. Eight columns, or
// several rows, take so many registers that few invocations fit; of a long row, which takes more
// workgroup memory than a processor has for each of its invocations, few do in any case.
void share_x(Shape& s, const QLinear& d, uint32_t limit, const gpu::Caps& caps) {
  constexpr uint64_t kBytesEach = 112;
  const int64_t blocks = up(d.n, s.columns);
  const int64_t processors = caps.sizes.processors;
  const auto doubles = [&](uint32_t threads) {
    if (s.team() * s.sets * 2 > threads || s.sets * 2 > kMostSets) return false;
    Shape more = s;
    more.sets *= 2;
    return more.workgroup_bytes() <= most_bytes(s, caps);
  };
  if (s.rows > 1) {
    // Small workgroups would take as long to round several rows as for the product.
    while (doubles(std::min(limit, 256U))) s.sets *= 2;
    if (d.norm && up(blocks, s.sets) > 2 * processors && doubles(limit)) s.sets *= 2;
    return;
  }
  const bool one_wave = up(blocks, limit / s.team()) <= 2 * processors && s.columns < 8;
  const bool scarce = s.workgroup_bytes() > kBytesEach * s.team();
  const uint32_t most = one_wave || scarce ? limit : std::min(limit, 256U);
  while (up(blocks, s.sets) > 2 * processors && doubles(most)) s.sets *= 2;
  // One each is enough, if it is large.
  while (up(blocks, s.sets * 2) * 10 >= processors * 9 && doubles(std::min(most, 256U)))
    s.sets *= 2;
}

Shape shape_of(const QLinear& d, uint32_t planes, const gpu::Caps& caps) {
  Shape s{.rows = std::max(u32(d.m), 1U),
          .planes = planes,
          .terms = u32(unit(d)),
          .normed = d.norm.has_value()};
  s.lanes = std::bit_floor(std::min(caps.subgroup_min, 32U));
  const uint32_t limit = std::min(caps.max_invocations, 512U);
  const bool heads = norms_heads(d) && turns_itself(d, caps);
  if (heads) {
    s.columns = 8;
    s.sets = sets_of_head(d);
    s.squares = 2 * s.sets;
  }
  share_out_k(s, d, limit, caps);
  if (heads) return s;
  // More columns each reuse x more often; fewer leave more invocations to hide latency with.
  const auto columns = [&] {
    const bool many = d.n / 4 * s.team() > caps.sizes.enough_invocations() && s.rows != 2 &&
                      s.rows * 8 * s.steps <= kMostResults;
    return std::min(many || in_pairs(d) ? 8U : 4U, s.lanes);
  };
  s.columns = columns();
  share_x(s, d, limit, caps);
  if (s.rows == 1 || x_form(d) != "plain" || prepared_buffers(d, planes) > caps.max_storage_buffers)
    return s;
  // Several rows, many workgroups or pieces of k that would each round x: it is done before.
  const bool again = up(up(d.n, s.columns), s.sets) > 8 * int64_t{caps.sizes.processors};
  if (s.rows <= 4 && !again && s.holds_row(up(d.k, unit(d)))) return s;
  s.prepared = true;
  share_out_k(s, d, limit, caps);
  s.columns = columns();
  s.sets = std::clamp(std::bit_floor(128 / s.team()), 1U, kMostSets);
  return s;
}

// Scales that are one load: of columns that begin at a multiple of four or eight, as rows of scales
// do.
std::string scale_loads(const QLinear& d, uint32_t columns) {
  const bool rows = d.scale_row % 4 == 0 && (d.scale_row > 0 || d.n % 4 == 0);
  if (!rows || (in_pairs(d) && d.n % 8 != 0)) return "one";
  const bool eights = d.scale_order == ScaleOrder::kBlocks && d.scales.dtype == DType::kF16;
  return eights && columns == 8 && !in_pairs(d) ? "eight" : "four";
}

}  // namespace

bool fits_dot4(const Node& n, const gpu::Caps& caps) {
  const auto d = describe_qlinear(n);
  if (!d.ok() || d->m > kMaxRows || !has_vectors(n, *d) || !one_scale(*d) || !codes_fit(*d))
    return false;
  if (d->norm && d->k % 4 != 0) return false;
  if (std::max({d->n, d->k, d->scale_row}) > kLargestSize) return false;
  if (!caps.dot4 || !caps.subgroups || caps.subgroup_min < 4 || caps.max_invocations < 256)
    return false;
  // With three planes it fits with fewer.
  const Shape s = shape_of(*d, 3, caps);
  return s.workgroup_bytes() <= most_bytes(s, caps);
}

namespace {

// A number that a kernel may hold as its bits.
bool is_plain(float v) { return std::isfinite(v) && !std::signbit(v); }

// x itself, or planes that are made of it.
Result<std::vector<Bind>> bind_x(const Node& n, Plan& p, const QLinear& d, const Shape& s) {
  if (!s.prepared) return std::vector<Bind>{{"x", d.x}};
  const int64_t units = d.m * s.x_wide(d);
  std::vector<Bind> planes = {
      {"x_bytes", p.scratch(DType::kI32, {units * s.planes, unit(d) / 4})},
      {"x_scale", p.scratch(DType::kF32, {units, 2})},
  };
  if (s.planes == 3) planes.push_back({"x_high", p.scratch(DType::kI32, {units})});
  Options options = {{"planes", s.planes},
                     {"x_form", "plain"},
                     {"codes", d.codes == Codes::kBytes ? "bytes" : "nibbles"},
                     {"wide", s.x_wide(d)}};
  set_x_options(d, options);
  std::vector<Bind> bind = planes;
  bind.push_back({"x", d.x});
  const Params params = make_params(d);
  PTERYX_TRY(p.dispatch(n, {.shader = &shaders::qlinear_planes,
                            .options = std::move(options),
                            .bind = std::move(bind),
                            .params = bytes_of(params),
                            .grid = per_element(units * unit(d) / 8, p.caps())}));
  return planes;
}

Status dot4(const Node& n, Plan& p, QLinear d) {
  if (d.m == 0) return {};
  PTERYX_TRY(use_vectors(n, p, d));
  const Shape s = shape_of(d, planes_of(d, p.context().precision), p.caps());
  PTERYX_ASSIGN(const std::vector<Bind> x, bind_x(n, p, d, s));
  Options options = {{"rows", s.rows},
                     {"planes", s.planes},
                     {"columns", s.columns},
                     {"lanes", s.lanes},
                     {"across", s.across},
                     {"steps", s.steps},
                     {"sets", s.sets},
                     {"passes", s.holds_row(up(d.k, unit(d))) ? 0 : 1},
                     {"x_form", s.prepared ? "prepared" : x_form(d)},
                     {"gated", d.gated ? 1 : 0},
                     {"scale_loads", scale_loads(d, s.columns)},
                     {"codes", d.codes == Codes::kBytes ? "bytes" : "nibbles"},
                     {"scale_order", name_of(d.scale_order)}};
  options.set("rotated", d.rotation ? 1 : 0);
  if (s.prepared) {
    options.set("x_wide", s.x_wide(d));
  } else {
    set_x_options(d, options);
  }
  set_result_options(d, false, options);
  std::vector<Bind> bind = x;
  bind_weight(d, options, bind);
  if (d.norm) bind.push_back({"norm", *d.norm});
  if (d.row_scale) bind.push_back({"row_scale", *d.row_scale});
  if (d.row_zero) bind.push_back({"row_zero", *d.row_zero});
  if (d.rotation) {
    options.set("halves", d.rotation->halves ? 1 : 0).set("normed", norms_heads(d) ? 1 : 0);
    set_rotation(d, options, bind);
    if (norms_heads(d))
      bind.insert(bind.end(), {{"norm_q", *d.rotation->q_norm}, {"norm_k", *d.rotation->k_norm}});
  } else {
    bind_results(d, bind);
  }
  const Params params = make_params(d);
  // Few rows are bound by latency: their kernels do not wait for sizes.
  const bool fixed = is_plain(params.factor) && is_plain(params.eps);
  options.set("fixed", fixed ? 1 : 0);
  if (fixed) set_sizes(params, options);
  return p.dispatch(n, {.shader = &shaders::qlinear_dot4,
                        .options = std::move(options),
                        .variant = d.codes == Codes::kBytes ? "8-bit" : "4-bit",
                        .bind = std::move(bind),
                        .params = bytes_of(params),
                        .live = live_ints(d),
                        .grid = per_group(up(up(d.n, s.columns), s.sets), p.caps())});
}

}  // namespace

Status plan_dot4(const Node& n, Plan& p) {
  PTERYX_ASSIGN(QLinear d, describe_qlinear(n));
  const bool gate = makes_pairs(d, p.caps());
  const bool rotation = turns_itself(d, p.caps());
  const bool norm = normed_buffers(d) <= p.caps().max_storage_buffers;
  // Where x comes as planes, its norm is planned before them.
  d.norm.reset();
  d.gated = d.gated && gate;
  if (!rotation) d.rotation.reset();
  const bool prepared = shape_of(d, planes_of(d, p.context().precision), p.caps()).prepared;
  return plan_around(
      n, p, dot4,
      {.rounding = true, .norm = norm && !prepared, .gate = gate, .rotation = rotation});
}

}  // namespace pteryx::ops::qlinear
