// Random calls of attention and caches, with references in double.
// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cmath>

#include "pteryx/ops/testing/draw.h"

namespace pteryx::ops::testing {
namespace {

constexpr double kLowest = -3.4e38;

// What one query row sees: q . k of each key, scaled, masked; softmax; the mean of v.
// query, key, value and mask give elements by (d), (c, d), (c, d) and (c).
std::vector<double> attend(int64_t size, int64_t keys, double scale, const auto& query,
                           const auto& key, const auto& value, const auto& mask) {
  std::vector<double> p(at(keys));
  double top = -INFINITY;
  for (int64_t c = 0; c < keys; ++c) {
    double dot = 0;
    for (int64_t d = 0; d < size; ++d) dot += query(d) * key(c, d);
    p[at(c)] = std::fmax(dot * scale + mask(c), kLowest);
    top = std::fmax(top, p[at(c)]);
  }
  double sum = 0;
  for (double& w : p) sum += w = std::exp(w - top);
  std::vector<double> y(at(size));
  for (int64_t c = 0; c < keys; ++c)
    for (int64_t d = 0; d < size; ++d) y[at(d)] += p[at(c)] / sum * value(c, d);
  return y;
}

enum class MaskKind : uint8_t { kCausal, kNone, kTensor };

struct Cached {
  int64_t batch, rows, heads, kv_heads, size, capacity, pos;
  TestTensor q, k, v, k_cache, v_cache;
  TestTensor mask;  // [rows, keys]

  Cached(Draw& d, DType t) {
    batch = d.chance(0.15) ? d.integer(2, 3) : 1;
    kv_heads = d.integer(1, 4);
    heads = kv_heads * d.integer(1, 5);
    // A head size is a set of pipelines that take seconds to compile on a software GPU: one size,
    // the operator's own tests have the others.
    size = 8;
    rows = d.chance(0.5) ? 1 : d.integer(1, d.chance(0.2) ? 70 : 12);
    pos = d.chance(0.2) ? 0 : d.integer(0, d.chance(0.2) ? 400 : 40);
    capacity = pos + rows + (d.chance(0.3) ? 0 : d.integer(0, 20));
    q = d.values(t, {batch, rows, heads, size});
    k = d.values(t, {batch, rows, kv_heads, size});
    v = d.values(t, {batch, rows, kv_heads, size});
    k_cache = d.values(t, {batch, capacity, kv_heads, size});
    v_cache = d.values(t, {batch, capacity, kv_heads, size});
  }

  TestTensor written(const TestTensor& cache, const TestTensor& x) const {
    TestTensor y = cache;
    const int64_t row = kv_heads * size;
    for (int64_t b = 0; b < batch; ++b)
      for (int64_t i = 0; i < rows * row; ++i)
        y.data[at((b * capacity + pos) * row + i)] = x.data[at(b * rows * row + i)];
    return y;
  }

