// Linear layers with quantised or float weights on the CPU, with vectors and threads: weights as
// they lie in the file, in one piece or several.
// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <array>
#include <cmath>

#include "pteryx/cpu/arena.h"
#include "pteryx/cpu/codes.h"
#include "pteryx/cpu/pool.h"
#include "pteryx/cpu/product.h"
#include "pteryx/cpu/rows.h"
#include "pteryx/ops/float_rows.h"
#include "pteryx/ops/quant/parts.h"
#include "pteryx/ops/quant/qlinear.h"

namespace pteryx::ops {
namespace {

constexpr size_t kMostPieces = 8;
constexpr size_t kFewRows = 4;  // that one thread prepares and finishes

// The rows of a weight that lie together.
struct Pieces {
  std::array<cpu::Weight, kMostPieces> all;
  size_t count = 0;
};

bool choose_kind(const QLinear& d, const HostTensor& weight, cpu::WeightKind& kind) {
  switch (d.codes) {
    case Codes::kLowFirst: kind = cpu::WeightKind::kLowFirst; return true;
    case Codes::kHighFirst: kind = cpu::WeightKind::kHighFirst; return true;
    case Codes::kBytes: kind = cpu::WeightKind::kBytes; return weight.dtype == DType::kI8;
    case Codes::kNone: break;
  }
  kind = weight.dtype == DType::kF16 ? cpu::WeightKind::kF16 : cpu::WeightKind::kF32;
  return weight.dtype == DType::kF16 || weight.dtype == DType::kF32;
}

bool fits(const QLinear& d) {
  const bool nibbles = d.codes == Codes::kLowFirst || d.codes == Codes::kHighFirst;
  if (d.m == 0 || d.n == 0 || d.k == 0 || d.interleaved) return false;
  if (!is_f32_or_f16(d.x) && d.x.dtype != DType::kI8) return false;
  const bool blocks = nibbles && d.scale_order == ScaleOrder::kBlocks;
  if (nibbles && d.group % 32 != 0 && d.group < d.k) return false;
  if (d.codes == Codes::kBytes && d.scale_order != ScaleOrder::kFlat) return false;
  if (d.codes != Codes::kNone && !(blocks ? d.scales.dtype == DType::kF16 : is_f32(d.scales)))
    return false;
  if (d.norm && !is_f32(*d.norm)) return false;
  if (d.bias && !is_f32(*d.bias)) return false;
  if (d.residual && !is_f32_or_f16(*d.residual)) return false;
  if (d.rotation &&
      (!is_f32(d.rotation->cos) || !is_f32(d.rotation->sin) || !is_f32_or_f16(d.rotation->keys) ||
       !is_f32_or_f16(d.rotation->values) || (d.rotation->q_norm && !is_f32(*d.rotation->q_norm)) ||
       (d.rotation->k_norm && !is_f32(*d.rotation->k_norm))))
    return false;
  return is_f32_or_f16(d.y) && std::ranges::all_of(d.more, is_f32_or_f16);
}

const float* as_floats(Bytes bytes) { return reinterpret_cast<const float*>(bytes.data()); }

// The scales or minimums of each piece, which lie apart as the pieces do: of every group one behind
// the other.
using Floats = const float* cpu::Weight::*;
bool find_floats(const QLinear& d, std::span<const Bytes> ranges, Floats which, Pieces& p) {
  if (d.scale_order == ScaleOrder::kFlat) {
    if (ranges.size() != p.count) return false;
    for (size_t i = 0; i < p.count; ++i) {
      p.all[i].*which = as_floats(ranges[i]);
      if (ranges[i].size() != p.all[i].n * sizeof(float)) return false;
    }
    return true;
  }
  const auto groups = static_cast<size_t>(d.k / d.group);
  const size_t count = p.count;
  if (ranges.size() != count * groups) return false;
  for (size_t i = 0; i < count; ++i) {
    cpu::Weight& w = p.all[i];
    w.*which = as_floats(ranges[i]);
    w.scale_row = w.n;
    for (size_t g = 0; g < groups; ++g) {
      const Bytes range = ranges[g * count + i];
      if (range.size() != w.n * sizeof(float) || as_floats(range) != w.*which + g * w.n)
        return false;
    }
  }
  return true;
}

bool find_groups(const QLinear& d, const Host& h, Pieces& p) {
  return find_floats(d, h.parts(d.scales.id), &cpu::Weight::scales, p) &&
         (!d.minimums || find_floats(d, h.parts(d.minimums->id), &cpu::Weight::minimums, p));
}

// The same of scales in blocks of eight columns, which lie together. False: a piece begins within
// a block.
bool find_blocks(const QLinear& d, const Host& h, Pieces& p) {
  const void* const scales = h.host(d.scales.id).data;
  const void* const minimums = d.minimums ? h.host(d.minimums->id).data : nullptr;
  size_t first = 0;
  for (size_t i = 0; i < p.count; ++i) {
    if (first % 8 != 0) return false;
    p.all[i].scale_row = static_cast<size_t>(d.scale_row);
    const size_t at = first / 8 * p.all[i].scale_row;
    p.all[i].half_scales = static_cast<const uint16_t*>(scales) + at;
    if (minimums != nullptr) p.all[i].half_minimums = static_cast<const uint16_t*>(minimums) + at;
    first += p.all[i].n;
  }
  return true;
}

// False: in some form that is not done here.
bool find_pieces(const QLinear& d, const Host& h, Pieces& p) {
  std::span<const Bytes> parts = h.parts(d.weight.id);
  const bool blocks = d.scale_order == ScaleOrder::kBlocks;
  cpu::Weight whole{.k = static_cast<size_t>(d.k), .row_bytes = static_cast<size_t>(d.row_bytes)};
  whole.group = static_cast<size_t>(d.group);
  if (!choose_kind(d, {d.weight.dtype, d.weight.dims, nullptr}, whole.kind)) return false;
  if (d.codes == Codes::kNone) whole.row_bytes = whole.k * size_bytes(d.weight.dtype);
  bool apart = parts.size() > 1 && parts.size() <= kMostPieces;
  for (const Bytes& part : parts) apart = apart && part.size() % whole.row_bytes == 0;
  if (apart) {
    p.count = parts.size();
    for (size_t i = 0; i < p.count; ++i) {
      p.all[i] = whole;
      p.all[i].data = parts[i].data();
      p.all[i].n = parts[i].size() / whole.row_bytes;
    }
    if (d.codes == Codes::kNone || (blocks ? find_blocks(d, h, p) : find_groups(d, h, p)))
      return true;
  }
  p.count = 1;
  p.all[0] = whole;
  p.all[0].n = static_cast<size_t>(d.n);
  p.all[0].data = h.host(d.weight.id).data;
  if (blocks) return find_blocks(d, h, p);
  if (d.codes != Codes::kNone) {
    p.all[0].scales = floats(h.host(d.scales.id));
    if (d.minimums) p.all[0].minimums = floats(h.host(d.minimums->id));
    p.all[0].scale_row = static_cast<size_t>(d.scale_row);
  }
  return true;
}

// Calls body(row) for all rows, by all threads where they are many.
template <typename Body>
void for_rows(CpuContext& c, int64_t rows, const Body& body) {
  const auto count = static_cast<size_t>(rows);
  if (count <= kFewRows) {
    for (size_t r = 0; r < count; ++r) body(r);
  } else {
    c.pool.run(count, [&](size_t r, size_t /*thread*/) { body(r); });
  }
}

// x as the product sees it; rounding to codes as the reference does it.
struct X {
  const float* data = nullptr;
  size_t row = 0;
};
X make_x(const QLinear& d, const Host& h, CpuContext& c) {
  const HostTensor x = h.host(d.x.id);
  const auto k = static_cast<size_t>(d.k);
  if (is_f32(d.x) && !d.norm && !d.row_scale) return {floats(x) + d.first_row * d.k, k};
  auto* const to = c.memory.take_array<float>(size(d.m), k);
  if (c.dry_run()) return {to, k};
  const float* const norm = d.norm ? floats(h.host(d.norm->id)) : nullptr;
  const HostTensor scales = d.row_scale ? h.host(d.row_scale->id) : HostTensor{};
  const HostTensor zeros = d.row_scale ? h.host(d.row_zero->id) : HostTensor{};
  const auto x_zero = static_cast<float>(d.x_zero);
  for_rows(c, d.m, [&](size_t m) {
    float* const row = to + m * k;
    const int64_t at = (d.first_row + static_cast<int64_t>(m)) * d.k;
    if (x.dtype == DType::kI8) {
      cpu::decode(cpu::CodeKind::kSigned, x.data + at, k, x_zero, 1, row);
    } else {
      load_floats(x, at, k, row);
    }
    if (norm != nullptr) cpu::rms_norm(row, norm, static_cast<float>(d.eps), 1, k, row);
    if (!d.row_scale) return;
    const auto scale = static_cast<float>(scales.number(static_cast<int64_t>(m)));
    const auto zero = static_cast<float>(zeros.number(static_cast<int64_t>(m)));
    cpu::round_to_codes(row, k, scale, zero, row);
  });
  return {to, k};
}

// y[:, n] of all pieces, rows of `y_row`.
void multiply(const QLinear& d, const Pieces& p, const X& x, CpuContext& c, float* y,
              size_t y_row) {
  const auto m = static_cast<size_t>(d.m);
  const cpu::Weight& any = p.all[0];
  void* prepared = nullptr;
  const size_t bytes = cpu::prepared_bytes(any, m, c.precision);
  if (c.dry_run()) {
    c.memory.take(cpu::most_prepared_bytes(any, m, c.precision));
  } else if (bytes > 0) {
    prepared = c.memory.take(bytes);
  }
  const PerThread scratch(c, cpu::scratch_bytes(any, m, c.precision));
  if (c.dry_run()) return;
  if (bytes > 0) {
    for_rows(c, d.m, [&](size_t r) {
      cpu::prepare(any, m, c.precision, x.data, x.row, r, r + 1, prepared);
    });
  }
  // Rows of weight for an item: enough items that no thread waits long for the others. Panels of
  // products with many rows of x are 64 wide.
  const size_t unit = m <= cpu::kFewRows ? 32 : 64;
  const size_t share = static_cast<size_t>(d.n) / (c.pool.threads() * 16);
  const size_t step = std::clamp(share / unit * unit, unit, 16 * unit);
  std::array<size_t, kMostPieces + 1> first{};  // item of each piece
  for (size_t i = 0; i < p.count; ++i) first[i + 1] = first[i] + (p.all[i].n + step - 1) / step;
  c.pool.run(first[p.count], [&](size_t item, size_t thread) {
    size_t at = 0;
    size_t column = 0;
    while (item >= first[at + 1]) column += p.all[at++].n;
    const cpu::Weight& w = p.all[at];
    const size_t begin = (item - first[at]) * step;
    cpu::multiply(w, m, c.precision, x.data, x.row, prepared, begin, std::min(begin + step, w.n),
                  y + column, y_row, scratch.of(thread));
  });
}

// Tensors that finish a row: looked up before threads are at work.
struct Ends {
  HostTensor bias, residual, y, cos, sin, keys, values, q_norm, k_norm;
};
Ends find_ends(const QLinear& d, const Host& h) {
  const auto find = [&](const std::optional<Tensor>& t) {
    return t ? h.host(t->id) : HostTensor{};
  };
  Ends e{.bias = find(d.bias), .residual = find(d.residual), .y = h.host(d.y.id)};
  if (!d.rotation) return e;
  e.cos = h.host(d.rotation->cos.id);
  e.sin = h.host(d.rotation->sin.id);
  e.keys = h.host(d.rotation->keys.id);
  e.values = h.host(d.rotation->values.id);
  e.q_norm = find(d.rotation->q_norm);
  e.k_norm = find(d.rotation->k_norm);
  return e;
}

// What is added to a finished sum.
void add_rest(const QLinear& d, const Ends& e, size_t m, float* row) {
  const auto n = static_cast<size_t>(d.n);
  const auto factor = static_cast<float>(d.factor);
  for (size_t i = 0; factor != 1 && i < n; ++i) row[i] *= factor;
  if (d.bias) {
    const float* const bias = floats(e.bias);
    for (size_t i = 0; i < n; ++i) row[i] += bias[i];
  }
  if (!d.residual) return;
  if (e.residual.dtype == DType::kF32) {
    const float* const from = floats(e.residual) + m * n;
    for (size_t i = 0; i < n; ++i) row[i] += from[i];
  } else {
    for (size_t i = 0; i < n; ++i)
      row[i] += static_cast<float>(e.residual.number(static_cast<int64_t>(m * n + i)));
  }
}

void put_gated(const QLinear& d, const Ends& e, size_t m, float* row) {
  const auto half = static_cast<size_t>(d.n / 2);
  cpu::silu_times(row, row + half, half, row);
  store_floats(row, e.y, static_cast<int64_t>(m * half), half);
}

void put_rotated(const QLinear& d, const Ends& e, const RotationRows& rows, size_t m, float* row) {
  const Rotation& t = *d.rotation;
  const auto size = static_cast<size_t>(t.size());
  const auto kv = static_cast<size_t>(t.kv_width());
  const size_t queries = static_cast<size_t>(d.n) - 2 * kv;
  const size_t table = static_cast<size_t>(rows.table) + m;
  const float* const cos = floats(e.cos) + table * (t.halves ? size : size / 2);
  const float* const sin = floats(e.sin) + table * (t.halves ? size : size / 2);
  if (t.q_norm) {
    const auto eps = static_cast<float>(t.eps);
    cpu::rms_norm(row, floats(e.q_norm), eps, queries / size, size, row);
    cpu::rms_norm(row + queries, floats(e.k_norm), eps, kv / size, size, row + queries);
  }
  cpu::rotate(row, cos, sin, t.halves ? cpu::Pairs::kHalves : cpu::Pairs::kNeighbours,
              (queries + kv) / size, size, row);
  store_floats(row, e.y, static_cast<int64_t>(m * queries), queries);
  const auto at = static_cast<int64_t>((static_cast<size_t>(rows.caches) + m) * kv);
  store_floats(row + queries, e.keys, at, kv);
  store_floats(row + queries + kv, e.values, at, kv);
}

}  // namespace

Result<bool> qlinear_fast(const Node& n, const Host& h, CpuContext& c) {
  PTERYX_ASSIGN(const QLinear d, describe_qlinear(n));
  Pieces pieces;
  if (!fits(d) || !find_pieces(d, h, pieces)) return false;
  RotationRows rows;
  if (d.rotation) {
    PTERYX_ASSIGN(rows, rotation_rows(n));
  }
  const X x = make_x(d, h, c);
  const bool plain = is_f32(d.y) && d.more.empty() && !d.gated && !d.rotation;
  const auto width = static_cast<size_t>(d.n);
  float* const y = plain ? floats(h.host(d.y.id)) : c.memory.take_array<float>(size(d.m), width);
  const Ends ends = find_ends(d, h);
  multiply(d, pieces, x, c, y, width);
  if (c.dry_run()) return true;
  const bool adds = d.factor != 1 || d.bias || d.residual;
  if (plain && !adds) return true;
  for_rows(c, d.m, [&](size_t m) {
    float* const row = y + m * width;
    if (adds) add_rest(d, ends, m, row);
    if (d.gated) return put_gated(d, ends, m, row);
    if (d.rotation) return put_rotated(d, ends, rows, m, row);
    if (plain) return;
    const float* from = row;
    const auto put = [&](const Tensor& t) {
      const int64_t columns = t.dim(-1);
      store_floats(from, h.host(t.id), static_cast<int64_t>(m) * columns,
                   static_cast<size_t>(columns));
      from += columns;
    };
    put(d.y);
    for (const Tensor& t : d.more) put(t);
  });
  return true;
}

}  // namespace pteryx::ops
