// How a quantised linear layer runs on the GPU: the texts that unpack its operands, and the choice
// of a route.
// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <bit>

#include "pteryx/ops/fold.h"
#include "pteryx/ops/quant/qlinear.h"
#include "pteryx/ops/shaders/qlinear_gemv.h"
#include "pteryx/ops/shaders/qlinear_merge.h"
#include "pteryx/ops/shaders/qlinear_naive.h"
#include "pteryx/ops/shaders/qlinear_tiled.h"
#include "pteryx/ops/shaders/requantize.h"

namespace pteryx::ops {
namespace {

constexpr int64_t kMaxGemvRows = 8;
// Enough invocations to hide the latency of memory on the largest GPUs.
constexpr int64_t kEnoughInvocations = 131072;

int64_t up(int64_t n, int64_t step) { return (n + step - 1) / step; }

// ---------------------------------------------------------------- weights

// How weights are read: 16 bytes, 4 bytes or one code at a time.
enum class Fetch : uint8_t { kVector, kWord, kCode };

int64_t unit(Codes codes, Fetch f) {
  if (f == Fetch::kCode) return 4;
  const int64_t per_word = codes == Codes::kBytes ? 4 : 8;
  return f == Fetch::kVector ? per_word * 4 : per_word;
}

// The widest that starts at multiples of itself in every row and has one scale.
Fetch fetch_of(const QLinear& d) {
  const auto fits = [&](Fetch f, int64_t bytes) {
    return d.row_bytes % bytes == 0 && (d.scale_row == 0 || d.group % unit(d.codes, f) == 0);
  };
  if (fits(Fetch::kVector, 16)) return Fetch::kVector;
  return fits(Fetch::kWord, 4) ? Fetch::kWord : Fetch::kCode;
}

std::string_view shifts(Codes codes) {
  return codes == Codes::kLowFirst ? "vec4<u32>(0u, 4u, 8u, 12u)" : "vec4<u32>(4u, 0u, 12u, 8u)";
}

// fn code: a single one, from weights bound for reading by element.
std::string code_text(Codes codes) {
  if (codes == Codes::kBytes) {
    return "fn code(n: u32, k: u32) -> f32 { return f32(load_weight(n * params.row_bytes + k)); "
           "}\n";
  }
  return fmt::format(
      "fn code(n: u32, k: u32) -> f32 {{\n"
      "  let byte = u32(load_weight(n * params.row_bytes + k / 2u));\n"
      "  return f32((byte >> ((k + {}u) % 2u * 4u)) & 15u) - 8.0;\n}}\n",
      codes == Codes::kLowFirst ? 0 : 1);
}

std::string fetch_text(const QLinear& d, Fetch f) {
  std::string text =
      fmt::format("const unit: u32 = {}u;\nconst code_offset: f32 = {};\n", unit(d.codes, f),
                  f != Fetch::kCode && d.codes != Codes::kBytes ? "8.0" : "0.0");
  if (f == Fetch::kCode) {
    return text + code_text(d.codes) +
           "alias packed = vec4<f32>;\n"
           "fn fetch(n: u32, u: u32) -> packed {\n"
           "  var p = packed(0.0);\n"
           "  let k = u * 4u;\n"
           "  for (var j = 0u; j < min(4u, params.k - k); j++) { p[j] = code(n, k + j) * scale(n, "
           "k + j); }\n"
           "  return p;\n}\n"
           "fn quad(p: packed, j: u32) -> vec4<f32> { return p; }\n"
           "fn unit_scale(n: u32, k: u32) -> f32 { return 1.0; }\n";
  }
  const bool vector = f == Fetch::kVector;
  text += fmt::format(
      "alias packed = {};\n"
      "fn fetch(n: u32, u: u32) -> packed {{ return weight[n * (params.row_bytes / {}u) + u]; }}\n"
      "fn unit_scale(n: u32, k: u32) -> f32 {{ return scale(n, k); }}\n",
      vector ? "vec4<u32>" : "u32", vector ? 16 : 4);
  if (d.codes == Codes::kBytes) {
    return text +
           fmt::format(
               "fn quad(p: packed, j: u32) -> vec4<f32> {{\n"
               "  return vec4<f32>((vec4<i32>(bitcast<i32>({})) << vec4<u32>(24u, 16u, 8u, 0u)) >> "
               "vec4<u32>(24u));\n}}\n",
               vector ? "p[j]" : "p");
  }
  return text +
         fmt::format(
             "fn quad(p: packed, j: u32) -> vec4<f32> {{\n"
             "  return vec4<f32>((vec4<u32>({} >> (j % 2u * 16u)) >> {}) & vec4<u32>(15u));\n}}\n",
             vector ? "p[j / 2u]" : "p", shifts(d.codes));
}

// Eight scaled weights for a tile.
std::string_view w8_text(Fetch f) {
  if (f == Fetch::kCode) {
    return "fn w8(n: u32, k: u32) -> array<vec4<f32>, 2> {\n"
           "  var w = array<vec4<f32>, 2>(vec4<f32>(0.0), vec4<f32>(0.0));\n"
           "  if (n < params.n && k < params.k) { w[0] = fetch(n, k / 4u); }\n"
           "  if (n < params.n && k + 4u < params.k) { w[1] = fetch(n, k / 4u + 1u); }\n"
           "  return w;\n}\n";
  }
  return "fn w4(n: u32, k: u32) -> vec4<f32> {\n"
         "  return (quad(fetch(n, k / unit), k % unit / 4u) - code_offset) * unit_scale(n, k);\n}\n"
         "fn w8(n: u32, k: u32) -> array<vec4<f32>, 2> {\n"
         "  var w = array<vec4<f32>, 2>(vec4<f32>(0.0), vec4<f32>(0.0));\n"
         "  if (n < params.n && k < params.k) { w[0] = w4(n, k); }\n"
         "  if (n < params.n && k + 4u < params.k) { w[1] = w4(n, k + 4u); }\n"
         "  return w;\n}\n";
}

Bind bind_weight(const QLinear& d, Fetch f) {
  if (f == Fetch::kCode) return {"weight", d.weight};
  return {"weight", d.weight, Access::kRawRead, f == Fetch::kVector ? "vec4<u32>" : "u32"};
}

// ---------------------------------------------------------------- x and y

Bind bind_x(const QLinear& d) {
  if (d.k % 4 != 0) return {"x", d.x};
  const std::string_view as =
      d.x.dtype == DType::kF32 ? "vec4<f32>" : (d.x.dtype == DType::kF16 ? "vec2<u32>" : "u32");
  return {"x", d.x, Access::kRawRead, as};
}

std::string x4_text(const QLinear& d) {
  const std::string_view zero = is_float(d.x.dtype) ? "" : " - params.x_zero";
  const std::string head =
      "fn x4(m: u32, k: u32) -> vec4<f32> {\n"
      "  if (m >= params.m || k >= params.k) { return vec4<f32>(0.0); }\n"
      "  let i = m * params.k + k;\n";
  if (d.k % 4 != 0) {
    return head + fmt::format(
                      "  var v = vec4<f32>(0.0);\n"
                      "  for (var j = 0u; j < min(4u, params.k - k); j++) {{ v[j] = f32(load_x(i + "
                      "j)){}; }}\n"
                      "  return v;\n}}\n",
                      zero);
  }
  if (d.x.dtype == DType::kF32) return head + "  return x[i / 4u];\n}\n";
  if (d.x.dtype == DType::kF16) {
    return head +
           "  let w = x[i / 4u];\n  return vec4<f32>(unpack2x16float(w.x), "
           "unpack2x16float(w.y));\n}\n";
  }
  return head + fmt::format(
                    "  return vec4<f32>((vec4<i32>(bitcast<i32>(x[i / 4u])) << vec4<u32>(24u, 16u, "
                    "8u, 0u)) >> "
                    "vec4<u32>(24u)){};\n}}\n",
                    zero);
}

std::string scale_text(const QLinear& d) {
  return fmt::format("fn scale(n: u32, k: u32) -> f32 {{ return load_scales({}n); }}\n",
                     d.scale_row == 0 ? "" : "k / params.group * params.scale_row + ");
}

std::string finish_text(const QLinear& d) {
  return fmt::format("fn finish(v: f32, n: u32) -> f32 {{ return v * params.factor{}; }}\n",
                     d.bias ? " + load_bias(n)" : "");
}

// Pairs of columns: a word of halves where every row holds whole words, else one by one.
std::string put_text(Access access, DType y, bool finished) {
  const std::string head = fmt::format(
      "fn put2(part: u32, m: u32, n: u32, v: vec2<f32>) {{\n"
      "  if (m >= params.m || n >= params.n) {{ return; }}\n"
      "  let i = (part * params.m + m) * params.n + n;\n"
      "  let first = {};\n  let second = {};\n",
      finished ? "finish(v.x, n)" : "v.x",
      finished ? "finish(v.y, min(n + 1u, params.n - 1u))" : "v.y");
  if (access == Access::kWords && y == DType::kF16) {
    return head + "  y[i / 2u] = pack2x16float(vec2<f32>(first, second));\n}\n";
  }
  return head +
         "  y[i] = bitcast<u32>(first);\n  if (n + 1u < params.n) { y[i + 1u] = "
         "bitcast<u32>(second); }\n}\n";
}

// ---------------------------------------------------------------- dispatch

shaders::QlinearNaiveParams make_params(const QLinear& d) {
  return {.m = u32(d.m),
          .n = u32(d.n),
          .k = u32(d.k),
          .row_bytes = u32(d.row_bytes),
          .group = u32(d.group),
          .scale_row = u32(d.scale_row),
          .splits = 1,
          .chunk = u32(d.k),
          .factor = static_cast<float>(d.factor),
          .x_zero = static_cast<float>(d.x_zero)};
}

// The description with x as the product reads it.
Result<QLinear> prepare(const Node& n, Plan& p) {
  PTERYX_ASSIGN(QLinear d, describe_qlinear(n));
  if (!d.row_scale) return d;
  const Tensor rounded = p.scratch(DType::kF32, d.x.dims);
  const shaders::RequantizeParams params{.n = u32(d.x.numel()), .k = u32(d.k)};
  PTERYX_TRY(p.dispatch(n, {.shader = &shaders::requantize,
                            .bind = {{"x", d.x},
                                     {"scale", *d.row_scale},
                                     {"zero", *d.row_zero},
                                     {"y", rounded, Access::kWords}},
                            .params = bytes_of(params),
                            .grid = per_element(d.x.numel(), p.caps())}));
  d.x = rounded;
  return d;
}

// The bindings and texts that the fast routes share; `text` is the route's own.
struct Pieces {
  std::vector<Bind> bind;
  std::string prelude;
};
Pieces pieces(const QLinear& d, std::string_view text, bool finished) {
  const Fetch f = fetch_of(d);
  const Access access = row_access(d.y.dtype, d.n);
  Pieces p;
  p.bind = {bind_x(d), bind_weight(d, f), {"scales", d.scales}};
  if (finished && d.bias) p.bind.push_back({"bias", *d.bias});
  p.bind.push_back({"y", d.y, access});
  p.prelude =
      fmt::format("{}{}{}{}{}{}", scale_text(d), fetch_text(d, f), x4_text(d),
                  finished ? finish_text(d) : "", put_text(access, d.y.dtype, finished), text);
  return p;
}

Status plan_naive(const Node& n, Plan& p) {
  PTERYX_ASSIGN(const QLinear d, prepare(n, p));
  const auto params = make_params(d);
  const std::string prelude = fmt::format(
      "{}{}{}fn x_at(m: u32, k: u32) -> f32 {{ return f32(load_x(m * params.k + k)){}; }}\n",
      scale_text(d), code_text(d.codes), finish_text(d),
      is_float(d.x.dtype) ? "" : " - params.x_zero");
  std::vector<Bind> bind = {{"x", d.x}, {"weight", d.weight}, {"scales", d.scales}};
  if (d.bias) bind.push_back({"bias", *d.bias});
  bind.push_back({"y", d.y, Access::kWords});
  return p.dispatch(n, {.shader = &shaders::qlinear_naive,
                        .prelude = prelude,
                        .bind = std::move(bind),
                        .params = bytes_of(params),
                        .grid = per_element(words(d.y.numel(), d.y.dtype), p.caps())});
}

// As many invocations for four columns as their weights have fetches, while the GPU has room.
Fold gemv_fold(const QLinear& d, FoldRoute route, const gpu::Caps& caps) {
  const int64_t units = std::max<int64_t>(up(d.k, unit(d.codes, fetch_of(d))), 1);
  Fold f;
  f.team = std::clamp(std::bit_ceil(u32(units)), 8U, 32U);
  while (f.team < 256 && f.team < units && up(d.n, 4) * f.team < kEnoughInvocations) f.team *= 2;
  f.workgroup = std::max(f.team, 64U);
  if (route == FoldRoute::kSubgroup)
    f.block = std::min(std::bit_floor(caps.subgroup_min), f.workgroup);
  return f;
}

template <FoldRoute R>
Status plan_gemv(const Node& n, Plan& p) {
  PTERYX_ASSIGN(const QLinear d, prepare(n, p));
  const Fold f = gemv_fold(d, R, p.caps());
  const uint32_t rows = std::bit_ceil(std::max(u32(d.m), 1U));
  Pieces parts = pieces(d, fmt::format("const rows: u32 = {}u;\n{}", rows, f.prelude()), true);
  const auto params = make_params(d);
  return p.dispatch(n, {.shader = &shaders::qlinear_gemv,
                        .prelude = parts.prelude,
                        .bind = std::move(parts.bind),
                        .params = bytes_of(params),
                        .grid = d.m == 0 ? gpu::Grid{0, 1, 1} : f.grid(up(d.n, 4), p.caps()),
                        .subgroups = f.block != 0});
}

// Too few tiles for the GPU: cut k, so that parts of it run at once.
int64_t splits_of(const QLinear& d, int64_t tiles) {
  constexpr int64_t kEnoughTiles = 256;
  if (tiles == 0 || tiles * 2 > kEnoughTiles || d.k < 1024) return 1;
  return std::min({d.k / 256, kEnoughTiles / tiles, int64_t{16}});
}

Status plan_merge(const Node& n, Plan& p, const QLinear& d, const Tensor& parts, int64_t splits) {
  auto params = make_params(d);
  params.splits = u32(splits);
  std::vector<Bind> bind = {{"parts", parts}};
  if (d.bias) bind.push_back({"bias", *d.bias});
  bind.push_back({"y", d.y, Access::kWords});
  const std::string prelude = finish_text(d);
  return p.dispatch(n, {.shader = &shaders::qlinear_merge,
                        .prelude = prelude,
                        .bind = std::move(bind),
                        .params = bytes_of(params),
                        .grid = per_element(words(d.y.numel(), d.y.dtype), p.caps())});
}

template <int64_t Thread>
Status plan_tiled(const Node& n, Plan& p) {
  PTERYX_ASSIGN(const QLinear d, prepare(n, p));
  constexpr int64_t kTile = Thread * 16;
  const int64_t tiles = up(d.m, kTile) * up(d.n, kTile);
  const int64_t splits = splits_of(d, tiles);
  auto params = make_params(d);
  QLinear first = d;
  if (splits > 1) {
    first.y = p.scratch(DType::kF32, {splits, d.m, d.n});
    params.splits = u32(splits);
    params.chunk = u32(up(up(d.k, splits), 32) * 32);
  }
  Pieces parts =
      pieces(first, fmt::format("const thread: u32 = {}u;\n{}", Thread, w8_text(fetch_of(d))),
             splits == 1);
  PTERYX_TRY(p.dispatch(n, {.shader = &shaders::qlinear_tiled,
                            .variant = Thread == 8 ? "large" : "",
                            .prelude = parts.prelude,
                            .bind = std::move(parts.bind),
                            .params = bytes_of(params),
                            .grid = per_group(tiles * splits, p.caps())}));
  return splits > 1 ? plan_merge(n, p, d, first.y, splits) : ok_status();
}

// ---------------------------------------------------------------- choice

bool fits_gemv(const Node& n, const gpu::Caps& caps) {
  const auto d = describe_qlinear(n);
  return d.ok() && d->m <= kMaxGemvRows && caps.max_invocations >= 256;
}
bool fits_gemv_subgroup(const Node& n, const gpu::Caps& caps) {
  return fits_gemv(n, caps) && fits_subgroup_fold(n, caps);
}
// Below these sizes most of a tile would be empty, and another route is always better.
template <int64_t Thread>
bool fits_tiled(const Node& n, const gpu::Caps& caps) {
  const auto d = describe_qlinear(n);
  const bool filled = d.ok() && (Thread == 4 ? d->m > 4 : d->m > 32 && d->n > 32);
  return filled && caps.max_invocations >= 256 && caps.max_workgroup_bytes >= 16384;
}
// Large tiles pay once there are enough of them for every processor of the GPU.
bool suits_large(const Node& n, const gpu::Caps& /*caps*/) {
  const auto d = describe_qlinear(n);
  return d.ok() && d->m > 64 && up(d->m, 128) * up(d->n, 128) >= 64;
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

std::span<const Route> qlinear_routes() { return kRoutes; }

}  // namespace pteryx::ops
