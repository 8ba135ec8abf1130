// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/ops/matmul/texts.h"

#include "pteryx/ops/fold.h"

namespace pteryx::ops::matmul {

Bind bind_operand(const Fetch& f, const Tensor& t) {
  if (!f.whole()) return {f.name, t};
  return {f.name, t, Access::kRawRead, f.dtype == DType::kF16 ? "vec2<u32>" : "vec4<f32>"};
}

bool in_eights(const Fetch& f) {
  return f.dtype == DType::kF16 && f.whole() && f.inner_size % 8 == 0 && f.outer_step % 8 == 0 &&
         f.batch_step % 8 == 0;
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

}  // namespace pteryx::ops::matmul
