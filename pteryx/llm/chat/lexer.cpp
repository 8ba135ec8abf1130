// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/llm/chat/lexer.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "pteryx/base/utf8.h"

namespace pteryx::llm::chat {
namespace {

constexpr std::string_view kSpaces = " \t\r\n\v\f";
// Longer ones first.
constexpr std::string_view kOperators[] = {"**", "//", "==", "!=", "<=", ">=", "+", "-", "*",
                                           "/",  "%",  "~",  "<",  ">",  "=",  ".", ":", "|",
                                           ",",  "(",  ")",  "[",  "]",  "{",  "}"};

bool is_name_start(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

class Lexer {
 public:
  explicit Lexer(std::string_view source) : source_(source) {}

  Result<std::vector<Token>> run() {
    while (at_ < source_.size()) {
      const size_t tag = next_tag();
      add_text(tag);
      if (at_ < source_.size()) PTERYX_TRY(read_tag());
    }
    add(TokenType::kEnd, "");
    return std::move(tokens_);
  }

 private:
  Status error(std::string_view what) const {
    return invalid_program(fmt::format("template line {}: {}", line_, what));
  }

  void add(TokenType type, std::string text) { tokens_.push_back({type, std::move(text), line_}); }

  std::string_view rest() const { return source_.substr(at_); }

  void advance(size_t count) {
    const auto text = source_.substr(at_, count);
    line_ += static_cast<uint32_t>(std::count(text.begin(), text.end(), '\n'));
    at_ += count;
  }

  size_t next_tag() const {
    for (size_t at = at_; (at = source_.find('{', at)) != std::string_view::npos; ++at) {
      const char next = at + 1 < source_.size() ? source_[at + 1] : '\0';
      if (next == '{' || next == '%' || next == '#') return at;
    }
    return source_.size();
  }

  // Text up to a tag, less what the tag before and the tag itself take away.
  void add_text(size_t tag) {
    std::string_view text = source_.substr(at_, tag - at_);
    if (strip_next_) text.remove_prefix(std::min(text.find_first_not_of(kSpaces), text.size()));
    if (trim_newline_ && text.starts_with('\n')) text.remove_prefix(1);
    if (tag < source_.size()) {
      const char mode = tag + 2 < source_.size() ? source_[tag + 2] : '\0';
      if (mode == '-') {
        text.remove_suffix(text.size() - (text.find_last_not_of(kSpaces) + 1));
      } else if (mode != '+' && source_[tag + 1] != '{') {
        text.remove_suffix(indent_before(tag, text));
      }
    }
    if (!text.empty()) add(TokenType::kText, std::string(text));
    advance(tag - at_);
    strip_next_ = trim_newline_ = false;
  }

  // Spaces that are all there is before a block tag on its line.
  size_t indent_before(size_t tag, std::string_view text) const {
    size_t begin = tag;
    while (begin > 0 && (source_[begin - 1] == ' ' || source_[begin - 1] == '\t')) --begin;
    const bool starts_line = begin == 0 || source_[begin - 1] == '\n';
    return starts_line ? std::min(tag - begin, text.size()) : 0;
  }

  Status read_tag() {
    if (rest().starts_with("{#")) return read_comment();
    const bool block = rest().starts_with("{%");
    if (block && raw_tag("raw")) return read_raw();
    add(block ? TokenType::kBlock : TokenType::kPrint, "");
    advance(2);
    if (rest().starts_with('-') || (block && rest().starts_with('+'))) advance(1);
    return read_words(block ? "%}" : "}}", block);
  }

  Status read_comment() {
    const size_t end = rest().find("#}");
    if (end == std::string_view::npos) return error("a comment does not end");
    const bool strip = end > 2 && rest()[end - 1] == '-';
    advance(end + 2);
    end_tag(strip, true);
    return {};
  }

  void end_tag(bool strip, bool trims_newline) {
    strip_next_ = strip;
    trim_newline_ = !strip && trims_newline;
  }

  // The size of "{% name %}" here.
  std::optional<size_t> raw_tag(std::string_view name, bool* strip_after = nullptr) const {
    size_t at = 2;
    const std::string_view text = rest();
    const auto skip = [&](std::string_view some) {
      at = std::min(text.find_first_not_of(some, at), text.size());
    };
    if (at < text.size() && (text[at] == '-' || text[at] == '+')) ++at;
    skip(kSpaces);
    if (!text.substr(at).starts_with(name)) return std::nullopt;
    at += name.size();
    skip(kSpaces);
    const bool strip = text.substr(at).starts_with('-');
    if (strip || text.substr(at).starts_with('+')) ++at;
    if (!text.substr(at).starts_with("%}")) return std::nullopt;
    if (strip_after != nullptr) *strip_after = strip;
    return at + 2;
  }

  Status read_raw() {
    bool strip = false;
    advance(*raw_tag("raw", &strip));
    end_tag(strip, true);
    const size_t begin = at_;
    const uint32_t line = line_;
    for (size_t at = source_.find("{%", at_); at != std::string_view::npos;
         at = source_.find("{%", at + 2)) {
      at_ = at;
      const auto size = raw_tag("endraw", &strip);
      if (!size) continue;
      at_ = begin;
      add_text(at);
      advance(*size);
      end_tag(strip, true);
      return {};
    }
    line_ = line;
    return error("a raw block does not end");
  }

  Status read_words(std::string_view close, bool block) {
    size_t braces = 0;
    while (true) {
      advance(std::min(rest().find_first_not_of(kSpaces), rest().size()));
      if (rest().empty()) return error("a tag does not end");
      const bool signs = rest()[0] == '-' || (block && rest()[0] == '+');
      if (braces == 0 &&
          (rest().starts_with(close) || (signs && rest().substr(1).starts_with(close)))) {
        const bool strip = rest()[0] == '-';
        const bool keep = rest()[0] == '+';
        add(block ? TokenType::kBlockEnd : TokenType::kPrintEnd, "");
        advance(close.size() + (signs ? 1 : 0));
        end_tag(strip, block && !keep);
        return {};
      }
      if (rest()[0] == '{') ++braces;
      if (rest()[0] == '}' && braces > 0) --braces;
      PTERYX_TRY(read_word());
    }
  }

  Status read_word() {
    const char c = rest()[0];
    if (is_name_start(c)) return read_name();
    if (is_digit(c)) return read_number();
    if (c == '\'' || c == '"') return read_string(c);
    for (const std::string_view op : kOperators) {
      if (!rest().starts_with(op)) continue;
      add(TokenType::kOperator, std::string(op));
      advance(op.size());
      return {};
    }
    return error(fmt::format("unexpected character '{}'",
                             replace_invalid(rest().substr(0, char_at(rest(), 0).size_bytes))));
  }

  Status read_name() {
    const auto text = rest();
    const auto end = std::find_if_not(text.begin(), text.end(),
                                      [](char c) { return is_name_start(c) || is_digit(c); });
    const auto size = static_cast<size_t>(end - text.begin());
    add(TokenType::kName, std::string(text.substr(0, size)));
    advance(size);
    return {};
  }

  Status read_number() {
    const auto text = rest();
    size_t size = 0;
    const auto digits = [&] {
      while (size < text.size() && (is_digit(text[size]) || text[size] == '_')) ++size;
    };
    digits();
    bool real = false;
    if (size + 1 < text.size() && text[size] == '.' && is_digit(text[size + 1])) {
      real = true;
      ++size;
      digits();
    }
    if (size < text.size() && (text[size] == 'e' || text[size] == 'E')) {
      const size_t sign =
          size + 1 < text.size() && (text[size + 1] == '+' || text[size + 1] == '-');
      if (size + 1 + sign < text.size() && is_digit(text[size + 1 + sign])) {
        real = true;
        size += 1 + sign;
        digits();
      }
    }
    std::string number(text.substr(0, size));
    std::erase(number, '_');
    add(real ? TokenType::kFloat : TokenType::kInteger, std::move(number));
    advance(size);
    return {};
  }

  Status read_string(char quote) {
    std::string value;
    const std::string_view text = rest();
    size_t at = 1;
    while (at < text.size() && text[at] != quote) {
      if (text[at] != '\\') {
        value += text[at++];
        continue;
      }
      if (at + 1 >= text.size()) break;
      PTERYX_TRY(read_escape(text, at, value));
    }
    if (at >= text.size()) return error("a string does not end");
    add(TokenType::kString, std::move(value));
    advance(at + 1);
    return {};
  }

  Status read_escape(std::string_view text, size_t& at, std::string& value) const {
    constexpr std::string_view kLetters = "ntrbfav0\\'\"";
    constexpr std::string_view kMeanings("\n\t\r\b\f\a\v\0\\'\"", 11);
    const char c = text[at + 1];
    const size_t digits = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
    if (digits != 0) {
      uint32_t code = 0;
      for (size_t i = 0; i < digits; ++i) {
        const char d = at + 2 + i < text.size() ? text[at + 2 + i] : '\0';
        const size_t digit = std::string_view("0123456789abcdefABCDEF").find(d);
        if (d == '\0' || digit == std::string_view::npos) return error("a string has a bad escape");
        code = code << 4 | static_cast<uint32_t>(digit < 16 ? digit : digit - 6);
      }
      if (code > 0x10FFFF || (code >= 0xD800 && code < 0xE000)) {
        return error("a string has an escape that is no character");
      }
      append_utf8(value, code);
      at += 2 + digits;
      return {};
    }
    const size_t letter = kLetters.find(c);
    if (letter != std::string_view::npos) {
      value += kMeanings[letter];
    } else if (c != '\n') {
      value += '\\';
      value += c;
    }
    at += 2;
    return {};
  }

  std::string_view source_;
  size_t at_ = 0;
  uint32_t line_ = 1;
  bool strip_next_ = false;    // the tag before ended with -
  bool trim_newline_ = false;  // the tag before was a block
  std::vector<Token> tokens_;
};

}  // namespace

Result<std::vector<Token>> lex(std::string_view source) {
  if (source.ends_with('\n')) source.remove_suffix(1);
  return Lexer(source).run();
}

}  // namespace pteryx::llm::chat
