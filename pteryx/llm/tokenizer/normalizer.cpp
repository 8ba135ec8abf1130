// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/llm/tokenizer/normalizer.h"

#include <fmt/format.h>

#include "pteryx/base/utf8.h"

namespace pteryx::llm {
namespace {

// How long a text may become by all steps together.
size_t longest_result(size_t text_bytes) { return 16 * text_bytes + 4096; }

template <typename Change>
std::string each_char(std::string_view text, Change change) {
  std::string out;
  out.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const Utf8Char c = char_at(text, at);
    change(c.code, out);
    at += c.size_bytes;
  }
  return out;
}

struct Apply {
  std::string_view text;
  size_t longest;

  Status check(size_t size) const {
    if (size <= longest) return {};
    return invalid_argument(fmt::format("text grows past {} bytes when it is normalised", longest));
  }

  Result<std::string> operator()(NormalForm form) const { return normalize(text, form); }

  Result<std::string> operator()(const Prepend& p) const {
    PTERYX_TRY(check(text.size() + p.text.size()));
    return text.empty() ? std::string() : p.text + std::string(text);
  }

  Result<std::string> operator()(const Replace& r) const {
    std::vector<Span> matches;
    PTERYX_TRY(r.pattern.find_all(text, matches));
    PTERYX_TRY(check(text.size() + matches.size() * r.text.size()));
    std::string out;
    size_t done = 0;
    for (const Span m : matches) {
      out.append(text, done, m.begin - done).append(r.text);
      done = m.end;
    }
    return std::move(out.append(text, done));
  }

  Result<std::string> operator()(Lowercase) const {
    return each_char(text, [](char32_t c, std::string& out) {
      append_utf8(out, to_lower(c));
      if (c == 0x130) append_utf8(out, 0x307);  // the one letter whose small form is two characters
    });
  }

  Result<std::string> operator()(StripAccents) const {
    return each_char(text, [](char32_t c, std::string& out) {
      if (!is_mark(c)) append_utf8(out, c);
    });
  }

  Result<std::string> operator()(StripSpace s) const {
    std::string_view kept = text;
    if (s.left) kept.remove_prefix(leading_space(kept));
    if (s.right) kept.remove_suffix(trailing_space(kept));
    return std::string(kept);
  }
};

}  // namespace

Status Pattern::find_all(std::string_view text, std::vector<Span>& matches) const {
  if (const auto* const regex = std::get_if<Regex>(&what)) return regex->find_all(text, matches);
  const auto& wanted = *std::get_if<std::string>(&what);
  if (wanted.empty()) return {};
  for (size_t at = text.find(wanted); at != std::string_view::npos;
       at = text.find(wanted, at + wanted.size())) {
    matches.push_back({static_cast<uint32_t>(at), static_cast<uint32_t>(at + wanted.size())});
  }
  return {};
}

Result<std::string> apply_normalizers(const std::vector<Normalizer>& steps, std::string_view text) {
  std::string current(text);
  for (const Normalizer& step : steps) {
    PTERYX_ASSIGN(current, std::visit(Apply{current, longest_result(text.size())}, step));
  }
  return current;
}

}  // namespace pteryx::llm
