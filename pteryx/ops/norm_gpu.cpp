// Norms on the GPU: a row for each team of invocations, or in parts.
// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/ops/fold.h"
#include "pteryx/ops/norm_rows.h"
#include "pteryx/ops/op.h"
#include "pteryx/ops/shaders/norm.h"
#include "pteryx/ops/shaders/norm_split.h"

namespace pteryx::ops {
namespace {

using Kind = NormKind;
using Rows = NormRows;

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

Status dispatch(const Node& n, Plan& p, FoldRoute route, const Rows& r, const Tensor& x,
                const Tensor& y, Extras extras, std::string_view variant) {
  const Fold f = make_fold(route, r.length, 1024, p.caps());
  const bool row_words = in_row_words(y.dtype, r.kind == Kind::kBatch ? 1 : r.length);
  Options options = f.options();
  options.set("interleaved", 0);
  for (const auto& [option, value] : extras.options.all()) options.set(option, value);
  options.set("rows", rows_name(r.kind))
      .set("centred", is_centred(r.kind) ? 1 : 0)
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
                                   .eps = static_cast<float>(r.eps)};
  return p.dispatch(n, {.shader = &shaders::norm,
                        .options = std::move(options),
                        .variant = variant,
                        .bind = std::move(bind),
                        .params = bytes_of(params),
                        .grid = f.grid(r.length == 0 ? 0 : r.rows, p.caps())});
}

template <FoldRoute R>
Status plan(const Node& n, Plan& p) {
  PTERYX_ASSIGN(const Rows r, describe_norm(n));
  Extras extras;
  bind_affine(n, r.affine, extras.before_y, extras.options);
  extras.options.set("activation", r.silu ? "silu" : "none")
      .set("has_mean", n.has_out(1) ? 1 : 0)
      .set("has_rstd", n.has_out(2) ? 1 : 0);
  if (n.has_out(1)) extras.behind_y.push_back({"mean", n.out(1)});
  if (n.has_out(2)) extras.behind_y.push_back({"rstd", n.out(2)});
  return dispatch(n, p, R, r, n.in(0), n.out(), std::move(extras), n.def().name);
}

// Few long rows, cut into parts.
constexpr int64_t kChunk = 4096;
constexpr int64_t kMostRows = 256;  // from there on they fill a GPU as they are
constexpr int64_t kMostSplits = 256;

template <FoldRoute R>
Status plan_split(const Node& n, Plan& p) {
  PTERYX_ASSIGN(const Rows r, describe_norm(n));
  const int64_t splits = (r.length + kChunk - 1) / kChunk;
  const shaders::NormSplitParams params{.rows = u32(r.rows),
                                        .length = u32(r.length),
                                        .groups = u32(r.groups),
                                        .channels = u32(r.channels),
                                        .inner = u32(r.inner),
                                        .eps = static_cast<float>(r.eps),
                                        .splits = u32(splits),
                                        .chunk = u32(kChunk)};
  const Fold f = make_fold(R, kChunk, kChunk / 16, p.caps());
  const Tensor parts = p.scratch(DType::kF32, {r.rows, splits, 2});
  Options options = f.options();
  options.set("rows", rows_name(r.kind)).set("pass", "parts");
  const gpu::Grid grid = per_group(r.rows * splits, p.caps());
  PTERYX_TRY(p.dispatch(n, {.shader = &shaders::norm_split,
                            .options = options,
                            .variant = "parts",
                            .bind = {{"x", n.in(0)}, {"parts", parts}},
                            .params = bytes_of(params),
                            .grid = grid}));
  std::vector<Bind> bind = {{"x", n.in(0)}, {"parts", parts}};
  bind_affine(n, r.affine, bind, options);
  options.set("pass", "merge").set("activation", r.silu ? "silu" : "none");
  bind.push_back({"y", n.out()});
  return p.dispatch(n, {.shader = &shaders::norm_split,
                        .options = std::move(options),
                        .variant = "merge",
                        .bind = std::move(bind),
                        .params = bytes_of(params),
                        .grid = grid});
}

bool fits_split(const Node& n, const gpu::Caps& caps) {
  const auto r = describe_norm(n);
  return r.ok() && (r->kind == Kind::kLayer || r->kind == Kind::kGroup) && !n.has_out(1) &&
         !n.has_out(2) && r->length % 4 == 0 && r->length > kChunk &&
         r->length <= kChunk * kMostSplits && (r->kind == Kind::kLayer || r->inner % 4 == 0) &&
         caps.max_invocations >= kChunk / 16;
}
bool fits_split_subgroup(const Node& n, const gpu::Caps& caps) {
  return fits_subgroup_fold(n, caps) && fits_split(n, caps);
}
bool suits_split(const Node& n, const gpu::Caps& /*caps*/) {
  const auto r = describe_norm(n);
  return r.ok() && r->rows < kMostRows;
}

bool suits_teams(const Node& n, const gpu::Caps& /*caps*/) {
  const auto r = describe_norm(n);
  return r.ok() && r->length > 8;
}

constexpr Route kRoutes[] = {
    {"split_subgroup", fits_split_subgroup, plan_split<FoldRoute::kSubgroup>, suits_split},
    {"split", fits_split, plan_split<FoldRoute::kTree>, suits_split},
    {"subgroup", fits_subgroup_fold, plan<FoldRoute::kSubgroup>, suits_teams},
    {"workgroup", nullptr, plan<FoldRoute::kTree>, suits_teams},
    {"serial", nullptr, plan<FoldRoute::kSerial>},
};

}  // namespace

std::span<const Route> norm_routes() { return kRoutes; }

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
  return dispatch(n, p, route, {.eps = eps, .rows = x.rows(), .length = x.dim(-1)}, x, y,
                  std::move(extras), "rms");
}

}  // namespace pteryx::ops
