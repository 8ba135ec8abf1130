// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/base/numbers.h"

#include <algorithm>
#include <cstddef>
#include <limits>

namespace pteryx {
namespace {

bool is_sign(char c) { return c == '+' || c == '-'; }

// How many digits a text begins with.
size_t count_digits(std::string_view text) {
  return std::min(text.find_first_not_of("0123456789"), text.size());
}

bool is_word(std::string_view text, std::string_view lower) {
  return std::ranges::equal(text, lower, [](char a, char b) { return (a | 0x20) == b; });
}

}  // namespace

bool is_decimal(std::string_view text) {
  if (!text.empty() && is_sign(text[0])) text.remove_prefix(1);
  size_t digits = count_digits(text);
  text.remove_prefix(digits);
  if (text.starts_with('.')) {
    text.remove_prefix(1);
    const size_t behind = count_digits(text);
    text.remove_prefix(behind);
    digits += behind;
  }
  if (digits == 0) return false;
  if (text.empty()) return true;
  if (text[0] != 'e' && text[0] != 'E') return false;
  text.remove_prefix(1);
  if (!text.empty() && is_sign(text[0])) text.remove_prefix(1);
  return !text.empty() && count_digits(text) == text.size();
}

std::optional<double> read_real(std::string_view text) {
  if (is_decimal(text)) return decimal_value(text);
  const bool minus = text.starts_with('-');
  if (!text.empty() && is_sign(text[0])) text.remove_prefix(1);
  double value = std::numeric_limits<double>::infinity();
  if (is_word(text, "nan")) {
    value = std::numeric_limits<double>::quiet_NaN();
  } else if (!is_word(text, "inf") && !is_word(text, "infinity")) {
    return std::nullopt;
  }
  return minus ? -value : value;
}

}  // namespace pteryx
