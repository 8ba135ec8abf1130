// Reductions on the GPU: the WGSL of each rule, and the routes. SPDX-License-Identifier:
// BSD-3-Clause
#include <algorithm>

#include "pteryx/ops/fold.h"
#include "pteryx/ops/reduce.h"
#include "pteryx/ops/shaders/reduce.h"

namespace pteryx::ops {
namespace {

using Rule = ReduceRule;

// Extremes are compared as integers that order like the floats: exact for infinities, NaN above
// all, as in PyTorch. A minimum is the maximum of the complement.
constexpr std::string_view kFloatKey = R"(
fn key(v: f32) -> i32 {{
  let bits = bitcast<i32>(v);
  let magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000) {{ return 0x7fffffff; }}
  if (magnitude == 0) {{ return {0}0; }}
  return {0}(bits ^ ((bits >> 31u) & 0x7fffffff));
}}
fn unkey(k: i32) -> f32 {{
  let ordered = {0}k;
  return bitcast<f32>(ordered ^ ((ordered >> 31u) & 0x7fffffff));
}}
)";
constexpr std::string_view kIntKey = R"(
fn key(v: i32) -> i32 {{ return {0}v; }}
fn unkey(k: i32) -> i32 {{ return {0}k; }}
)";

// The WGSL that tells one reduction from another.
struct Kernel {
  std::string_view acc;  // type, of `words` words
  uint32_t words = 1;
  std::string fold;         // identity, combine, and what finish needs
  std::string_view start;   // fn start(v: x_t, k: u32) -> acc
  std::string_view finish;  // statements over `row`, `lane` and the folded `v`
};

Kernel arithmetic(const Node& n, Rule rule) {
  const bool floats = rule == Rule::kMean || is_float(n.out().dtype);
  const std::string_view op = rule == Rule::kProd
                                  ? "fn identity() -> acc { return acc(1); }\n"
                                    "fn combine(a: acc, b: acc) -> acc { return a * b; }\n"
                                  : "fn identity() -> acc { return acc(0); }\n"
                                    "fn combine(a: acc, b: acc) -> acc { return a + b; }\n";
  return {.acc = floats ? "f32" : "i32",
          .fold = std::string(op),
          .start = "fn start(v: x_t, k: u32) -> acc { return acc(v); }\n",
          .finish = rule == Rule::kMean ? "word |= encode_y(lane, y_t(v / params.count));"
                                        : "word |= encode_y(lane, y_t(v));"};
}

Kernel extreme(const Node& n, Rule rule) {
  const std::string_view key = is_float(n.in(0).dtype) ? kFloatKey : kIntKey;
  std::string fold = fmt::format(fmt::runtime(key), is_minimum(rule) ? "~" : "");
  if (!has_index(rule)) {
    fold +=
        "fn identity() -> acc { return bitcast<i32>(0x80000000u); }\n"
        "fn combine(a: acc, b: acc) -> acc { return max(a, b); }\n";
    return {.acc = "i32",
            .fold = std::move(fold),
            .start = "fn start(v: x_t, k: u32) -> acc { return key(v); }\n",
            .finish = "word |= encode_y(lane, y_t(unkey(v)));"};
  }
  fold +=
      "fn identity() -> acc { return acc(bitcast<i32>(0x80000000u), 0x7fffffff); }\n"
      "fn combine(a: acc, b: acc) -> acc { return select(b, a, a.x > b.x || (a.x == b.x && a.y < "
      "b.y)); }\n";
  return {
      .acc = "vec2<i32>",
      .words = 2,
      .fold = std::move(fold),
      .start = "fn start(v: x_t, k: u32) -> acc { return acc(key(v), i32(k)); }\n",
      .finish =
          !has_value(rule)
              ? "word |= encode_y(lane, v.y);"
              : "word |= encode_y(lane, y_t(unkey(v.x))); indices[row] = encode_indices(0u, v.y);"};
}

// acc is (mean, sum of squared distances from it, count, unused).
Kernel variance(Rule rule) {
  return {.acc = "vec4<f32>",
          .words = 4,
          .fold = R"(
fn identity() -> acc { return acc(0.0); }
fn combine(a: acc, b: acc) -> acc {
  let n = a.z + b.z;
  let share = b.z / max(n, 1.0);
  let d = b.x - a.x;
  return acc(a.x + d * share, a.y + b.y + d * d * a.z * share, n, 0.0);
}
fn spread(v: acc) -> f32 { return v.y / max(params.count - params.correction, 0.0); }
)",
          .start = "fn start(v: x_t, k: u32) -> acc { return acc(f32(v), 0.0, 1.0, 0.0); }\n",
          .finish = rule == Rule::kVar ? "word |= encode_y(lane, spread(v));"
                    : rule == Rule::kStd
                        ? "word |= encode_y(lane, sqrt(spread(v)));"
                        : "word |= encode_y(lane, spread(v)); word2 |= encode_mean(lane, v.x);"};
}

