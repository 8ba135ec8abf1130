// The GPU routes of attention: which fits a call, and in which sizes its kernel is cut. All of them
// keep a running maximum (online softmax): no route stores the scores of all rows.
// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <limits>
#include <numbers>
#include <optional>

#include "pteryx/ops/attention/attention.h"
#include "pteryx/ops/attention/decode_cut.h"
#include "pteryx/ops/fixed_slot.h"
#include "pteryx/ops/shaders/attention_decode.h"
#include "pteryx/ops/shaders/attention_matrix.h"
#include "pteryx/ops/shaders/attention_merge.h"
#include "pteryx/ops/shaders/attention_rows.h"
#include "pteryx/ops/shaders/attention_tiled.h"

namespace pteryx::ops::attention {
namespace {

constexpr int64_t kSplitKeys = 256;  // of the contexts that plans tell apart: so many times 2^k
constexpr int64_t kBlockRows = 64;   // of q in a workgroup of the routes for many rows

int64_t blocks(const Attention& a, int64_t rows = kBlockRows) {
  return a.batch * a.heads * div_up(a.rows, rows);
}

// The Params of every kernel are those of attention/common/attention.wgsl.
template <typename Params>
Params make_params(const Attention& a, LiveInt start, int64_t units, const Splits& splits) {
  const auto& m = a.mask_strides;
  const auto packed = [](const Strides& s) {
    return std::array<uint32_t, 4>{u32(s.batch), u32(s.head), u32(s.row), u32(s.first)};
  };
  return {.q_strides = packed(a.q_strides),
          .k_strides = packed(a.k_strides),
          .y_strides = packed(a.y_strides),
          .mask_strides = {u32(m[0]), u32(m[1]), u32(m[2]), u32(m[3])},
          .heads = u32(a.heads),
          .group = u32(a.group),
          .rows = u32(a.rows),
          .fixed_keys = u32(a.keys),
          .start = start.word,
          .causal = a.causal ? 1U : 0U,
          .scale = static_cast<float>(a.scale * std::numbers::log2e),
          .splits = u32(splits.count),
          .split_keys = u32(splits.keys),
          .items = u32(units),
          .quads = u32(quads(a.size)),
          .capacity = u32(a.capacity),
          .v_first = u32(a.v_first)};
}

// The options and tensors that the kernels of a call have in common.
Options call_options(const Attention& a) {
  return {{"size", a.size}, {"has_mask", a.mask ? 1 : 0}};
}
std::vector<Bind> call_tensors(const Node& n, const Attention& a) {
  std::vector<Bind> bind = {{"y", n.out()}, {"q", a.q}, {"k", a.k}, {"v", a.v}};
  if (a.mask) bind.push_back({"mask", *a.mask});
  return bind;
}

// The most keys that a plan is good for: those of this run, rounded up.
int64_t planned_keys(const Node& n, const Attention& a) {
  if (a.keys > 0) return a.keys;
  return std::min(n.bucket(places(n).start, a.rows, kSplitKeys), a.capacity);
}

// ---------------------------------------------------------------- few rows, with subgroups

// The new rows of a call that can be read where they are while the same dispatch puts them into
// the caches.
bool has_new_rows(const Node& n, const Attention& a) {
  const Places& at = places(n);
  if (at.new_k == Places::kNone || a.mask) return false;
  const ValueId ids[] = {a.q.id, n.in(at.new_k).id, n.in(at.new_v).id, a.k.id, a.v.id};
  for (size_t i = 0; i < std::size(ids); ++i) {
    if (std::count(std::begin(ids), std::end(ids), ids[i]) > 1) return false;
  }
  return true;
}

// One row is bound by latency: its kernel does not wait for params to know where keys are. Of
// others there would be many.
void set_addresses(const Attention& a, const Splits& splits, LiveInt start, Options& to) {
  const bool fits = std::max({a.q_strides.head, a.k_strides.head, a.k_strides.row, a.capacity}) <=
                    std::numeric_limits<int32_t>::max();
  const bool fixed = a.batch * a.rows == 1 && a.keys == 0 && fits;
  to.set("fixed", fixed ? 1 : 0);
  if (!fixed) return;
  // Where many workgroups stream keys, compilers put loads behind a position that is there early.
  const bool streams = splits.count * splits.keys > kLongContext;
  const std::optional<int64_t> slot = streams ? std::nullopt : fixed_slot(start);
  to.set("q_head", a.q_strides.head)
      .set("k_head", a.k_strides.head)
      .set("k_row", a.k_strides.row)
      .set("group", a.group)
      .set("capacity", a.capacity)
      .set("inside", splits.count * splits.keys <= a.capacity ? 1 : 0)
      .set("fixed_slot", slot ? 1 : 0)
      .set("start_slot", slot.value_or(0));
}

Status plan_decode_subgroup(const Node& n, Plan& p) {
  PTERYX_ASSIGN(const Attention a, read_attention(n));
  const bool new_rows = has_new_rows(n, a);
  if (!new_rows) PTERYX_TRY(plan_new_rows(n, p));
  const int64_t keys = planned_keys(n, a);
  const DecodeCut cut = decode_cut(a, keys, p.caps());
  const Splits splits = decode_splits(a, keys, cut, p.caps());
  const bool split = splits.count > 1;
  Options options = call_options(a);
  options.set("team", cut.team)
      .set("block", cut.block)
      .set("steps", cut.steps)
      .set("threads", cut.threads)
      .set("shared", cut.shared)
      .set("split", split ? 1 : 0)
      .set("passes", splits.keys > cut.keys() ? 1 : 0)
      .set("new_rows", new_rows ? 1 : 0)
      .set("counters", kCounters);
  const LiveInt start = start_of(n);
  set_addresses(a, splits, start, options);
  std::vector<Bind> bind = call_tensors(n, a);
  if (new_rows) {
    bind.push_back({"k_rows", n.in(places(n).new_k)});
    bind.push_back({"v_rows", n.in(places(n).new_v)});
  }
  if (split) bind.push_back({"partial", p.counted_scratch(items(a) * splits.count * (a.size + 2))});
  const auto params =
      make_params<shaders::AttentionDecodeParams>(a, start, items(a) * splits.count, splits);
  return p.dispatch(
      n, {.shader = &shaders::attention_decode,
          .options = std::move(options),
          .variant = split ? "split" : "whole",
          .bind = std::move(bind),
          .params = bytes_of(params),
          .live = {start},
          .grid = {u32(a.heads / cut.shared), u32(splits.count), u32(a.batch * a.rows)}});
}

bool fits_decode_subgroup(const Node& n, const gpu::Caps& caps) {
  const auto a = read_attention(n);
  if (!a.ok() || a->rows > kDecodeRows || items(*a) > kCounters ||
      places(n).heads != Places::kNone || decode_cut(*a, 1, caps).threads == 0) {
    return false;
  }
  return std::max({a->heads, a->batch * a->rows, many_groups(caps)}) <= caps.max_workgroups_per_dim;
}

// ---------------------------------------------------------------- few rows

constexpr int64_t kPlainDecodeRows = 4;
constexpr int64_t kMiddleContext = 512;  // beyond, splits are twice as long, and from
                                         // kLongContext on four times

Splits row_splits(const Node& n, const Attention& a, const gpu::Caps& caps) {
  const int64_t keys = planned_keys(n, a);
  const int64_t most = most_splits(items(a), caps);
  const int64_t longer = keys > kLongContext ? 4 : keys > kMiddleContext ? 2 : 1;
  const int64_t count = std::clamp<int64_t>(div_up(keys, longer * kSplitKeys), 1, most);
  return {count, div_up(keys, count)};
}

Status plan_rows(const Node& n, Plan& p, const Attention& a, const Splits& splits) {
  PTERYX_TRY(plan_new_rows(n, p));
  const bool split = splits.count > 1;
  Options options = call_options(a);
  options.set("split", split ? 1 : 0);
  std::vector<Bind> bind = call_tensors(n, a);
  if (split) {
    bind.front() = {"partial",
                    p.scratch(DType::kF32, {items(a), splits.count, quads(a.size) + 1, 4})};
  }
  const Tensor partial = bind.front().tensor;
  const LiveInt start = start_of(n);
  const auto params = make_params<shaders::AttentionRowsParams>(a, start, items(a), splits);
  PTERYX_TRY(p.dispatch(n, {.shader = &shaders::attention_rows,
                            .options = std::move(options),
                            .variant = split ? "split" : "whole",
                            .bind = std::move(bind),
                            .params = bytes_of(params),
                            .live = {start},
                            .grid = per_group(items(a) * splits.count, p.caps())}));
  if (!split) return {};
  const auto merge = make_params<shaders::AttentionMergeParams>(a, start, items(a), splits);
  return p.dispatch(n, {.shader = &shaders::attention_merge,
                        .options = {{"size", a.size}},
                        .bind = {{"partial", partial}, {"y", n.out()}},
                        .params = bytes_of(merge),
                        .live = {start},
                        .grid = per_group(items(a), p.caps())});
}

Status plan_decode(const Node& n, Plan& p) {
  PTERYX_ASSIGN(const Attention a, read_attention(n));
  return plan_rows(n, p, a, row_splits(n, a, p.caps()));
}

Status plan_naive(const Node& n, Plan& p) {
  PTERYX_ASSIGN(const Attention a, read_attention(n));
  return plan_rows(n, p, a, {.count = 1, .keys = a.capacity});
}

bool fits_decode(const Node& n, const gpu::Caps& /*caps*/) {
  const auto a = read_attention(n);
  return a.ok() && a->rows <= kPlainDecodeRows;
}

// ---------------------------------------------------------------- many rows, with matrices

constexpr int64_t kMatrixRows = 9;  // below, most of a block would be idle
constexpr int64_t kMatrixMaxSize = 256;

// How attention_matrix uses workgroup memory.
struct MatrixCut {
  int64_t keys = 0;       // of a tile; 0: it does not fit
  bool separate = false;  // k and v have a tile each
};
MatrixCut matrix_cut(int64_t size, const gpu::Caps& caps) {
  for (const int64_t keys : {64, 32, 16}) {
    const int64_t kv = 16 * keys * (div_up(size, 16) * 2 + 1);
    const int64_t rest = kBlockRows * 6 * (keys + 8) + 16;
    const int64_t first = std::max(kv, 16 * kBlockRows * 3);  // q goes through it as well
    if (first + kv + rest <= static_cast<int64_t>(caps.max_workgroup_bytes)) return {keys, true};
    if (first + rest <= static_cast<int64_t>(caps.max_workgroup_bytes)) return {keys, false};
  }
  return {};
}

Status plan_matrix(const Node& n, Plan& p) {
  PTERYX_ASSIGN(const Attention a, read_attention(n));
  PTERYX_TRY(plan_new_rows(n, p));
  const MatrixCut cut = matrix_cut(a.size, p.caps());
  Options options = call_options(a);
  options.set("tile", cut.keys).set("separate", cut.separate ? 1 : 0);
  const LiveInt start = start_of(n);
  const auto params = make_params<shaders::AttentionMatrixParams>(a, start, blocks(a),
                                                                  {.count = 1, .keys = a.capacity});
  return p.dispatch(n, {.shader = &shaders::attention_matrix,
                        .options = std::move(options),
                        .bind = call_tensors(n, a),
                        .params = bytes_of(params),
                        .live = {start},
                        .grid = per_group(blocks(a), p.caps())});
}

bool fits_matrix(const Node& n, const gpu::Caps& caps) {
  const auto a = read_attention(n);
  if (!a.ok() || a->rows < kMatrixRows || a->size % 4 != 0 || a->size < 4 ||
      a->size > kMatrixMaxSize) {
    return false;
  }
  return caps.subgroup_matrix && caps.f16 && caps.subgroup_min == 32 && caps.subgroup_max == 32 &&
         caps.max_invocations >= 128 && matrix_cut(a->size, caps).keys > 0;
}

// ---------------------------------------------------------------- many rows

constexpr int64_t kTiledMaxSize = 256;  // beyond, its sums do not stay in registers

// How attention_tiled uses workgroup memory.
struct TiledCut {
  int64_t keys = 0;           // of a tile; 0: it does not fit
  int64_t rows = kBlockRows;  // of a block
  bool staged = false;        // rows of q are there too
};
// Blocks of 64 rows where there are two for each processor, smaller ones where there are fewer; of
// 16 only where those of 32 leave half of the processors idle.
TiledCut tiled_cut(const Attention& a, const gpu::Caps& caps) {
  constexpr int64_t kPeaks = 128 * 16;
  const auto limit = static_cast<int64_t>(caps.max_workgroup_bytes);
  const int64_t row = 16 * (quads(a.size) + 1);
  for (const int64_t keys : {32, 16, 8}) {
    TiledCut cut{.keys = keys};
    if (keys == 32) {
      const int64_t processors = caps.sizes.processors;
      if (blocks(a, 64) < 2 * processors) cut.rows = 2 * blocks(a, 32) < processors ? 16 : 32;
    }
    const int64_t bytes = keys * (row + 16 * cut.rows / 4) + kPeaks + 16;
    cut.staged = keys == 32 && bytes + cut.rows * row <= limit;
    if (bytes <= limit) return cut;
  }
  return {};
}

Status plan_tiled(const Node& n, Plan& p) {
  PTERYX_ASSIGN(const Attention a, read_attention(n));
  PTERYX_TRY(plan_new_rows(n, p));
  const TiledCut cut = tiled_cut(a, p.caps());
  const bool unroll = !p.caps().software && a.size % 16 == 0 && cut.keys == 32;
  Options options = call_options(a);
  options.set("block", cut.rows)
      .set("tile", cut.keys)
      .set("staged", cut.staged ? 1 : 0)
      .set("unrolled", unroll ? 4 : 1);
  const LiveInt start = start_of(n);
  const int64_t units = blocks(a, cut.rows);
  const auto params =
      make_params<shaders::AttentionTiledParams>(a, start, units, {.count = 1, .keys = a.capacity});
  return p.dispatch(n, {.shader = &shaders::attention_tiled,
                        .options = std::move(options),
                        .bind = call_tensors(n, a),
                        .params = bytes_of(params),
                        .live = {start},
                        .grid = per_group(units, p.caps())});
}

bool fits_tiled(const Node& n, const gpu::Caps& caps) {
  const auto a = read_attention(n);
  return a.ok() && a->size <= kTiledMaxSize && tiled_cut(*a, caps).keys > 0;
}

constexpr Route kRoutes[] = {
    {"decode_subgroup", fits_decode_subgroup, plan_decode_subgroup},
    {"decode", fits_decode, plan_decode},
    {"matrix", fits_matrix, plan_matrix, nullptr, Precision::kF16},
    {"tiled", fits_tiled, plan_tiled},
    {"naive", nullptr, plan_naive},
};

}  // namespace

std::span<const Route> routes() { return kRoutes; }

}  // namespace pteryx::ops::attention
