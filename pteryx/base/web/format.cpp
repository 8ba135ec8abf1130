// Texts with arguments, by the rules of {fmt}: {}, {2}, {:>8}, {:04x}, {:.3f}, {:{}}.
// SPDX-License-Identifier: BSD-3-Clause
#include <charconv>
#include <cmath>

#include <fmt/format.h>

#include "pteryx/base/web/numbers.h"

namespace fmt::detail {
namespace {

struct Spec {
  char fill = ' ';
  char align = 0;
  size_t width = 0;
  int precision = -1;
  char type = 0;
};

bool is_align(char c) { return c == '<' || c == '>' || c == '^'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Numbers in a base up to 16, without a sign.
std::string digits_of(uint64_t v, uint32_t base, bool upper) {
  char digits[64];
  char* at = digits + sizeof(digits);
  do {
    *--at = (upper ? "0123456789ABCDEF" : "0123456789abcdef")[v % base];
    v /= base;
  } while (v != 0);
  return {at, digits + sizeof(digits)};
}

// The fewest digits that read as the same number: fixed between 1e-4 and 1e16, else with an
// exponent.
std::string shortest(double v, bool is_float) {
  const std::string all = pteryx::web::print_number(
      v, is_float ? pteryx::web::NumberForm::kFloat : pteryx::web::NumberForm::kDouble);
  const size_t e = all.find('e');
  const bool minus = all[e + 1] == '-';
  int exponent = 0;
  std::from_chars(all.data() + e + 2, all.data() + all.size(), exponent);
  std::string digits = all.substr(0, e);
  if (minus) exponent = -exponent;
  if (exponent < -4 || exponent >= 16) {
    const std::string_view zero = std::abs(exponent) < 10 ? "0" : "";
    return digits.append(minus ? "e-" : "e+").append(zero).append(all, e + 2);
  }
  if (digits.size() > 1) digits.erase(1, 1);  // the point
  const auto count = static_cast<int>(digits.size());
  if (exponent < 0) return "0." + std::string(static_cast<size_t>(-exponent - 1), '0') + digits;
  if (count <= exponent + 1)
    return digits + std::string(static_cast<size_t>(exponent + 1 - count), '0');
  return digits.insert(static_cast<size_t>(exponent) + 1, 1, '.');
}

std::string number_text(double v, const Spec& s, bool is_float) {
  if (std::isnan(v)) return "nan";
  if (std::isinf(v)) return "inf";
  if (s.type != 'f') return shortest(v, is_float);
  return pteryx::web::print_number(v, pteryx::web::NumberForm::kFixed,
                                   s.precision < 0 ? 6 : s.precision);
}

class Writer {
 public:
  Writer(std::string& out, std::string_view format, uint64_t kinds, const Value* values)
      : out_(out), format_(format), kinds_(kinds), values_(values) {}

  void write() {
    while (at_ < format_.size()) {
      const char c = format_[at_++];
      if (c == '{' && next() != '{') {
        write_argument();
        continue;
      }
      if (c == '{' || c == '}') ++at_;  // written twice
      out_ += c;
    }
  }

 private:
  char next() const { return at_ < format_.size() ? format_[at_] : '\0'; }
  size_t take_number() {
    size_t n = 0;
    while (is_digit(next())) n = n * 10 + static_cast<size_t>(format_[at_++] - '0');
    return n;
  }
  size_t take_index() { return is_digit(next()) ? take_number() : last_++; }
  // A number, or the argument in braces that has it.
  size_t take_size() {
    if (next() != '{') return take_number();
    ++at_;
    const size_t index = take_index();
    ++at_;
    return static_cast<size_t>(values_[index].u);
  }

  Spec take_spec() {
    Spec s;
    if (at_ + 1 < format_.size() && is_align(format_[at_ + 1])) s.fill = format_[at_++];
    if (is_align(next())) s.align = format_[at_++];
    if (next() == '0' && s.align == 0) {
      s.fill = '0';
      s.align = '=';
      ++at_;
    }
    if (is_digit(next()) || next() == '{') s.width = take_size();
    if (next() == '.') {
      ++at_;
      s.precision = static_cast<int>(take_size());
    }
    if (next() != '}') s.type = format_[at_++];
    return s;
  }

  void write_argument() {
    const size_t index = take_index();
    Spec s;
    if (next() == ':') {
      ++at_;
      s = take_spec();
    }
    ++at_;
    const Value& v = values_[index];
    const uint64_t kind = kinds_ >> (4 * index) & 15;
    std::string text;
    bool negative = false;
    if (kind == kText) {
      return write_padded(s, '<', {}, {v.text.data, v.text.size});
    } else if (kind == kBool && s.type == 0) {
      return write_padded(s, '<', {}, v.u != 0 ? "true" : "false");
    } else if (kind == kChar && s.type == 0) {
      const char c = static_cast<char>(v.i);
      return write_padded(s, '<', {}, {&c, 1});
    } else if (kind == kFloat || kind == kDouble) {
      negative = std::signbit(v.d) && !std::isnan(v.d);
      text = number_text(std::fabs(v.d), s, kind == kFloat);
    } else {
      negative = kind != kUnsigned && v.i < 0;
      text = digits_of(negative ? 0 - v.u : v.u, s.type == 'x' || s.type == 'X' ? 16 : 10,
                       s.type == 'X');
    }
    write_padded(s, '>', negative ? "-" : "", text);
  }

  void write_padded(const Spec& s, char align, std::string_view sign, std::string_view text) {
    if (s.align != 0) align = s.align;
    const size_t size = sign.size() + text.size();
    const size_t room = s.width > size ? s.width - size : 0;
    const size_t before = align == '<' ? 0 : align == '^' ? room / 2 : room;
    if (align == '=') out_ += sign;
    out_.append(before, s.fill);
    if (align != '=') out_ += sign;
    out_ += text;
    out_.append(room - before, s.fill);
  }

  std::string& out_;
  std::string_view format_;
  uint64_t kinds_;
  const Value* values_;
  size_t at_ = 0;
  size_t last_ = 0;
};

}  // namespace

std::string format(std::string_view format, uint64_t kinds, const Value* values) {
  std::string out;
  Writer(out, format, kinds, values).write();
  return out;
}

}  // namespace fmt::detail
