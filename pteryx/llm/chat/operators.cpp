// What operators do to values. SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "pteryx/base/checked.h"
#include "pteryx/llm/chat/evaluator.h"
#include "pteryx/llm/tokenizer/utf8.h"

namespace pteryx::llm::chat {
namespace {

constexpr size_t kLongestRepeat = size_t{1} << 24;

Status wrong_types(std::string_view op, const Value& a, const Value& b) {
  for (const Value* const v : {&a, &b}) {
    if (v->is_undefined()) {
      return template_error(fmt::format("'{}' is undefined", v->missing()->name));
    }
  }
  return template_error(
      fmt::format("'{}' of {} and {} is not possible", op, a.type_name(), b.type_name()));
}

std::optional<int64_t> whole(const Value& v) {
  if (v.boolean() != nullptr) return *v.boolean() ? 1 : 0;
  if (v.integer() != nullptr) return *v.integer();
  return std::nullopt;
}

int64_t floor_divide(int64_t a, int64_t b) {
  const int64_t q = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? q - 1 : q;
}

std::optional<int64_t> power(int64_t base, int64_t exponent) {
  std::optional<int64_t> result = 1;
  for (int64_t i = 0; i < exponent && result; ++i) {
    if (base == 0 || base == 1) return base;
    if (base == -1) return exponent % 2 == 0 ? 1 : -1;
    result = checked_mul(*result, base);
  }
  return result;
}

Result<Value> of_integers(std::string_view op, int64_t a, int64_t b) {
  std::optional<int64_t> result;
  if (op == "+") result = checked_add(a, b);
  if (op == "-" && b != INT64_MIN) result = checked_add(a, -b);
  if (op == "*") result = checked_mul(a, b);
  if (op == "//" || op == "%") {
    if (b == 0) return template_error("division by zero");
    if (a == INT64_MIN || b == INT64_MIN) return template_error("a number is too large");
    result = op == "//" ? floor_divide(a, b) : a - floor_divide(a, b) * b;
  }
  if (op == "**" && b >= 0) result = power(a, b);
  if (op == "**" && b < 0) return Value(std::pow(static_cast<double>(a), static_cast<double>(b)));
  if (!result) return template_error("a number is too large");
  return Value(*result);
}

Result<Value> of_numbers(std::string_view op, const Value& a, const Value& b) {
  const auto i = whole(a);
  const auto j = whole(b);
  if (i && j && op != "/") return of_integers(op, *i, *j);
  const double x = a.number();
  const double y = b.number();
  if (op == "+") return Value(x + y);
  if (op == "-") return Value(x - y);
  if (op == "*") return Value(x * y);
  if (op == "**") return Value(std::pow(x, y));
  if (y == 0) return template_error("division by zero");
  if (op == "/") return Value(x / y);
  if (op == "//") return Value(std::floor(x / y));
  return Value(x - std::floor(x / y) * y);
}

Result<Value> repeat(Evaluator& ev, const Value& of, int64_t times) {
  const size_t size = of.is_string() ? of.string()->size() : of.list()->size();
  const auto count = static_cast<uint64_t>(std::max<int64_t>(times, 0));
  const auto total = checked_mul<uint64_t>(size, count);
  if (!total || *total > kLongestRepeat) {
    return template_error(fmt::format("a repetition of {} times {} is too long", size, times));
  }
  if (of.is_string()) {
    std::string out;
    for (uint64_t i = 0; i < count && size != 0; ++i) out += *of.string();
    return ev.text(std::move(out));
  }
  List out;
  for (uint64_t i = 0; i < count && size != 0; ++i) {
    out.insert(out.end(), of.list()->begin(), of.list()->end());
  }
  return ev.container(Value(std::move(out)));
}

std::optional<int> order(const Value& a, const Value& b) {
  const auto sign = [](const auto& x, const auto& y) { return x < y ? -1 : y < x ? 1 : 0; };
  if (a.is_number() && b.is_number()) {
    const auto i = whole(a);
    const auto j = whole(b);
    return i && j ? sign(*i, *j) : sign(a.number(), b.number());
  }
  if (a.is_string() && b.is_string()) return sign(*a.string(), *b.string());
  return std::nullopt;
}

// A bound of a slice inside [low, high].
Result<int64_t> bound(const Value& v, int64_t otherwise, int64_t size, int64_t low, int64_t high) {
  if (v.is_none()) return otherwise;
  if (v.integer() == nullptr) {
    return template_error(fmt::format("expected an integer in a slice, got {}", v.type_name()));
  }
  const int64_t n = std::clamp<int64_t>(*v.integer(), -size - 1, size + 1);
  return std::clamp(n < 0 ? n + size : n, low, high);
}

}  // namespace

Result<Value> negate(const Value& v) {
  if (const auto i = whole(v); i && *i != INT64_MIN) return Value(-*i);
  if (v.real() != nullptr) return Value(-*v.real());
  return wrong_types("-", v, v);
}

Result<Value> binary(Evaluator& ev, std::string_view op, const Value& a, const Value& b) {
  if (op == "~") return ev.text(a.str() + b.str());
  if (a.is_number() && b.is_number()) return of_numbers(op, a, b);
  if (op == "+" && a.is_string() && b.is_string()) return ev.text(*a.string() + *b.string());
  if (op == "+" && a.list() != nullptr && b.list() != nullptr) {
    List both = *a.list();
    both.insert(both.end(), b.list()->begin(), b.list()->end());
    return ev.container(Value(std::move(both)));
  }
  if (op == "*") {
    const bool a_repeats = a.is_string() || a.list() != nullptr;
    const auto times = whole(a_repeats ? b : a);
    const Value& of = a_repeats ? a : b;
    if (times && (of.is_string() || of.list() != nullptr)) return repeat(ev, of, *times);
  }
  return wrong_types(op, a, b);
}

Result<bool> compare(std::string_view op, const Value& a, const Value& b) {
  if (op == "==") return a == b;
  if (op == "!=") return !(a == b);
  const auto sign = order(a, b);
  if (!sign) return wrong_types(op, a, b);
  if (op == "<") return *sign < 0;
  if (op == "<=") return *sign <= 0;
  if (op == ">") return *sign > 0;
  return *sign >= 0;
}

Result<bool> contains(const Value& container, const Value& member) {
  if (container.is_undefined()) return false;
  if (const auto* const s = container.string()) {
    if (!member.is_string()) return wrong_types("in", member, container);
    return s->find(*member.string()) != std::string::npos;
  }
  if (const auto* const l = container.list())
    return std::find(l->begin(), l->end(), member) != l->end();
  if (container.dict() != nullptr) {
    return member.is_string() && container.member(*member.string()) != nullptr;
  }
  return wrong_types("in", member, container);
}

Result<List> elements(const Value& v) {
  if (v.is_undefined()) return List();
  if (const auto* const l = v.list()) return *l;
  List out;
  if (const auto* const d = v.dict()) {
    for (const auto& [key, value] : *d) out.emplace_back(key);
    return out;
  }
  if (const auto* const s = v.string()) {
    for (size_t at = 0; at < s->size();) {
      const uint32_t size = char_at(*s, at).size_bytes;
      out.emplace_back(s->substr(at, size));
      at += size;
    }
    return out;
  }
  return template_error(fmt::format("a value of type {} has no elements", v.type_name()));
}

Result<Value> slice(Evaluator& ev, const Value& of, const Value& begin, const Value& end,
                    const Value& step) {
  if (of.list() == nullptr && !of.is_string()) return wrong_types("slice", of, of);
  const std::string* const s = of.string();
  const auto offsets = character_offsets(s != nullptr ? std::string_view(*s) : "");
  const auto size = static_cast<int64_t>(s != nullptr ? offsets.size() - 1 : of.list()->size());
  if (!step.is_none() && (step.integer() == nullptr || *step.integer() == 0)) {
    return template_error("expected a slice step that is an integer and not 0");
  }
  const int64_t by = step.is_none() ? 1 : std::clamp<int64_t>(*step.integer(), -size - 1, size + 1);
  const int64_t low = by > 0 ? 0 : -1;
  const int64_t high = by > 0 ? size : size - 1;
  PTERYX_ASSIGN(const int64_t first, bound(begin, by > 0 ? 0 : size - 1, size, low, high));
  PTERYX_ASSIGN(const int64_t last, bound(end, by > 0 ? size : -1, size, low, high));
  List out;
  std::string text;
  for (int64_t i = first; by > 0 ? i < last : i > last; i += by) {
    const auto at = static_cast<size_t>(i);
    if (s == nullptr) {
      out.push_back((*of.list())[at]);
    } else {
      text.append(*s, offsets[at], offsets[at + 1] - offsets[at]);
    }
  }
  if (s == nullptr) return ev.container(Value(std::move(out)));
  return ev.text(std::move(text));
}

std::vector<size_t> character_offsets(std::string_view text) {
  std::vector<size_t> offsets;
  for (size_t at = 0; at < text.size(); at += char_at(text, at).size_bytes) offsets.push_back(at);
  offsets.push_back(text.size());
  return offsets;
}

}  // namespace pteryx::llm::chat
