// One call of pooling as numbers: what its arguments say, checked once for the shape rule, the
// shader and the CPU kernels.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

#include "pteryx/ops/op.h"

namespace pteryx::ops::pooling {

enum class Form : uint8_t {
  kMean,
  kMeanDivisor,
  kMax,
  kMaxIndices,
  kAdaptiveMean,
  kAdaptiveMaxIndices
};

inline bool is_max(Form f) {
  return f == Form::kMax || f == Form::kMaxIndices || f == Form::kAdaptiveMaxIndices;
}
inline bool is_adaptive(Form f) {
  return f == Form::kAdaptiveMean || f == Form::kAdaptiveMaxIndices;
}

// One axis. `adaptive` windows are cut from sizes alone, the others slide.
struct Axis {
  int64_t in = 1;
  int64_t out = 1;
  int64_t kernel = 1;
  int64_t stride = 1;
  int64_t padding = 0;
  int64_t dilation = 1;
};
// 1-D pooling has a height of 1.
struct Pool {
  Axis h;
  Axis w;
};

// Reads and checks a call.
Result<Pool> read_pool(const Node& n);
Form form_of(const Node& n);
bool wants_indices(const Node& n);  // the second result may be unused

// What a mean is divided by.
enum class DivisorKind : uint8_t { kGiven, kWindow, kArea };
struct Divisor {
  DivisorKind kind = DivisorKind::kArea;
  double given = 1;
};
Divisor divisor(const Node& n);

// What a window covers along an axis: elements inside, and how many there are with padding.
struct Span {
  int64_t begin = 0;
  int64_t end = 0;
  int64_t size = 0;
};
Span span(const Axis& a, int64_t o, bool adaptive);

// With vectors and threads: f32 or f16, windows of one size.
Result<bool> fast(const Node& n, const Host& h, CpuContext& context);

}  // namespace pteryx::ops::pooling
