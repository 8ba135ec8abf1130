// One attention call as numbers: what its arguments say, checked once for the shape rule, the
// routes and the CPU kernel.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include "pteryx/ops/op.h"

namespace pteryx::ops::attention {

// Where an operator has its arguments; kNone where it has none.
struct Places {
  static constexpr uint8_t kNone = 255;
  uint8_t new_k = kNone;  // rows to be written into the cache first
  uint8_t new_v = kNone;
  uint8_t k = 1;
  uint8_t v = 2;
  uint8_t start = kNone;
  uint8_t mask = kNone;
  uint8_t dropout = kNone;
  uint8_t causal = kNone;
  uint8_t scale = kNone;
  uint8_t heads = kNone;  // of a call over packed heads, followed by the first one of q, k and v
};

// Elements between neighbours of a dim.
struct Strides {
  int64_t batch = 0;
  int64_t head = 0;
  int64_t row = 0;
  int64_t first = 0;  // before the first element

  int64_t at(int64_t b, int64_t h, int64_t r) const {
    return first + b * batch + h * head + r * row;
  }
};

struct Attention {
  Tensor q;
  Tensor k;  // what is attended over: the caches, or whole tensors
  Tensor v;
  std::optional<Tensor> mask;  // added to the scores, or bool: false keeps a key out
  int64_t batch = 1;
  int64_t heads = 1;     // of q
  int64_t group = 1;     // heads of q to one of k
  int64_t rows = 0;      // of q
  int64_t keys = 0;      // 0: as many as there are rows in the caches after this call, start + rows
  int64_t size = 0;      // of a head
  int64_t capacity = 0;  // rows of the caches, or keys
  bool causal = false;
  double scale = 1;
  Strides q_strides;
  Strides k_strides;    // of v as well, but for
  int64_t v_first = 0;  // where that begins
  Strides y_strides;
  std::array<int64_t, 4> mask_strides{};  // batch, head, row, key
};

const Places& places(const Node& n);
// Everything but the position of q's first row, which may be live. Errors: kInvalidArgument for
// shapes that contradict each other, kUnsupported for dropout.
Result<Attention> read_attention(const Node& n);
// "pteryx.attention": q, k, v, heads, q_head, k_head, v_head, scale?, y, over whole tensors of
// packed heads: q [batch, rows, .., size], k and v [batch, keys, .., size], of whose heads a call
// has `heads` from q_head, k_head and v_head on; y [batch, rows, heads, size]. q, k and v may be
// one.
inline constexpr const char* kPackedOp = "pteryx.attention";

// Where q's first row stands: 0 where an operator has no caches.
LiveInt start_of(const Node& n);

// Rows that go into a cache: x [batch, rows, heads, size] from some row of cache on.
struct CacheRows {
  Tensor x;
  Tensor cache;
};
// The first row, after checking that the rows of argument x fit the cache from there on. Errors:
// kInvalidArgument. The arguments are positions in n.
Result<int64_t> read_start(const Node& n, size_t x, size_t cache, size_t start);
// Errors: kInvalidArgument for shapes that contradict each other.
Result<CacheRows> read_cache_rows(const Node& n, size_t x, size_t cache);
Status plan_cache_rows(const Node& n, Plan& p, LiveInt start, const CacheRows& k,
                       const CacheRows* v);
// The rows that a call of n puts into its caches before it attends; nothing where it has none.
Status plan_new_rows(const Node& n, Plan& p);
// Every word of the cache belongs to one batch.
bool cache_fits_gpu(const Tensor& cache);
void write_cache_rows(const Host& h, const CacheRows& c, int64_t start);
// The same with threads; false: not for these types, and nothing was done.
bool copy_cache_rows(const Host& h, const CacheRows& r, int64_t start, CpuContext& c);
// The CPU kernel that is not the reference.
Result<bool> fast(const Node& n, const Host& host, CpuContext& c);

// The routes of the family, in order of preference.
std::span<const Route> routes();
inline constexpr int64_t kMaxSize = 1024;  // of a head on the GPU

}  // namespace pteryx::ops::attention
