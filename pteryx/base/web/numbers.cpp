// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/base/web/numbers.h"

#include <algorithm>
#include <cstddef>

#include "pteryx/base/numbers.h"
#include "pteryx/base/web/host.h"

extern "C" {
// What a decimal number spells, as a double.
PTERYX_IMPORT(number_read) double pteryx_number_read(const char* text, size_t size);
// Prints a number into kRoom bytes, and says how many it took.
PTERYX_IMPORT(number_print)
size_t pteryx_number_print(double value, pteryx::web::NumberForm form, int32_t digits, char* out);
}

namespace pteryx {
namespace web {

std::string print_number(double value, NumberForm form, int digits) {
  constexpr size_t kRoom = 128;
  constexpr int kMostDigits = 100;
  std::string text(kRoom, '\0');
  text.resize(pteryx_number_print(value, form, std::min(digits, kMostDigits), text.data()));
  return text;
}

}  // namespace web

double decimal_value(std::string_view text) { return pteryx_number_read(text.data(), text.size()); }

}  // namespace pteryx
