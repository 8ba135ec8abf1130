// What the library uses of {fmt}, for the web build, whose modules it would make larger. Formats
// are checked where the library is built natively.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>
#include <type_traits>

namespace fmt {
namespace detail {

// Four bits for each argument, the first in the lowest.
enum Kind : uint64_t { kInt = 1, kUnsigned, kBool, kChar, kText, kFloat, kDouble };
constexpr size_t kMostArguments = 16;

union Value {
  constexpr Value() : u(0) {}
  int64_t i;
  uint64_t u;
  double d;
  struct {
    const char* data;
    size_t size;
  } text;
};

template <typename T>
constexpr Kind kind_of() {
  if constexpr (std::is_same_v<T, bool>) {
    return kBool;
  } else if constexpr (std::is_same_v<T, char>) {
    return kChar;
  } else if constexpr (std::is_enum_v<T>) {
    return kInt;
  } else if constexpr (std::is_integral_v<T>) {
    return std::is_signed_v<T> ? kInt : kUnsigned;
  } else if constexpr (std::is_same_v<T, float>) {
    return kFloat;
  } else if constexpr (std::is_same_v<T, double>) {
    return kDouble;
  } else {
    return kText;
  }
}

template <typename T>
inline Value value_of(const T& from) {
  Value v;
  if constexpr (kind_of<T>() == kText) {
    const std::string_view text = from;
    v.text = {text.data(), text.size()};
  } else if constexpr (kind_of<T>() == kFloat || kind_of<T>() == kDouble) {
    v.d = static_cast<double>(from);
  } else {
    v.i = static_cast<int64_t>(from);
  }
  return v;
}

std::string format(std::string_view format, uint64_t kinds, const Value* values);

template <typename... T>
constexpr uint64_t kinds_of() {
  static_assert(sizeof...(T) <= kMostArguments);
  uint64_t kinds = 0;
  size_t shift = 0;
  ((kinds |= kind_of<T>() << shift, shift += 4), ...);
  return kinds;
}

}  // namespace detail

// A list as one text.
struct Joined {
  std::string text;
  operator std::string_view() const { return text; }  // NOLINT: implicit by design
};

template <typename... T>
std::string format(std::string_view text, const T&... arguments) {
  if constexpr (sizeof...(T) == 0) {
    return detail::format(text, 0, nullptr);
  } else {
    const detail::Value values[] = {detail::value_of(arguments)...};
    return detail::format(text, detail::kinds_of<T...>(), values);
  }
}

template <typename... T>
std::back_insert_iterator<std::string> format_to(std::back_insert_iterator<std::string> out,
                                                 std::string_view text, const T&... arguments) {
  for (const char c : format(text, arguments...)) *out++ = c;
  return out;
}

template <typename Range>
Joined join(const Range& range, std::string_view between) {
  Joined all;
  bool first = true;
  for (const auto& item : range) {
    if (!first) all.text += between;
    first = false;
    all.text += format("{}", item);
  }
  return all;
}

}  // namespace fmt