Kernel kernel(const Node& n, Rule rule) {
  if (is_extreme(rule)) return extreme(n, rule);
  return is_variance(rule) ? variance(rule) : arithmetic(n, rule);
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
int64_t parts_of(const Reduction& s, uint32_t team) {
  constexpr int64_t kEnoughInvocations = 131072;
  const int64_t busy = s.row_count * team;
  const int64_t items = s.length / team;
  if (items <= 64 || busy * 4 > kEnoughInvocations) return 1;
  return std::min({items / 16, kEnoughInvocations / std::max<int64_t>(busy, 1), int64_t{1024}});
}

// The fold of every row, or of every part of one, as it is: no finish.
Status plan_parts(const Node& n, Plan& p, const Reduction& s, const Kernel& k, const Fold& f,
                  int64_t parts, Tensor& to) {
  shaders::ReduceParams params = make_params(s, s.length);
  params.chunk = u32(
      static_cast<int64_t>(div_up(static_cast<uint64_t>(s.length), static_cast<uint64_t>(parts))));
  params.splits = u32(parts);
  to = p.scratch(DType::kI32, {parts, s.row_count, k.words});
  const std::string prelude = fmt::format(
      "alias acc = {};\nconst rows_per_team: u32 = 1u;\nconst flat_items: bool = {};\n{}{}"
      "fn item(at: u32, k: u32) -> acc {{ return start(load_x(at), k); }}\n"
      "fn emit(row: u32, lane: u32, v: acc) {{ parts[row] = v; }}\nfn flush(unit: u32) {{}}\n{}",
      k.acc, s.items.dims.rank() <= 1, k.fold, k.start, f.prelude());
  return p.dispatch(n, {.shader = &shaders::reduce,
                        .variant = n.def().name,
                        .prelude = prelude,
                        .bind = {{"x", n.in(0)}, {"parts", to, Access::kRawWrite, k.acc}},
                        .params = bytes_of(params),
                        .grid = f.grid(s.row_count * parts, p.caps()),
                        .subgroups = f.block != 0});
}

Status plan_rows(const Node& n, Plan& p, const Reduction& s, const Kernel& k, const Fold& f,
                 const Bind& from, int64_t count) {
  const bool raw = from.access == Access::kRawRead;
  const Tensor y = n.out();
  const shaders::ReduceParams params = make_params(s, count);
  const std::string prelude = fmt::format(
      "alias acc = {};\nconst rows_per_team: u32 = y_lanes;\nconst flat_items: bool = {};\n"
      "var<private> word: u32 = 0u;\nvar<private> word2: u32 = 0u;\n"
      "{}{}fn item(at: u32, k: u32) -> acc {{ return {}; }}\n"
      "fn emit(row: u32, lane: u32, v: acc) {{ {} }}\nfn flush(unit: u32) {{ y[unit] = word; {} "
      "}}\n{}",
      k.acc, s.items.dims.rank() <= 1, k.fold, raw ? "" : k.start,
      raw ? "parts[at]" : "start(load_x(at), k)", k.finish,
      s.rule == Rule::kVarMean ? "mean[unit] = word2;" : "", f.prelude());
  std::vector<Bind> bind = {from, {"y", y, Access::kWords}};
  if (has_index(s.rule) && has_value(s.rule)) bind.push_back({"indices", n.out(1), Access::kWords});
  if (s.rule == Rule::kVarMean) bind.push_back({"mean", n.out(1), Access::kWords});
  return p.dispatch(n, {.shader = &shaders::reduce,
                        .variant = n.def().name,
                        .prelude = prelude,
                        .bind = std::move(bind),
                        .params = bytes_of(params),
                        .grid = f.grid(words(y.numel(), y.dtype), p.caps()),
                        .subgroups = f.block != 0});
}

constexpr uint32_t kMaxTeam = 256;

template <FoldRoute R>
Status plan(const Node& n, Plan& p) {
  PTERYX_ASSIGN(const Reduction s, describe_reduction(n));
  const Kernel k = kernel(n, s.rule);
  const Fold f = make_fold(R, s.length, kMaxTeam, p.caps());
  const int64_t parts = parts_of(s, f.team);
  if (parts <= 1) return plan_rows(n, p, s, k, f, {"x", n.in(0)}, s.length);
  Tensor scratch;
  PTERYX_TRY(plan_parts(n, p, s, k, f, parts, scratch));
  Reduction of_parts = s;
  of_parts.rows = {.dims = {s.row_count}, .strides = {Dims{1}}};
  of_parts.items = {.dims = {parts}, .strides = {Dims{s.row_count}}};
  of_parts.length = parts;
  const Fold last = make_fold(R, parts, kMaxTeam, p.caps());
  return plan_rows(n, p, of_parts, k, last, {"parts", scratch, Access::kRawRead, k.acc}, s.length);
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
