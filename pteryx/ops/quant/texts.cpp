// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/ops/quant/texts.h"

#include "pteryx/ops/fold.h"

namespace pteryx::ops::qlinear {
namespace {

// Signed bytes of a u32 as floats.
constexpr std::string_view kFourBytes =
    "vec4<f32>((vec4<i32>(bitcast<i32>({})) << vec4<u32>(24u, 16u, 8u, 0u)) >> vec4<u32>(24u))";

}  // namespace

Bind bind_vectors(const QLinear& d) { return {"weight", d.weight, Access::kRawRead, "vec4<u32>"}; }

std::string scale_text(const QLinear& d) {
  return fmt::format("fn scale(n: u32, k: u32) -> f32 {{ return load_scales({}n); }}\n",
                     d.scale_row == 0 ? "" : "k / params.group * params.scale_row + ");
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

void bind_texts(const QLinear& d, std::vector<Bind>& bind) {
  if (d.bias) bind.push_back({"bias", *d.bias});
  if (d.residual) bind.push_back({"residual", *d.residual});
  static constexpr std::string_view kNames[] = {"y", "y1", "y2", "y3"};
  const std::vector<Columns> all = results(d);
  for (size_t j = 0; j < all.size(); ++j)
    bind.push_back({kNames[j], all[j].y, row_access(all[j].y.dtype, all[j].width)});
}

}  // namespace pteryx::ops::qlinear
