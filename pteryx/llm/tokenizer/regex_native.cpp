// The only place that knows PCRE2.
// SPDX-License-Identifier: BSD-3-Clause
#include <utility>

#include <fmt/format.h>

#include "pteryx/llm/tokenizer/regex.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "pteryx/base/excerpt.h"
#include "pteryx/llm/tokenizer/utf8.h"

namespace pteryx::llm {
namespace {

constexpr uint32_t kMatchSteps = 5'000'000;
constexpr uint32_t kHeapKib = 64 * 1024;
constexpr size_t kLongestPattern = 16 * 1024;

template <auto Release>
struct Releaser {
  void operator()(auto* handle) const { Release(handle); }
};
using Code_ = std::unique_ptr<pcre2_code, Releaser<pcre2_code_free>>;
using Limits = std::unique_ptr<pcre2_match_context, Releaser<pcre2_match_context_free>>;
using Match = std::unique_ptr<pcre2_match_data, Releaser<pcre2_match_data_free>>;

// \s as Unicode has it. PCRE2's own also takes U+180E, which the tokenizers' engines do not.
constexpr std::string_view kSpaces =
    R"(\t-\r \x{85}\x{A0}\x{1680}\x{2000}-\x{200A}\x{2028}\x{2029}\x{202F}\x{205F}\x{3000})";

// \w likewise, where PCRE2 leaves out the marks.
constexpr std::string_view kWords = R"(\p{L}\p{M}\p{Nd}\p{Nl}\p{Pc})";

std::string with_own_classes(std::string_view pattern) {
  std::string out;
  bool in_class = false;
  for (size_t i = 0; i < pattern.size(); ++i) {
    const char c = pattern[i];
    if (c != '\\' || i + 1 == pattern.size()) {
      if (c == '[') in_class = true;
      if (c == ']') in_class = false;
      out += c;
      continue;
    }
    const char escaped = pattern[++i];
    if (escaped == 's' || escaped == 'w') {
      const std::string_view members = escaped == 's' ? kSpaces : kWords;
      out += in_class ? std::string(members) : fmt::format("[{}]", members);
    } else if ((escaped == 'S' || escaped == 'W') && !in_class) {
      out += fmt::format("[^{}]", escaped == 'S' ? kSpaces : kWords);
    } else {
      out += c;
      out += escaped;
    }
  }
  return out;
}

std::string message_of(int error) {
  PCRE2_UCHAR text[256] = {};
  pcre2_get_error_message(error, text, sizeof(text));
  return reinterpret_cast<const char*>(text);
}

}  // namespace

struct Regex::Compiled {
  std::string pattern;
  Code_ code;
  Limits limits;
};

Result<Regex> Regex::compile(std::string_view pattern) {
  if (pattern.size() > kLongestPattern) {
    return invalid_program(fmt::format("regular expression of {} bytes: expected at most {}",
                                       pattern.size(), kLongestPattern));
  }
  if (!is_utf8(pattern)) return invalid_program("regular expression is not UTF-8");
  auto compiled = std::make_shared<Compiled>();
  compiled->pattern = pattern;
  const std::string text = with_own_classes(pattern);
  int error = 0;
  PCRE2_SIZE at = 0;
  // ^ and $ at every line, as the engines that these patterns are written for have it.
  constexpr uint32_t kOptions =
      PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C | PCRE2_NO_UTF_CHECK;
  compiled->code.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(),
                                     kOptions, &error, &at, nullptr));
  if (compiled->code == nullptr) {
    return invalid_program(
        fmt::format("regular expression '{}': {}", excerpt(pattern), message_of(error)));
  }
  pcre2_jit_compile(compiled->code.get(), PCRE2_JIT_COMPLETE);  // without it, only slower
  compiled->limits.reset(pcre2_match_context_create(nullptr));
  if (compiled->limits == nullptr) return memory_error("regular expression: out of memory");
  pcre2_set_match_limit(compiled->limits.get(), kMatchSteps);
  pcre2_set_heap_limit(compiled->limits.get(), kHeapKib);
  return Regex(std::move(compiled));
}

Status Regex::find_all(std::string_view text, std::vector<Span>& matches) const {
  const Match data(pcre2_match_data_create(1, nullptr));
  if (data == nullptr) return memory_error("regular expression: out of memory");
  const auto* const subject = reinterpret_cast<PCRE2_SPTR>(text.data());
  const PCRE2_SIZE* const found = pcre2_get_ovector_pointer(data.get());
  for (size_t at = 0; at <= text.size();) {
    int count = pcre2_match(compiled_->code.get(), subject, text.size(), at, PCRE2_NO_UTF_CHECK,
                            data.get(), compiled_->limits.get());
    if (count == PCRE2_ERROR_JIT_STACKLIMIT) {
      count = pcre2_match(compiled_->code.get(), subject, text.size(), at,
                          PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT, data.get(), compiled_->limits.get());
    }
    if (count == PCRE2_ERROR_NOMATCH) return {};
    if (count < 0) {
      return invalid_argument(fmt::format("regular expression '{}' at byte {} of {}: {}",
                                          excerpt(compiled_->pattern), at, text.size(),
                                          message_of(count)));
    }
    const size_t begin = found[0];
    const size_t end = found[1];
    if (end > begin) {
      matches.push_back({static_cast<uint32_t>(begin), static_cast<uint32_t>(end)});
      at = end;
    } else {  // also \K, which may even put the end first
      const size_t next = begin > at ? begin : at;
      at = next < text.size() ? next + char_at(text, next).size_bytes : next + 1;
    }
  }
  return {};
}

}  // namespace pteryx::llm
