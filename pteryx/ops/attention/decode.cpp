// Attention of few query rows over many keys: the keys are split over workgroups, and a second
// dispatch joins the splits.
// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <bit>

#include "pteryx/ops/attention/kernel.h"
#include "pteryx/ops/shaders/attention_merge.h"
#include "pteryx/ops/shaders/attention_rows.h"
#include "pteryx/ops/shaders/attention_teams.h"

namespace pteryx::ops::attention {
namespace {

constexpr int64_t kDecodeRows = 4;       // up to here the keys are split over workgroups
constexpr int64_t kSplitKeys = 256;      // least keys of a split
constexpr int64_t kMiddleContext = 512;  // beyond, splits are twice as long,
constexpr int64_t kLongContext = 2048;   // and here four times
constexpr int64_t kManyGroups = 1024;    // workgroups that fill a large GPU
constexpr int64_t kTeam = 8;             // lanes to a key in attention_teams
constexpr int64_t kTeamMaxSize = 256;    // of a head whose columns stay in registers

// The longer the context, the more splits, up to what fills the GPU; beyond, longer ones.
Splits split_keys(const Node& n, const Attention& a, int64_t items) {
  const int64_t keys =
      a.keys > 0 ? a.keys : std::min(n.bucket(places(n).start, a.rows, kSplitKeys), a.capacity);
  const int64_t most = std::max<int64_t>(kManyGroups / std::max<int64_t>(items, 1), 1);
  const int64_t longer = keys > kLongContext ? 4 : keys > kMiddleContext ? 2 : 1;
  const int64_t least = longer * kSplitKeys;
  const int64_t count = std::clamp<int64_t>((keys + least - 1) / least, 1, most);
  return {count, (keys + count - 1) / count};
}

// Where a kernel over splits puts its results: into y, or into a scratch for merge().
struct Results {
  Tensor partial;
  std::string finish;  // WGSL
  Bind bind;
};
Results results(const Node& n, Plan& p, const Attention& a, const Splits& splits) {
  constexpr std::string_view kFinish =
      "fn finish(item: u32, split: u32, at: u32, column: u32, sum: vec4<f32>, total: f32, peak: "
      "f32) {{ {} }}\n";
  if (splits.count == 1) {
    return {.partial = {},
            .finish = put_function("y", n.out(), vectors(a)) +
                      fmt::format(kFinish, "put4_y(at, column, sum / total);"),
            .bind = writer("y", n.out(), vectors(a))};
  }
  const int64_t items = a.batch * a.heads * a.rows;
  const Tensor partial = p.scratch(DType::kF32, {items, splits.count, quads(a.size) + 1, 4});
  return {.partial = partial,
          .finish = fmt::format(
              kFinish,
              "let to = (item * params.splits + split) * (size4 + 1u); partial[to + column] = sum;"
              " if (column == 0u) { partial[to + size4] = vec4<f32>(peak, total, 0.0, 0.0); }"),
          .bind = {"partial", partial, Access::kRawWrite, "vec4<f32>"}};
}

Status merge(const Node& n, Plan& p, const Attention& a, const Results& r, const Splits& splits) {
  if (splits.count == 1) return {};
  const int64_t items = a.batch * a.heads * a.rows;
  const LiveInt start = start_of(n);
  const auto params = make_params<shaders::AttentionMergeParams>(a, start, items, splits);
  const std::string text = size_constants(a) + put_function("y", n.out(), vectors(a));
  return p.dispatch(n, {.shader = &shaders::attention_merge,
                        .prelude = text,
                        .bind = {{"partial", r.partial, Access::kRawRead, "vec4<f32>"},
                                 writer("y", n.out(), vectors(a))},
                        .params = bytes_of(params),
                        .live = {start},
                        .grid = per_group(items, p.caps())});
}

Status plan_rows(const Node& n, Plan& p, const Attention& a, const Splits& splits) {
  PTERYX_TRY(plan_new_rows(n, p));
  const int64_t items = a.batch * a.heads * a.rows;
  const Results to = results(n, p, a, splits);
  std::string text = call_functions(a);
  text += fmt::format("const tile: u32 = {}u;\n", a.size <= 256 ? 256 : 64);
  text += to.finish;
  std::vector<Bind> bind = call_bindings(a);
  bind.push_back(to.bind);
  const LiveInt start = start_of(n);
  const auto params = make_params<shaders::AttentionRowsParams>(a, start, items, splits);
  PTERYX_TRY(p.dispatch(n, {.shader = &shaders::attention_rows,
                            .variant = splits.count > 1 ? "split" : "whole",
                            .prelude = text,
                            .bind = std::move(bind),
                            .params = bytes_of(params),
                            .live = {start},
                            .grid = per_group(items * splits.count, p.caps())}));
  return merge(n, p, a, to, splits);
}

// How attention_teams is cut for a head size on a device.
struct Teams {
  int64_t threads = 0;  // of a workgroup; 0: it does not fit
  int64_t block = 0;    // lanes that are joined by shuffles
  int64_t steps = 0;    // keys of a team whose loads are under way together
};
Teams teams(int64_t size, const gpu::Caps& caps) {
  if (!caps.subgroups || caps.subgroup_min < kTeam || size % 4 != 0 || size < 4 ||
      size > kTeamMaxSize) {
    return {};
  }
  const int64_t block = std::min<int64_t>(std::bit_floor(caps.subgroup_min), 32);
  const int64_t columns = (quads(size) + kTeam - 1) / kTeam;
  const int64_t most = std::min(caps.max_invocations, caps.max_workgroup_size_x);
  for (const int64_t threads : {512, 256, 128}) {
    // Longer heads need more registers, which larger workgroups do not have.
    if (threads > most || (threads > 256 && size > 128)) continue;
    const int64_t bytes = threads / block * (16 * quads(size) + 8);
    if (bytes <= static_cast<int64_t>(caps.max_workgroup_bytes))
      return {threads, block, std::clamp<int64_t>(8 / columns, 1, 4)};
  }
  return {};
}

// The new rows of a call that can be read where they are while the same dispatch puts them into
// the caches: no invocation then reads a row of a cache that another writes.
bool keeps_rows(const Node& n, const Attention& a) {
  const Places& at = places(n);
  if (at.new_k == Places::kNone || a.mask) return false;
  const ValueId ids[] = {a.q.id, n.in(at.new_k).id, n.in(at.new_v).id, a.k.id, a.v.id};
  for (size_t i = 0; i < std::size(ids); ++i) {
    if (std::count(std::begin(ids), std::end(ids), ids[i]) > 1) return false;
  }
  return true;
}

// held, new_k, new_v and keep of attention_teams.
std::string row_functions(const Node& n, const Attention& a, bool keeps) {
  constexpr std::string_view kHead = "batch: u32, head: u32";
  if (!keeps) {
    return fmt::format(
        "fn held() -> u32 {{ return 0xffffffffu; }}\n"
        "fn new_k({0}, key: u32, j: u32) -> vec4<f32> {{ return vec4<f32>(0.0); }}\n"
        "fn new_v({0}, key: u32, j: u32) -> vec4<f32> {{ return vec4<f32>(0.0); }}\n"
        "fn keep({0}, row: u32, j: u32) {{}}\n",
        kHead);
  }
  const Places& at = places(n);
  std::string text = fmt::format(
      "fn held() -> u32 {{ return u32(live(params.start)); }}\n"
      "fn new_offset({}, row: u32) -> u32 {{\n"
      "  return ((batch * params.rows + row) * (params.heads / params.group) + head / params.group)"
      " * size;\n}}\n",
      kHead);
  const auto add = [&](std::string_view name, const Tensor& x, const Tensor& cache) {
    text += load_function(fmt::format("{}_rows", name), x, true) + put_function(name, cache, true);
    // As the cache will hold it.
    const bool rounds = cache.dtype == DType::kF16 && x.dtype != DType::kF16;
    text += fmt::format(
        "fn new_{0}({1}, key: u32, j: u32) -> vec4<f32> {{\n"
        "  let v = load4_{0}_rows(new_offset(batch, head, key - held()), j);\n  return {2};\n}}\n",
        name, kHead,
        rounds ? "vec4<f32>(unpack2x16float(pack2x16float(v.xy)), "
                 "unpack2x16float(pack2x16float(v.zw)))"
               : "v");
  };
  add("k", n.in(at.new_k), a.k);
  add("v", n.in(at.new_v), a.v);
  text += fmt::format(
      "fn keep({}, row: u32, j: u32) {{\n"
      "  let to = k_offset(batch, head, held() + row);\n"
      "  put4_k(to, j, load4_k_rows(new_offset(batch, head, row), j));\n"
      "  put4_v(to, j, load4_v_rows(new_offset(batch, head, row), j));\n}}\n",
      kHead);
  return text;
}

}  // namespace

Status plan_decode_subgroup(const Node& n, Plan& p) {
  PTERYX_ASSIGN(const Attention a, read_attention(n));
  const bool keeps = keeps_rows(n, a);
  if (!keeps) PTERYX_TRY(plan_new_rows(n, p));
  const int64_t items = a.batch * a.heads * a.rows;
  const Splits splits = split_keys(n, a, items);
  const Teams cut = teams(a.size, p.caps());
  const Results to = results(n, p, a, splits);
  std::string text = call_functions(a);
  text +=
      fmt::format("const threads: u32 = {}u;\nconst block: u32 = {}u;\nconst steps: u32 = {}u;\n",
                  cut.threads, cut.block, cut.steps);
  text += row_functions(n, a, keeps);
  text += to.finish;
  std::vector<Bind> bind = call_bindings(a);
  if (keeps) {
    bind = {reader("q", a.q, true), reader("k_rows", n.in(places(n).new_k), true),
            reader("v_rows", n.in(places(n).new_v), true), writer("k", a.k, true),
            writer("v", a.v, true)};
  }
  bind.push_back(to.bind);
  const LiveInt start = start_of(n);
  const auto params = make_params<shaders::AttentionTeamsParams>(a, start, items, splits);
  PTERYX_TRY(p.dispatch(n, {.shader = &shaders::attention_teams,
                            .variant = splits.count > 1 ? "split" : "whole",
                            .prelude = text,
                            .bind = std::move(bind),
                            .params = bytes_of(params),
                            .live = {start},
                            .grid = per_group(items * splits.count, p.caps()),
                            .subgroups = true}));
  return merge(n, p, a, to, splits);
}

Status plan_decode(const Node& n, Plan& p) {
  PTERYX_ASSIGN(const Attention a, read_attention(n));
  return plan_rows(n, p, a, split_keys(n, a, a.batch * a.heads * a.rows));
}

Status plan_naive(const Node& n, Plan& p) {
  PTERYX_ASSIGN(const Attention a, read_attention(n));
  return plan_rows(n, p, a, {.count = 1, .keys = a.capacity});
}

bool fits_decode(const Node& n, const gpu::Caps& /*caps*/) {
  const auto a = read_attention(n);
  return a.ok() && a->rows <= kDecodeRows;
}

bool fits_decode_subgroup(const Node& n, const gpu::Caps& caps) {
  return fits_decode(n, caps) && teams(n.in(0).dim(-1), caps).threads > 0;
}

}  // namespace pteryx::ops::attention
