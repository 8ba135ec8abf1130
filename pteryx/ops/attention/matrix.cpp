// Attention of many query rows with subgroup matrices: operands rounded to f16, sums in f32.
// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/ops/attention/kernel.h"
#include "pteryx/ops/kernel/library.h"
#include "pteryx/ops/shaders/attention_matrix.h"
#include "pteryx/ops/shaders/attention_matrix_ops.h"

namespace pteryx::ops::attention {
namespace {

constexpr int64_t kBlockRows = 64;
constexpr int64_t kMinRows = 9;  // below, most of a block would be idle
constexpr int64_t kMaxMatrixSize = 128;

// eight_NAME of attention_matrix: halves as they are, floats rounded, to the largest half at most.
std::string eight_function(std::string_view name, const Tensor& t) {
  if (t.dtype == DType::kF16) {
    return fmt::format(
        "fn eight_{0}(at: u32, j: u32) -> vec4<u32> {{\n"
        "  return vec4<u32>({0}[(at >> 2u) + 2u * j], {0}[(at >> 2u) + 2u * j + 1u]);\n}}\n",
        name);
  }
  return fmt::format(
      "fn eight_{0}(at: u32, j: u32) -> vec4<u32> {{\n"
      "  let most = vec4<f32>(65504.0);\n"
      "  let a = clamp(load4_{0}(at, 2u * j), -most, most);\n"
      "  let b = clamp(load4_{0}(at, 2u * j + 1u), -most, most);\n"
      "  return vec4<u32>(pack2x16float(a.xy), pack2x16float(a.zw), pack2x16float(b.xy), "
      "pack2x16float(b.zw));\n}}\n",
      name);
}

// The matrices of a subgroup and the steps over them, written out for a head size.
std::string matrices_text(int64_t size) {
  const int64_t slabs = size / 16;
  std::string members = "struct Matrices {\n";
  std::string load = "fn load_queries(m: ptr<function, Matrices>, at: u32) {\n";
  std::string score =
      "fn score_of(m: ptr<function, Matrices>, at: u32) -> sum_matrix {\n  var s = sum_matrix();\n";
  std::string add =
      "fn add_values(m: ptr<function, Matrices>, weights_at: u32, at: u32) {\n"
      "  let left = load_weights(weights_at);\n";
  std::string store =
      "fn store_slabs(m: ptr<function, Matrices>, from_slab: u32, at: u32) {\n  switch (from_slab) "
      "{\n";
  std::string reload =
      "fn load_slabs(m: ptr<function, Matrices>, from_slab: u32, at: u32) {\n  switch (from_slab) "
      "{\n";
  for (int64_t d = 0; d < slabs; ++d) {
    members += fmt::format("  q{0}: left_matrix,\n  sum{0}: sum_matrix,\n", d);
    load +=
        fmt::format("  (*m).q{0} = load_q(at + {1}u);\n  (*m).sum{0} = sum_matrix();\n", d, d * 2);
    score += fmt::format("  s = score_add((*m).q{0}, load_k(at + {1}u), s);\n", d, d * 2);
    add +=
        fmt::format("  (*m).sum{0} = value_add(left, load_v(at + {1}u), (*m).sum{0});\n", d, d * 2);
    if (d % 4 == 0) {
      store += fmt::format("    case {}u: {{\n", d);
      reload += fmt::format("    case {}u: {{\n", d);
    }
    store += fmt::format("      store_sum(at + {}u, (*m).sum{});\n", d % 4 * 16, d);
    reload += fmt::format("      (*m).sum{1} = load_sum(at + {0}u);\n", d % 4 * 16, d);
    if (d % 4 == 3 || d + 1 == slabs) {
      store += "    }\n";
      reload += "    }\n";
    }
  }
  return members + "}\n" + load + "}\n" + score + "  return s;\n}\n" + add + "}\n" + store +
         "    default: {}\n  }\n}\n" + reload + "    default: {}\n  }\n}\n";
}

}  // namespace

Status plan_matrix(const Node& n, Plan& p) {
  PTERYX_ASSIGN(const Attention a, read_attention(n));
  PTERYX_TRY(plan_new_rows(n, p));
  const int64_t items = a.batch * a.heads * ((a.rows + kBlockRows - 1) / kBlockRows);
  const LiveInt start = start_of(n);
  const auto params = make_params<shaders::AttentionMatrixParams>(a, start, items,
                                                                  {.count = 1, .keys = a.capacity});
  std::string text = call_functions(a);
  text += eight_function("q", a.q) + eight_function("k", a.k) + eight_function("v", a.v);
  text += put_function("y", n.out(), true);
  text += text_of(shaders::attention_matrix_ops);
  text += matrices_text(a.size);
  std::vector<Bind> bind = call_bindings(a);
  bind.push_back(writer("y", n.out(), true));
  return p.dispatch(n, {.shader = &shaders::attention_matrix,
                        .prelude = text,
                        .bind = std::move(bind),
                        .params = bytes_of(params),
                        .live = {start},
                        .grid = per_group(items, p.caps()),
                        .f16 = true,
                        .subgroups = true,
                        .subgroup_matrix = true});
}

bool fits_matrix(const Node& n, const gpu::Caps& caps) {
  const auto a = read_attention(n);
  if (!a.ok() || a->rows < kMinRows || a->size % 16 != 0 || a->size < 16 ||
      a->size > kMaxMatrixSize) {
    return false;
  }
  // tile_kv, tile_p, tile_s, pair and grown of attention_matrix.
  const int64_t bytes = 64 * (a->size / 8 + 1) * 16 + 64 * 9 * 16 + 64 * 68 * 4 + 128 * 4 + 4;
  return caps.subgroup_matrix && caps.f16 && caps.subgroup_min == 32 && caps.subgroup_max == 32 &&
         caps.max_workgroup_bytes >= static_cast<uint64_t>(bytes) && caps.max_invocations >= 128;
}

}  // namespace pteryx::ops::attention
