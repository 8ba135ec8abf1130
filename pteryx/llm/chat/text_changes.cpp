// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/llm/chat/text_changes.h"

#include <algorithm>
#include <utility>

#include "pteryx/base/utf8.h"
#include "pteryx/llm/tokenizer/unicode.h"

namespace pteryx::llm::chat {
namespace {

constexpr char32_t kSharpS = 0xDF;
constexpr char32_t kDottedI = 0x130;
constexpr uint64_t kCharWork = 8;  // units for a character that is looked up in a table

bool continues_char(char c) { return (static_cast<uint8_t>(c) & 0xC0U) == 0x80; }

Status append_upper(TextBuilder& out, char32_t c) {
  return c == kSharpS ? out.append("SS") : out.append_code(to_upper(c));
}

Status append_lower(TextBuilder& out, char32_t c) {
  PTERYX_TRY(out.append_code(to_lower(c)));
  return c == kDottedI ? out.append_code(0x307) : Status();
}

template <typename Visit>
Status each_char(std::string_view text, TextBuilder& out, Visit visit) {
  for (size_t at = 0; at < text.size();) {
    const Utf8Char c = char_at(text, at);
    PTERYX_TRY(out.meter().work(kCharWork));
    PTERYX_TRY(visit(c.code));
    at += c.size_bytes;
  }
  return {};
}

bool is_cased(char32_t c) { return to_lower(c) != c || to_upper(c) != c; }

Result<bool> is_in(Meter& meter, std::string_view text, std::string_view chars) {
  PTERYX_TRY(meter.work(kCharWork));
  if (chars.empty()) return is_python_space(char_at(text, 0).code);
  PTERYX_ASSIGN(const size_t at, find(meter, chars, text));
  return at != std::string_view::npos;
}

}  // namespace

bool is_python_space(char32_t c) { return is_space(c) || (c >= 0x1C && c <= 0x1F); }

Status upper(std::string_view text, TextBuilder& out) {
  return each_char(text, out, [&](char32_t c) { return append_upper(out, c); });
}

Status lower(std::string_view text, TextBuilder& out) {
  return each_char(text, out, [&](char32_t c) { return append_lower(out, c); });
}

Status capitalize(std::string_view text, TextBuilder& out) {
  bool first = true;
  return each_char(text, out, [&](char32_t c) {
    return std::exchange(first, false) ? append_upper(out, to_title(c)) : append_lower(out, c);
  });
}

Status title(std::string_view text, TextBuilder& out) {
  bool inside = false;
  return each_char(text, out, [&](char32_t c) {
    return std::exchange(inside, is_cased(c)) ? append_lower(out, c) : out.append_code(to_title(c));
  });
}

// Words start after spaces, hyphens and opening brackets.
Status title_words(std::string_view text, TextBuilder& out) {
  while (!text.empty()) {
    const size_t end = std::min(text.find_first_of("- \t\r\n({[<"), text.size());
    PTERYX_TRY(capitalize(text.substr(0, end), out));
    PTERYX_TRY(out.append(text.substr(end, 1)));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return {};
}

Result<Value> changed(Meter& meter, Change change, std::string_view text) {
  TextBuilder out(meter);
  PTERYX_TRY(change(text, out));
  return out.finish();
}

Result<bool> is_all_case(Meter& meter, Change change, std::string_view text) {
  TextBuilder same(meter);
  PTERYX_TRY(change(text, same));
  if (same.view() != text) return false;
  TextBuilder other(meter);
  PTERYX_TRY((change == upper ? lower : upper)(text, other));
  return other.view() != text;
}

Result<std::string_view> strip(Meter& meter, std::string_view text, std::string_view chars,
                               Ends ends) {
  while (ends != Ends::kRight && !text.empty()) {
    const size_t size = char_at(text, 0).size_bytes;
    PTERYX_ASSIGN(const bool stripped, is_in(meter, text.substr(0, size), chars));
    if (!stripped) break;
    text.remove_prefix(size);
  }
  while (ends != Ends::kLeft && !text.empty()) {
    const size_t at = char_before(text, text.size());
    PTERYX_ASSIGN(const bool stripped, is_in(meter, text.substr(at), chars));
    if (!stripped) break;
    text = text.substr(0, at);
  }
  return text;
}

Result<size_t> find(Meter& meter, std::string_view text, std::string_view what, size_t from) {
  if (what.empty()) return from;
  while (true) {
    const size_t at = text.find(what[0], from);
    PTERYX_TRY(meter.work(1 + (std::min(at, text.size()) - from) / 32));
    if (at == text.npos || what.size() > text.size() - at) return text.npos;
    const auto same = std::mismatch(what.begin(), what.end(), text.data() + at).first;
    PTERYX_TRY(meter.work(1 + static_cast<size_t>(same - what.begin()) / 4));
    if (same == what.end()) return at;
    from = at + 1;
  }
}

Result<size_t> rfind(Meter& meter, std::string_view text, std::string_view what) {
  for (size_t end = text.size() + 1; end-- > what.size();) {
    const auto tail = text.substr(0, end);
    const auto same = std::mismatch(what.rbegin(), what.rend(), tail.rbegin()).first;
    PTERYX_TRY(meter.work(1 + static_cast<size_t>(same - what.rbegin()) / 4));
    if (same == what.rend()) return end - what.size();
  }
  return text.npos;
}

Result<Value> replaced(Meter& meter, std::string_view text, std::string_view from,
                       std::string_view to, int64_t most) {
  TextBuilder out(meter);
  size_t done = 0;
  while (!from.empty() && most-- != 0) {
    PTERYX_ASSIGN(const size_t at, find(meter, text, from, done));
    if (at == text.npos) break;
    PTERYX_TRY(out.append(text.substr(done, at - done)));
    PTERYX_TRY(out.append(to));
    done = at + from.size();
  }
  PTERYX_TRY(out.append(text.substr(done)));
  return out.finish();
}

Result<size_t> count_chars(Meter& meter, std::string_view text) {
  PTERYX_TRY(meter.work(1 + text.size() / 4));
  return text.size() - static_cast<size_t>(std::count_if(text.begin(), text.end(), continues_char));
}

Result<size_t> offset_of_char(Meter& meter, std::string_view text, size_t index) {
  size_t at = 0;
  for (; index > 0; --index) {
    do {
      ++at;
    } while (at < text.size() && continues_char(text[at]));
  }
  PTERYX_TRY(meter.work(1 + at / 4));
  return at;
}

size_t char_before(std::string_view text, size_t end) {
  size_t at = end - 1;
  while (at > 0 && continues_char(text[at])) --at;
  return at;
}

}  // namespace pteryx::llm::chat
