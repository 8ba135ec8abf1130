// Reductions over any set of dims: sums, means, products, extremes and their indices, variances.
// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/ops/reduce.h"

#include "pteryx/ops/table.h"

namespace pteryx::ops {
namespace {

using Rule = ReduceRule;

// What a row of the table says about arguments: where they are, 0 for not at all.
struct Form {
  std::span<const Arg> args;
  uint8_t dims = 0;  // without it, all dims are reduced
  uint8_t keepdim = 0;
  uint8_t correction = 0;  // a number, or a flag for 1
};

constexpr Arg kSumArgs[] = {in("x"), optional_ints("dim"), number("keepdim"), any("dtype"),
                            out("y")};
constexpr Arg kExtremeArgs[] = {in("x"), optional_ints("dim"), number("keepdim"), out("y")};
constexpr Arg kIndexArgs[] = {in("x"), optional_ints("dim"), number("keepdim"), index_out("y")};
constexpr Arg kPairArgs[] = {in("x"), ints("dim"), number("keepdim"), out_values_and_indices("y")};
constexpr Arg kAllArgs[] = {in("x"), out("y")};
constexpr Arg kAllSumArgs[] = {in("x"), any("dtype"), out("y")};
constexpr Arg kVarArgs[] = {in("x", kFloats), optional_ints("dim"), number("unbiased"),
                            number("keepdim"), out("y", kFloats)};
constexpr Arg kCorrectionArgs[] = {in("x", kFloats), optional_ints("dim"),
                                   optional_number("correction"), number("keepdim"),
                                   out("y", kFloats)};
constexpr Arg kVarMeanArgs[] = {in("x", kFloats), optional_ints("dim"),
                                optional_number("correction"), number("keepdim"),
                                out_list("y", 2, kFloats)};

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
  for (size_t i = 0; i < n.out_count(); ++i) {
    if (!n.has_out(i)) return n.unsupported(fmt::format("result {} is None", i));
    PTERYX_TRY(s.set(i, dims));
  }
  return {};
}

// Only indices are narrowed to i32; values of i64 are for the CPU. Results of two types cannot
// share their words.
bool gpu(const Node& n) {
  const Rule rule = row(n).rule;
  if (!n.has_out(0) || !n.has_out(n.out_count() - 1)) return false;
  if (has_index(rule) && has_value(rule)) return n.out(0).dtype != DType::kI64;
  return rule != Rule::kVarMean || n.out(0).dtype == n.out(1).dtype;
}

}  // namespace

Result<Reduction> describe_reduction(const Node& n) {
  PTERYX_ASSIGN(const uint32_t mask, reduced(n));
  const Row& r = row(n);
  const Tensor x = n.in(0);
  const Dims strides = contiguous_strides(x.dims);
  std::array<Dims, 2> dims;
  std::array<Dims, 2> steps;
  for (size_t i = 0; i < x.rank(); ++i) {
    const size_t side = mask >> i & 1U;
    dims[side].push_back(x.dims[i]);
    steps[side].push_back(strides[i]);
  }
  return Reduction{.rule = r.rule,
                   .correction = r.form.correction == 0 ? 0.0 : n.number_or(r.form.correction, 1.0),
                   .rows = merge_dims(dims[0], std::span(&steps[0], 1)),
                   .items = merge_dims(dims[1], std::span(&steps[1], 1)),
                   .row_count = numel(dims[0]),
                   .length = numel(dims[1])};
}

void add_reduce(std::vector<OpDef>& table) {
  for (const Row& r : kRows) {
    table.push_back({.name = r.name,
                     .spellings = std::span(&r.spelling, 1),
                     .args = r.form.args,
                     .shape = shape,
                     .plan = plan_by_route,
                     .gpu = gpu,
                     .cpu = reduce_on_cpu,
                     .fast = reduce_fast,
                     .family = "reduce",
                     .routes = reduce_routes(),
                     .row = &r});
  }
}

}  // namespace pteryx::ops
