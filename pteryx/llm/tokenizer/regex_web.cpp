// Regular expressions by the browser, which has no limit on the work of a match, only on memory.
// SPDX-License-Identifier: BSD-3-Clause
#include <utility>

#include <fmt/format.h>

#include "pteryx/base/excerpt.h"
#include "pteryx/llm/tokenizer/regex.h"
#include "pteryx/llm/tokenizer/web_imports.h"

namespace pteryx::llm {

struct Regex::Compiled {
  Compiled(int32_t number, std::string_view text) : regex(number), pattern(text) {}
  Compiled(const Compiled&) = delete;
  Compiled& operator=(const Compiled&) = delete;
  ~Compiled() { pteryx_regex_release(regex); }
  int32_t regex;
  std::string pattern;
};

Result<Regex> Regex::compile(std::string_view pattern) {
  const int32_t regex = pteryx_regex_compile(pattern.data(), pattern.size());
  if (regex == 0) {
    return invalid_program(
        fmt::format("regular expression '{}': the browser does not accept it", excerpt(pattern)));
  }
  return Regex(std::make_shared<const Compiled>(regex, pattern));
}

Status Regex::find_all(std::string_view text, std::vector<Span>& matches) const {
  static_assert(sizeof(Span) == 2 * sizeof(uint32_t));
  const size_t before = matches.size();
  matches.resize(before + text.size());  // a match takes at least a byte
  const size_t found = pteryx_regex_find_all(compiled_->regex, text.data(), text.size(),
                                             reinterpret_cast<uint32_t*>(matches.data() + before));
  if (found == SIZE_MAX) {
    matches.resize(before);
    return invalid_argument(
        fmt::format("regular expression '{}' with a text of {} bytes: the browser gave up",
                    excerpt(compiled_->pattern), text.size()));
  }
  matches.resize(before + found);
  return {};
}

}  // namespace pteryx::llm
