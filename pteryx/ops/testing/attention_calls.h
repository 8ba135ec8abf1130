// Calls of attention for tests, with a plain reference in double. SPDX-License-Identifier:
// BSD-3-Clause
#pragma once

#include "pteryx/ops/testing/op_harness.h"

namespace pteryx::ops::testing {

inline constexpr Tolerance kAttentionFloat{1e-4, 1e-3};
inline constexpr Tolerance kAttentionHalf{2e-3, 1e-2};

struct AttentionShape {
  int64_t hq, hkv, d, capacity, rows, pos;
};

enum class Rule : uint8_t { kCausal, kAll };

// q [B, S, Hq, D] over caches [B, T, Hkv, D], keys 0 .. keys - 1; mask [S, keys] is added.
TestTensor attention_reference(const TestTensor& q, const TestTensor& k, const TestTensor& v,
                               int64_t keys, int64_t pos, Rule rule, double scale,
                               const TestTensor* mask = nullptr);

// The cache with x in its rows from pos on.
TestTensor with_rows(TestTensor cache, const TestTensor& x, int64_t pos);

// A call of sdpa_with_kv_cache with caches full of old rows.
struct CachedCall {
  TestTensor q, k, v, k_cache, v_cache;
  int64_t pos;

  CachedCall(const AttentionShape& s, DType t, DType cache, int64_t batch = 1, double spread = 1);

  Case call() const;         // up to the caches
  Case causal_call() const;  // the whole, at a live position
  TestTensor new_k() const;
  TestTensor new_v() const;
  double scale() const;
  std::vector<TestTensor> want(Rule rule, double scale_by) const;
};

// One route of a causal call against the reference; the default one where it does not fit.
void expect_causal_by(const std::string& route, const AttentionShape& s, DType t, DType cache,
                      int64_t batch = 1);
// Every route of a causal call against the reference.
void expect_causal(const AttentionShape& s, DType t, DType cache, int64_t batch = 1);

}  // namespace pteryx::ops::testing
