// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/ops/quant/texts.h"

#include "pteryx/ops/fold.h"
#include "pteryx/ops/shaders/qlinear_merge.h"
#include "pteryx/ops/shaders/qlinear_vectors.h"
#include "pteryx/ops/shaders/requantize.h"

namespace pteryx::ops::qlinear {
namespace {

constexpr int64_t kVector = 16;  // bytes

// Signed bytes of a u32 as floats.
constexpr std::string_view kFourBytes =
    "vec4<f32>((vec4<i32>(bitcast<i32>({})) << vec4<u32>(24u, 16u, 8u, 0u)) >> vec4<u32>(24u))";

bool in_vectors(const QLinear& d) {
  return d.row_bytes % kVector == 0 && d.codes != Codes::kHighFirst;
}

}  // namespace

Params make_params(const QLinear& d) {
  std::array<uint32_t, 4> ends{};
  ends[0] = u32(d.n);
  if (!d.more.empty()) {
    const std::vector<Columns> all = results(d);
    for (size_t j = 0; j < all.size(); ++j) ends[j] = u32(all[j].first + all[j].width);
  }
  return {.m = u32(d.m),
          .n = u32(d.n),
          .k = u32(d.k),
          .row_bytes = u32(d.row_bytes),
          .group = u32(d.group),
          .scale_row = u32(d.scale_row),
          .splits = 1,
          .chunk = u32(d.k),
          .factor = static_cast<float>(d.factor),
          .x_zero = static_cast<float>(d.x_zero),
          .ends = ends};
}

// ---------------------------------------------------------------- weights

int64_t unit(const QLinear& d) { return d.codes == Codes::kBytes ? kVector : kVector * 2; }

bool one_scale(const QLinear& d) { return d.scale_row == 0 || d.group % unit(d) == 0; }

bool has_vectors(const Node& n, const QLinear& d) {
  return d.weight.numel() > 0 && (in_vectors(d) || n.is_constant(d.weight));
}

Status use_vectors(const Node& n, Plan& p, QLinear& d) {
  if (in_vectors(d)) return {};
  const int64_t wide = up(d.row_bytes, kVector) * kVector;
  const bool swap = d.codes == Codes::kHighFirst;
  const shaders::QlinearVectorsParams params{.rows = u32(d.n),
                                             .from_bytes = u32(d.row_bytes),
                                             .to_words = u32(wide / 4),
                                             .swap = swap ? 1U : 0U};
  const std::string layout =
      fmt::format("rows of {} bytes in {}{}", d.row_bytes, wide, swap ? ", nibbles swapped" : "");
  PTERYX_ASSIGN(d.weight, p.relaid(n, d.weight, layout, d.weight.dtype, {d.n, wide},
                                   {.shader = &shaders::qlinear_vectors,
                                    .bind = {},
                                    .params = bytes_of(params),
                                    .grid = per_element(d.n * wide / 4, p.caps())}));
  d.row_bytes = wide;
  if (swap) d.codes = Codes::kLowFirst;
  return {};
}

Bind bind_vectors(const QLinear& d) { return {"weight", d.weight, Access::kRawRead, "vec4<u32>"}; }

std::string scale_text(const QLinear& d) {
  return fmt::format("fn scale(n: u32, k: u32) -> f32 {{ return load_scales({}n); }}\n",
                     d.scale_row == 0 ? "" : "k / params.group * params.scale_row + ");
}

std::string code_text(const QLinear& d) {
  if (d.codes == Codes::kBytes) {
    return "fn code(n: u32, k: u32) -> f32 { return f32(load_weight(n * params.row_bytes + k)); "
           "}\n";
  }
  return fmt::format(
      "fn code(n: u32, k: u32) -> f32 {{\n"
      "  let byte = u32(load_weight(n * params.row_bytes + k / 2u));\n"
      "  return f32((byte >> ((k + {}u) % 2u * 4u)) & 15u) - 8.0;\n}}\n",
      d.codes == Codes::kLowFirst ? 0 : 1);
}

std::string fetch_text(const QLinear& d) {
  return fmt::format(
      "const unit: u32 = {}u;\n"
      "fn fetch(n: u32, u: u32) -> vec4<u32> {{ return weight[n * (params.row_bytes / 16u) + u]; "
      "}}\n",
      unit(d));
}

std::string quad_text(const QLinear& d) {
  const bool bytes = d.codes == Codes::kBytes;
  const std::string codes =
      bytes ? fmt::format(fmt::runtime(kFourBytes), "p[j]")
            : std::string(
                  "vec4<f32>((vec4<u32>(p[j / 2u] >> (j % 2u * 16u)) >> vec4<u32>(0u, 4u, 8u, "
                  "12u)) & vec4<u32>(15u))");
  const std::string text =
      fmt::format("const code_offset: f32 = {};\n", !bytes && one_scale(d) ? "8.0" : "0.0");
  if (one_scale(d)) {
    return text +
           fmt::format(
               "fn quad(p: vec4<u32>, j: u32, n: u32, k: u32) -> vec4<f32> {{ return {}; }}\n"
               "fn unit_scale(n: u32, k: u32) -> f32 {{ return scale(n, k); }}\n",
               codes);
  }
  // Groups smaller than a unit: codes are scaled one by one, or by fours where these share a scale.
  const std::string_view scales =
      d.group % 4 == 0 ? "vec4<f32>(scale(n, min(at, last)))"
                       : "vec4<f32>(scale(n, min(at, last)), scale(n, min(at + 1u, last)), "
                         "scale(n, min(at + 2u, last)), scale(n, min(at + 3u, last)))";
  return text +
         fmt::format(
             "fn quad(p: vec4<u32>, j: u32, n: u32, k: u32) -> vec4<f32> {{\n"
             "  let at = k + j * 4u;\n  let last = params.k - 1u;\n  return ({} - {}) * {};\n}}\n"
             "fn unit_scale(n: u32, k: u32) -> f32 {{ return 1.0; }}\n",
             codes, bytes ? "0.0" : "8.0", scales);
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
  return head + fmt::format("  return {}{};\n}}\n",
                            fmt::format(fmt::runtime(kFourBytes), "x[i / 4u]"), zero);
}

std::string finish_text(const QLinear& d) {
  return fmt::format(
      "fn finish(v: f32, i: u32, n: u32) -> f32 {{ return v * params.factor{}{}; }}\n",
      d.bias ? " + load_bias(n)" : "", d.residual ? " + load_residual(i)" : "");
}

std::vector<Columns> results(const QLinear& d) {
  std::vector<Columns> all = {{d.y, 0, d.y.dim(-1)}};
  for (const Tensor& y : d.more) all.push_back({y, all.back().first + all.back().width, y.dim(-1)});
  return all;
}

constexpr std::string_view kPutHead =
    "fn put2(part: u32, m: u32, n: u32, v: vec2<f32>) {\n"
    "  if (m >= params.m || n >= params.n) { return; }\n"
    "  let i = (part * params.m + m) * params.n + n;\n";

std::string put_parts_text() {
  return std::string(kPutHead) +
         "  y[i] = bitcast<u32>(v.x);\n  if (n + 1u < params.n) { y[i + 1u] = bitcast<u32>(v.y); "
         "}\n}\n";
}

// Pairs of columns: a word of halves where every row holds whole words, else one by one.
std::string put_text(const QLinear& d) {
  std::string text(kPutHead);
  text +=
      "  let first = finish(v.x, i, n);\n"
      "  let second = finish(v.y, i + 1u, min(n + 1u, params.n - 1u));\n";
  const std::vector<Columns> all = results(d);
  const bool halves =
      row_access(d.y.dtype, all[0].width) == Access::kWords && d.y.dtype == DType::kF16;
  const std::string_view store = halves ? "y{0}[at / 2u] = pack2x16float(vec2<f32>(first, second));"
                                        : "y{0}[at] = bitcast<u32>(first); if (n + 1u < last) {{ "
                                          "y{0}[at + 1u] = bitcast<u32>(second); }}";
  if (all.size() == 1) {
    text += "  let at = i;\n  let last = params.n;\n  ";
    return text + fmt::format(fmt::runtime(store), "") + "\n}\n";
  }
  for (size_t j = 0; j < all.size(); ++j) {
    const std::string first = j == 0 ? "0u" : fmt::format("params.ends[{}]", j - 1);
    text += fmt::format(
        "  if (n >= {0} && n < params.ends[{1}]) {{\n    let last = params.ends[{1}];\n"
        "    let at = m * (last - {0}) + n - {0};\n    ",
        first, j);
    text += fmt::format(fmt::runtime(store), j == 0 ? "" : std::to_string(j)) + "\n  }\n";
  }
  return text + "}\n";
}

void bind_added(const QLinear& d, std::vector<Bind>& bind) {
  if (d.bias) bind.push_back({"bias", *d.bias});
  if (d.residual) bind.push_back({"residual", *d.residual});
}

void bind_results(const QLinear& d, std::vector<Bind>& bind) {
  bind_added(d, bind);
  static constexpr std::string_view kNames[] = {"y", "y1", "y2", "y3"};
  const std::vector<Columns> all = results(d);
  for (size_t j = 0; j < all.size(); ++j)
    bind.push_back({kNames[j], all[j].y, row_access(all[j].y.dtype, all[j].width)});
}

// ---------------------------------------------------------------- pieces

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

Pieces pieces(const QLinear& d, std::string_view text, bool finished) {
  Pieces p;
  p.bind = {bind_x(d), bind_vectors(d), {"scales", d.scales}};
  if (finished) {
    bind_results(d, p.bind);
  } else {
    p.bind.push_back({"y", d.y, Access::kWords});
  }
  p.prelude =
      fmt::format("{}{}{}{}{}{}{}", scale_text(d), fetch_text(d), quad_text(d), x4_text(d),
                  finished ? finish_text(d) : "", finished ? put_text(d) : put_parts_text(), text);
  return p;
}

std::string columns_text(size_t result) {
  return fmt::format(
      "fn first_column() -> u32 {{ return {0}; }}\n"
      "fn width() -> u32 {{ return params.ends[{1}] - {0}; }}\n",
      result == 0 ? "0u" : fmt::format("params.ends[{}]", result - 1), result);
}

Status plan_merge(const Node& n, Plan& p, const QLinear& d, const Tensor& parts, int64_t splits) {
  auto params = make_params(d);
  params.splits = u32(splits);
  const std::vector<Columns> all = results(d);
  for (size_t j = 0; j < all.size(); ++j) {
    const Columns& c = all[j];
    std::vector<Bind> bind = {{"parts", parts}};
    bind_added(d, bind);
    bind.push_back({"y", c.y, Access::kWords});
    const std::string prelude = finish_text(d) + columns_text(j);
    PTERYX_TRY(p.dispatch(n, {.shader = &shaders::qlinear_merge,
                              .prelude = prelude,
                              .bind = std::move(bind),
                              .params = bytes_of(params),
                              .grid = per_element(words(c.y.numel(), c.y.dtype), p.caps())}));
  }
  return {};
}

}  // namespace pteryx::ops::qlinear
