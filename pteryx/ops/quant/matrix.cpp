// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/ops/quant/matrix.h"

#include "pteryx/ops/fold.h"
#include "pteryx/ops/matrix_tile.h"
#include "pteryx/ops/quant/texts.h"
#include "pteryx/ops/shaders/qlinear_halves.h"
#include "pteryx/ops/shaders/qlinear_matrix.h"

namespace pteryx::ops::qlinear {
namespace {

constexpr std::string_view kBatches = "fn batches() -> u32 { return 1u; }\n";

KOrder order_of(const QLinear& d) {
  if (!one_scale(d)) return KOrder::kNatural;
  return d.codes == Codes::kBytes ? KOrder::kEvens : KOrder::kHalves;
}

// Codes become f16 by setting the exponent to that of 1024 and taking away 1024 and their offset.
std::string weights_text(const QLinear& d) {
  const std::string raw = fmt::format(
      "fn raw_b(batch: u32, n: u32, k: u32) -> vec4<u32> {{\n"
      "  let row = min(n, params.n - 1u);\n  let last = (params.k - 1u) / unit;\n  {}}}\n",
      one_scale(d)
          ? "return fetch(row, min(k / unit, last));\n"
          : "let u = min(k / unit, last);\n  let j = k % unit / 4u;\n"
            "  let w = fetch(row, u);\n"
            "  return halves(quad(w, j, row, u * unit), quad(w, j + 1u, row, u * unit));\n");
  if (!one_scale(d)) {
    return raw +
           "const unit_b: u32 = 8u;\nfn scale_b(n: u32, k: u32) -> f32 { return 1.0; }\n"
           "fn expand_b(raw: vec4<u32>, scale: f32, j: u32) -> vec4<u32> { return raw; }\n";
  }
  const std::string head = fmt::format(
      "{}const unit_b: u32 = unit;\n"
      "fn scale_b(n: u32, k: u32) -> f32 {{ return unit_scale(min(n, params.n - 1u), min(k, "
      "params.k - 1u)); }}\n"
      "fn pair(bits: u32, offset: f16, s: f16) -> u32 {{\n"
      "  return bitcast<u32>((bitcast<vec2<f16>>(bits | 0x64006400u) - vec2<f16>(offset)) * "
      "vec2<f16>(s));\n}}\n"
      "fn expand_b(raw: vec4<u32>, scale: f32, j: u32) -> vec4<u32> {{\n  let s = f16(scale);\n",
      raw);
  if (d.codes == Codes::kBytes) {
    return head +
           "  let low = raw[j * 2u] ^ 0x80808080u;\n  let high = raw[j * 2u + 1u] ^ 0x80808080u;\n"
           "  return vec4<u32>(pair(low & 0x00ff00ffu, 1152.0h, s), pair((low >> 8u) & "
           "0x00ff00ffu, 1152.0h, s),\n"
           "                   pair(high & 0x00ff00ffu, 1152.0h, s), pair((high >> 8u) & "
           "0x00ff00ffu, 1152.0h, s));\n}\n";
  }
  return head +
         "  let low = raw[j];\n  let high = low >> 8u;\n  let sixteenth = s * 0.0625h;\n"
         "  return vec4<u32>(pair(low & 0x000f000fu, 1032.0h, s), pair(low & 0x00f000f0u, 1152.0h, "
         "sixteenth),\n"
         "                   pair(high & 0x000f000fu, 1032.0h, s), pair(high & 0x00f000f0u, "
         "1152.0h, sixteenth));\n}\n";
}

// x in f16, rows filled to a multiple of 64.
Result<Tensor> plan_halves(const Node& n, Plan& p, const QLinear& d, KOrder order) {
  const Tensor y = p.scratch(DType::kF16, {d.m, matrix_row(d.k)});
  const std::string prelude =
      fmt::format("{}{}{}fn four_of(row: u32, k: u32) -> vec4<f32> {{ return x4(row, k); }}\n",
                  kBatches, x4_text(d), halves_text(order));
  const Params params = make_params(d);
  PTERYX_TRY(p.dispatch(n, {.shader = &shaders::qlinear_halves,
                            .prelude = prelude,
                            .bind = {bind_x(d), {"y", y, Access::kRawWrite, "vec4<u32>"}},
                            .params = bytes_of(params),
                            .grid = per_element(y.numel() / 8, p.caps())}));
  return y;
}

}  // namespace

template <int64_t Tile>
bool fits_matrix(const Node& n, const gpu::Caps& caps) {
  const auto d = describe_qlinear(n);
  return d.ok() && d->m >= kMatrixMinRows && d->k > 0 && has_vectors(n, *d) &&
         has_matrix(Tile, caps);
}

template <int64_t Tile>
bool suits_matrix(const Node& n, const gpu::Caps& /*caps*/) {
  const auto d = describe_qlinear(n);
  return d.ok() && ops::suits_matrix(Tile, 1, d->m, d->n);
}

template <int64_t Tile>
Status matrix(const Node& n, Plan& p, QLinear d) {
  PTERYX_TRY(use_vectors(n, p, d));
  const MatrixTiles t = matrix_tiles(Tile, 1, d.m, d.n, d.k);
  const KOrder order = order_of(d);
  PTERYX_ASSIGN(const Tensor a, plan_halves(n, p, d, order));
  const bool whole = t.splits == 1;
  const Tensor y = whole ? d.y : p.scratch(DType::kF32, {t.splits, d.m, d.n});
  auto params = make_params(d);
  params.splits = u32(t.splits);
  params.chunk = u32(t.chunk);
  std::vector<Bind> bind = {
      {"a", a, Access::kRawRead, "vec4<u32>"}, bind_vectors(d), {"scales", d.scales}};
  if (whole) {
    bind_texts(d, bind);
  } else {
    bind.push_back({"y", y, Access::kWords});
  }
  const std::string text =
      fmt::format("const along_k: bool = true;\n{}{}{}{}{}{}{}{}", kBatches, scale_text(d),
                  fetch_text(d), quad_text(d), halves_text(order), weights_text(d),
                  whole ? finish_text(d) : "", whole ? put_text(d) : put_parts_text());
  PTERYX_TRY(
      dispatch_matrix(n, p, t, shaders::qlinear_matrix, text, std::move(bind), bytes_of(params)));
  return whole ? ok_status() : plan_merge(n, p, d, y, t.splits);
}

template bool fits_matrix<128>(const Node&, const gpu::Caps&);
template bool fits_matrix<64>(const Node&, const gpu::Caps&);
template bool suits_matrix<128>(const Node&, const gpu::Caps&);
template bool suits_matrix<64>(const Node&, const gpu::Caps&);
template Status matrix<128>(const Node&, Plan&, QLinear);
template Status matrix<64>(const Node&, Plan&, QLinear);

}  // namespace pteryx::ops::qlinear
