// Merged walks. SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/ops/strided.h"

namespace pteryx::ops {

Dims broadcast_strides(const Dims& dims, const Dims& to) {
  const Dims own = contiguous_strides(dims);
  Dims strides = Dims::filled(to.rank(), 0);
  for (size_t i = 0; i < dims.rank(); ++i) {
    if (dims[i] != 1) strides[to.rank() - dims.rank() + i] = own[i];
  }
  return strides;
}

Walk merge_dims(const Dims& dims, std::span<const Dims> strides) {
  Walk w;
  for (size_t d = 0; d < dims.rank(); ++d) {
    if (dims[d] == 1) continue;
    bool merge = !w.dims.empty();
    for (size_t k = 0; merge && k < strides.size(); ++k)
      merge = w.strides[k].back() == strides[k][d] * dims[d];
    if (merge) {
      w.dims[w.dims.rank() - 1] *= dims[d];
      for (size_t k = 0; k < strides.size(); ++k) w.strides[k][w.dims.rank() - 1] = strides[k][d];
    } else {
      w.dims.push_back(dims[d]);
      for (size_t k = 0; k < strides.size(); ++k) w.strides[k].push_back(strides[k][d]);
    }
  }
  return w;
}

std::array<uint32_t, 8> packed_dims(const Dims& dims) {
  std::array<uint32_t, 8> out;
  out.fill(1);
  for (size_t i = 0; i < dims.rank(); ++i) out[kMaxRank - dims.rank() + i] = u32(dims[i]);
  return out;
}

std::array<uint32_t, 8> packed_strides(const Dims& strides) {
  std::array<uint32_t, 8> out{};
  for (size_t i = 0; i < strides.rank(); ++i) out[kMaxRank - strides.rank() + i] = u32(strides[i]);
  return out;
}

}  // namespace pteryx::ops
