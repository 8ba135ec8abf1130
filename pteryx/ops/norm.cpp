// Normalisation of rows by their own statistics: RMS, layer, group, batch.
// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/ops/norm.h"

#include <cmath>

#include "pteryx/ops/fold.h"
#include "pteryx/ops/op.h"
#include "pteryx/ops/shaders/norm.h"
#include "pteryx/ops/shaders/norm_split.h"
#include "pteryx/ops/table.h"

namespace pteryx::ops {
namespace {

enum class Kind : uint8_t { kRms, kTrailingRms, kLayer, kGroup, kBatch };

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
bool centred(Kind k) { return k != Kind::kRms && k != Kind::kTrailingRms; }

// The rows of a call: [rows, length] dense, or for batches [N, rows, inner] with length N * inner.
struct Rows {
  int64_t rows = 1;
  int64_t length = 1;
  int64_t groups = 1;    // of channels, one row of a sample each
  int64_t channels = 1;  // in a group
  int64_t inner = 1;     // elements of a channel
  Dims stats;            // shape of mean and rstd
};

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

Result<Rows> rows_of(const Node& n) {
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
  PTERYX_ASSIGN(const Rows r, rows_of(n));
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

// ---------------------------------------------------------------- GPU

// Where the elements of a row are.
std::string rows_name(Kind k) {
  if (k == Kind::kBatch) return "channels";
  return k == Kind::kGroup ? "groups" : "dense";
}

// What is bound beside x and y, and options that say so.
struct Extras {
  Options options;
  std::vector<Bind> before_y;
  std::vector<Bind> behind_y;
};

Status dispatch(const Node& n, Plan& p, FoldRoute route, Kind kind, const Rows& r, const Tensor& x,
                const Tensor& y, double eps, Extras extras, std::string_view variant) {
  const Fold f = make_fold(route, r.length, 1024, p.caps());
  const bool row_words = in_row_words(y.dtype, kind == Kind::kBatch ? 1 : r.length);
  Options options = f.options();
  options.set("interleaved", 0);
  for (const auto& [option, value] : extras.options.all()) options.set(option, value);
  options.set("rows", rows_name(kind))
      .set("centred", centred(kind) ? 1 : 0)
      .set("held", held_steps(f, r.length, row_lanes(row_words, y.dtype)))
      .set("row_words", row_words ? 1 : 0);
  std::vector<Bind> bind = {{"x", x}};
  bind.insert(bind.end(), extras.before_y.begin(), extras.before_y.end());
  bind.push_back({"y", y});
  bind.insert(bind.end(), extras.behind_y.begin(), extras.behind_y.end());
  const shaders::NormParams params{.rows = u32(r.rows),
                                   .length = u32(r.length),
                                   .groups = u32(r.groups),
                                   .channels = u32(r.channels),
                                   .inner = u32(r.inner),
                                   .eps = static_cast<float>(eps)};
  return p.dispatch(n, {.shader = &shaders::norm,
                        .options = std::move(options),
                        .variant = variant,
                        .bind = std::move(bind),
                        .params = bytes_of(params),
                        .grid = f.grid(r.length == 0 ? 0 : r.rows, p.caps())});
}

template <FoldRoute R>
Status plan(const Node& n, Plan& p) {
  PTERYX_ASSIGN(const Rows r, rows_of(n));
  const Row& op = row(n);
  Extras extras;
  bind_affine(n, op.form.affine, extras.before_y, extras.options);
  extras.options.set("activation", has_silu(n) ? "silu" : "none")
      .set("has_mean", n.has_out(1) ? 1 : 0)
      .set("has_rstd", n.has_out(2) ? 1 : 0);
  if (n.has_out(1)) extras.behind_y.push_back({"mean", n.out(1)});
  if (n.has_out(2)) extras.behind_y.push_back({"rstd", n.out(2)});
  return dispatch(n, p, R, op.kind, r, n.in(0), n.out(), epsilon(n), std::move(extras), op.name);
}

// Few long rows, cut into parts.
constexpr int64_t kChunk = 4096;
constexpr int64_t kMostRows = 256;  // from there on they fill a GPU as they are
constexpr int64_t kMostSplits = 256;

template <FoldRoute R>
Status plan_split(const Node& n, Plan& p) {
  PTERYX_ASSIGN(const Rows r, rows_of(n));
  const Kind kind = row(n).kind;
  const int64_t splits = (r.length + kChunk - 1) / kChunk;
  const shaders::NormSplitParams params{.rows = u32(r.rows),
                                        .length = u32(r.length),
                                        .groups = u32(r.groups),
                                        .channels = u32(r.channels),
                                        .inner = u32(r.inner),
                                        .eps = static_cast<float>(epsilon(n)),
                                        .splits = u32(splits),
                                        .chunk = u32(kChunk)};
  const Fold f = make_fold(R, kChunk, kChunk / 16, p.caps());
  const Tensor parts = p.scratch(DType::kF32, {r.rows, splits, 2});
  Options options = f.options();
  options.set("rows", rows_name(kind)).set("pass", "parts");
  const gpu::Grid grid = per_group(r.rows * splits, p.caps());
  PTERYX_TRY(p.dispatch(n, {.shader = &shaders::norm_split,
                            .options = options,
                            .variant = "parts",
                            .bind = {{"x", n.in(0)}, {"parts", parts}},
                            .params = bytes_of(params),
                            .grid = grid}));
  std::vector<Bind> bind = {{"x", n.in(0)}, {"parts", parts}};
  bind_affine(n, row(n).form.affine, bind, options);
  options.set("pass", "merge").set("activation", has_silu(n) ? "silu" : "none");
  bind.push_back({"y", n.out()});
  return p.dispatch(n, {.shader = &shaders::norm_split,
                        .options = std::move(options),
                        .variant = "merge",
                        .bind = std::move(bind),
                        .params = bytes_of(params),
                        .grid = grid});
}

bool fits_split(const Node& n, const gpu::Caps& caps) {
  const auto r = rows_of(n);
  const Kind kind = row(n).kind;
  return r.ok() && (kind == Kind::kLayer || kind == Kind::kGroup) && !n.has_out(1) &&
         !n.has_out(2) && r->length % 4 == 0 && r->length > kChunk &&
         r->length <= kChunk * kMostSplits && (kind == Kind::kLayer || r->inner % 4 == 0) &&
         caps.max_invocations >= kChunk / 16;
}
bool fits_split_subgroup(const Node& n, const gpu::Caps& caps) {
  return fits_subgroup_fold(n, caps) && fits_split(n, caps);
}
bool suits_split(const Node& n, const gpu::Caps& /*caps*/) {
  const auto r = rows_of(n);
  return r.ok() && r->rows < kMostRows;
}

bool suits_teams(const Node& n, const gpu::Caps& /*caps*/) {
  const auto r = rows_of(n);
  return r.ok() && r->length > 8;
}

constexpr Route kRoutes[] = {
    {"split_subgroup", fits_split_subgroup, plan_split<FoldRoute::kSubgroup>, suits_split},
    {"split", fits_split, plan_split<FoldRoute::kTree>, suits_split},
    {"subgroup", fits_subgroup_fold, plan<FoldRoute::kSubgroup>, suits_teams},
    {"workgroup", nullptr, plan<FoldRoute::kTree>, suits_teams},
    {"serial", nullptr, plan<FoldRoute::kSerial>},
};

// ---------------------------------------------------------------- CPU

int64_t host_offset(Kind kind, const Rows& r, int64_t i, int64_t k) {
  if (kind != Kind::kBatch) return i * r.length + k;
  return (k / r.inner * r.rows + i) * r.inner + k % r.inner;
}
int64_t host_channel(Kind kind, const Rows& r, int64_t i, int64_t k) {
  if (kind == Kind::kBatch) return i;
  return kind == Kind::kGroup ? i % r.groups * r.channels + k / r.inner : k;
}

Status cpu(const Node& n, const Host& h) {
  PTERYX_ASSIGN(const Rows r, rows_of(n));
  const Row& op = row(n);
  const HostTensor x = h.host(n.in(0).id);
  const HostTensor y = h.host(n.out_id());
  const bool silu = has_silu(n);
  for (int64_t i = 0; i < r.rows; ++i) {
    const auto value = [&](int64_t k) { return x.number(host_offset(op.kind, r, i, k)); };
    double mean = 0;
    double variance = 0;
    for (int64_t k = 0; k < r.length && centred(op.kind); ++k)
      mean += value(k) / static_cast<double>(r.length);
    for (int64_t k = 0; k < r.length; ++k)
      variance += (value(k) - mean) * (value(k) - mean) / static_cast<double>(r.length);
    const double rstd = 1.0 / std::sqrt(variance + epsilon(n));
    for (int64_t k = 0; k < r.length; ++k) {
      const double v = affine_on_host(n, h, op.form.affine, (value(k) - mean) * rstd,
                                      host_channel(op.kind, r, i, k));
      y.put(host_offset(op.kind, r, i, k), silu ? v / (1 + std::exp(-v)) : v);
    }
    if (n.has_out(1)) h.host(n.out_id(1)).put(i, mean);
    if (n.has_out(2)) h.host(n.out_id(2)).put(i, rstd);
  }
  return {};
}

}  // namespace

Status plan_rms_norm(const Node& n, Plan& p, const Tensor& x, const Tensor& weight, double eps,
                     const Tensor& y, RowOrder order) {
  const FoldRoute route = fits_subgroup_fold(n, p.caps()) ? FoldRoute::kSubgroup : FoldRoute::kTree;
  Extras extras{.options = {{"has_weight", 1},
                            {"has_bias", 0},
                            {"activation", "none"},
                            {"has_mean", 0},
                            {"has_rstd", 0}},
                .before_y = {{"weight", weight}},
                .behind_y = {}};
  extras.options.set("interleaved", order == RowOrder::kInterleaved ? 1 : 0);
  return dispatch(n, p, route, Kind::kRms, {.rows = x.rows(), .length = x.dim(-1), .stats = {}}, x,
                  y, eps, std::move(extras), "rms");
}

void add_norm(std::vector<OpDef>& table) {
  for (const Row& r : kRows) {
    table.push_back({.name = r.name,
                     .spellings = std::span(&r.spelling, r.spelling.empty() ? 0 : 1),
                     .args = r.form.args,
                     .shape = shape,
                     .plan = plan_by_route,
                     .cpu = cpu,
                     .family = "norm",
                     .routes = kRoutes,
                     .row = &r});
  }
}

}  // namespace pteryx::ops
