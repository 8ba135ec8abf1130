// Raw copies and bits. SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/ops/raw.h"

#include <cstring>

#include "pteryx/ops/shaders/raw_copy.h"

namespace pteryx::ops {

Status plan_raw_copy(const Node& n, Plan& p, const Tensor& from, const Tensor& to) {
  if (from.id == to.id) return {};
  const int64_t count = words(to.numel(), to.dtype);
  const shaders::RawCopyParams params{.n = u32(count)};
  return p.dispatch(n, {.shader = &shaders::raw_copy,
                        .bind = {{"x", from}, {"y", to}},
                        .params = bytes_of(params),
                        .grid = per_element(count, p.caps())});
}

void cpu_raw_copy(const HostTensor& from, const HostTensor& to) {
  const size_t bytes = static_cast<size_t>(to.numel()) * size_bytes(to.dtype);
  if (bytes > 0) std::memmove(to.data, from.data, bytes);
}

uint32_t element_bits(double value, DType dtype) {
  std::array<std::byte, 8> bytes{};
  HostTensor{dtype, {}, bytes.data()}.put(0, value);
  uint32_t v = 0;
  for (size_t i = 0; i < 4; ++i) v |= static_cast<uint32_t>(bytes[i]) << (8 * i);
  return v;
}

}  // namespace pteryx::ops
