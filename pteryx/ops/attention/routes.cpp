// The GPU routes of attention. All of them keep a running maximum (online softmax): no route stores
// the scores of all rows.
// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>

#include "pteryx/ops/attention/attention.h"
#include "pteryx/ops/shaders/attention_merge.h"
#include "pteryx/ops/shaders/attention_rows.h"
#include "pteryx/ops/shaders/attention_tiled.h"

namespace pteryx::ops::attention {
namespace {

constexpr int64_t kDecodeRows = 4;      // up to here the keys are split over workgroups
constexpr int64_t kSplitKeys = 256;     // least keys of a split
constexpr int64_t kManyGroups = 1024;   // workgroups that fill a large GPU
constexpr int64_t kBlockRows = 32;      // of a workgroup of the tiled route
constexpr int64_t kTiledMaxSize = 256;  // beyond, its sums do not stay in registers

int64_t quads(int64_t size) { return (size + 3) / 4; }

// Rows of whole groups of four elements are read and written as vectors.
bool vectors(const Attention& a) { return a.size % 4 == 0; }

Bind reader(std::string_view name, const Tensor& t, bool vector) {
  if (!vector) return {name, t};
  return {name, t, Access::kRawRead, t.dtype == DType::kF16 ? "vec2<u32>" : "vec4<f32>"};
}
Bind writer(std::string_view name, const Tensor& t, bool vector) {
  if (!vector) return {name, t, Access::kElements};
  return {name, t, Access::kRawWrite, t.dtype == DType::kF16 ? "vec2<u32>" : "vec4<f32>"};
}

std::string load_function(std::string_view name, const Tensor& t, bool vector) {
  std::string_view body = "return @[(at >> 2u) + j];";
  if (!vector) {
    body =
        "let i = at + 4u * j; let last = at + size - 1u;"
        " let v = vec4<f32>(load_@(i), load_@(min(i + 1u, last)), load_@(min(i + 2u, last)),"
        " load_@(min(i + 3u, last)));"
        " return select(vec4<f32>(0.0), v, vec4<u32>(i) + vec4<u32>(0u, 1u, 2u, 3u) <= "
        "vec4<u32>(last));";
  } else if (t.dtype == DType::kF16) {
    body =
        "let w = @[(at >> 2u) + j];"
        " return vec4<f32>(unpack2x16float(w.x), unpack2x16float(w.y));";
  }
  std::string text = "fn load4_@(at: u32, j: u32) -> vec4<f32> { ";
  text += body;
  text += " }\n";
  for (size_t i = text.find('@'); i != std::string::npos; i = text.find('@', i))
    text.replace(i, 1, name);
  return text;
}

std::string_view put_function(const Tensor& y, bool vector) {
  if (!vector) {
    return "fn put4_y(at: u32, j: u32, v: vec4<f32>) { let i = 4u * j; store_y(at + i, v.x);"
           " if (i + 1u < size) { store_y(at + i + 1u, v.y); }"
           " if (i + 2u < size) { store_y(at + i + 2u, v.z); }"
           " if (i + 3u < size) { store_y(at + i + 3u, v.w); } }\n";
  }
  if (y.dtype == DType::kF16) {
    return "fn put4_y(at: u32, j: u32, v: vec4<f32>) {"
           " y[(at >> 2u) + j] = vec2<u32>(pack2x16float(v.xy), pack2x16float(v.zw)); }\n";
  }
  return "fn put4_y(at: u32, j: u32, v: vec4<f32>) { y[(at >> 2u) + j] = v; }\n";
}

std::string mask_function(const Attention& a) {
  std::string_view body = "return score;";
  if (a.mask) {
    body = a.mask->dtype == DType::kBool
               ? "return select(lowest, score, load_mask(mask_offset(batch, head, row, key)) != 0);"
               : "return max(score + max(load_mask(mask_offset(batch, head, row, key)), lowest), "
                 "lowest);";
  }
  return fmt::format(
      "fn masked(score: f32, batch: u32, head: u32, row: u32, key: u32) -> f32 {{ {} }}\n", body);
}

std::string size_constants(const Attention& a) {
  return fmt::format("const size: u32 = {}u;\nconst size4: u32 = {}u;\n", a.size, quads(a.size));
}

// What the rows and tiled kernels have in front, and their bindings, the result left out.
std::string prelude(const Attention& a, int64_t tile) {
  std::string text = size_constants(a) + fmt::format("const tile: u32 = {}u;\n", tile);
  text += load_function("q", a.q, vectors(a));
  text += load_function("k", a.k, vectors(a));
  text += load_function("v", a.v, vectors(a));
  return text + mask_function(a);
}

std::vector<Bind> bindings(const Attention& a) {
  std::vector<Bind> bind = {reader("q", a.q, vectors(a)), reader("k", a.k, vectors(a)),
                            reader("v", a.v, vectors(a))};
  if (a.mask) bind.push_back({"mask", *a.mask});
  return bind;
}

std::array<uint32_t, 4> packed(const Strides& s) {
  return {u32(s.batch), u32(s.head), u32(s.row), 0};
}

// Keys cut in `count` parts of `keys` each.
struct Splits {
  int64_t count = 1;
  int64_t keys = 0;
};

// The Params of every route are those of attention/common/attention.wgsl.
template <typename Params>
Params make_params(const Attention& a, LiveInt start, int64_t items, const Splits& splits) {
  const auto& m = a.mask_strides;
  return {.q_strides = packed(a.q_strides),
          .k_strides = packed(a.k_strides),
          .mask_strides = {u32(m[0]), u32(m[1]), u32(m[2]), u32(m[3])},
          .heads = u32(a.heads),
          .group = u32(a.group),
          .rows = u32(a.rows),
          .fixed_keys = u32(a.keys),
          .start = start.word,
          .causal = a.causal ? 1U : 0U,
          .scale = static_cast<float>(a.scale),
          .splits = u32(splits.count),
          .split_keys = u32(splits.keys),
          .items = u32(items),
          .quads = u32(quads(a.size))};
}

// The longer the context, the more splits, up to what fills the GPU; beyond, longer ones.
Splits split_keys(const Node& n, const Attention& a, int64_t items) {
  const int64_t keys =
      a.keys > 0 ? a.keys : std::min(n.bucket(places(n).start, a.rows, kSplitKeys), a.capacity);
  const int64_t most = std::max<int64_t>(kManyGroups / std::max<int64_t>(items, 1), 1);
  const int64_t count = std::clamp<int64_t>((keys + kSplitKeys - 1) / kSplitKeys, 1, most);
  return {count, (keys + count - 1) / count};
}

Status merge(const Node& n, Plan& p, const Attention& a, const Tensor& partial,
             const Splits& splits) {
  const int64_t items = a.batch * a.heads * a.rows;
  const LiveInt start = start_of(n);
  const auto params = make_params<shaders::AttentionMergeParams>(a, start, items, splits);
  const std::string text = size_constants(a) + std::string(put_function(n.out(), vectors(a)));
  return p.dispatch(n, {.shader = &shaders::attention_merge,
                        .prelude = text,
                        .bind = {{"partial", partial, Access::kRawRead, "vec4<f32>"},
                                 writer("y", n.out(), vectors(a))},
                        .params = bytes_of(params),
                        .live = {start},
                        .grid = per_group(items, p.caps())});
}

Status plan_rows(const Node& n, Plan& p, const Attention& a, const Splits& splits) {
  const int64_t items = a.batch * a.heads * a.rows;
  const bool split = splits.count > 1;
  const int64_t tile = a.size <= 256 ? 256 : 64;
  std::string text = prelude(a, tile);
  text +=
      "fn finish(item: u32, split: u32, at: u32, column: u32, sum: vec4<f32>, total: f32, peak: "
      "f32) {\n";
  std::vector<Bind> bind = bindings(a);
  Tensor partial;
  if (split) {
    text +=
        "let to = (item * params.splits + split) * (size4 + 1u); partial[to + column] = sum;"
        " if (column == 0u) { partial[to + size4] = vec4<f32>(peak, total, 0.0, 0.0); } }\n";
    partial = p.scratch(DType::kF32, {items, splits.count, quads(a.size) + 1, 4});
    bind.push_back({"partial", partial, Access::kRawWrite, "vec4<f32>"});
  } else {
    text += "put4_y(at, column, sum / total); }\n";
    text += put_function(n.out(), vectors(a));
    bind.push_back(writer("y", n.out(), vectors(a)));
  }
  const LiveInt start = start_of(n);
  const auto params = make_params<shaders::AttentionRowsParams>(a, start, items, splits);
  PTERYX_TRY(p.dispatch(n, {.shader = &shaders::attention_rows,
                            .variant = split ? "split" : "whole",
                            .prelude = text,
                            .bind = std::move(bind),
                            .params = bytes_of(params),
                            .live = {start},
                            .grid = per_group(items * splits.count, p.caps())}));
  return split ? merge(n, p, a, partial, splits) : Status();
}

Status plan_decode(const Node& n, Plan& p) {
  PTERYX_ASSIGN(const Attention a, read_attention(n));
  return plan_rows(n, p, a, split_keys(n, a, a.batch * a.heads * a.rows));
}

Status plan_naive(const Node& n, Plan& p) {
  PTERYX_ASSIGN(const Attention a, read_attention(n));
  return plan_rows(n, p, a, {.count = 1, .keys = a.capacity});
}

// Keys of a tile that fit workgroup memory beside their weights; 0: none.
int64_t tile_keys(int64_t size, const gpu::Caps& caps) {
  for (const int64_t keys : {32, 16, 8}) {
    if (keys * 16 * (quads(size) + 1 + 8) <= static_cast<int64_t>(caps.max_workgroup_bytes))
      return keys;
  }
  return 0;
}

Status plan_tiled(const Node& n, Plan& p) {
  PTERYX_ASSIGN(const Attention a, read_attention(n));
  const int64_t items = a.batch * a.heads * ((a.rows + kBlockRows - 1) / kBlockRows);
  const LiveInt start = start_of(n);
  const auto params =
      make_params<shaders::AttentionTiledParams>(a, start, items, {.count = 1, .keys = a.capacity});
  const std::string text =
      prelude(a, tile_keys(a.size, p.caps())) + std::string(put_function(n.out(), vectors(a)));
  std::vector<Bind> bind = bindings(a);
  bind.push_back(writer("y", n.out(), vectors(a)));
  return p.dispatch(n, {.shader = &shaders::attention_tiled,
                        .prelude = text,
                        .bind = std::move(bind),
                        .params = bytes_of(params),
                        .live = {start},
                        .grid = per_group(items, p.caps())});
}

bool fits_decode(const Node& n, const gpu::Caps& /*caps*/) {
  const auto a = read_attention(n);
  return a.ok() && a->rows <= kDecodeRows;
}
bool fits_tiled(const Node& n, const gpu::Caps& caps) {
  const int64_t size = n.in(0).dim(-1);
  return size <= kTiledMaxSize && tile_keys(size, caps) > 0;
}

constexpr Route kRoutes[] = {
    {"decode", fits_decode, plan_decode},
    {"tiled", fits_tiled, plan_tiled},
    {"naive", nullptr, plan_naive},
};

}  // namespace

std::span<const Route> routes() { return kRoutes; }

}  // namespace pteryx::ops::attention