  TestTensor result(const TestTensor& keys_of, const TestTensor& values_of, MaskKind kind,
                    double scale) const {
    TestTensor y = q;
    for (int64_t i = 0; i < batch * rows * heads; ++i) {
      const int64_t h = i % heads / (heads / kv_heads);
      const int64_t s = i / heads % rows;
      const int64_t b = i / heads / rows;
      const int64_t keys = kind == MaskKind::kCausal
                               ? pos + s + 1
                               : (kind == MaskKind::kNone ? pos + rows : mask.dims[1]);
      const auto cell = [&](int64_t c, int64_t e) {
        return at(((b * capacity + c) * kv_heads + h) * size + e);
      };
      const std::vector<double> row = attend(
          size, keys, scale, [&](int64_t e) { return q.data[at(i * size + e)]; },
          [&](int64_t c, int64_t e) { return keys_of.data[cell(c, e)]; },
          [&](int64_t c, int64_t e) { return values_of.data[cell(c, e)]; },
          [&](int64_t c) {
            if (kind != MaskKind::kTensor) return 0.0;
            const double m = mask.data[at(s * keys + c)];
            if (mask.dtype == DType::kBool) return m != 0 ? 0.0 : kLowest;
            return std::fmax(m, kLowest);
          });
      std::copy(row.begin(), row.end(), y.data.begin() + i * size);
    }
    return y;
  }
};

Drawn cached_attention(std::string_view op, Draw& d) {
  // Halves and masks are other texts too: one operator has the first, one the second.
  const bool writes = is(op, "with_kv_cache");
  Cached c(d, writes && d.chance(0.3) ? DType::kF16 : DType::kF32);
  Case call{std::string(op)};
  call.in(c.q);
  if (writes) call.in(c.k).in(c.v);
  call.in(c.k_cache).in(c.v_cache);
  d.chance(0.5) ? call.live(c.pos) : call.integer(c.pos);
  if (writes) d.chance(0.5) ? call.integer(1) : call.live(c.rows);
  MaskKind kind = d.chance(0.75) ? MaskKind::kCausal : MaskKind::kNone;
  if (!writes && d.chance(0.3)) {
    kind = MaskKind::kTensor;
    const DType t = d.chance(0.5) ? DType::kBool : DType::kF32;
    c.mask = d.values(t, {c.rows, d.integer(c.pos + c.rows, c.capacity)});
    for (int64_t s = 0; s < c.rows; ++s) c.mask.data[at(s * c.mask.dims[1])] = 1;
    call.in(c.mask);
  } else {
    call.none();
  }
  d.chance(0.5) ? call.integer(0) : call.number(0);
  kind == MaskKind::kCausal&& d.chance(0.3) ? call.none() : call.flag(kind != MaskKind::kNone);
  const bool scaled = d.chance(0.3);
  const double scale = scaled ? d.real(0.1, 1) : 1 / std::sqrt(static_cast<double>(c.size));
  scaled ? call.number(scale) : call.none();
  call.out(c.q.dtype, c.q.dims);
  const TestTensor keys = writes ? c.written(c.k_cache, c.k) : c.k_cache;
  const TestTensor values = writes ? c.written(c.v_cache, c.v) : c.v_cache;
  std::vector<TestTensor> want = {c.result(keys, values, kind, scale)};
  if (writes) want.insert(want.end(), {keys, values});
  return {call, c.q.dtype == DType::kF16 ? Tolerance{2e-3, 1e-2} : Tolerance{1e-4, 1e-3}, want};
}

Drawn cache_update(std::string_view op, Draw& d) {
  const Cached c(d, d.chance(0.3) ? DType::kF16 : DType::kF32);
  Case call{std::string(op)};
  call.in(c.k).in(c.k_cache);
  d.chance(0.5) ? call.live(c.pos) : call.integer(c.pos);
  call.out(DType::kF32, {3});  // a result nobody reads: not compared
  return {call, kExact, std::vector<TestTensor>{TestTensor{}, c.written(c.k_cache, c.k)}};
}

// [.., S, D] over [.., T, D], the leading dims equal.
Drawn whole_attention(std::string_view op, Draw& d) {
  const DType t = DType::kF32;
  Dims dims = d.full_dims(1, 3, 12);
  const int64_t size = 8;
  const int64_t rows = d.chance(0.3) ? 1 : d.integer(1, 40);
  const int64_t keys = d.integer(1, d.chance(0.2) ? 300 : 40);
  const int64_t heads = numel(dims);
  Dims q_dims = dims;
  q_dims.push_back(rows);
  q_dims.push_back(size);
  Dims k_dims = dims;
  k_dims.push_back(keys);
  k_dims.push_back(size);
  const TestTensor q = d.values(t, q_dims);
  const TestTensor k = d.values(t, k_dims);
  const TestTensor v = d.values(t, k_dims);
  const bool masked = d.chance(0.5);
  TestTensor mask = d.values(t, {rows, keys});
  for (double& m : mask.data) m = d.chance(0.2) ? -INFINITY : m;
  const bool scaled = d.chance(0.5);
  const double scale = scaled ? d.real(0.1, 1) : 1 / std::sqrt(static_cast<double>(size));
  TestTensor y = q;
  for (int64_t i = 0; i < heads * rows; ++i) {
    const int64_t h = i / rows;
    const std::vector<double> row = attend(
        size, keys, scale, [&](int64_t e) { return q.data[at(i * size + e)]; },
        [&](int64_t c, int64_t e) { return k.data[at((h * keys + c) * size + e)]; },
        [&](int64_t c, int64_t e) { return v.data[at((h * keys + c) * size + e)]; },
        [&](int64_t c) {
          return masked ? std::fmax(mask.data[at(i % rows * keys + c)], kLowest) : 0.0;
        });
    std::copy(row.begin(), row.end(), y.data.begin() + i * size);
  }
  Case call{std::string(op)};
  call.in(q).in(k).in(v);
  masked ? call.in(mask) : call.none();
  scaled ? call.number(scale) : call.none();
  call.out(t, q_dims);
  return {call, {1e-4, 1e-3}, std::vector<TestTensor>{y}};
}

// Some heads of tensors that have more.
Drawn packed_attention(std::string_view op, Draw& d) {
  const DType t = d.chance(0.3) ? DType::kF16 : DType::kF32;
  const int64_t size = 8;
  const int64_t batch = d.integer(1, 2);
  const int64_t rows = d.chance(0.3) ? 1 : d.integer(1, 40);
  const int64_t keys = d.integer(1, d.chance(0.2) ? 300 : 40);
  const int64_t heads = d.integer(1, 3);
  const int64_t q_heads = heads + d.integer(0, 2);
  const int64_t k_heads = heads + d.integer(0, 2);
  const int64_t q_head = d.integer(0, q_heads - heads);
  const int64_t k_head = d.integer(0, k_heads - heads);
  const int64_t v_head = d.integer(0, k_heads - heads);
  const TestTensor q = d.values(t, {batch, rows, q_heads, size});
  const TestTensor k = d.values(t, {batch, keys, k_heads, size});
  const TestTensor v = d.values(t, {batch, keys, k_heads, size});
  const bool scaled = d.chance(0.5);
  const double scale = scaled ? d.real(0.1, 1) : 1 / std::sqrt(static_cast<double>(size));
  TestTensor y = d.values(t, {batch, rows, heads, size});
  for (int64_t i = 0; i < batch * rows * heads; ++i) {
    const int64_t h = i % heads;
    const int64_t b = i / heads / rows;
    const auto of = [&](const TestTensor& x, int64_t key, int64_t first, int64_t e) {
      return x.data[at(((b * keys + key) * k_heads + first + h) * size + e)];
    };
    const std::vector<double> row = attend(
        size, keys, scale,
        [&](int64_t e) { return q.data[at((i / heads * q_heads + q_head + h) * size + e)]; },
        [&](int64_t c, int64_t e) { return of(k, c, k_head, e); },
        [&](int64_t c, int64_t e) { return of(v, c, v_head, e); }, [](int64_t) { return 0.0; });
    std::copy(row.begin(), row.end(), y.data.begin() + i * size);
  }
  Case call{std::string(op)};
  call.in(q).in(k).in(v).integer(heads).integer(q_head).integer(k_head).integer(v_head);
  scaled ? call.number(scale) : call.none();
  call.out(t, y.dims);
  return {call, t == DType::kF16 ? Tolerance{2e-3, 1e-2} : Tolerance{1e-4, 1e-3},
          std::vector<TestTensor>{y}};
}

Drawn draw_attention(std::string_view op, Draw& d) {
  if (is(op, "pteryx.attention")) return packed_attention(op, d);
  if (is(op, "update_cache")) return cache_update(op, d);
  return is(op, "et_vk.sdpa") ? whole_attention(op, d) : cached_attention(op, d);
}

}  // namespace

std::vector<Generator> attention_generators() {
  return {
      {"Attention",
       {"sdpa_with_kv_cache.default", "llama.custom_sdpa.default", "et_vk.sdpa.default",
        "pteryx.attention", "update_cache.default"},
       draw_attention},
  };
}

}  // namespace pteryx::ops::testing
