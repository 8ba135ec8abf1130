// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/ops/scaled_rows.h"

#include "pteryx/cpu/codes.h"

namespace pteryx::ops {

bool can_read_rows(const ScaledTable& t, bool bytes, DType codes) {
  if (bytes) return codes == DType::kI8 || codes == DType::kU8;
  return codes == DType::kU8 && t.group % 2 == 0;
}

void read_row(const ScaledRows& r, int64_t token, float* to) {
  const ScaledTable& t = r.table;
  const bool is_signed = r.codes.dtype == DType::kI8;
  cpu::CodeKind kind = is_signed ? cpu::CodeKind::kSigned : cpu::CodeKind::kUnsigned;
  if (!r.bytes) kind = t.low_first ? cpu::CodeKind::kLowFirst : cpu::CodeKind::kHighFirst;
  const std::byte* const codes = r.codes.data + size(token * t.row_bytes);
  for (int64_t e = 0; e < t.width; e += t.group) {
    const int64_t at = t.scale_at(token, e);
    const double zero = r.zeros.data == nullptr ? 0 : r.zeros.number(at);
    cpu::decode(kind, codes + size(r.bytes ? e : e / 2), size(t.group), static_cast<float>(zero),
                static_cast<float>(r.scales.number(at)), to + e);
  }
}

}  // namespace pteryx::ops
