// Attention on the CPU, with vectors and threads. SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>

#include "pteryx/cpu/arena.h"
#include "pteryx/cpu/attention.h"
#include "pteryx/cpu/pool.h"
#include "pteryx/ops/attention/attention.h"
#include "pteryx/ops/float_rows.h"

namespace pteryx::ops::attention {
namespace {

bool fits(const Node& n, const Attention& a) {
  if (a.mask && !is_f32_or_f16(*a.mask) && a.mask->dtype != DType::kBool) return false;
  return a.rows > 0 && a.batch > 0 && a.size > 0 &&
         a.size <= static_cast<int64_t>(cpu::kMostAttentionSize) && is_f32_or_f16(a.q) &&
         is_f32_or_f16(a.k) && a.v.dtype == a.k.dtype && is_f32_or_f16(n.out());
}

cpu::Attention::Strides strides_of(const Strides& s) {
  return {.row = static_cast<size_t>(s.row), .head = static_cast<size_t>(s.head)};
}

cpu::Attention::Mask mask_of(const Host& host, const Attention& a, int64_t batch) {
  using Kind = cpu::Attention::Mask::Kind;
  if (!a.mask) return {};
  const auto element = static_cast<int64_t>(size_bytes(a.mask->dtype));
  const Kind kind = a.mask->dtype == DType::kBool  ? Kind::kBool
                    : a.mask->dtype == DType::kF16 ? Kind::kF16
                                                   : Kind::kF32;
  return {.kind = kind,
          .data = host.host(a.mask->id).data + batch * a.mask_strides[0] * element,
          .head = static_cast<size_t>(a.mask_strides[1]),
          .row = static_cast<size_t>(a.mask_strides[2]),
          .position = static_cast<size_t>(a.mask_strides[3])};
}

Status write_new_rows(const Node& n, const Host& host, int64_t start, CpuContext& c) {
  const Places& at = places(n);
  if (at.new_k == Places::kNone || c.dry_run()) return {};
  PTERYX_ASSIGN(const CacheRows new_k, read_cache_rows(n, at.new_k, at.k));
  PTERYX_ASSIGN(const CacheRows new_v, read_cache_rows(n, at.new_v, at.v));
  for (const CacheRows& rows : {new_k, new_v}) {
    if (!copy_cache_rows(host, rows, start, c)) write_cache_rows(host, rows, start);
  }
  return {};
}

}  // namespace

Result<bool> fast(const Node& n, const Host& host, CpuContext& c) {
  const Places& at = places(n);
  PTERYX_ASSIGN(const Attention a, read_attention(n));
  if (!fits(n, a)) return false;
  int64_t start = 0;
  if (at.start != Places::kNone) {
    PTERYX_ASSIGN(start, read_start(n, 0, at.k, at.start));
  }
  PTERYX_TRY(write_new_rows(n, host, start, c));
  const HostTensor y = host.host(n.out_id());
  const std::byte* const keys = host.host(a.k.id).data;
  const std::byte* const values = host.host(a.v.id).data;
  const float* const q = widened(host.host(a.q.id), c);
  float* const to = is_f32(n.out()) ? floats(y) : c.memory.take_array<float>(count_of(y));
  cpu::Attention call{
      .kind = a.k.dtype == DType::kF16 ? cpu::CacheKind::kF16 : cpu::CacheKind::kF32,
      .q_strides = strides_of(a.q_strides),
      .k_strides = strides_of(a.k_strides),
      .y_strides = strides_of(a.y_strides),
      .causal = a.causal,
      .rows = static_cast<size_t>(a.rows),
      .heads = static_cast<size_t>(a.heads),
      .group = static_cast<size_t>(a.group),
      .size = static_cast<size_t>(a.size),
      .start = static_cast<size_t>(start),
      .context = static_cast<size_t>(a.keys == 0 ? start + a.rows : a.keys),
      .scale = static_cast<float>(a.scale)};
  const PerThread scratch(c, cpu::attention_scratch_bytes());
  if (c.dry_run()) return true;
  const auto element = static_cast<int64_t>(size_bytes(a.k.dtype));
  for (int64_t b = 0; b < a.batch; ++b) {
    call.q = q + a.q_strides.at(b, 0, 0);
    call.keys = keys + a.k_strides.at(b, 0, 0) * element;
    call.values = values + (a.v_first + b * a.k_strides.batch) * element;
    call.y = to + a.y_strides.at(b, 0, 0);
    call.mask = mask_of(host, a, b);
    c.pool.run(cpu::attention_blocks(call),
               [&](size_t block, size_t thread) { cpu::attend(call, block, scratch.of(thread)); });
  }
  if (!is_f32(n.out())) store_floats(to, y, 0, static_cast<size_t>(y.numel()));
  return true;
}

}  // namespace pteryx::ops::attention
