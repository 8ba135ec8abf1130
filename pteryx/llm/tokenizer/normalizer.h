// What is done to a text before it is cut, as a tokenizer.json lists it.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "pteryx/base/status.h"
#include "pteryx/llm/tokenizer/regex.h"
#include "pteryx/llm/tokenizer/unicode.h"

namespace pteryx::llm {

// What a file looks for: a plain string, or a regular expression.
struct Pattern {
  std::variant<std::string, Regex> what;
  Status find_all(std::string_view text, std::vector<Span>& matches) const;
};

struct Prepend {
  std::string text;
};
struct Replace {
  Pattern pattern;
  std::string text;
};
struct Lowercase {};
struct StripAccents {};
struct StripSpace {
  bool left = true;
  bool right = true;
};

using Normalizer = std::variant<NormalForm, Prepend, Replace, Lowercase, StripAccents, StripSpace>;

// Errors: kInvalidArgument from a pattern.
Result<std::string> apply_normalizers(const std::vector<Normalizer>& steps, std::string_view text);

}  // namespace pteryx::llm
