// Expressions of kernel files. SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "pteryx/base/status.h"
#include "pteryx/ops/kernel/expand.h"

namespace pteryx::ops {

// What a name stands for: a value, and, where it is an option, what other values that has.
struct NamedValue {
  OptionValue value;
  const OptionDeclaration* option = nullptr;
};
using Names = std::function<std::optional<NamedValue>(std::string_view name)>;

// Evaluates all of `text`. Errors: kInvalidArgument, without a place. A name that nobody knows is a
// word, and may only be compared with an option that has it.
Result<OptionValue> evaluate(std::string_view text, const Names& names);

// Where the parenthesis that text[open] opens is closed; npos where it is not.
size_t closing_parenthesis(std::string_view text, size_t open);

constexpr bool is_name_start(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }
constexpr bool is_name_part(char c) { return is_name_start(c) || is_digit(c); }

std::string to_text(const OptionValue& v);

}  // namespace pteryx::ops
