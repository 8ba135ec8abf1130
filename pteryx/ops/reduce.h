// Reductions as the GPU plan and the CPU kernel see them. SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "pteryx/ops/op.h"
#include "pteryx/ops/strided.h"

namespace pteryx::ops {

enum class ReduceRule : uint8_t {
  kSum,
  kMean,
  kProd,
  kMax,
  kMin,
  kArgMax,
  kArgMin,
  kPairMax,
  kPairMin,
  kVar,
  kStd,
  kVarMean
};
constexpr bool is_extreme(ReduceRule r) {
  return r >= ReduceRule::kMax && r <= ReduceRule::kPairMin;
}
constexpr bool is_minimum(ReduceRule r) {
  return r == ReduceRule::kMin || r == ReduceRule::kArgMin || r == ReduceRule::kPairMin;
}
constexpr bool has_index(ReduceRule r) {
  return r >= ReduceRule::kArgMax && r <= ReduceRule::kPairMin;
}
constexpr bool has_value(ReduceRule r) {
  return r != ReduceRule::kArgMax && r != ReduceRule::kArgMin;
}
constexpr bool is_variance(ReduceRule r) { return r >= ReduceRule::kVar; }

// x as rows x items: the kept and the reduced dims with their strides.
struct Reduction {
  ReduceRule rule = ReduceRule::kSum;
  double correction = 0;  // taken off the count in variances
  Walk rows, items;
  int64_t row_count = 1;
  int64_t length = 1;
};
Result<Reduction> describe_reduction(const Node& n);

std::span<const Route> reduce_routes();
Status reduce_on_cpu(const Node& n, const Host& h);
// With vectors and threads: sums and means of what lies together.
Result<bool> reduce_fast(const Node& n, const Host& h, CpuContext& c);

}  // namespace pteryx::ops
