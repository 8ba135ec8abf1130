// A JSON document piece by piece, in its order. SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace pteryx {

class JsonReader {
 public:
  enum class Piece : uint8_t {
    kNull,
    kFalse,
    kTrue,
    kNegative,  // negative(); an integer
    kWhole,     // whole()
    kReal,      // real(); with a point, an exponent or too many digits
    kString,    // take_text()
    kKey,       // take_text(), and its value is next
    kBeginArray,
    kEndArray,
    kBeginObject,
    kEndObject,
    kEnd,      // of the document
    kWrong,    // what is at at_byte() is no JSON
    kTooDeep,  // the bracket there is one too many
  };

  JsonReader(std::string_view text, size_t deepest);

  // After kEnd, kWrong and kTooDeep there is nothing more.
  Piece next();

  // Of the last piece. The text is valid UTF-8, and there once.
  std::string take_text() { return std::exchange(string_, {}); }
  uint64_t whole() const { return whole_; }
  int64_t negative() const { return negative_; }
  double real() const { return real_; }
  size_t at_byte() const { return at_ + 1; }  // counted from 1

 private:
  // What may come next.
  enum class State : uint8_t { kValue, kFirstElement, kFirstKey, kSeparator };

  int peek() const { return at_ < text_.size() ? static_cast<uint8_t>(text_[at_]) : -1; }
  bool is_digit() const { return peek() >= '0' && peek() <= '9'; }
  void skip_space();
  bool skip_digits();
  Piece open(char bracket, Piece piece, State first);
  Piece close(Piece piece);
  Piece read_key();
  Piece read_value();
  Piece read_word(std::string_view word, Piece piece);
  Piece read_number();
  bool read_string();
  bool read_escape();
  bool read_hex(uint32_t& unit);

  std::string_view text_;
  size_t deepest_;
  size_t at_ = 0;
  State state_ = State::kValue;
  std::vector<char> open_;  // brackets
  std::string string_;
  uint64_t whole_ = 0;
  int64_t negative_ = 0;
  double real_ = 0;
};

}  // namespace pteryx
