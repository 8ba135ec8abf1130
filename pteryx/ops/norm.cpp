// Normalisation of rows by their own statistics (RMS, layer, group, batch) and by stored ones
// (batch, inference).
// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/ops/norm.h"

#include <cmath>

#include "pteryx/ops/fold.h"
#include "pteryx/ops/op.h"
#include "pteryx/ops/shaders/batch_norm.h"
#include "pteryx/ops/shaders/norm.h"
#include "pteryx/ops/table.h"

namespace pteryx::ops {
namespace {

enum class Kind : uint8_t { kRms, kTrailingRms, kLayer, kGroup, kBatch };

// Where a kind keeps its arguments; 0: it has none.
struct Form {
  std::span<const Arg> args;
  uint8_t weight, bias, eps;
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
constexpr Arg kBatchArgs[] = {in("x", kFloats, 2),
                              optional_in("weight", kFloats),
                              optional_in("bias", kFloats),
                              any("training"),
                              any("momentum"),
                              number("eps"),
                              kThreeOut};
constexpr Arg kStoredArgs[] = {in("x", kFloats, 2),
                               optional_in("weight", kFloats),
                               optional_in("bias", kFloats),
                               in("mean", kFloats),
                               in("variance", kFloats),
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
    {"et_vk.rms_norm.default", "", Kind::kRms, {kRmsArgs, 1, 0, 2}},
    {"aten.rms_norm.default",
     "aten::rms_norm.out",
     Kind::kTrailingRms,
     {kTrailingRmsArgs, 2, 0, 3}},
    {"aten.native_layer_norm.default",
     "aten::native_layer_norm.out",
     Kind::kLayer,
     {kLayerArgs, 2, 3, 4}},
    {"aten.native_group_norm.default",
     "aten::native_group_norm.out",
     Kind::kGroup,
     {kGroupArgs, 1, 2, 7}},
    {"aten._native_batch_norm_legit.no_stats",
     "aten::_native_batch_norm_legit.no_stats_out",
     Kind::kBatch,
     {kBatchArgs, 1, 2, 5}},
};
constexpr size_t kNormalizedShape = 1;
constexpr size_t kGroupCount = 6;

const Row& row(const Node& n) { return *static_cast<const Row*>(n.def().row); }
bool centred(Kind k) { return k != Kind::kRms && k != Kind::kTrailingRms; }

// Weight and bias, where present, have one entry per channel.
Status check_affine(const Node& n, size_t arg, int64_t channels) {
  if (arg == 0 || !n.has(arg) || n.in(arg).numel() == channels) return {};
  return n.mismatch(arg, "shape", to_string(Dims{channels}), to_string(n.in(arg).dims));
}

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
  PTERYX_TRY(check_affine(n, op.form.weight, channels));
  PTERYX_TRY(check_affine(n, op.form.bias, channels));
  if (!n.has_out(0)) return n.fail(Code::kInvalidProgram, "the first result is None");
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

// ---------------------------------------------------------------- GPU

// Binds weight and bias where present, and says whether they are.
void bind_affine(const Node& n, const Form& f, std::vector<Bind>& bind, Options& options) {
  const bool weight = f.weight != 0 && n.has(f.weight);
  const bool bias = f.bias != 0 && n.has(f.bias);
  if (weight) bind.push_back({"weight", n.in(f.weight)});
  if (bias) bind.push_back({"bias", n.in(f.bias)});
  options.set("has_weight", weight ? 1 : 0).set("has_bias", bias ? 1 : 0);
}

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
  bind_affine(n, op.form, extras.before_y, extras.options);
  extras.options.set("has_mean", n.has_out(1) ? 1 : 0).set("has_rstd", n.has_out(2) ? 1 : 0);
  if (n.has_out(1)) extras.behind_y.push_back({"mean", n.out(1)});
  if (n.has_out(2)) extras.behind_y.push_back({"rstd", n.out(2)});
  return dispatch(n, p, R, op.kind, r, n.in(0), n.out(), epsilon(n), std::move(extras), op.name);
}

bool suits_teams(const Node& n, const gpu::Caps& /*caps*/) {
  const auto r = rows_of(n);
  return r.ok() && r->length > 8;
}

constexpr Route kRoutes[] = {
    {"subgroup", fits_subgroup_fold, plan<FoldRoute::kSubgroup>, suits_teams},
    {"workgroup", nullptr, plan<FoldRoute::kTree>, suits_teams},
    {"serial", nullptr, plan<FoldRoute::kSerial>},
};

// ---------------------------------------------------------------- CPU

double affine_on_host(const Node& n, const Host& h, const Form& f, double v, int64_t channel) {
  if (f.weight != 0 && n.has(f.weight)) v *= h.host(n.in(f.weight).id).number(channel);
  if (f.bias != 0 && n.has(f.bias)) v += h.host(n.in(f.bias).id).number(channel);
  return v;
}

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
      y.put(host_offset(op.kind, r, i, k), affine_on_host(n, h, op.form, (value(k) - mean) * rstd,
                                                          host_channel(op.kind, r, i, k)));
    }
    if (n.has_out(1)) h.host(n.out_id(1)).put(i, mean);
    if (n.has_out(2)) h.host(n.out_id(2)).put(i, rstd);
  }
  return {};
}

