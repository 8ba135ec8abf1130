// What the script around the module does with numbers (web/src/engine/number_imports.ts), by the
// standard library. SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/base/web/numbers.h"

#include <charconv>

namespace pteryx::web {
namespace {

// "1e-07" as a script writes it, "1e-7".
std::string without_zeros(std::string text) {
  const size_t digits = text.find('e') + 2;
  while (text[digits] == '0' && digits + 1 < text.size()) text.erase(digits, 1);
  return text;
}

}  // namespace

std::string print_number(double value, NumberForm form, int digits) {
  char text[512];
  constexpr auto kForm = std::chars_format::scientific;
  switch (form) {
    case NumberForm::kDouble:
      return without_zeros({text, std::to_chars(text, text + sizeof(text), value, kForm).ptr});
    case NumberForm::kFloat:
      return without_zeros(
          {text, std::to_chars(text, text + sizeof(text), static_cast<float>(value), kForm).ptr});
    case NumberForm::kFixed: break;
  }
  return {text,
          std::to_chars(text, text + sizeof(text), value, std::chars_format::fixed, digits).ptr};
}

}  // namespace pteryx::web
