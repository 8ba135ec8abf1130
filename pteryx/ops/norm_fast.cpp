// Normalisation of rows on the CPU, with vectors and threads. SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/cpu/arena.h"
#include "pteryx/cpu/pool.h"
#include "pteryx/cpu/rows.h"
#include "pteryx/ops/float_rows.h"
#include "pteryx/ops/norm_rows.h"

namespace pteryx::ops {
namespace {

const float* channel_values(const Node& n, const Host& h, uint8_t arg, CpuContext& c) {
  return arg != 0 && n.has(arg) ? widened(h.host(n.in(arg).id), c) : nullptr;
}

bool fits(const Node& n, const NormRows& r) {
  if (r.kind == NormKind::kBatch || r.rows == 0 || r.length == 0) return false;
  for (const uint8_t arg : {r.affine.weight, r.affine.bias}) {
    if (arg != 0 && n.has(arg) && !is_f32_or_f16(n.in(arg))) return false;
  }
  const bool weightless = r.affine.weight == 0 || !n.has(r.affine.weight);
  if (!is_centred(r.kind) && (weightless || n.has_out(1))) return false;
  return is_f32_or_f16(n.in(0)) && is_f32_or_f16(n.out());
}

}  // namespace

Result<bool> norm_fast(const Node& n, const Host& h, CpuContext& c) {
  PTERYX_ASSIGN(const NormRows r, describe_norm(n));
  if (!fits(n, r)) return false;
  const HostTensor y = h.host(n.out_id());
  const float* const x = widened(h.host(n.in(0).id), c);
  float* const to = is_f32(n.out()) ? floats(y) : c.memory.take_array<float>(count_of(y));
  const float* const weight = channel_values(n, h, r.affine.weight, c);
  const float* const bias = channel_values(n, h, r.affine.bias, c);
  auto* const stats = c.memory.take_array<float>(size(r.rows), 2U);
  if (c.dry_run()) return true;
  const auto eps = static_cast<float>(r.eps);
  const auto length = size(r.length);
  for_parts(c, size(r.rows), kPartElements / length, [&](size_t begin, size_t end) {
    const size_t at = begin * length;
    if (!is_centred(r.kind))
      return cpu::rms_norm(x + at, weight, eps, end - begin, length, to + at);
    if (r.kind == NormKind::kLayer)
      return cpu::layer_norm(x + at, weight, bias, eps, end - begin, length, to + at,
                             stats + begin * 2);
    for (size_t i = begin; i < end; ++i) {
      const size_t channel = i % size(r.groups) * size(r.channels);
      const cpu::GroupNorm group{.channels = size(r.channels),
                                 .inner = size(r.inner),
                                 .weight = weight == nullptr ? nullptr : weight + channel,
                                 .bias = bias == nullptr ? nullptr : bias + channel,
                                 .eps = eps,
                                 .silu = r.silu};
      cpu::group_norm(group, x + i * length, to + i * length, stats + i * 2);
    }
  });
  for (size_t k = 1; k <= 2; ++k) {
    if (!is_centred(r.kind) || !n.has_out(k)) continue;
    const HostTensor out = h.host(n.out_id(k));
    for (int64_t i = 0; i < r.rows; ++i) out.put(i, stats[size(i) * 2 + k - 1]);
  }
  if (!is_f32(n.out())) store_floats(to, y, 0, size(y.numel()));
  return true;
}

}  // namespace pteryx::ops