// ---------------------------------------------------------------- stored statistics

enum Stored { kX, kWeight, kBias, kMean, kVariance, kMomentum, kEps };
constexpr Form kStoredForm{kStoredArgs, kWeight, kBias, kEps};

int64_t inner_of(const Tensor& x) {
  int64_t n = 1;
  for (size_t i = 2; i < x.rank(); ++i) n *= x.dims[i];
  return n;
}

// The second and third result are for training; they keep the size the file gives them and are not
// written.
Status stored_shape(const Node& n, Shapes& s) {
  const Tensor x = n.in(kX);
  for (const size_t arg : {kWeight, kBias, kMean, kVariance})
    PTERYX_TRY(check_affine(n, arg, x.dims[1]));
  if (!n.has_out(0)) return n.fail(Code::kInvalidProgram, "the first result is None");
  return s.set(0, x.dims);
}

Status stored_plan(const Node& n, Plan& p) {
  const Tensor x = n.in(kX);
  const Tensor y = n.out();
  std::vector<Bind> bind = {{"x", x}, {"mean", n.in(kMean)}, {"variance", n.in(kVariance)}};
  Options options;
  bind_affine(n, kStoredForm, bind, options);
  bind.push_back({"y", y});
  const shaders::BatchNormParams params{.n = u32(y.numel()),
                                        .channels = u32(x.dims[1]),
                                        .inner = u32(inner_of(x)),
                                        .eps = static_cast<float>(n.number(kEps))};
  return p.dispatch(n, {.shader = &shaders::batch_norm,
                        .options = std::move(options),
                        .bind = std::move(bind),
                        .params = bytes_of(params),
                        .grid = per_element(words(y.numel(), y.dtype), p.caps())});
}

Status stored_cpu(const Node& n, const Host& h) {
  const HostTensor x = h.host(n.in(kX).id);
  const HostTensor mean = h.host(n.in(kMean).id);
  const HostTensor variance = h.host(n.in(kVariance).id);
  const HostTensor y = h.host(n.out_id());
  const int64_t inner = inner_of(n.in(kX));
  for (int64_t i = 0; i < y.numel(); ++i) {
    const int64_t c = i / inner % x.dims[1];
    const double v =
        (x.number(i) - mean.number(c)) / std::sqrt(variance.number(c) + n.number(kEps));
    y.put(i, affine_on_host(n, h, kStoredForm, v, c));
  }
  return {};
}

constexpr std::string_view kStoredSpellings[] = {"aten::_native_batch_norm_legit_no_training.out"};

}  // namespace

Status plan_rms_norm(const Node& n, Plan& p, const Tensor& x, const Tensor& weight, double eps,
                     const Tensor& y) {
  const FoldRoute route = fits_subgroup_fold(n, p.caps()) ? FoldRoute::kSubgroup : FoldRoute::kTree;
  Extras extras{.options = {{"has_weight", 1}, {"has_bias", 0}, {"has_mean", 0}, {"has_rstd", 0}},
                .before_y = {{"weight", weight}},
                .behind_y = {}};
  return dispatch(n, p, route, Kind::kRms, {.rows = x.rows(), .length = x.dim(-1), .stats = {}}, x,
                  y, eps, std::move(extras), "rms");
}

void add_norm(std::vector<OpDef>& table) {
  for (const Row& r : kRows) {
    table.push_back({.name = r.name,
                     .spellings = std::span(&r.spelling, 1),
                     .args = r.form.args,
                     .shape = shape,
                     .plan = plan_by_route,
                     .cpu = cpu,
                     .family = "norm",
                     .routes = kRoutes,
                     .row = &r});
  }
  table.push_back({.name = "aten._native_batch_norm_legit_no_training.default",
                   .spellings = kStoredSpellings,
                   .args = kStoredArgs,
                   .shape = stored_shape,
                   .plan = stored_plan,
                   .cpu = stored_cpu});
}

}  // namespace pteryx::ops
