// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/ops/kernel/expression.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "pteryx/base/checked.h"
#include "pteryx/ops/kernel/lines.h"

namespace pteryx::ops {
namespace {

struct Operator {
  std::string_view text;
  int level;  // the higher binds first
};
// Longer ones first, where one begins with another.
constexpr std::array<Operator, 13> kOperators = {{{"||", 1},
                                                  {"&&", 2},
                                                  {"==", 3},
                                                  {"!=", 3},
                                                  {"<=", 4},
                                                  {">=", 4},
                                                  {"<", 4},
                                                  {">", 4},
                                                  {"+", 5},
                                                  {"-", 5},
                                                  {"*", 6},
                                                  {"/", 6},
                                                  {"%", 6}}};
constexpr int kDeepest = 64;
constexpr int64_t kLargest = int64_t{1} << 40;

class Parser {
 public:
  Parser(std::string_view text, const Names& names) : text_(text), names_(names) {}

  Result<OptionValue> all() {
    PTERYX_ASSIGN(NamedValue v, binary(1));
    skip();
    if (at_ < text_.size()) return fail(fmt::format("unexpected '{}'", text_.substr(at_)));
    return std::move(v.value);
  }

 private:
  Status fail(std::string_view what) const {
    return invalid_argument(fmt::format("{} in '{}'", what, text_));
  }
  void skip() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t')) ++at_;
  }
  bool accept(std::string_view token) {
    skip();
    if (!text_.substr(at_).starts_with(token)) return false;
    at_ += token.size();
    return true;
  }
  const Operator* peek() {
    skip();
    const auto found = std::ranges::find_if(
        kOperators, [&](const Operator& o) { return text_.substr(at_).starts_with(o.text); });
    return found == kOperators.end() ? nullptr : &*found;
  }

  Result<NamedValue> binary(int level) {
    PTERYX_ASSIGN(NamedValue a, unary());
    for (const Operator* o = peek(); o != nullptr && o->level >= level; o = peek()) {
      at_ += o->text.size();
      PTERYX_ASSIGN(const NamedValue b, binary(o->level + 1));
      PTERYX_ASSIGN(a.value, apply(o->text, a, b));
      a.option = nullptr;
    }
    return a;
  }

  Result<NamedValue> unary() {
    if (++depth_ > kDeepest) return fail("too many nested terms");
    auto v = term();
    --depth_;
    return v;
  }

  Result<NamedValue> term() {
    if (accept("!")) {
      PTERYX_ASSIGN(const NamedValue v, unary());
      PTERYX_ASSIGN(const int64_t n, number(v));
      return NamedValue{.value = int64_t{n == 0}};
    }
    if (accept("-")) {
      PTERYX_ASSIGN(const NamedValue v, unary());
      PTERYX_ASSIGN(const int64_t n, number(v));
      return NamedValue{.value = -n};
    }
    if (accept("(")) {
      PTERYX_ASSIGN(NamedValue v, binary(1));
      if (!accept(")")) return fail("missing ')'");
      return v;
    }
    skip();
    const size_t begin = at_;
    while (at_ < text_.size() && is_name_part(text_[at_])) ++at_;
    const std::string_view token = text_.substr(begin, at_ - begin);
    if (token.empty()) return fail("missing value");
    if (is_digit(token[0])) {
      const auto n = parse_int(token);
      if (!n) return fail(fmt::format("'{}' is no number", token));
      return NamedValue{.value = *n};
    }
    if (auto known = names_(token)) return *std::move(known);
    return NamedValue{.value = std::string(token)};
  }

  Result<int64_t> number(const NamedValue& v) const {
    if (const auto* n = std::get_if<int64_t>(&v.value)) return *n;
    return fail(fmt::format("'{}' is no number", std::get<std::string>(v.value)));
  }

  // A word is one of those that the other side may be.
  Status check_word(const NamedValue& v, const NamedValue& other) const {
    const auto* word = std::get_if<std::string>(&v.value);
    if (word == nullptr || v.option != nullptr) return {};
    if (other.option != nullptr && other.option->takes(v.value)) return {};
    return fail(fmt::format("there is no '{}'", *word));
  }

  Result<OptionValue> apply(std::string_view op, const NamedValue& a, const NamedValue& b) const {
    if (op == "==" || op == "!=") {
      PTERYX_TRY(check_word(a, b));
      PTERYX_TRY(check_word(b, a));
      return OptionValue(int64_t{(a.value == b.value) == (op == "==")});
    }
    PTERYX_ASSIGN(const int64_t x, number(a));
    PTERYX_ASSIGN(const int64_t y, number(b));
    if ((op == "/" || op == "%") && y == 0) return fail("division by 0");
    const auto checked = [&](std::optional<int64_t> v) -> Result<OptionValue> {
      if (!v || *v > kLargest || *v < -kLargest) return fail("a number too large");
      return OptionValue(*v);
    };
    if (op == "+") return checked(checked_add(x, y));
    if (op == "-") return checked(checked_add(x, -y));
    if (op == "*") return checked(checked_mul(x, y));
    if (op == "/") return OptionValue(x / y);
    if (op == "%") return OptionValue(x % y);
    if (op == "||") return OptionValue(int64_t{x != 0 || y != 0});
    if (op == "&&") return OptionValue(int64_t{x != 0 && y != 0});
    if (op == "<") return OptionValue(int64_t{x < y});
    if (op == "<=") return OptionValue(int64_t{x <= y});
    if (op == ">") return OptionValue(int64_t{x > y});
    return OptionValue(int64_t{x >= y});
  }

  std::string_view text_;
  const Names& names_;
  size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

Result<OptionValue> evaluate(std::string_view text, const Names& names) {
  return Parser(text, names).all();
}

size_t closing_parenthesis(std::string_view text, size_t open) {
  int depth = 0;
  for (size_t i = open; i < text.size(); ++i) {
    if (text[i] == '(') ++depth;
    if (text[i] == ')' && --depth == 0) return i;
  }
  return std::string_view::npos;
}

std::string to_text(const OptionValue& v) {
  if (const auto* n = std::get_if<int64_t>(&v)) return std::to_string(*n);
  return std::get<std::string>(v);
}

}  // namespace pteryx::ops
