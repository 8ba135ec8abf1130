// Integer arithmetic that says when it overflows. Sizes from files go through here before use.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <concepts>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>

namespace pteryx {

template <std::integral T>
constexpr std::optional<T> checked_mul(T a, T b) {
  T r{};
  if (__builtin_mul_overflow(a, b, &r)) return std::nullopt;
  return r;
}

template <std::integral T>
constexpr std::optional<T> checked_add(T a, T b) {
  T r{};
  if (__builtin_add_overflow(a, b, &r)) return std::nullopt;
  return r;
}

// The product or sum, or the largest number where it is larger than that.
template <std::unsigned_integral T>
constexpr T saturating_mul(T a, T b) {
  return checked_mul(a, b).value_or(std::numeric_limits<T>::max());
}

template <std::unsigned_integral T>
constexpr T saturating_add(T a, T b) {
  return checked_add(a, b).value_or(std::numeric_limits<T>::max());
}

// True if [offset, offset + size) lies inside [0, limit).
constexpr bool in_range(uint64_t offset, uint64_t size, uint64_t limit) {
  return offset <= limit && size <= limit - offset;
}

template <std::integral To, std::integral From>
constexpr bool fits(From v) {
  return std::in_range<To>(v);
}

constexpr uint64_t align_up(uint64_t v, uint64_t alignment) {
  return (v + alignment - 1) / alignment * alignment;
}

constexpr uint64_t div_up(uint64_t v, uint64_t by) { return v == 0 ? 0 : (v - 1) / by + 1; }

}  // namespace pteryx
