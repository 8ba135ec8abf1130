// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/base/json_reader.h"

#include <cmath>

#include "pteryx/base/numbers.h"
#include "pteryx/base/utf8.h"

namespace pteryx {
namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

}  // namespace

JsonReader::JsonReader(std::string_view text, size_t deepest) : text_(text), deepest_(deepest) {
  if (text.starts_with(kByteOrderMark)) at_ = kByteOrderMark.size();
}

JsonReader::Piece JsonReader::next() {
  skip_space();
  const int c = peek();
  if (state_ == State::kSeparator) {
    if (open_.empty()) return c < 0 ? Piece::kEnd : Piece::kWrong;
    const bool in_object = open_.back() == '{';
    if (c == (in_object ? '}' : ']'))
      return close(in_object ? Piece::kEndObject : Piece::kEndArray);
    if (c != ',') return Piece::kWrong;
    ++at_;
    skip_space();
    return in_object ? read_key() : read_value();
  }
  if (state_ == State::kFirstElement && c == ']') return close(Piece::kEndArray);
  if (state_ == State::kFirstKey) return c == '}' ? close(Piece::kEndObject) : read_key();
  return read_value();
}

void JsonReader::skip_space() {
  while (peek() == ' ' || peek() == '\n' || peek() == '\r' || peek() == '\t') ++at_;
}

bool JsonReader::skip_digits() {
  if (!is_digit()) return false;
  while (is_digit()) ++at_;
  return true;
}

JsonReader::Piece JsonReader::open(char bracket, Piece piece, State first) {
  if (open_.size() == deepest_) return Piece::kTooDeep;
  ++at_;
  open_.push_back(bracket);
  state_ = first;
  return piece;
}

JsonReader::Piece JsonReader::close(Piece piece) {
  ++at_;
  open_.pop_back();
  state_ = State::kSeparator;
  return piece;
}

JsonReader::Piece JsonReader::read_key() {
  if (peek() != '"' || !read_string()) return Piece::kWrong;
  skip_space();
  if (peek() != ':') return Piece::kWrong;
  ++at_;
  state_ = State::kValue;
  return Piece::kKey;
}

JsonReader::Piece JsonReader::read_value() {
  state_ = State::kSeparator;
  switch (peek()) {
    case '[': return open('[', Piece::kBeginArray, State::kFirstElement);
    case '{': return open('{', Piece::kBeginObject, State::kFirstKey);
    case '"': return read_string() ? Piece::kString : Piece::kWrong;
    case 'n': return read_word("null", Piece::kNull);
    case 't': return read_word("true", Piece::kTrue);
    case 'f': return read_word("false", Piece::kFalse);
    default: return read_number();
  }
}

JsonReader::Piece JsonReader::read_word(std::string_view word, Piece piece) {
  for (const char c : word) {
    if (peek() != c) return Piece::kWrong;
    ++at_;
  }
  return piece;
}

JsonReader::Piece JsonReader::read_number() {
  const size_t begin = at_;
  const bool minus = peek() == '-';
  if (minus) ++at_;
  const size_t digits = at_;
  if (peek() == '0') {
    ++at_;  // and nothing more: no number begins with 0 otherwise
  } else if (!skip_digits()) {
    return Piece::kWrong;
  }
  const size_t digits_end = at_;
  if (peek() == '.') {
    ++at_;
    if (!skip_digits()) return Piece::kWrong;
  }
  if (peek() == 'e' || peek() == 'E') {
    ++at_;
    if (peek() == '+' || peek() == '-') ++at_;
    if (!skip_digits()) return Piece::kWrong;
  }

  bool fits = at_ == digits_end;
  whole_ = 0;
  for (size_t i = digits; fits && i < digits_end; ++i) {
    const auto digit = static_cast<uint64_t>(text_[i] - '0');
    fits = !__builtin_mul_overflow(whole_, uint64_t{10}, &whole_) &&
           !__builtin_add_overflow(whole_, digit, &whole_);
  }
  constexpr uint64_t kLowest = uint64_t{1} << 63;
  if (fits && !minus) return Piece::kWhole;
  if (fits && whole_ == 0) return Piece::kWhole;  // -0
  if (fits && whole_ <= kLowest) {
    negative_ = static_cast<int64_t>(0 - whole_);
    return Piece::kNegative;
  }
  real_ = decimal_value(text_.substr(begin, at_ - begin));
  if (std::isfinite(real_)) return Piece::kReal;
  --at_;  // the last of its digits
  return Piece::kWrong;
}

bool JsonReader::read_string() {
  string_.clear();
  ++at_;
  for (;;) {
    // What needs no change is copied in one piece.
    const size_t begin = at_;
    int c = peek();
    while (c >= 0x20 && c != '"' && c != '\\') {
      const Utf8Char read = char_at(text_, at_);
      if (!read.valid) break;
      at_ += read.size_bytes;
      c = peek();
    }
    string_.append(text_, begin, at_ - begin);
    if (c == '"') {
      ++at_;
      return true;
    }
    if (c != '\\') return false;
    ++at_;
    if (!read_escape()) return false;
  }
}

bool JsonReader::read_escape() {
  constexpr std::string_view kLetters = "\"\\/bfnrt";
  constexpr std::string_view kEscaped = "\"\\/\b\f\n\r\t";
  const int c = peek();
  if (c < 0) return false;
  if (c != 'u') {
    const size_t letter = kLetters.find(static_cast<char>(c));
    if (letter == kLetters.npos) return false;
    ++at_;
    string_ += kEscaped[letter];
    return true;
  }
  uint32_t unit = 0;
  if (!read_hex(unit) || (unit & 0xFC00) == 0xDC00) return false;
  if ((unit & 0xFC00) == 0xD800) {
    uint32_t low = 0;
    if (peek() != '\\') return false;
    ++at_;
    if (peek() != 'u' || !read_hex(low) || (low & 0xFC00) != 0xDC00) return false;
    unit = 0x10000 + ((unit & 0x3FF) << 10) + (low & 0x3FF);
  }
  append_utf8(string_, unit);
  return true;
}

// From the 'u' on.
bool JsonReader::read_hex(uint32_t& unit) {
  ++at_;
  unit = 0;
  for (int i = 0; i < 4; ++i, ++at_) {
    const int c = peek();
    const int letter = c | 0x20;
    if (is_digit()) {
      unit = unit << 4 | static_cast<uint32_t>(c - '0');
    } else if (letter >= 'a' && letter <= 'f' && c >= 0) {
      unit = unit << 4 | static_cast<uint32_t>(letter - 'a' + 10);
    } else {
      return false;
    }
  }
  return true;
}

}  // namespace pteryx
