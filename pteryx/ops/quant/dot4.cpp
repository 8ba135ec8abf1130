// The route of integer dot products: how many invocations share out k, how many columns they make,
// how many bytes x is rounded to.
// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/ops/quant/dot4.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "pteryx/ops/fold.h"
#include "pteryx/ops/kernel/library.h"
#include "pteryx/ops/quant/texts.h"
#include "pteryx/ops/shaders/fold_many.h"
#include "pteryx/ops/shaders/qlinear_dot4.h"
#include "pteryx/ops/shaders/x_codes.h"
#include "pteryx/ops/shaders/x_rounded.h"

namespace pteryx::ops::qlinear {
namespace {

constexpr int64_t kMaxRows = 8;
// Invocations that a large GPU holds at once.
constexpr int64_t kWave = 131072;

struct Shape {
  uint32_t rows = 1;
  uint32_t planes = 2;
  uint32_t columns = 8;
  uint32_t team = 64;
  uint32_t sets = 4;
  uint32_t block = 32;

  uint64_t workgroup_bytes(int64_t unit_codes) const {
    const uint64_t x = uint64_t{rows} * team * 4 * (planes * static_cast<uint64_t>(unit_codes) / 4);
    const uint64_t scales = uint64_t{rows} * team * 4 * (1 + planes);
    return x + scales + uint64_t{sets} * (team / block) * rows * columns * 4;
  }
};

// x given as codes, or rounded to codes with a scale for each row: two bytes hold any code less its
// zero point.
bool coded(const QLinear& d) { return d.row_scale.has_value() || !is_float(d.x.dtype); }

// A zero point that a file may give beside the type of the codes must leave them in two bytes.
bool codes_fit(const QLinear& d) {
  if (d.row_zero && d.row_zero->dtype != DType::kI8) return false;
  return std::floor(d.x_zero) == d.x_zero && std::fabs(d.x_zero) <= 255;
}

// Two bytes round like f16 (3e-5 of the largest of 32), three like f32.
uint32_t planes_of(const QLinear& d, Precision precision) {
  return coded(d) || precision == Precision::kF16 ? 2 : 3;
}

Shape shape_of(const QLinear& d, uint32_t planes, const gpu::Caps& caps) {
  Shape s{.rows = std::max(u32(d.m), 1U), .planes = planes};
  const uint32_t lanes = std::bit_floor(std::min(caps.subgroup_min, 32U));
  const uint32_t units = u32(up(d.k, unit(d)));
  s.team = std::clamp(std::bit_ceil(units), lanes, std::min(caps.max_invocations, 256U));
  // More columns each reuse x more often; fewer leave more invocations to hide latency with.
  const bool many = d.n / 8 * s.team > kWave / 2 && s.rows <= 4;
  s.columns = std::min(many ? 8U : 4U, lanes);
  if (d.n / s.columns * s.team >= kWave) s.team = std::clamp(64U, lanes, s.team);
  s.sets = 1;
  s.block = lanes;
  while (s.team > lanes && s.workgroup_bytes(unit(d)) > caps.max_workgroup_bytes) s.team /= 2;
  // x is rounded once per workgroup; but one wave of workgroups should hold all columns.
  const int64_t total = up(d.n, s.columns) * s.team;
  const uint32_t wanted =
      std::min(total <= kWave && total > kWave / 2 ? 512U : 256U, caps.max_invocations);
  while (s.team * s.sets * 2 <= wanted && s.sets * s.columns < d.n) {
    s.sets *= 2;
    if (s.workgroup_bytes(unit(d)) <= caps.max_workgroup_bytes) continue;
    s.sets /= 2;
    break;
  }
  return s;
}

// Four scales are one load where rows of them start at multiples of four.
bool scales_in_fours(const QLinear& d) { return d.scale_row % 4 == 0; }

Bind bind_scales(const QLinear& d) {
  if (!scales_in_fours(d)) return {"scales", d.scales};
  return {"scales", d.scales, Access::kRawRead,
          d.scales.dtype == DType::kF16 ? "vec2<u32>" : "vec4<f32>"};
}

std::string scale4_text(const QLinear& d) {
  const std::string head = fmt::format(
      "fn scale4(n: u32, k: u32) -> vec4<f32> {{\n  let i = {}min(n, (params.n - 1u) / 4u * 4u);\n",
      d.scale_row == 0 ? "" : "k / params.group * params.scale_row + ");
  if (!scales_in_fours(d)) {
    return head +
           "  let more = params.n - 1u - min(n, params.n - 1u);\n"
           "  return vec4<f32>(load_scales(i), load_scales(i + min(1u, more)), load_scales(i + "
           "min(2u, more)), load_scales(i + min(3u, more)));\n}\n";
  }
  if (d.scales.dtype != DType::kF16) return head + "  return scales[i / 4u];\n}\n";
  return head +
         "  let w = scales[i / 4u];\n  return vec4<f32>(unpack2x16float(w.x), "
         "unpack2x16float(w.y));\n}\n";
}

// Codes, Sums and what goes with them, for this many rows and columns.
std::string sums_text(uint32_t rows, uint32_t columns) {
  std::string codes = "struct Codes {\n";
  std::string fetched =
      "fn codes_at(n: u32, u: u32) -> Codes {\n  let last = params.n - 1u;\n  var c: Codes;\n";
  std::string sums = "struct Sums {\n";
  std::string add = "fn add_products(sums: ptr<function, Sums>, codes: Codes, lane: u32) {\n";
  std::string fold = "fn fold_sums(sums: Sums, local: u32) {\n";
  for (uint32_t c = 0; c < columns; ++c) {
    codes += fmt::format("  w{}: vec4<u32>,\n", c);
    fetched += fmt::format("  c.w{0} = fetch(min(n + {0}u, last), u);\n", c);
  }
  for (uint32_t q = 0; q < columns / 4; ++q) {
    codes += fmt::format("  s{}: vec4<f32>,\n", q);
    fetched += fmt::format("  c.s{} = scale4(n + {}u, u * unit);\n", q, q * 4);
  }
  for (uint32_t m = 0; m < rows; ++m) {
    add += fmt::format("  let x{0} = unit_of({0}u, lane);\n", m);
    for (uint32_t q = 0; q < columns / 4; ++q) {
      sums += fmt::format("  y{}_{}: vec4<f32>,\n", m, q);
      add += fmt::format(
          "  (*sums).y{0}_{1} += vec4<f32>(product(codes.w{2}, x{0}), product(codes.w{3}, x{0}), "
          "product(codes.w{4}, x{0}), product(codes.w{5}, x{0})) * (codes.s{1} * x{0}.scale);\n",
          m, q, q * 4, q * 4 + 1, q * 4 + 2, q * 4 + 3);
      fold += fmt::format("  fold_four({}u, sums.y{}_{}, local);\n", m * (columns / 4) + q, m, q);
    }
  }
  return codes + "}\n" + fetched + "  return c;\n}\n" + sums + "}\n" + add + "}\n" + fold + "}\n";
}

std::string codes_text(const QLinear& d) {
  if (!d.row_scale) {
    return "fn codes4(m: u32, k: u32) -> vec4<f32> { return x4(m, k); }\n"
           "fn x_scale_of(m: u32) -> f32 { return 1.0; }\n";
  }
  return "fn codes4(m: u32, k: u32) -> vec4<f32> {\n"
         "  let zero = f32(load_row_zero(m));\n"
         "  return clamp(round(x4(m, k) * (1.0 / load_row_scale(m))) + zero, vec4<f32>(-128.0), "
         "vec4<f32>(127.0)) - zero;\n}\n"
         "fn x_scale_of(m: u32) -> f32 { return load_row_scale(m); }\n";
}

}  // namespace

bool fits_dot4(const Node& n, const gpu::Caps& caps) {
  const auto d = describe_qlinear(n);
  if (!d.ok() || d->m > kMaxRows || !has_vectors(n, *d) || !one_scale(*d) || !codes_fit(*d))
    return false;
  if (!caps.dot4 || !caps.subgroups || caps.subgroup_min < 4 || caps.max_invocations < 256)
    return false;
  // With three planes it fits with fewer.
  return shape_of(*d, 3, caps).workgroup_bytes(unit(*d)) <= caps.max_workgroup_bytes;
}

Status plan_dot4(const Node& n, Plan& p) {
  PTERYX_ASSIGN(QLinear d, describe_qlinear(n));
  if (d.m == 0) return {};
  PTERYX_TRY(use_vectors(n, p, d));
  const Shape s = shape_of(d, planes_of(d, p.context().precision), p.caps());
  const bool nibbles = d.codes != Codes::kBytes;
  const std::string prelude = fmt::format(
      "const rows: u32 = {}u;\nconst planes: u32 = {}u;\nconst columns: u32 = {}u;\n"
      "const sets: u32 = {}u;\nconst team: u32 = {}u;\nconst wg_size: u32 = team * sets;\n"
      "const block: u32 = {}u;\nconst fours: u32 = rows * columns / 4u;\n"
      "const nibbles: bool = {};\nconst zero_code: i32 = {};\n{}{}{}{}{}{}{}{}{}",
      s.rows, s.planes, s.columns, s.sets, s.team, s.block, nibbles, nibbles ? 8 : 0, fetch_text(d),
      scale4_text(d), sums_text(s.rows, s.columns), x4_text(d), finish_text(d), put_text(d),
      coded(d) ? codes_text(d) : "",
      coded(d) ? text_of(shaders::x_codes) : text_of(shaders::x_rounded),
      text_of(shaders::fold_many));
  std::vector<Bind> bind = {bind_x(d), bind_vectors(d), bind_scales(d)};
  if (d.row_scale) bind.push_back({"row_scale", *d.row_scale});
  if (d.row_zero) bind.push_back({"row_zero", *d.row_zero});
  bind_results(d, bind);
  const auto params = make_params(d);
  return p.dispatch(n, {.shader = &shaders::qlinear_dot4,
                        .variant = nibbles ? "4-bit" : "8-bit",
                        .prelude = prelude,
                        .bind = std::move(bind),
                        .params = bytes_of(params),
                        .grid = per_group(up(d.n, s.columns * s.sets), p.caps()),
                        .subgroups = true});
}

}  // namespace pteryx::ops::qlinear
