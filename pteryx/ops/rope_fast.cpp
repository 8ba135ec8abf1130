// Rotary embeddings on the CPU, with vectors and threads. SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cstring>

#include "pteryx/cpu/arena.h"
#include "pteryx/cpu/rows.h"
#include "pteryx/ops/float_rows.h"
#include "pteryx/ops/rope.h"

namespace pteryx::ops::rope {
namespace {

// Rows of cos and sin as f32.
struct Tables {
  const float* cos = nullptr;
  const float* sin = nullptr;
  size_t columns = 0;

  Tables from(int64_t row) const {
    const size_t at = size(row) * columns;
    return {cos + at, sin + at, columns};
  }
};

bool fits(const Node& n, const Rope& r) {
  const bool single = r.layout == Layout::kInterleaved;
  if (n.in(kX).numel() == 0 || !is_f32_or_f16(n.in(kX)) || !is_f32_or_f16(n.out(0))) return false;
  if (single) return is_f32_or_f16(n.in(kFreqs));
  return n.in(kXk).numel() > 0 && is_f32_or_f16(n.in(kXk)) && is_f32_or_f16(n.in(kCos)) &&
         is_f32_or_f16(n.in(kSin)) && is_f32_or_f16(n.out(1));
}

// `count` rows from `first` on as f32, themselves or a copy.
const float* table_rows(const HostTensor& t, int64_t first, size_t count, size_t columns,
                        CpuContext& c) {
  const int64_t at = first * static_cast<int64_t>(columns);
  if (t.dtype == DType::kF32) return floats(t) + at;
  auto* const to = c.memory.take_array<float>(count * columns);
  if (!c.dry_run()) load_floats(t, at, count * columns, to);
  return to;
}

// (cos, sin) pairs as two tables.
Tables split_pairs(const Node& n, const Host& h, const Rope& r, CpuContext& c) {
  const auto columns = size(r.size / 2);
  const size_t count = size(r.length) * columns;
  const float* const pairs = widened(h.host(n.in(kFreqs).id), c);
  auto* const cos = c.memory.take_array<float>(count);
  auto* const sin = c.memory.take_array<float>(count);
  for_parts(c, count, kPartElements, [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      cos[i] = pairs[2 * i];
      sin[i] = pairs[2 * i + 1];
    }
  });
  return {cos, sin, columns};
}

// The rows of the tables from the first one that this call needs.
Tables find_tables(const Node& n, const Host& h, const Rope& r, CpuContext& c) {
  if (r.layout == Layout::kInterleaved) return split_pairs(n, h, r, c);
  const int64_t first = r.start * r.position_stride;
  const int64_t heads = std::max(r.heads_q, r.heads_k);
  const int64_t batch = n.in(kXq).numel() / (r.length * r.heads_q * r.size);
  const auto count = size((batch - 1) * r.batch_stride + (r.length - 1) * r.position_stride +
                          (heads - 1) * r.head_stride + 1);
  const auto columns = size(n.in(kCos).dim(-1));
  return {table_rows(h.host(n.in(kCos).id), first, count, columns, c),
          table_rows(h.host(n.in(kSin).id), first, count, columns, c), columns};
}

void turn(const Rope& r, const Tables& tables, int64_t heads, const HostTensor& x,
          const HostTensor& y, CpuContext& c) {
  const auto width = size(r.size);
  const auto rotary = size(r.rotary);
  float* const to =
      y.dtype == DType::kF32 ? floats(y) : c.memory.take_array<float>(size(y.numel()));
  // Rows that turn by the same row of the tables.
  const bool together = !r.heads_first && r.head_stride == 0 && rotary == width;
  const size_t group = together ? size(heads) : 1;
  const size_t elements = group * width;
  const auto pairs = r.layout == Layout::kHalves ? cpu::Pairs::kHalves : cpu::Pairs::kNeighbours;
  const int64_t first = r.start * r.position_stride;
  for_parts(c, size(x.numel()) / elements, kPartElements / elements, [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      const auto at = static_cast<int64_t>(i * elements);
      float* const row = to + at;
      const float* from = row;
      if (x.dtype == DType::kF32) {
        from = floats(x) + at;
        std::memcpy(row + rotary, from + rotary, (width - rotary) * sizeof(float));
      } else {
        load_floats(x, at, elements, row);
      }
      const auto own = static_cast<int64_t>(i * group);
      const Tables t = tables.from(r.table_row(heads, own) - first);
      cpu::rotate(from, t.cos, t.sin, pairs, group, rotary, row);
      if (y.dtype != DType::kF32) store_floats(row, y, at, elements);
    }
  });
}

}  // namespace

Result<bool> fast(const Node& n, const Host& h, CpuContext& c) {
  PTERYX_ASSIGN(const Rope r, describe(n));
  if (!fits(n, r)) return false;
  const Tables tables = find_tables(n, h, r, c);
  turn(r, tables, r.heads_q, h.host(n.in(kX).id), h.host(n.out_id(0)), c);
  if (r.layout != Layout::kInterleaved)
    turn(r, tables, r.heads_k, h.host(n.in(kXk).id), h.host(n.out_id(1)), c);
  return true;
}

}  // namespace pteryx::ops::rope
