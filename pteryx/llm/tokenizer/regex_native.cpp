// The only place that knows PCRE2.
// SPDX-License-Identifier: BSD-3-Clause
#include <utility>

#include <fmt/format.h>

#include "pteryx/llm/tokenizer/regex.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "pteryx/base/excerpt.h"
#include "pteryx/base/utf8.h"

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

// \s as Unicode has it, and \S. PCRE2's own also takes U+180E, which the tokenizers' engines do
// not.
constexpr std::string_view kSpaces =
    R"(\t-\r \x{85}\x{A0}\x{1680}\x{2000}-\x{200A}\x{2028}\x{2029}\x{202F}\x{205F}\x{3000})";
constexpr std::string_view kNotSpaces =
    R"(\x{0}-\x{8}\x{E}-\x{1F}!-\x{84}\x{86}-\x{9F}\x{A1}-\x{167F}\x{1681}-\x{1FFF}\x{200B}-\x{2027})"
    R"(\x{202A}-\x{202E}\x{2030}-\x{205E}\x{2060}-\x{2FFF}\x{3001}-\x{10FFFF})";

// \w and \W likewise, where PCRE2 leaves out the marks.
constexpr std::string_view kWords = R"(\p{L}\p{M}\p{Nd}\p{Nl}\p{Pc})";
constexpr std::string_view kNotWords =
    R"(\p{No}\p{Pd}\p{Ps}\p{Pe}\p{Pi}\p{Pf}\p{Po}\p{S}\p{Z}\p{C})";

constexpr uint32_t kOptions =
    // ^ and $ at every line, as the engines that these patterns are written for have it.
    PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C | PCRE2_NO_UTF_CHECK;

Code_ compile_text(std::string_view text, int& error) {
  PCRE2_SIZE at = 0;
  return Code_(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), kOptions,
                             &error, &at, nullptr));
}

// Whether \p{name} is a script, which PCRE2 takes with its extensions unless told otherwise.
bool is_script(std::string_view name) {
  int error = 0;
  return compile_text(fmt::format("\\p{{sc:{}}}", name), error) != nullptr;
}

// What PCRE2 is told for \s, \w, \b and their opposites; empty for other escapes.
std::string own_class(char escaped, bool in_class) {
  switch (escaped) {
    case 's': return in_class ? std::string(kSpaces) : fmt::format("[{}]", kSpaces);
    case 'S': return in_class ? std::string(kNotSpaces) : fmt::format("[^{}]", kSpaces);
    case 'w': return in_class ? std::string(kWords) : fmt::format("[{}]", kWords);
    case 'W': return in_class ? std::string(kNotWords) : fmt::format("[^{}]", kWords);
    case 'b':
      return in_class ? "" : fmt::format("(?:(?<=[{0}])(?![{0}])|(?<![{0}])(?=[{0}]))", kWords);
    case 'B':
      return in_class ? "" : fmt::format("(?:(?<=[{0}])(?=[{0}])|(?<![{0}])(?![{0}]))", kWords);
    default: return "";
  }
}

// Appends the escape that `rest` starts with, and says how long it is.
size_t append_escape(std::string_view rest, bool in_class, std::string& out) {
  const std::string own = own_class(rest[1], in_class);
  if (!own.empty()) {
    out += own;
    return 2;
  }
  const size_t end = rest.find('}');
  if ((rest[1] == 'p' || rest[1] == 'P') && rest.substr(2).starts_with('{') &&
      end != std::string_view::npos && is_script(rest.substr(3, end - 3))) {
    out += fmt::format("\\{}{{sc:{}}}", rest[1], rest.substr(3, end - 3));
    return end + 1;
  }
  out += rest.substr(0, 2);
  return 2;
}

// The length of what opens a class: '[', '[^', '[]' or '[^]', whose bracket is a member.
size_t class_opening(std::string_view pattern) {
  size_t size = 1;
  if (pattern.substr(size).starts_with('^')) ++size;
  if (pattern.substr(size).starts_with(']')) ++size;
  return size;
}

Result<std::string> with_own_classes(std::string_view pattern) {
  std::string out;
  bool in_class = false;
  for (size_t i = 0; i < pattern.size();) {
    const std::string_view rest = pattern.substr(i);
    if (rest[0] == '\\' && rest.size() > 1) {
      i += append_escape(rest, in_class, out);
      continue;
    }
    size_t taken = 1;
    if (!in_class && rest[0] == '[') {
      taken = class_opening(rest);
      in_class = true;
    } else if (in_class && rest.starts_with("[:") && rest.find(":]") != std::string_view::npos) {
      taken = rest.find(":]") + 2;
    } else if (in_class && rest.starts_with("&&")) {
      // To the engines that the patterns are written for, what both sides have; to PCRE2, two '&'.
      return unsupported(fmt::format("regular expression '{}': '&&' in a class", excerpt(pattern)));
    } else if (rest[0] == ']') {
      in_class = false;
    }
    out += rest.substr(0, taken);
    i += taken;
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
  PTERYX_ASSIGN(const std::string text, with_own_classes(pattern));
  int error = 0;
  compiled->code = compile_text(text, error);
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
