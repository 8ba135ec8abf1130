// HostTensor: element access for CPU kernels. SPDX-License-Identifier: BSD-3-Clause
#include <cmath>
#include <cstring>

#include "pteryx/ops/op.h"

namespace pteryx::ops {
namespace {

template <typename T>
T get(const std::byte* data, int64_t i) {
  T v;
  std::memcpy(&v, data + static_cast<size_t>(i) * sizeof(T), sizeof(T));
  return v;
}
template <typename T>
void set(std::byte* data, int64_t i, T v) {
  std::memcpy(data + static_cast<size_t>(i) * sizeof(T), &v, sizeof(T));
}

// Truncation toward zero that is defined for every double.
int64_t truncate(double v) {
  if (std::isnan(v)) return 0;
  if (v >= 0x1p63) return std::numeric_limits<int64_t>::max();
  if (v <= -0x1p63) return std::numeric_limits<int64_t>::min();
  return static_cast<int64_t>(v);
}

}  // namespace

double HostTensor::number(int64_t i) const {
  switch (dtype) {
    case DType::kF16: return static_cast<double>(half_to_float(get<uint16_t>(data, i)));
    case DType::kBF16: return static_cast<double>(bfloat16_to_float(get<uint16_t>(data, i)));
    case DType::kF32: return static_cast<double>(get<float>(data, i));
    case DType::kF64: return get<double>(data, i);
    default: return static_cast<double>(integer(i));
  }
}

int64_t HostTensor::integer(int64_t i) const {
  switch (dtype) {
    case DType::kBool: return get<uint8_t>(data, i) != 0 ? 1 : 0;
    case DType::kU8: return get<uint8_t>(data, i);
    case DType::kI8: return get<int8_t>(data, i);
    case DType::kI16: return get<int16_t>(data, i);
    case DType::kU16: return get<uint16_t>(data, i);
    case DType::kI32: return get<int32_t>(data, i);
    case DType::kU32: return get<uint32_t>(data, i);
    case DType::kI64: return get<int64_t>(data, i);
    case DType::kU64: return static_cast<int64_t>(get<uint64_t>(data, i));
    default: return truncate(number(i));
  }
}

void HostTensor::put(int64_t i, double v) const {
  switch (dtype) {
    case DType::kF16: return set(data, i, double_to_half(v));
    case DType::kBF16: return set(data, i, float_to_bfloat16(static_cast<float>(v)));
    case DType::kF32: return set(data, i, static_cast<float>(v));
    case DType::kF64: return set(data, i, v);
    case DType::kBool: return set(data, i, static_cast<uint8_t>(v != 0.0 ? 1 : 0));
    default: return put_integer(i, truncate(v));
  }
}

void HostTensor::put_integer(int64_t i, int64_t v) const {
  switch (dtype) {
    case DType::kBool: return set(data, i, static_cast<uint8_t>(v != 0 ? 1 : 0));
    case DType::kU8: return set(data, i, static_cast<uint8_t>(v));
    case DType::kI8: return set(data, i, static_cast<int8_t>(v));
    case DType::kI16: return set(data, i, static_cast<int16_t>(v));
    case DType::kU16: return set(data, i, static_cast<uint16_t>(v));
    case DType::kI32: return set(data, i, static_cast<int32_t>(v));
    case DType::kU32: return set(data, i, static_cast<uint32_t>(v));
    case DType::kI64: return set(data, i, v);
    case DType::kU64: return set(data, i, static_cast<uint64_t>(v));
    default: return put(i, static_cast<double>(v));
  }
}

void HostTensor::put_scalar(int64_t i, const Scalar& v) const {
  if (v.kind == graph::ScalarKind::kDouble) return put(i, v.d);
  put_integer(i, v.i);
}

void HostTensor::copy(int64_t i, const HostTensor& from, int64_t j) const {
  const size_t size = size_bytes(dtype);
  if (dtype == from.dtype) {
    std::memcpy(data + static_cast<size_t>(i) * size, from.data + static_cast<size_t>(j) * size,
                size);
  } else if (is_float(from.dtype)) {
    put(i, from.number(j));
  } else {
    put_integer(i, from.integer(j));
  }
}

}  // namespace pteryx::ops
