// Rows written into a key-value cache: update_cache, and the first step of sdpa_with_kv_cache.
// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>

#include "pteryx/ops/attention/attention.h"
#include "pteryx/ops/float_rows.h"
#include "pteryx/ops/shaders/attention_cache.h"

namespace pteryx::ops::attention {
namespace {

int64_t lanes(DType t) { return 4 / static_cast<int64_t>(size_bytes(t)); }

}  // namespace

Result<int64_t> read_start(const Node& n, size_t x_arg, size_t cache_arg, size_t start_arg) {
  PTERYX_ASSIGN(const int64_t start, n.integer(start_arg));
  const int64_t rows = n.in(x_arg).dim(1);
  const int64_t capacity = n.in(cache_arg).dim(1);
  if (start < 0) {
    return n.fail(Code::kInvalidArgument,
                  fmt::format("start_pos: expected 0 or more, got {}", start));
  }
  if (rows < 1) {
    return n.fail(Code::kInvalidArgument, fmt::format("{} has no rows", n.def().args[x_arg].name));
  }
  if (start > capacity - rows) {
    return n.fail(Code::kInvalidArgument,
                  fmt::format("start_pos {} + {} rows exceed the {} rows of {}", start, rows,
                              capacity, n.def().args[cache_arg].name));
  }
  return start;
}

Result<CacheRows> read_cache_rows(const Node& n, size_t x_arg, size_t cache_arg) {
  const CacheRows c{.x = n.in(x_arg), .cache = n.in(cache_arg)};
  PTERYX_TRY(n.expect(x_arg, "shape", {c.cache.dim(0), c.x.dim(1), c.cache.dim(2), c.cache.dim(3)},
                      c.x.dims));
  return c;
}

bool cache_fits_gpu(const Tensor& cache) {
  const int64_t batch = cache.dim(0);
  return batch == 1 || (cache.numel() / std::max<int64_t>(batch, 1)) % lanes(cache.dtype) == 0;
}

Status plan_cache_rows(const Node& n, Plan& p, LiveInt start, const CacheRows& k,
                       const CacheRows* v) {
  const int64_t batch = k.x.dim(0);
  const int64_t row = k.x.dim(2) * k.x.dim(3);
  const int64_t count = k.x.dim(1) * row;
  // Rows that begin inside a word touch one word more.
  const int64_t per_word = std::min(lanes(k.cache.dtype), v == nullptr ? 4 : lanes(v->cache.dtype));
  const int64_t per_batch = count == 0 ? 0 : (count + per_word - 1) / per_word + (per_word > 1);
  const shaders::AttentionCacheParams params{.n = u32(count),
                                             .start = start.word,
                                             .row = u32(row),
                                             .pitch = u32(k.cache.dim(1) * row),
                                             .words = u32(per_batch),
                                             .items = u32(batch * per_batch)};
  std::vector<Bind> bind = {{"k", k.x}, {"k_cache", k.cache}};
  if (v != nullptr) bind.insert(bind.end(), {{"v", v->x}, {"v_cache", v->cache}});
  const char* const caches = v == nullptr ? "one" : "both";
  return p.dispatch(n, {.shader = &shaders::attention_cache,
                        .options = {{"caches", caches}},
                        .variant = caches,
                        .bind = std::move(bind),
                        .params = bytes_of(params),
                        .live = {start},
                        .grid = per_element(batch * per_batch, p.caps())});
}

Status plan_new_rows(const Node& n, Plan& p) {
  const Places& at = places(n);
  if (at.new_k == Places::kNone) return {};
  PTERYX_ASSIGN(const CacheRows k, read_cache_rows(n, at.new_k, at.k));
  PTERYX_ASSIGN(const CacheRows v, read_cache_rows(n, at.new_v, at.v));
  return plan_cache_rows(n, p, start_of(n), k, &v);
}

void write_cache_rows(const Host& h, const CacheRows& c, int64_t start) {
  const HostTensor x = h.host(c.x.id);
  const HostTensor cache = h.host(c.cache.id);
  const int64_t row = c.x.dim(2) * c.x.dim(3);
  const int64_t count = c.x.dim(1) * row;
  for (int64_t i = 0; i < x.numel(); ++i) {
    cache.copy(i / count * c.cache.dim(1) * row + start * row + i % count, x, i);
  }
}

bool copy_cache_rows(const Host& h, const CacheRows& r, int64_t start, CpuContext& c) {
  if (r.x.dtype != r.cache.dtype && (!is_f32_or_f16(r.x) || !is_f32_or_f16(r.cache))) return false;
  const HostTensor x = h.host(r.x.id);
  const HostTensor cache = h.host(r.cache.id);
  const int64_t row = r.x.dim(2) * r.x.dim(3);
  const int64_t count = r.x.dim(1) * row;
  for (int64_t b = 0; b < r.x.dim(0); ++b) {
    const int64_t to = (b * r.cache.dim(1) + start) * row;
    for_parts(c, size(count), kPartElements, [&](size_t begin, size_t end) {
      const auto at = static_cast<int64_t>(begin);
      copy_elements(x, b * count + at, cache, to + at, end - begin);
    });
  }
  return true;
}

}  // namespace pteryx::ops::attention
