// The WGSL in front of the attention kernels. SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/ops/attention/kernel.h"

namespace pteryx::ops::attention {
namespace {

std::string_view vector_type(const Tensor& t) {
  return t.dtype == DType::kF16 ? "vec2<u32>" : "vec4<f32>";
}

// `text` with the name for every @.
std::string named(std::string text, std::string_view name) {
  for (size_t i = text.find('@'); i != std::string::npos; i = text.find('@', i))
    text.replace(i, 1, name);
  return text;
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

}  // namespace

Bind reader(std::string_view name, const Tensor& t, bool vector) {
  if (!vector) return {name, t};
  return {name, t, Access::kRawRead, vector_type(t)};
}

Bind writer(std::string_view name, const Tensor& t, bool vector) {
  if (!vector) return {name, t, Access::kElements};
  return {name, t, Access::kRawWrite, vector_type(t)};
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
  return named(fmt::format("fn load4_@(at: u32, j: u32) -> vec4<f32> {{ {} }}\n", body), name);
}

std::string put_function(std::string_view name, const Tensor& t, bool vector) {
  std::string_view body = "@[(at >> 2u) + j] = four;";
  if (!vector) {
    body =
        "let i = 4u * j; store_@(at + i, four.x);"
        " if (i + 1u < size) { store_@(at + i + 1u, four.y); }"
        " if (i + 2u < size) { store_@(at + i + 2u, four.z); }"
        " if (i + 3u < size) { store_@(at + i + 3u, four.w); }";
  } else if (t.dtype == DType::kF16) {
    body = "@[(at >> 2u) + j] = vec2<u32>(pack2x16float(four.xy), pack2x16float(four.zw));";
  }
  return named(fmt::format("fn put4_@(at: u32, j: u32, four: vec4<f32>) {{ {} }}\n", body), name);
}

std::string size_constants(const Attention& a) {
  return fmt::format("const size: u32 = {}u;\nconst size4: u32 = {}u;\n", a.size, quads(a.size));
}

std::string call_functions(const Attention& a) {
  return size_constants(a) + load_function("q", a.q, vectors(a)) +
         load_function("k", a.k, vectors(a)) + load_function("v", a.v, vectors(a)) +
         mask_function(a);
}

std::vector<Bind> call_bindings(const Attention& a) {
  std::vector<Bind> bind = {reader("q", a.q, vectors(a)), reader("k", a.k, vectors(a)),
                            reader("v", a.v, vectors(a))};
  if (a.mask) bind.push_back({"mask", *a.mask});
  return bind;
}

}  // namespace pteryx::ops::attention
