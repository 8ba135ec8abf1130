// Attention of many query rows with subgroup matrices: operands rounded to f16, sums in f32.
// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/ops/attention/kernel.h"
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
  text += shaders::attention_matrix_ops.code;
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
  // tile_q, tile_kv, tile_p, tile_s, pair and grown of attention_matrix.
  const int64_t bytes = 2 * 64 * (a->size / 8 + 1) * 16 + 64 * 9 * 16 + 64 * 68 * 4 + 128 * 4 + 4;
  return caps.subgroup_matrix && caps.f16 && caps.subgroup_min == 32 && caps.subgroup_max == 32 &&
         caps.max_workgroup_bytes >= static_cast<uint64_t>(bytes) && caps.max_invocations >= 128;
}

}  // namespace pteryx::ops::attention
