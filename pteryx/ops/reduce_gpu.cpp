// Reductions on the GPU: the routes. SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>

#include "pteryx/ops/fold.h"
#include "pteryx/ops/reduce.h"
#include "pteryx/ops/shaders/reduce.h"

namespace pteryx::ops {
namespace {

using Rule = ReduceRule;

// By ReduceRule, as the shader has them.
constexpr std::array<std::string_view, 12> kRules = {"sum",      "mean",   "prod",   "max",
                                                     "min",      "argmax", "argmin", "pair_max",
                                                     "pair_min", "var",    "std",    "var_mean"};

// Words of what a row is folded to.
int64_t fold_words(Rule rule) {
  if (is_variance(rule)) return 4;
  return has_index(rule) ? 2 : 1;
}

Options options_of(const Node& n, const Reduction& s, const Fold& f) {
  const bool floats = is_extreme(s.rule) ? is_float(n.in(0).dtype)
                                         : s.rule == Rule::kMean || is_float(n.out().dtype);
  Options options = f.options();
  options.set("rule", std::string(kRules[static_cast<size_t>(s.rule)]))
      .set("compute", floats ? "f32" : "i32")
      .set("flat_items", s.items.dims.rank() <= 1 ? 1 : 0)
      .set("from_parts", 0)
      .set("to_parts", 0);
  return options;
}

uint32_t first_dim(const Walk& w) {
  return u32(static_cast<int64_t>(kMaxRank - std::max<size_t>(w.dims.rank(), 1)));
}

shaders::ReduceParams make_params(const Reduction& s, int64_t count) {
  return {.row_dims = packed_dims(s.rows.dims),
          .row_strides = packed_strides(s.rows.strides[0]),
          .item_dims = packed_dims(s.items.dims),
          .item_strides = packed_strides(s.items.strides[0]),
          .row_first = first_dim(s.rows),
          .item_first = first_dim(s.items),
          .rows = u32(s.row_count),
          .length = u32(s.length),
          .splits = 1,
          .chunk = u32(s.length),
          .count = static_cast<float>(count),
          .correction = static_cast<float>(s.correction)};
}

// Few long rows leave most of a GPU idle: cut them so that an invocation is left with some 16
// items.
int64_t parts_of(const Reduction& s, uint32_t team, const gpu::Caps& caps) {
  const int64_t enough = caps.sizes.enough_invocations();
  const int64_t busy = s.row_count * team;
  const int64_t items = s.length / team;
  if (items <= 64 || busy * 4 > enough) return 1;
  return std::min({items / 16, enough / std::max<int64_t>(busy, 1), int64_t{1024}});
}

// The fold of every part of a row, as it is: no finish.
Result<Tensor> plan_parts(const Node& n, Plan& p, const Reduction& s, const Fold& f,
                          int64_t parts) {
  shaders::ReduceParams params = make_params(s, s.length);
  params.chunk = u32(
      static_cast<int64_t>(div_up(static_cast<uint64_t>(s.length), static_cast<uint64_t>(parts))));
  params.splits = u32(parts);
  const Tensor to = p.scratch(DType::kI32, {parts, s.row_count, fold_words(s.rule)});
  PTERYX_TRY(p.dispatch(n, {.shader = &shaders::reduce,
                            .options = options_of(n, s, f).set("to_parts", 1),
                            .variant = n.def().name,
                            .bind = {{"x", n.in(0)}, {"parts", to}},
                            .params = bytes_of(params),
                            .grid = f.grid(s.row_count * parts, p.caps())}));
  return to;
}

// `from`: x, or the parts of its rows, of `count` items in all.
Status plan_rows(const Node& n, Plan& p, const Reduction& s, const Fold& f, const Bind& from,
                 int64_t count) {
  const Tensor y = n.out();
  const shaders::ReduceParams params = make_params(s, count);
  std::vector<Bind> bind = {from, {"y", y}};
  if (has_index(s.rule) && has_value(s.rule)) bind.push_back({"indices", n.out(1)});
  if (s.rule == Rule::kVarMean) bind.push_back({"mean", n.out(1)});
  return p.dispatch(n,
                    {.shader = &shaders::reduce,
                     .options = options_of(n, s, f).set("from_parts", from.name == "parts" ? 1 : 0),
                     .variant = n.def().name,
                     .bind = std::move(bind),
                     .params = bytes_of(params),
                     .grid = f.grid(words(y.numel(), y.dtype), p.caps())});
}

constexpr uint32_t kMaxTeam = 256;

template <FoldRoute R>
Status plan(const Node& n, Plan& p) {
  PTERYX_ASSIGN(const Reduction s, describe_reduction(n));
  const Fold f = make_fold(R, s.length, kMaxTeam, p.caps());
  const int64_t parts = parts_of(s, f.team, p.caps());
  if (parts <= 1) return plan_rows(n, p, s, f, {"x", n.in(0)}, s.length);
  PTERYX_ASSIGN(const Tensor scratch, plan_parts(n, p, s, f, parts));
  Reduction of_parts = s;
  of_parts.rows = {.dims = {s.row_count}, .strides = {Dims{1}}};
  of_parts.items = {.dims = {parts}, .strides = {Dims{s.row_count}}};
  of_parts.length = parts;
  const Fold last = make_fold(R, parts, kMaxTeam, p.caps());
  return plan_rows(n, p, of_parts, last, {"parts", scratch}, s.length);
}

// Teams read neighbouring items, lone invocations neighbouring rows: whichever are neighbours in
// memory.
bool suits_teams(const Node& n, const gpu::Caps& /*caps*/) {
  const auto s = describe_reduction(n);
  if (!s.ok() || s->length <= 8) return false;
  const bool rows_adjacent = !s->rows.strides[0].empty() && s->rows.strides[0].back() == 1;
  return !rows_adjacent || s->row_count < 32;
}

constexpr Route kRoutes[] = {
    {"subgroup", fits_subgroup_fold, plan<FoldRoute::kSubgroup>, suits_teams},
    {"workgroup", nullptr, plan<FoldRoute::kTree>, suits_teams},
    {"serial", nullptr, plan<FoldRoute::kSerial>},
};

}  // namespace

std::span<const Route> reduce_routes() { return kRoutes; }

}  // namespace pteryx::ops
