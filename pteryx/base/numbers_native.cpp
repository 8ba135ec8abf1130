// Reads numbers whatever the program's locale is. SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <charconv>
#include <cstdint>
#include <limits>
#include <system_error>

#include "pteryx/base/numbers.h"

namespace pteryx {
namespace {

// Whether a number that no double can hold is too large for one, rather than too small: whether its
// first digit that is not 0 stands far before the point.
bool is_large(std::string_view text) {
  const size_t e = std::min(text.find_first_of("eE"), text.size());
  const std::string_view digits = text.substr(0, e);
  const size_t point = std::min(digits.find('.'), digits.size());
  const size_t first = digits.find_first_of("123456789");
  const auto before = static_cast<int64_t>(point) - static_cast<int64_t>(first);
  std::string_view tail = text.substr(std::min(e + 1, text.size()));
  if (tail.starts_with('+')) tail.remove_prefix(1);
  int64_t exponent = 0;
  const auto [end, error] = std::from_chars(tail.data(), tail.data() + tail.size(), exponent);
  if (error == std::errc::result_out_of_range) return !tail.starts_with('-');
  return exponent > -before;
}

}  // namespace

double decimal_value(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc()) return value;
  const double beyond = is_large(text) ? std::numeric_limits<double>::infinity() : 0.0;
  return text.starts_with('-') ? -beyond : beyond;
}

}  // namespace pteryx
