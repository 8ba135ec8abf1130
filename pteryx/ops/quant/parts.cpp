// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/ops/quant/parts.h"

#include <algorithm>
#include <array>
#include <bit>

#include "pteryx/ops/fixed_slot.h"
#include "pteryx/ops/fold.h"
#include "pteryx/ops/movement.h"
#include "pteryx/ops/norm.h"
#include "pteryx/ops/shaders/gate.h"
#include "pteryx/ops/shaders/qlinear_merge.h"
#include "pteryx/ops/shaders/qlinear_merge_fours.h"
#include "pteryx/ops/shaders/qlinear_merge_gated.h"
#include "pteryx/ops/shaders/qlinear_rotate.h"
#include "pteryx/ops/shaders/qlinear_vectors.h"
#include "pteryx/ops/shaders/requantize.h"

namespace pteryx::ops::qlinear {
namespace {

constexpr int64_t kVector = 16;  // bytes

bool in_vectors(const QLinear& d) {
  return d.row_bytes % kVector == 0 && d.codes != Codes::kHighFirst;
}

}  // namespace

Params make_params(const QLinear& d) {
  std::array<uint32_t, 4> ends{};
  const std::vector<Columns> all = results(d);
  for (size_t j = 0; j < all.size(); ++j) ends[j] = u32(all[j].first + all[j].width);
  if (all.size() == 1) ends[0] = u32(d.n);
  return {.m = u32(d.m),
          .n = u32(d.n),
          .k = u32(d.k),
          .row_bytes = u32(d.row_bytes),
          .group = u32(d.group),
          .scale_row = u32(d.scale_row),
          .splits = 1,
          .chunk = u32(d.k),
          .factor = static_cast<float>(d.factor),
          .x_zero = static_cast<float>(d.x_zero),
          .eps = static_cast<float>(d.eps),
          .head_eps = d.rotation ? static_cast<float>(d.rotation->eps) : 0,
          .position = d.rotation ? d.rotation->position.word : 0,
          .table_start = d.rotation ? d.rotation->table_start.word : 0,
          .ends = ends};
}

void set_sizes(const Params& p, Options& to) {
  to.set("n", p.n).set("k", p.k).set("row_bytes", p.row_bytes).set("group_size", p.group);
  to.set("scale_row", p.scale_row);
  to.set("factor_bits", std::bit_cast<uint32_t>(p.factor));
  to.set("eps_bits", std::bit_cast<uint32_t>(p.eps));
  for (size_t i = 0; i < p.ends.size(); ++i) to.set(fmt::format("end{}", i), p.ends[i]);
  const auto position = fixed_slot({p.position});
  const auto table = fixed_slot({p.table_start});
  to.set("fixed_slots", position && table ? 1 : 0)
      .set("position_slot", position.value_or(0))
      .set("table_slot", table.value_or(0));
}

// ---------------------------------------------------------------- weights

std::string name_of(ScaleOrder order) {
  if (order == ScaleOrder::kFlat) return "flat";
  return order == ScaleOrder::kGroups ? "groups" : "blocks";
}

int64_t unit(const QLinear& d) { return d.codes == Codes::kBytes ? kVector : kVector * 2; }

bool one_scale(const QLinear& d) { return d.scale_row == 0 || d.group % unit(d) == 0; }

bool has_vectors(const Node& n, const QLinear& d) {
  return d.weight.numel() > 0 && (in_vectors(d) || n.is_constant(d.weight));
}

Status use_vectors(const Node& n, Plan& p, QLinear& d) {
  if (in_vectors(d)) return {};
  const int64_t wide = up(d.row_bytes, kVector) * kVector;
  const bool swap = d.codes == Codes::kHighFirst;
  const shaders::QlinearVectorsParams params{.rows = u32(d.n),
                                             .from_bytes = u32(d.row_bytes),
                                             .to_words = u32(wide / 4),
                                             .swap = swap ? 1U : 0U};
  const std::string layout =
      fmt::format("rows of {} bytes in {}{}", d.row_bytes, wide, swap ? ", nibbles swapped" : "");
  PTERYX_ASSIGN(d.weight, p.relaid(n, d.weight, layout, d.weight.dtype, {d.n, wide},
                                   {.shader = &shaders::qlinear_vectors,
                                    .bind = {},
                                    .params = bytes_of(params),
                                    .grid = per_element(d.n * wide / 4, p.caps())}));
  d.row_bytes = wide;
  if (swap) d.codes = Codes::kLowFirst;
  return {};
}

void set_weight_options(const QLinear& d, Options& to) {
  std::string_view shares = "unit";
  if (!one_scale(d)) shares = d.group % 4 == 0 ? "four" : "code";
  to.set("codes", d.codes == Codes::kBytes ? "bytes" : "nibbles")
      .set("scale_order", name_of(d.scale_order))
      .set("scale_for", shares);
}

void bind_weight(const QLinear& d, Options& to, std::vector<Bind>& bind) {
  to.set("has_minimums", d.minimums ? 1 : 0);
  bind.insert(bind.end(), {{"weight", d.weight}, {"scales", d.scales}});
  if (d.minimums) bind.push_back({"minimums", *d.minimums});
}

// ---------------------------------------------------------------- x and y

void set_x_options(const QLinear& d, Options& to) { to.set("x_fours", d.k % 4 == 0 ? 1 : 0); }

std::vector<Columns> results(const QLinear& d) {
  std::vector<Columns> all = {{d.y, 0, d.y.dim(-1)}};
  for (const Tensor& y : d.more) all.push_back({y, all.back().first + all.back().width, y.dim(-1)});
  return all;
}

void set_result_options(const QLinear& d, bool parts, Options& to) {
  to.set("results", static_cast<int64_t>(d.more.size() + 1))
      .set("row_words", in_row_words(d.y.dtype, d.y.dim(-1)) ? 1 : 0)
      .set("has_bias", d.bias && !parts ? 1 : 0)
      .set("has_residual", d.residual && !parts ? 1 : 0);
}

namespace {

// What finish.wgsl reads.
void bind_added(const QLinear& d, std::vector<Bind>& bind) {
  if (d.bias) bind.push_back({"bias", *d.bias});
  if (d.residual) bind.push_back({"residual", *d.residual});
}

}  // namespace

void set_finish(const QLinear& d, Options& to, std::vector<Bind>& bind) {
  to.set("has_bias", d.bias ? 1 : 0).set("has_residual", d.residual ? 1 : 0);
  bind_added(d, bind);
}

void bind_results(const QLinear& d, std::vector<Bind>& bind) {
  bind_added(d, bind);
  static constexpr std::string_view kNames[] = {"y", "y1", "y2", "y3"};
  const std::vector<Columns> all = results(d);
  for (size_t j = 0; j < all.size(); ++j) bind.push_back({kNames[j], all[j].y});
}

uint32_t rotation_buffers(const QLinear& d) { return d.bias ? 7 : 6; }

void set_rotation(const QLinear& d, Options& to, std::vector<Bind>& bind, Places places) {
  const Rotation& t = *d.rotation;
  to.set("half_size", t.size() / 2)
      .set("heads", (d.n - 2 * t.kv_width()) / t.size())
      .set("kv_heads", t.keys.dim(2))
      .set("capacity", t.keys.dim(1))
      .set("cache_type", std::string(name(t.keys.dtype)))
      .set("has_bias", d.bias ? 1 : 0);
  if (d.bias) bind.push_back({"bias", *d.bias});
  bind.insert(bind.end(), {{"cos_of", t.cos}, {"sin_of", t.sin}});
  if (places != Places::kCaches) bind.push_back({"y", d.y});
  if (places != Places::kQueries) bind.insert(bind.end(), {{"keys", t.keys}, {"values", t.values}});
}

std::vector<LiveInt> live_ints(const QLinear& d) {
  if (!d.rotation) return {};
  return {d.rotation->position, d.rotation->table_start};
}

// ---------------------------------------------------------------- pieces

namespace {

// x rounded to 8-bit codes and back, with a scale for each row.
Result<Tensor> plan_rounded(const Node& n, Plan& p, const QLinear& d) {
  const Tensor y = p.scratch(DType::kF32, d.x.dims);
  const shaders::RequantizeParams params{.n = u32(d.x.numel()), .k = u32(d.k)};
  PTERYX_TRY(
      p.dispatch(n, {.shader = &shaders::requantize,
                     .bind = {{"x", d.x}, {"scale", *d.row_scale}, {"zero", *d.row_zero}, {"y", y}},
                     .params = bytes_of(params),
                     .grid = per_element(d.x.numel(), p.caps())}));
  return y;
}

// Where rows stand before those that count: these by themselves.
Status plan_last_row(const Node& n, Plan& p, QLinear& d) {
  if (d.first_row == 0) return {};
  const Tensor y = p.scratch(d.x.dtype, {d.m, d.k});
  const Source rows{
      .result = y.dims, .dims = y.dims, .strides = {d.k, 1}, .base = d.first_row * d.k};
  PTERYX_TRY(plan_moved(n, p, rows, d.x, y));
  d.x = y;
  d.first_row = 0;
  return {};
}

Status plan_gate(const Node& n, Plan& p, const Tensor& x, const Tensor& y) {
  const shaders::GateParams params{.count = u32(y.numel()), .half = u32(y.dim(-1))};
  return p.dispatch(n, {.shader = &shaders::gate,
                        .bind = {{"x", x}, {"y", y}},
                        .params = bytes_of(params),
                        .grid = per_element(words(y.numel(), y.dtype), p.caps())});
}

Options options_of(const Parts& parts) {
  return {{"splits", parts.splits}, {"fill_m", parts.fill_m}, {"fill_n", parts.fill_n}};
}

// The sums of queries, keys and values to where they belong, or some of them.
Status plan_places(const Node& n, Plan& p, const QLinear& d, const Parts& parts, Places places) {
  const Rotation& t = *d.rotation;
  // Parts that are filled up have rows of whole fours.
  const bool in_fours = t.size() % 4 == 0 && !t.halves && !t.q_norm;
  const int64_t lanes = in_fours ? 4 : 2;
  static constexpr std::array<std::string_view, 3> kNames = {"all", "queries", "caches"};
  Options options = options_of(parts);
  options.set("lanes", lanes).set("halves", t.halves ? 1 : 0).set("normed", t.q_norm ? 1 : 0);
  options.set("places", std::string(kNames[static_cast<size_t>(places)]));
  std::vector<Bind> bind = {{"sums", parts.sums}};
  if (t.q_norm && places != Places::kCaches) bind.push_back({"norm_q", *t.q_norm});
  if (t.k_norm && places != Places::kQueries) bind.push_back({"norm_k", *t.k_norm});
  set_rotation(d, options, bind, places);
  int64_t columns = d.n;
  if (places == Places::kQueries) columns -= 2 * t.kv_width();
  if (places == Places::kCaches) columns = 2 * t.kv_width();
  const Params params = make_params(d);
  return p.dispatch(n,
                    {.shader = &shaders::qlinear_rotate,
                     .options = std::move(options),
                     .bind = std::move(bind),
                     .params = bytes_of(params),
                     .live = live_ints(d),
                     .grid = t.q_norm ? per_group(d.m * columns / t.size(), p.caps())
                                      : per_element(d.m * d.n / (t.halves ? 4 : lanes), p.caps())});
}

Status plan_rotated(const Node& n, Plan& p, const QLinear& d, const Parts& parts) {
  const uint32_t buffers = 1 + rotation_buffers(d) + (d.rotation->q_norm ? 2 : 0);
  if (buffers <= p.caps().max_storage_buffers) return plan_places(n, p, d, parts, Places::kAll);
  PTERYX_TRY(plan_places(n, p, d, parts, Places::kQueries));
  return plan_places(n, p, d, parts, Places::kCaches);
}

}  // namespace

bool wants_interleaved(const QLinear& d) {
  return d.codes != Codes::kBytes && one_scale(d) && d.k % 64 == 0;  // whole steps of every tile
}

Status plan_around(const Node& n, Plan& p, Product product, const Slots& own) {
  PTERYX_ASSIGN(QLinear d, describe_qlinear(n));
  PTERYX_TRY(plan_last_row(n, p, d));
  if (d.row_scale && !own.rounding) {
    PTERYX_ASSIGN(d.x, plan_rounded(n, p, d));
    d.row_scale.reset();
    d.row_zero.reset();
  }
  if (d.norm && !own.norm) {
    d.interleaved = own.halves && wants_interleaved(d);
    const Tensor y = own.halves ? p.scratch(DType::kF16, {up(d.m, kFillRows) * kFillRows, d.k})
                                : p.scratch(d.x.dtype, d.x.dims);
    PTERYX_TRY(plan_rms_norm(n, p, d.x, *d.norm, d.eps, y,
                             d.interleaved ? RowOrder::kInterleaved : RowOrder::kNatural));
    d.x = y;
    d.norm.reset();
  }
  const bool gate = d.gated && !own.gate;
  const bool rotation = d.rotation && !own.rotation;
  if (!gate && !rotation) return product(n, p, std::move(d));
  QLinear inner = d;
  inner.gated = false;
  inner.rotation.reset();
  inner.y = p.scratch(DType::kF32, {d.m, d.n});
  if (rotation) inner.bias.reset();  // added when they are turned
  const Tensor sums = inner.y;
  PTERYX_TRY(product(n, p, std::move(inner)));
  return gate ? plan_gate(n, p, sums, d.y) : plan_rotated(n, p, d, {.sums = sums});
}

Pieces pieces(const QLinear& d, bool parts, Options options) {
  Pieces p{.options = std::move(options)};
  set_x_options(d, p.options);
  set_weight_options(d, p.options);
  set_result_options(d, parts, p.options);
  p.options.set("parts", parts ? 1 : 0);
  p.bind = {{"x", d.x}};
  bind_weight(d, p.options, p.bind);
  if (parts) {
    p.bind.push_back({"y", d.y});
  } else {
    bind_results(d, p.bind);
  }
  return p;
}

bool widths_are(const QLinear& d, int64_t multiple) {
  return std::ranges::all_of(results(d), [&](const Columns& c) { return c.width % multiple == 0; });
}

namespace {

// All results at once.
Status plan_merge_fours(const Node& n, Plan& p, const QLinear& d, const Parts& parts) {
  Options options = options_of(parts);
  options.set("results", static_cast<int64_t>(d.more.size() + 1))
      .set("has_bias", d.bias ? 1 : 0)
      .set("has_residual", d.residual ? 1 : 0);
  std::vector<Bind> bind = {{"parts", parts.sums}};
  bind_results(d, bind);
  const Params params = make_params(d);
  return p.dispatch(n, {.shader = &shaders::qlinear_merge_fours,
                        .options = std::move(options),
                        .bind = std::move(bind),
                        .params = bytes_of(params),
                        .grid = per_element(d.m * d.n / 4, p.caps())});
}

Status plan_merge_gated(const Node& n, Plan& p, const QLinear& d, const Parts& parts) {
  Options options = options_of(parts);
  options.set("paired_side", parts.paired_side).set("has_bias", d.bias ? 1 : 0);
  std::vector<Bind> bind = {{"parts", parts.sums}};
  bind_results(d, bind);
  const Params params = make_params(d);
  return p.dispatch(n, {.shader = &shaders::qlinear_merge_gated,
                        .options = std::move(options),
                        .bind = std::move(bind),
                        .params = bytes_of(params),
                        .grid = per_element(d.m * d.n / 16, p.caps())});
}

// Each result by itself.
Status plan_merge_words(const Node& n, Plan& p, const QLinear& d, const Parts& parts) {
  Params params = make_params(d);
  params.splits = u32(parts.splits);
  for (const Columns& c : results(d)) {
    params.first_column = u32(c.first);
    params.width = u32(c.width);
    Options options = {{"fill_m", parts.fill_m}, {"fill_n", parts.fill_n}};
    std::vector<Bind> bind = {{"parts", parts.sums}};
    set_finish(d, options, bind);
    bind.push_back({"y", c.y});
    PTERYX_TRY(p.dispatch(n, {.shader = &shaders::qlinear_merge,
                              .options = std::move(options),
                              .bind = std::move(bind),
                              .params = bytes_of(params),
                              .grid = per_element(words(c.y.numel(), c.y.dtype), p.caps())}));
  }
  return {};
}

}  // namespace

Status plan_merge(const Node& n, Plan& p, const QLinear& d, const Parts& parts) {
  if (d.rotation) return plan_rotated(n, p, d, parts);
  if (d.gated) return plan_merge_gated(n, p, d, parts);
  return widths_are(d, 4) ? plan_merge_fours(n, p, d, parts) : plan_merge_words(n, p, d, parts);
}

}  // namespace pteryx::ops::qlinear
