// Which format a matrix gets. SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>

#include "pteryx/convert/convert.h"

namespace pteryx::convert {
namespace {

constexpr int64_t kQ4_0Group = 32;
constexpr int64_t kSampledRows = 32;

// What the operators can hold: whole groups; rows of whole words for the embedding, whose width
// they take from the bytes.
bool can_hold_q4(const Matrix& m, int64_t group, bool embedding) {
  return m.cols % group == 0 && m.cols % (embedding ? 8 : 4) == 0;
}

Encoding q4_or_q8(const Matrix& m, const ConvertOptions& o, bool embedding) {
  if (can_hold_q4(m, o.group_size, embedding)) return {Target::kQ4, o.group_size};
  return {Target::kQ8};
}

Result<Encoding> smallest(const Matrix& m, const ConvertOptions& o, bool embedding) {
  const Encoding exact = {Target::kQ4, kQ4_0Group};
  if (can_hold_q4(m, kQ4_0Group, embedding) && m.data->has_codes(exact)) return exact;
  const Encoding q4 = {Target::kQ4, o.group_size};
  if (can_hold_q4(m, o.group_size, embedding)) {
    // Some rows say whether looking at all of them is worth it.
    PTERYX_ASSIGN(const Error some, measure(m, q4, std::max<int64_t>(m.rows / kSampledRows, 1)));
    if (some.relative() < 2 * kErrorBound) {
      PTERYX_ASSIGN(const Error all, measure(m, q4));
      if (all.relative() < kErrorBound) return q4;
    }
  }
  for (const Target t : {Target::kQ8, Target::kF16}) {
    PTERYX_ASSIGN(const Error all, measure(m, {t}));
    if (all.relative() < kErrorBound) return Encoding{t};
  }
  return Encoding{Target::kF32};
}

}  // namespace

Result<Encoding> choose(const Matrix& m, const ConvertOptions& o, bool embedding) {
  switch (o.quantize) {
    case Quantize::kNone: return Encoding{Target::kF32};
    case Quantize::kF16: return Encoding{Target::kF16};
    case Quantize::kQ8: return Encoding{Target::kQ8};
    case Quantize::kQ4: return q4_or_q8(m, o, embedding);
    case Quantize::kAuto: break;
  }
  return smallest(m, o, embedding);
}

}  // namespace pteryx::convert
