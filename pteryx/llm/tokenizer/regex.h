// The regular expressions of pre-tokenizers: PCRE2 natively (regex_native.cpp), the browser's own
// in a page (regex_web.cpp).
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "pteryx/base/status.h"
#include "pteryx/llm/tokenizer/pieces.h"

namespace pteryx::llm {

// Immutable, and cheap to copy.
class Regex {
 public:
  // Errors: kInvalidProgram with the pattern and where it stops making sense.
  static Result<Regex> compile(std::string_view pattern);

  // Appends every match from left to right; the text is UTF-8. Errors: kInvalidArgument when a
  // match takes more than the fixed amount of work.
  Status find_all(std::string_view text, std::vector<Span>& matches) const;

 private:
  struct Compiled;
  explicit Regex(std::shared_ptr<const Compiled> compiled) : compiled_(std::move(compiled)) {}
  std::shared_ptr<const Compiled> compiled_;
};

}  // namespace pteryx::llm
