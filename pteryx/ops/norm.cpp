// Normalisation of rows by their own statistics: RMS, layer, group, batch.
// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/ops/norm.h"

#include <cmath>

#include "pteryx/ops/norm_rows.h"
#include "pteryx/ops/op.h"
#include "pteryx/ops/table.h"

namespace pteryx::ops {
namespace {

using Kind = NormKind;
using Rows = NormRows;

// Where a kind keeps its arguments; 0: it has none.
struct Form {
  std::span<const Arg> args;
  Affine affine;
  uint8_t eps;
  uint8_t activation = 0;
};

constexpr Arg kThreeOut = out_list("y", 3, kFloats);

constexpr Arg kRmsArgs[] = {in("x", kFloats, 1), in("weight", kFloats), optional_number("eps"),
                            out("y", kFloats)};
constexpr Arg kTrailingRmsArgs[] = {in("x", kFloats, 1), ints("normalized_shape"),
                                    optional_in("weight", kFloats), optional_number("eps"),
                                    out("y", kFloats)};
constexpr Arg kLayerArgs[] = {in("x", kFloats),
                              ints("normalized_shape"),
                              optional_in("weight", kFloats),
                              optional_in("bias", kFloats),
                              number("eps"),
                              kThreeOut};
constexpr Arg kGroupArgs[] = {in("x", kFloats, 2),
                              optional_in("weight", kFloats),
                              optional_in("bias", kFloats),
                              any("N"),
                              any("C"),
                              any("HxW"),
                              number("group"),
                              number("eps"),
                              kThreeOut};
constexpr Arg kFusedGroupArgs[] = {in("x", kFloats, 2),
                                   optional_in("weight", kFloats),
                                   optional_in("bias", kFloats),
                                   any("N"),
                                   any("C"),
                                   any("HxW"),
                                   number("group"),
                                   number("eps"),
                                   text("activation"),
                                   out("y", kFloats)};
constexpr Arg kBatchArgs[] = {in("x", kFloats, 2),
                              optional_in("weight", kFloats),
                              optional_in("bias", kFloats),
                              any("training"),
                              any("momentum"),
                              number("eps"),
                              kThreeOut};
struct Row {
  std::string_view name;
  std::string_view spelling;
  Kind kind;
  Form form;
};
constexpr Row kRows[] = {
    {"et_vk.rms_norm.default", "", Kind::kRms, {kRmsArgs, {1, 0}, 2}},
    {"aten.rms_norm.default",
     "aten::rms_norm.out",
     Kind::kTrailingRms,
     {kTrailingRmsArgs, {2, 0}, 3}},
    {"aten.native_layer_norm.default",
     "aten::native_layer_norm.out",
     Kind::kLayer,
     {kLayerArgs, {2, 3}, 4}},
    {"aten.native_group_norm.default",
     "aten::native_group_norm.out",
     Kind::kGroup,
     {kGroupArgs, {1, 2}, 7}},
    {kFusedGroupNorm, "", Kind::kGroup, {kFusedGroupArgs, {1, 2}, 7, 8}},
    {"aten._native_batch_norm_legit.no_stats",
     "aten::_native_batch_norm_legit.no_stats_out",
     Kind::kBatch,
     {kBatchArgs, {1, 2}, 5}},
};
constexpr size_t kNormalizedShape = 1;
constexpr size_t kGroupCount = 6;

const Row& row(const Node& n) { return *static_cast<const Row*>(n.def().row); }

Result<Rows> trailing_rows(const Node& n) {
  const Tensor x = n.in(0);
  PTERYX_ASSIGN(const Dims tail, n.ints(kNormalizedShape));
  Rows r;
  r.stats = Dims::filled(x.rank(), 1);
  bool same = tail.rank() <= x.rank() && !tail.empty();
  for (size_t i = 0; same && i < x.rank(); ++i) {
    if (i < x.rank() - tail.rank()) {
      r.rows *= x.dims[i];
      r.stats[i] = x.dims[i];
    } else {
      r.length *= x.dims[i];
      same = x.dims[i] == tail[i - (x.rank() - tail.rank())];
    }
  }
  if (!same) {
    return n.fail(Code::kInvalidArgument,
                  fmt::format("normalized_shape {} does not end the shape of x, {}",
                              to_string(tail), to_string(x.dims)));
  }
  return r;
}

Result<Rows> sizes_of(const Node& n) {
  const Tensor x = n.in(0);
  Rows r;
  switch (row(n).kind) {
    case Kind::kRms:
      r.rows = x.rows();
      r.length = x.dim(-1);
      return r;
    case Kind::kTrailingRms:
    case Kind::kLayer: return trailing_rows(n);
    case Kind::kGroup: {
      PTERYX_ASSIGN(r.groups, n.integer(kGroupCount));
      if (r.groups < 1 || x.dims[1] % r.groups != 0) {
        return n.fail(Code::kInvalidArgument,
                      fmt::format("{} channels do not make {} groups", x.dims[1], r.groups));
      }
      r.channels = x.dims[1] / r.groups;
      for (size_t i = 2; i < x.rank(); ++i) r.inner *= x.dims[i];
      r.rows = x.dims[0] * r.groups;
      r.length = r.channels * r.inner;
      r.stats = {x.dims[0], r.groups};
      return r;
    }
    case Kind::kBatch:
      for (size_t i = 2; i < x.rank(); ++i) r.inner *= x.dims[i];
      r.groups = r.rows = x.dims[1];
      r.length = x.dims[0] * r.inner;
      r.stats = {x.dims[1]};
      return r;
  }
  return r;
}

Status check_rms(const Node& n, const Rows& r) {
  const Tensor x = n.in(0);
  if (r.length == 0)
    return n.fail(Code::kInvalidArgument,
                  fmt::format("x has shape {}: zero width", to_string(x.dims)));
  if (r.rows == 0)
    return n.fail(Code::kInvalidArgument,
                  fmt::format("x has shape {}: zero rows", to_string(x.dims)));
  const DType w = n.in(1).dtype;
  return w == x.dtype ? ok_status() : n.malformed(1, "type", name(x.dtype), name(w));
}

Status shape(const Node& n, Shapes& s) {
  PTERYX_ASSIGN(const Rows r, sizes_of(n));
  const Row& op = row(n);
  if (op.kind == Kind::kRms) PTERYX_TRY(check_rms(n, r));
  const bool trailing = op.kind != Kind::kGroup && op.kind != Kind::kBatch;
  const int64_t channels = trailing ? r.length : r.groups * r.channels;
  PTERYX_TRY(check_affine(n, op.form.affine.weight, channels));
  PTERYX_TRY(check_affine(n, op.form.affine.bias, channels));
  if (!n.has_out(0)) return n.fail(Code::kInvalidProgram, "the first result is None");
  if (op.form.activation != 0) {
    const std::string_view name = n.text(op.form.activation);
    if (!name.empty() && name != "none" && name != "silu")
      return n.malformed(op.form.activation, "value", "none or silu", name);
  }
  PTERYX_TRY(s.set(0, n.in(0).dims));
  for (size_t i = 1; i < n.out_count(); ++i) PTERYX_TRY(s.set(i, r.stats));
  return {};
}

double epsilon(const Node& n) {
  constexpr double kFloatStep = 1.1920929e-07;
  constexpr double kHalfStep = 9.765625e-04;
  const bool half = row(n).kind == Kind::kTrailingRms && n.in(0).dtype == DType::kF16;
  return n.number_or(row(n).form.eps, half ? kHalfStep : kFloatStep);
}

bool has_silu(const Node& n) {
  const uint8_t at = row(n).form.activation;
  return at != 0 && n.text(at) == "silu";
}

}  // namespace

Result<NormRows> describe_norm(const Node& n) {
  PTERYX_ASSIGN(NormRows r, sizes_of(n));
  const Row& op = row(n);
  r.kind = op.kind;
  r.affine = op.form.affine;
  r.eps = epsilon(n);
  r.silu = has_silu(n);
  return r;
}

namespace {

int64_t host_offset(const Rows& r, int64_t i, int64_t k) {
  if (r.kind != Kind::kBatch) return i * r.length + k;
  return (k / r.inner * r.rows + i) * r.inner + k % r.inner;
}
int64_t host_channel(const Rows& r, int64_t i, int64_t k) {
  if (r.kind == Kind::kBatch) return i;
  return r.kind == Kind::kGroup ? i % r.groups * r.channels + k / r.inner : k;
}

Status cpu(const Node& n, const Host& h) {
  PTERYX_ASSIGN(const Rows r, describe_norm(n));
  const HostTensor x = h.host(n.in(0).id);
  const HostTensor y = h.host(n.out_id());
  for (int64_t i = 0; i < r.rows; ++i) {
    const auto value = [&](int64_t k) { return x.number(host_offset(r, i, k)); };
    double mean = 0;
    double variance = 0;
    for (int64_t k = 0; k < r.length && is_centred(r.kind); ++k)
      mean += value(k) / static_cast<double>(r.length);
    for (int64_t k = 0; k < r.length; ++k)
      variance += (value(k) - mean) * (value(k) - mean) / static_cast<double>(r.length);
    const double rstd = 1.0 / std::sqrt(variance + r.eps);
    for (int64_t k = 0; k < r.length; ++k) {
      const double v =
          affine_on_host(n, h, r.affine, (value(k) - mean) * rstd, host_channel(r, i, k));
      y.put(host_offset(r, i, k), r.silu ? v / (1 + std::exp(-v)) : v);
    }
    if (n.has_out(1)) h.host(n.out_id(1)).put(i, mean);
    if (n.has_out(2)) h.host(n.out_id(2)).put(i, rstd);
  }
  return {};
}

}  // namespace

void add_norm(std::vector<OpDef>& table) {
  for (const Row& r : kRows) {
    table.push_back({.name = r.name,
                     .spellings = std::span(&r.spelling, r.spelling.empty() ? 0 : 1),
                     .args = r.form.args,
                     .shape = shape,
                     .plan = plan_by_route,
                     .cpu = cpu,
                     .fast = norm_fast,
                     .family = "norm",
                     .routes = norm_routes(),
                     .row = &r});
  }
}

}  // namespace pteryx::ops
