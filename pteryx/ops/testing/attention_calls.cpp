// Calls of attention for tests. SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/ops/testing/attention_calls.h"

#include <cmath>

#include <gtest/gtest.h>

namespace pteryx::ops::testing {
namespace {

size_t at(int64_t i) { return static_cast<size_t>(i); }

std::string text_of(const AttentionShape& s, DType t, DType cache, int64_t batch) {
  return fmt::format("hq {} hkv {} d {} capacity {} rows {} pos {} {} {} batch {}", s.hq, s.hkv,
                     s.d, s.capacity, s.rows, s.pos, name(t), name(cache), batch);
}

Tolerance tolerance_of(DType t, DType cache) {
  return t == DType::kF16 || cache == DType::kF16 ? kAttentionHalf : kAttentionFloat;
}

}  // namespace

TestTensor attention_reference(const TestTensor& q, const TestTensor& k, const TestTensor& v,
                               int64_t keys, int64_t pos, Rule rule, double scale,
                               const TestTensor* mask) {
  TestTensor y = q;
  const int64_t rows = q.dims[1];
  const int64_t heads = q.dims[2];
  const int64_t size = q.dims[3];
  const int64_t kv = k.dims[2];
  for (int64_t b = 0; b < q.dims[0]; ++b) {
    for (int64_t s = 0; s < rows; ++s) {
      for (int64_t h = 0; h < heads; ++h) {
        const int64_t from = ((b * rows + s) * heads + h) * size;
        const auto row = [&](int64_t c) {
          return ((b * k.dims[1] + c) * kv + h / (heads / kv)) * size;
        };
        const int64_t end = rule == Rule::kCausal ? pos + s + 1 : keys;
        std::vector<double> p(at(end));
        double top = -INFINITY;
        for (int64_t c = 0; c < end; ++c) {
          double dot = 0;
          for (int64_t d = 0; d < size; ++d) dot += q.data[at(from + d)] * k.data[at(row(c) + d)];
          p[at(c)] = dot * scale;
          if (mask != nullptr) {
            const double m = mask->data[at(s * keys + c)];
            p[at(c)] = mask->dtype == DType::kBool ? (m != 0 ? p[at(c)] : -3e38)
                                                   : p[at(c)] + std::fmax(m, -3e38);
          }
          top = std::fmax(top, p[at(c)]);
        }
        double sum = 0;
        for (double& w : p) sum += w = std::exp(w - top);
        for (int64_t d = 0; d < size; ++d) {
          double out = 0;
          for (int64_t c = 0; c < end; ++c) out += p[at(c)] / sum * v.data[at(row(c) + d)];
          y.data[at(from + d)] = out;
        }
      }
    }
  }
  return y;
}

TestTensor with_rows(TestTensor cache, const TestTensor& x, int64_t pos) {
  const int64_t row = cache.dims[2] * cache.dims[3];
  const int64_t count = x.dims[1] * row;
  for (int64_t i = 0; i < numel(x.dims); ++i)
    cache.data[at(i / count * cache.dims[1] * row + pos * row + i % count)] = x.data[at(i)];
  return cache;
}

CachedCall::CachedCall(const AttentionShape& s, DType t, DType cache, int64_t batch, double spread)
    : q(random(t, {batch, s.rows, s.hq, s.d}, 1, -spread, spread)),
      k(random(t, {batch, s.rows, s.hkv, s.d}, 2)),
      v(random(t, {batch, s.rows, s.hkv, s.d}, 3)),
      k_cache(random(cache, {batch, s.capacity, s.hkv, s.d}, 4)),
      v_cache(random(cache, {batch, s.capacity, s.hkv, s.d}, 5)),
      pos(s.pos) {}

Case CachedCall::call() const {
  return Case("sdpa_with_kv_cache.default").in(q).in(k).in(v).in(k_cache).in(v_cache);
}
Case CachedCall::causal_call() const {
  return call().live(pos).integer(1).none().integer(0).flag(true).none().out(q.dtype, q.dims);
}
TestTensor CachedCall::new_k() const { return with_rows(k_cache, round_to(k, k_cache.dtype), pos); }
TestTensor CachedCall::new_v() const { return with_rows(v_cache, round_to(v, v_cache.dtype), pos); }
double CachedCall::scale() const { return 1 / std::sqrt(static_cast<double>(q.dims[3])); }
std::vector<TestTensor> CachedCall::want(Rule rule, double scale_by) const {
  return {attention_reference(q, new_k(), new_v(), pos + q.dims[1], pos, rule, scale_by), new_k(),
          new_v()};
}

void expect_causal(const AttentionShape& s, DType t, DType cache, int64_t batch) {
  SCOPED_TRACE(text_of(s, t, cache, batch));
  const CachedCall c(s, t, cache, batch);
  expect_op(c.causal_call(), c.want(Rule::kCausal, c.scale()), tolerance_of(t, cache));
}

void expect_causal_by(const std::string& route, const AttentionShape& s, DType t, DType cache,
                      int64_t batch) {
  SCOPED_TRACE(text_of(s, t, cache, batch));
  const CachedCall c(s, t, cache, batch);
  const auto got = run(c.causal_call(), Where::kGpu, route);
  ASSERT_TRUE(got.ok()) << got.status().message();
  EXPECT_EQ(compare(*got, c.want(Rule::kCausal, c.scale()), tolerance_of(t, cache)), "");
}

}  // namespace pteryx::ops::testing
