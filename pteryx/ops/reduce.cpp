// Reductions over any set of dims: sums, means, products, extremes and their indices, variances.
// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/ops/shaders/reduce.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "pteryx/ops/fold.h"
#include "pteryx/ops/op.h"
#include "pteryx/ops/strided.h"
#include "pteryx/ops/table.h"

namespace pteryx::ops {
namespace {

enum class Rule : uint8_t {
  kSum,
  kMean,
  kProd,
  kMax,
  kMin,
  kArgMax,
  kArgMin,
  kPairMax,
  kPairMin,
  kVar,
  kStd,
  kVarMean
};

// What a row of the table says about arguments: where they are, 0 for not at all.
struct Form {
  std::span<const Arg> args;
  uint8_t dims = 0;  // without it, all dims are reduced
  uint8_t keepdim = 0;
  uint8_t correction = 0;  // a number, or a flag for 1
};

constexpr Arg pair_out(std::string_view name) {
  return {.name = name, .kind = ArgKind::kOutList, .min_rank = 2, .index = true};
}
constexpr Arg kSumArgs[] = {in("x"), optional_ints("dim"), number("keepdim"), any("dtype"),
                            out("y")};
constexpr Arg kExtremeArgs[] = {in("x"), optional_ints("dim"), number("keepdim"), out("y")};
constexpr Arg kIndexArgs[] = {in("x"), optional_ints("dim"), number("keepdim"), index_out("y")};
constexpr Arg kPairArgs[] = {in("x"), ints("dim"), number("keepdim"), pair_out("y")};
constexpr Arg kAllArgs[] = {in("x"), out("y")};
constexpr Arg kAllSumArgs[] = {in("x"), any("dtype"), out("y")};
constexpr Arg kVarArgs[] = {in("x", kFloats), optional_ints("dim"), number("unbiased"),
                            number("keepdim"), out("y", kFloats)};
constexpr Arg kCorrectionArgs[] = {in("x", kFloats), optional_ints("dim"),
                                   optional_number("correction"), number("keepdim"),
                                   out("y", kFloats)};
constexpr Arg kVarMeanArgs[] = {in("x", kFloats), optional_ints("dim"),
                                optional_number("correction"), number("keepdim"), out_list("y", 2)};

constexpr Form kSumForm{kSumArgs, 1, 2};
constexpr Form kExtremeForm{kExtremeArgs, 1, 2};
constexpr Form kIndexForm{kIndexArgs, 1, 2};
constexpr Form kPairForm{kPairArgs, 1, 2};
constexpr Form kAllForm{kAllArgs};
constexpr Form kAllSumForm{kAllSumArgs};
constexpr Form kVarForm{kVarArgs, 1, 3, 2};
constexpr Form kCorrectionForm{kCorrectionArgs, 1, 3, 2};
constexpr Form kVarMeanForm{kVarMeanArgs, 1, 3, 2};

struct Row {
  std::string_view name;
  std::string_view spelling;
  Rule rule;
  const Form& form;
};
constexpr Row kRows[] = {
    {"aten.sum.dim_IntList", "aten::sum.IntList_out", Rule::kSum, kSumForm},
    {"aten.sum.default", "aten::sum.out", Rule::kSum, kAllSumForm},
    {"aten.mean.dim", "aten::mean.out", Rule::kMean, kSumForm},
    {"aten.mean.default", "aten::mean.dtype_out", Rule::kMean, kAllSumForm},
    {"aten.prod.dim_int", "aten::prod.int_out", Rule::kProd, kSumForm},
    {"aten.prod.default", "aten::prod.out", Rule::kProd, kAllSumForm},
    {"aten.amax.default", "aten::amax.out", Rule::kMax, kExtremeForm},
    {"aten.amin.default", "aten::amin.out", Rule::kMin, kExtremeForm},
    {"aten.max.default", "aten::max.unary_out", Rule::kMax, kAllForm},
    {"aten.min.default", "aten::min.unary_out", Rule::kMin, kAllForm},
    {"aten.argmax.default", "aten::argmax.out", Rule::kArgMax, kIndexForm},
    {"aten.argmin.default", "aten::argmin.out", Rule::kArgMin, kIndexForm},
    {"aten.max.dim", "aten::max.dim_max", Rule::kPairMax, kPairForm},
    {"aten.min.dim", "aten::min.dim_min", Rule::kPairMin, kPairForm},
    {"aten.var.dim", "aten::var.out", Rule::kVar, kVarForm},
    {"aten.var.correction", "aten::var.correction_out", Rule::kVar, kCorrectionForm},
    {"aten.std.dim", "aten::std.out", Rule::kStd, kVarForm},
    {"aten.std.correction", "aten::std.correction_out", Rule::kStd, kCorrectionForm},
    {"aten.var_mean.correction", "aten::var_mean.correction_out", Rule::kVarMean, kVarMeanForm},
};

const Row& row(const Node& n) { return *static_cast<const Row*>(n.def().row); }
bool is_var(Rule r) { return r == Rule::kVar || r == Rule::kStd || r == Rule::kVarMean; }
bool is_min(Rule r) { return r == Rule::kMin || r == Rule::kArgMin || r == Rule::kPairMin; }
bool is_extreme(Rule r) { return r >= Rule::kMax && r <= Rule::kPairMin; }
bool has_index(Rule r) { return r >= Rule::kArgMax && r <= Rule::kPairMin; }

// The reduced dims, a bit each.
Result<uint32_t> reduced(const Node& n) {
  const Form& f = row(n).form;
  const size_t rank = n.in(0).rank();
  const uint32_t all = (1U << rank) - 1;
  if (f.dims == 0) return all;
  PTERYX_ASSIGN(const Dims dims, n.ints(f.dims));
  uint32_t mask = 0;
  for (const int64_t d : dims) {
    const auto i = normalize_dim(d, rank);
    if (!i.ok()) return n.fail(Code::kInvalidProgram, i.status().message());
    if ((mask & (1U << *i)) != 0)
      return n.fail(Code::kInvalidProgram, fmt::format("dim {} appears twice", d));
    mask |= 1U << *i;
  }
  return dims.empty() ? all : mask;
}

double correction(const Node& n) {
  const uint8_t at = row(n).form.correction;
  return at == 0 ? 0.0 : n.number_or(at, 1.0);
}

Status shape(const Node& n, Shapes& s) {
  PTERYX_ASSIGN(const uint32_t mask, reduced(n));
  const Tensor x = n.in(0);
  const uint8_t keep_at = row(n).form.keepdim;
  const bool keep = keep_at != 0 && n.flag(keep_at);
  Dims dims;
  int64_t length = 1;
  for (size_t i = 0; i < x.rank(); ++i) {
    const bool gone = (mask >> i & 1U) != 0;
    if (gone) length *= x.dims[i];
    if (!gone) dims.push_back(x.dims[i]);
    if (gone && keep) dims.push_back(1);
  }
  if (length == 0 && numel(dims) > 0 && is_extreme(row(n).rule)) {
    return n.fail(Code::kInvalidArgument,
                  fmt::format("x has shape {}: no elements to choose from", to_string(x.dims)));
  }
  for (size_t i = 0; i < n.out_count(); ++i) PTERYX_TRY(s.set(i, dims));
  return {};
}

// x as rows x items: the kept and the reduced dims with their strides.
struct Split {
  Walk rows, items;
  int64_t row_count = 1;
  int64_t length = 1;
};
Result<Split> split(const Node& n) {
  PTERYX_ASSIGN(const uint32_t mask, reduced(n));
  const Tensor x = n.in(0);
  const Dims strides = contiguous_strides(x.dims);
  std::array<Dims, 2> dims;
  std::array<Dims, 2> steps;
  for (size_t i = 0; i < x.rank(); ++i) {
    const size_t side = mask >> i & 1U;
    dims[side].push_back(x.dims[i]);
    steps[side].push_back(strides[i]);
  }
  return Split{merge_dims(dims[0], std::span(&steps[0], 1)),
               merge_dims(dims[1], std::span(&steps[1], 1)), numel(dims[0]), numel(dims[1])};
}

// ---------------------------------------------------------------- GPU

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
  std::string fold = fmt::format(fmt::runtime(key), is_min(rule) ? "~" : "");
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
          rule == Rule::kArgMax || rule == Rule::kArgMin
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

Kernel kernel(const Node& n) {
  const Rule rule = row(n).rule;
  if (is_extreme(rule)) return extreme(n, rule);
  return is_var(rule) ? variance(rule) : arithmetic(n, rule);
}

uint32_t first_dim(const Walk& w) {
  return u32(static_cast<int64_t>(kMaxRank - std::max<size_t>(w.dims.rank(), 1)));
}

shaders::ReduceParams make_params(const Node& n, const Split& s, int64_t count) {
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
          .correction = static_cast<float>(correction(n))};
}

// Few long rows leave most of a GPU idle: cut them so that an invocation is left with some 16
// items.
int64_t parts_of(const Split& s, uint32_t team) {
  constexpr int64_t kEnoughInvocations = 131072;
  const int64_t busy = s.row_count * team;
  const int64_t items = s.length / team;
  if (items <= 64 || busy * 4 > kEnoughInvocations) return 1;
  return std::min({items / 16, kEnoughInvocations / std::max<int64_t>(busy, 1), int64_t{1024}});
}

// The fold of every row, or of every part of one, as it is: no finish.
Status plan_parts(const Node& n, Plan& p, const Split& s, const Kernel& k, const Fold& f,
                  int64_t parts, Tensor& to) {
  shaders::ReduceParams params = make_params(n, s, s.length);
  params.chunk = u32(
      static_cast<int64_t>(div_up(static_cast<uint64_t>(s.length), static_cast<uint64_t>(parts))));
  params.splits = u32(parts);
  to = p.scratch(DType::kI32, {parts, s.row_count, k.words});
  const std::string prelude = fmt::format(
      "alias acc = {};\nconst rows_per_team: u32 = 1u;\n{}{}"
      "fn item(at: u32, k: u32) -> acc {{ return start(load_x(at), k); }}\n"
      "fn emit(row: u32, lane: u32, v: acc) {{ parts[row] = v; }}\nfn flush(unit: u32) {{}}\n{}",
      k.acc, k.fold, k.start, f.prelude());
  return p.dispatch(n, {.shader = &shaders::reduce,
                        .variant = n.def().name,
                        .prelude = prelude,
                        .bind = {{"x", n.in(0)}, {"parts", to, Access::kRawWrite, k.acc}},
                        .params = bytes_of(params),
                        .grid = f.grid(s.row_count * parts, p.caps()),
                        .subgroups = f.block != 0});
}

Status plan_rows(const Node& n, Plan& p, const Split& s, const Kernel& k, const Fold& f,
                 const Bind& from, int64_t count) {
  const Rule rule = row(n).rule;
  const bool raw = from.access == Access::kRawRead;
  const Tensor y = n.out();
  const shaders::ReduceParams params = make_params(n, s, count);
  const std::string prelude = fmt::format(
      "alias acc = {};\nconst rows_per_team: u32 = y_lanes;\nvar<private> word: u32 = "
      "0u;\nvar<private> word2: u32 = 0u;\n"
      "{}{}fn item(at: u32, k: u32) -> acc {{ return {}; }}\n"
      "fn emit(row: u32, lane: u32, v: acc) {{ {} }}\nfn flush(unit: u32) {{ y[unit] = word; {} "
      "}}\n{}",
      k.acc, k.fold, raw ? "" : k.start, raw ? "parts[at]" : "start(load_x(at), k)", k.finish,
      rule == Rule::kVarMean ? "mean[unit] = word2;" : "", f.prelude());
  std::vector<Bind> bind = {from, {"y", y, Access::kWords}};
  if (rule == Rule::kPairMax || rule == Rule::kPairMin)
    bind.push_back({"indices", n.out(1), Access::kWords});
  if (rule == Rule::kVarMean) bind.push_back({"mean", n.out(1), Access::kWords});
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
  PTERYX_ASSIGN(const Split s, split(n));
  const Kernel k = kernel(n);
  const Fold f = make_fold(R, s.length, kMaxTeam, p.caps());
  const int64_t parts = parts_of(s, f.team);
  if (parts <= 1) return plan_rows(n, p, s, k, f, {"x", n.in(0)}, s.length);
  Tensor scratch;
  PTERYX_TRY(plan_parts(n, p, s, k, f, parts, scratch));
  const Split of_parts{{.dims = {s.row_count}, .strides = {Dims{1}}},
                       {.dims = {parts}, .strides = {Dims{s.row_count}}},
                       s.row_count,
                       parts};
  const Fold last = make_fold(R, parts, kMaxTeam, p.caps());
  return plan_rows(n, p, of_parts, k, last, {"parts", scratch, Access::kRawRead, k.acc}, s.length);
}

// Teams read neighbouring items, lone invocations neighbouring rows: whichever are neighbours in
// memory.
bool suits_teams(const Node& n, const gpu::Caps& /*caps*/) {
  const auto s = split(n);
  if (!s.ok() || s->length <= 8) return false;
  const bool rows_adjacent = !s->rows.strides[0].empty() && s->rows.strides[0].back() == 1;
  return !rows_adjacent || s->row_count < 32;
}

constexpr Route kRoutes[] = {
    {"subgroup", fits_subgroup_fold, plan<FoldRoute::kSubgroup>, suits_teams},
    {"workgroup", nullptr, plan<FoldRoute::kTree>, suits_teams},
    {"serial", nullptr, plan<FoldRoute::kSerial>},
};

// Only indices are narrowed to i32; values of i64 are for the CPU. Results of two types cannot
// share their words.
bool gpu(const Node& n) {
  const Rule rule = row(n).rule;
  if (rule == Rule::kPairMax || rule == Rule::kPairMin) return n.out().dtype != DType::kI64;
  return rule != Rule::kVarMean || n.out(0).dtype == n.out(1).dtype;
}

// ---------------------------------------------------------------- CPU

// One row on the host: the offsets of its elements are base + items[k].
struct HostRow {
  const HostTensor& x;
  int64_t base;
  const std::vector<int64_t>& items;
  double number(size_t k) const { return x.number(base + items[k]); }
  int64_t integer(size_t k) const { return x.integer(base + items[k]); }
};

// Sums and products of integers wrap.
void put_arithmetic(const HostRow& r, Rule rule, const HostTensor& y, int64_t i) {
  if (is_float(y.dtype)) {
    double total = rule == Rule::kProd ? 1.0 : 0.0;
    for (size_t k = 0; k < r.items.size(); ++k)
      total = rule == Rule::kProd ? total * r.number(k) : total + r.number(k);
    y.put(i, rule == Rule::kMean ? total / static_cast<double>(r.items.size()) : total);
    return;
  }
  uint64_t total = rule == Rule::kProd ? 1 : 0;
  for (size_t k = 0; k < r.items.size(); ++k) {
    const auto v = static_cast<uint64_t>(r.integer(k));
    total = rule == Rule::kProd ? total * v : total + v;
  }
  y.put_integer(i, static_cast<int64_t>(total));
}

// The first of the largest (smallest), where NaN is larger (smaller) than anything.
size_t best_item(const HostRow& r, bool smallest) {
  size_t best = 0;
  for (size_t k = 1; k < r.items.size(); ++k) {
    if (is_float(r.x.dtype)) {
      const double a = r.number(best);
      const double b = r.number(k);
      if (std::isnan(a)) break;
      if (std::isnan(b) || (smallest ? b < a : b > a)) best = k;
    } else if (smallest ? r.integer(k) < r.integer(best) : r.integer(k) > r.integer(best)) {
      best = k;
    }
  }
  return best;
}

void put_value(const HostRow& r, size_t k, const HostTensor& y, int64_t i) {
  if (is_float(r.x.dtype)) return y.put(i, r.number(k));
  y.put_integer(i, r.integer(k));
}

struct Moments {
  double mean = 0;
  double variance = 0;
};
Moments moments(const HostRow& r, double correction) {
  Moments m;
  const auto count = static_cast<double>(r.items.size());
  for (size_t k = 0; k < r.items.size(); ++k) m.mean += r.number(k);
  m.mean /= count;
  for (size_t k = 0; k < r.items.size(); ++k)
    m.variance += (r.number(k) - m.mean) * (r.number(k) - m.mean);
  m.variance /= std::max(count - correction, 0.0);
  return m;
}

Status cpu(const Node& n, const Host& h) {
  PTERYX_ASSIGN(const Split s, split(n));
  const Rule rule = row(n).rule;
  const double correct = correction(n);
  const HostTensor x = h.host(n.in(0).id);
  const HostTensor y = h.host(n.out_id());
  const HostTensor second = n.out_count() == 2 ? h.host(n.out_id(1)) : y;
  std::vector<int64_t> items;
  for_each_index<1>(s.items.dims, {s.items.strides[0]},
                    [&](int64_t, const std::array<int64_t, 1>& at) { items.push_back(at[0]); });
  for_each_index<1>(s.rows.dims, {s.rows.strides[0]},
                    [&](int64_t i, const std::array<int64_t, 1>& at) {
                      const HostRow r{x, at[0], items};
                      if (is_var(rule)) {
                        const Moments m = moments(r, correct);
                        y.put(i, rule == Rule::kStd ? std::sqrt(m.variance) : m.variance);
                        if (rule == Rule::kVarMean) second.put(i, m.mean);
                      } else if (is_extreme(rule)) {
                        const size_t best = best_item(r, is_min(rule));
                        if (rule != Rule::kArgMax && rule != Rule::kArgMin)
                          put_value(r, best, y, i);
                        if (has_index(rule)) second.put_integer(i, static_cast<int64_t>(best));
                      } else {
                        put_arithmetic(r, rule, y, i);
                      }
                    });
  return {};
}

}  // namespace

void add_reduce(std::vector<OpDef>& table) {
  for (const Row& r : kRows) {
    table.push_back({.name = r.name,
                     .spellings = std::span(&r.spelling, 1),
                     .args = r.form.args,
                     .shape = shape,
                     .plan = plan_by_route,
                     .gpu = gpu,
                     .cpu = cpu,
                     .family = "reduce",
                     .routes = kRoutes,
                     .row = &r});
  }
}

}  // namespace pteryx::ops
