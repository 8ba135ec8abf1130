// How a matrix product runs on the GPU: the texts that load operands and store results, and the
// choice of a route.
// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <bit>

#include "pteryx/ops/fold.h"
#include "pteryx/ops/matmul/matmul.h"
#include "pteryx/ops/shaders/matmul_gemv.h"
#include "pteryx/ops/shaders/matmul_gemv_columns.h"
#include "pteryx/ops/shaders/matmul_merge.h"
#include "pteryx/ops/shaders/matmul_naive.h"
#include "pteryx/ops/shaders/matmul_tiled.h"

namespace pteryx::ops {
namespace {

constexpr int64_t kMaxGemvRows = 8;
// Enough invocations to hide the latency of memory on the largest GPUs.
constexpr int64_t kEnoughInvocations = 131072;

// ---------------------------------------------------------------- operands

// A matrix as fetched four neighbours at a time, along `inner`.
struct Fetch {
  std::string_view name;          // of the binding: a, b
  std::string_view outer, inner;  // params: sizes
  std::string_view outer_stride, inner_stride;
  int64_t outer_step, inner_step, batch_step, inner_size;
  DType dtype;

  // Four neighbours are one load: every group of four starts at a multiple of four, and there is
  // one.
  bool whole() const {
    return inner_step == 1 && inner_size > 0 && inner_size % 4 == 0 && outer_step % 4 == 0 &&
           batch_step % 4 == 0;
  }
};

Bind bind_operand(const Fetch& f, const Tensor& t) {
  if (!f.whole()) return {f.name, t};
  return {f.name, t, Access::kRawRead, f.dtype == DType::kF16 ? "vec2<u32>" : "vec4<f32>"};
}

std::string fetch_text(const Fetch& f) {
  const std::string head = fmt::format(
      "fn {0}4(base: u32, outer: u32, inner: u32) -> vec4<f32> {{\n"
      "  if (outer >= params.{1} || inner >= params.{2}) {{ return vec4<f32>(0.0); }}\n",
      f.name, f.outer, f.inner);
  if (!f.whole()) {
    return head + fmt::format(
                      "  let at = base + outer * params.{1};\n  var v = vec4<f32>(0.0);\n"
                      "  for (var j = 0u; j < min(4u, params.{3} - inner); j++) {{ v[j] = "
                      "load_{0}(at + (inner + j) * "
                      "params.{2}); }}\n  return v;\n}}\n",
                      f.name, f.outer_stride, f.inner_stride, f.inner);
  }
  const std::string word =
      fmt::format("{}[(base + outer * params.{} + inner) / 4u]", f.name, f.outer_stride);
  if (f.dtype != DType::kF16) return head + fmt::format("  return {};\n}}\n", word);
  return head +
         fmt::format(
             "  let w = {};\n  return vec4<f32>(unpack2x16float(w.x), unpack2x16float(w.y));\n}}\n",
             word);
}

Fetch fetch_a(const MatMul& d) {
  return {"a",     "m",        "k",       "a_row", "a_column",
          d.a.row, d.a.column, d.a.batch, d.k,     d.a.tensor.dtype};
}
Fetch fetch_b(const MatMul& d) {
  if (d.b_along_k()) {
    return {"b",        "n",     "k",       "b_column", "b_row",
            d.b.column, d.b.row, d.b.batch, d.k,        d.b.tensor.dtype};
  }
  return {"b",     "k",        "n",       "b_row", "b_column",
          d.b.row, d.b.column, d.b.batch, d.n,     d.b.tensor.dtype};
}

// ---------------------------------------------------------------- results

std::string epilogue_text(const MatMul& d) {
  return fmt::format(
      "fn epilogue(v: f32, batch: u32, m: u32, n: u32) -> f32 {{ return params.alpha * v{}; }}\n",
      d.add ? " + params.beta * load_add(batch * params.add_batch + m * params.add_row + n * "
              "params.add_column)"
            : "");
}

// Pairs of columns: a word of halves where every row holds whole words, else one by one.
std::string put_text(Access access, DType y, std::string_view value) {
  const std::string head = fmt::format(
      "fn put2(batch: u32, m: u32, n: u32, v: vec2<f32>) {{\n  if (m >= params.m || n >= params.n) "
      "{{ return; }}\n"
      "  let i = (batch * params.m + m) * params.n + n;\n  let first = {};\n",
      fmt::format(fmt::runtime(value), "v.x", "n"));
  const std::string second = fmt::format(fmt::runtime(value), "v.y", "n + 1u");
  if (access == Access::kWords && y == DType::kF16) {
    return head +
           fmt::format("  y[i / 2u] = encode_y(0u, first) | encode_y(1u, {});\n}}\n", second);
  }
  return head + fmt::format(
                    "  y[i] = bitcast<u32>(first);\n  if (n + 1u < params.n) {{ y[i + 1u] = "
                    "bitcast<u32>({}); }}\n}}\n",
                    second);
}

// ---------------------------------------------------------------- dispatch

shaders::MatmulNaiveParams make_params(const MatMul& d) {
  const Matrix add = d.add.value_or(Matrix{});
  return {.batches = u32(d.batches),
          .m = u32(d.m),
          .n = u32(d.n),
          .k = u32(d.k),
          .a_batch = u32(d.a.batch),
          .a_row = u32(d.a.row),
          .a_column = u32(d.a.column),
          .b_batch = u32(d.b.batch),
          .b_row = u32(d.b.row),
          .b_column = u32(d.b.column),
          .add_batch = u32(add.batch),
          .add_row = u32(add.row),
          .add_column = u32(add.column),
          .alpha = static_cast<float>(d.alpha),
          .beta = static_cast<float>(d.beta),
          .splits = 1,
          .chunk = u32(d.k)};
}
// All routes include one Params.
static_assert(sizeof(shaders::MatmulNaiveParams) == sizeof(shaders::MatmulTiledParams));
static_assert(sizeof(shaders::MatmulNaiveParams) == sizeof(shaders::MatmulGemvParams));

// The bindings and texts that the routes share; `text` is the route's own.
struct Pieces {
  std::vector<Bind> bind;
  std::string prelude;
};
Pieces pieces(const MatMul& d, std::string_view text) {
  const Fetch a = fetch_a(d);
  const Fetch b = fetch_b(d);
  const Access access = row_access(d.y.dtype, d.n);
  Pieces p;
  p.bind = {bind_operand(a, d.a.tensor), bind_operand(b, d.b.tensor)};
  if (d.add) p.bind.push_back({"add", d.add->tensor});
  p.bind.push_back({"y", d.y, access});
  p.prelude = fmt::format("const along_k: bool = {};\n{}{}{}{}{}", d.b_along_k(), fetch_text(a),
                          fetch_text(b), epilogue_text(d),
                          put_text(access, d.y.dtype, "epilogue({}, batch, m, {})"), text);
  return p;
}

Status plan_naive(const Node& n, Plan& p) {
  PTERYX_ASSIGN(const MatMul d, describe_matmul(n));
  const auto params = make_params(d);
  std::vector<Bind> bind = {{"a", d.a.tensor}, {"b", d.b.tensor}};
  if (d.add) bind.push_back({"add", d.add->tensor});
  bind.push_back({"y", d.y, Access::kWords});
  const std::string prelude = epilogue_text(d);
  return p.dispatch(n, {.shader = &shaders::matmul_naive,
                        .prelude = prelude,
                        .bind = std::move(bind),
                        .params = bytes_of(params),
                        .grid = per_element(words(d.y.numel(), d.y.dtype), p.caps())});
}

int64_t up(int64_t n, int64_t step) { return (n + step - 1) / step; }

Status plan_gemv_columns(const Node& n, Plan& p, const MatMul& d, uint32_t rows) {
  const Fold f{.team = 32, .workgroup = 256};
  Pieces parts = pieces(d, fmt::format("const rows: u32 = {}u;\n{}", rows, f.prelude()));
  const auto params = make_params(d);
  return p.dispatch(n, {.shader = &shaders::matmul_gemv_columns,
                        .prelude = parts.prelude,
                        .bind = std::move(parts.bind),
                        .params = bytes_of(params),
                        .grid = per_group(d.batches * up(d.n, 32), p.caps())});
}

template <FoldRoute R>
Status plan_gemv(const Node& n, Plan& p) {
  PTERYX_ASSIGN(const MatMul d, describe_matmul(n));
  if (d.m == 0) return {};
  const auto rows = std::bit_ceil(u32(d.m));
  if (!d.b_along_k()) return plan_gemv_columns(n, p, d, rows);
  // Small products need more invocations for each result to keep the memory busy.
  const int64_t units = d.batches * up(d.n, 4);
  const bool wide = units * 32 < kEnoughInvocations && d.k >= 2048;
  const Fold f = make_fold(R, wide ? 1024 : 256, 256, p.caps());
  Pieces parts = pieces(d, fmt::format("const rows: u32 = {}u;\n{}", rows, f.prelude()));
  const auto params = make_params(d);
  return p.dispatch(n, {.shader = &shaders::matmul_gemv,
                        .prelude = parts.prelude,
                        .bind = std::move(parts.bind),
                        .params = bytes_of(params),
                        .grid = f.grid(units, p.caps()),
                        .subgroups = f.block != 0});
}

// Too few tiles for the GPU: cut k, so that parts of it run at once.
int64_t splits_of(const MatMul& d, int64_t tiles) {
  constexpr int64_t kEnoughTiles = 256;
  if (tiles == 0 || tiles * 2 > kEnoughTiles || d.k < 1024) return 1;
  return std::min({d.k / 256, kEnoughTiles / tiles, int64_t{16}});
}

Status plan_merge(const Node& n, Plan& p, const MatMul& d, const Tensor& parts, int64_t splits) {
  auto params = make_params(d);
  params.splits = u32(splits);
  std::vector<Bind> bind = {{"parts", parts}};
  if (d.add) bind.push_back({"add", d.add->tensor});
  bind.push_back({"y", d.y, Access::kWords});
  const std::string prelude = epilogue_text(d);
  return p.dispatch(n, {.shader = &shaders::matmul_merge,
                        .prelude = prelude,
                        .bind = std::move(bind),
                        .params = bytes_of(params),
                        .grid = per_element(words(d.y.numel(), d.y.dtype), p.caps())});
}

template <int64_t ThreadTile>
Status plan_tiled(const Node& n, Plan& p) {
  PTERYX_ASSIGN(const MatMul d, describe_matmul(n));
  constexpr int64_t kTile = ThreadTile * 16;
  const int64_t tiles = d.batches * up(d.m, kTile) * up(d.n, kTile);
  const int64_t splits = splits_of(d, tiles);
  const std::string text =
      fmt::format("const thread_m: u32 = {0}u;\nconst thread_n: u32 = {0}u;\n", ThreadTile);
  auto params = make_params(d);
  MatMul first = d;
  if (splits > 1) {
    first.add.reset();
    first.alpha = 1;
    first.y = p.scratch(DType::kF32, {splits, d.batches, d.m, d.n});
    params.splits = u32(splits);
    params.chunk = u32(up(up(d.k, splits), 16) * 16);
  }
  Pieces parts = pieces(first, text);
  PTERYX_TRY(p.dispatch(n, {.shader = &shaders::matmul_tiled,
                            .prelude = parts.prelude,
                            .bind = std::move(parts.bind),
                            .params = bytes_of(params),
                            .grid = per_group(tiles * splits, p.caps())}));
  return splits > 1 ? plan_merge(n, p, d, first.y, splits) : ok_status();
}

// ---------------------------------------------------------------- choice

bool fits_gemv(const Node& n, const gpu::Caps& caps) {
  const auto d = describe_matmul(n);
  return d.ok() && d->m <= kMaxGemvRows && caps.max_invocations >= 256;
}
bool fits_gemv_subgroup(const Node& n, const gpu::Caps& caps) {
  const auto d = describe_matmul(n);
  return fits_gemv(n, caps) && fits_subgroup_fold(n, caps) && d.ok() && d->b_along_k();
}
// Below these sizes most of a tile would be empty, and another route is always better.
template <int64_t ThreadTile>
bool fits_tiled(const Node& n, const gpu::Caps& caps) {
  const auto d = describe_matmul(n);
  const bool filled = d.ok() && (ThreadTile == 4 ? d->m > 4 : d->m > 32 && d->n > 32);
  return filled && caps.max_invocations >= 256 &&
         caps.max_workgroup_bytes >= ThreadTile * 16 * 16 * 4 * 2;
}
// Large tiles pay once there are enough of them for every processor of the GPU.
bool suits_large(const Node& n, const gpu::Caps& /*caps*/) {
  const auto d = describe_matmul(n);
  return d.ok() && d->m > 64 && d->batches * up(d->m, 128) * up(d->n, 128) >= 64;
}
bool never(const Node& /*n*/, const gpu::Caps& /*caps*/) { return false; }

constexpr Route kRoutes[] = {
    {"gemv_subgroup", fits_gemv_subgroup, plan_gemv<FoldRoute::kSubgroup>},
    {"gemv", fits_gemv, plan_gemv<FoldRoute::kTree>},
    {"tiled_large", fits_tiled<8>, plan_tiled<8>, suits_large},
    {"tiled", fits_tiled<4>, plan_tiled<4>},
    {"naive", nullptr, plan_naive, never},
};

}  // namespace

std::span<const Route> matmul_routes() { return kRoutes; }

}  // namespace pteryx::ops
