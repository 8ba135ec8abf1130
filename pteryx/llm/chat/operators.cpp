// What operators do to values. SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "pteryx/base/checked.h"
#include "pteryx/base/utf8.h"
#include "pteryx/llm/chat/builders.h"
#include "pteryx/llm/chat/evaluator.h"
#include "pteryx/llm/chat/text_changes.h"

namespace pteryx::llm::chat {
namespace {

constexpr uint64_t kCompareWork = 4;

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

Result<Value> repeat(Meter& meter, const Value& of, int64_t times) {
  const int64_t count = (of.is_string() ? of.string()->empty() : of.list()->empty()) ? 0 : times;
  if (of.is_string()) {
    TextBuilder out(meter);
    for (int64_t i = 0; i < count; ++i) PTERYX_TRY(out.append(*of.string()));
    return out.finish();
  }
  ListBuilder out(meter);
  for (int64_t i = 0; i < count; ++i) PTERYX_TRY(out.append(*of.list()));
  return out.finish();
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

struct Stride {
  int64_t first = 0;
  int64_t last = 0;  // the first that is left out
  int64_t by = 1;
};

// Goes through the characters from the first to the last, in the direction of the stride.
Result<Value> slice_text(Meter& meter, std::string_view text, const Stride& stride) {
  const auto [first, last, by] = stride;
  TextBuilder out(meter);
  if (by > 0 ? first >= last : first <= last) return out.finish();
  PTERYX_ASSIGN(size_t at, offset_of_char(meter, text, static_cast<size_t>(first)));
  if (by == 1) {
    const std::string_view rest = text.substr(at);
    PTERYX_ASSIGN(const size_t size,
                  offset_of_char(meter, rest, static_cast<size_t>(last - first)));
    PTERYX_TRY(out.append(rest.substr(0, size)));
    return out.finish();
  }
  for (int64_t i = first; by > 0 ? i < last : i > last; i += by > 0 ? 1 : -1) {
    const size_t size = char_at(text, at).size_bytes;
    PTERYX_TRY(meter.work(2));
    if ((i - first) % by == 0) PTERYX_TRY(out.append(text.substr(at, size)));
    if (by > 0) {
      at += size;
    } else if (at > 0) {
      at = char_before(text, at);
    }
  }
  return out.finish();
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
  if (a.is_number() && b.is_number() && op != "~") return of_numbers(op, a, b);
  if (op == "~" || (op == "+" && a.is_string() && b.is_string())) {
    TextBuilder out(ev.meter());
    PTERYX_TRY(print(a, out));
    PTERYX_TRY(print(b, out));
    return out.finish();
  }
  if (op == "+" && a.list() != nullptr && b.list() != nullptr) {
    ListBuilder out(ev.meter());
    PTERYX_TRY(out.append(*a.list()));
    PTERYX_TRY(out.append(*b.list()));
    return out.finish();
  }
  if (op == "*") {
    const bool a_repeats = a.is_string() || a.list() != nullptr;
    const auto times = whole(a_repeats ? b : a);
    const Value& of = a_repeats ? a : b;
    if (times && (of.is_string() || of.list() != nullptr)) return repeat(ev.meter(), of, *times);
  }
  return wrong_types(op, a, b);
}

Result<bool> equal(Meter& meter, const Value& a, const Value& b) {
  PTERYX_TRY(meter.work(kCompareWork + std::min(a.weight(), b.weight())));
  return a == b;
}

Result<bool> compare(Meter& meter, std::string_view op, const Value& a, const Value& b) {
  PTERYX_TRY(meter.work(kCompareWork + std::min(a.weight(), b.weight())));
  if (op == "==") return a == b;
  if (op == "!=") return !(a == b);
  const auto sign = order(a, b);
  if (!sign) return wrong_types(op, a, b);
  if (op == "<") return *sign < 0;
  if (op == "<=") return *sign <= 0;
  if (op == ">") return *sign > 0;
  return *sign >= 0;
}

Result<bool> contains(Evaluator& ev, const Value& container, const Value& member) {
  if (container.is_undefined()) return false;
  if (const auto* const s = container.string()) {
    if (!member.is_string()) return wrong_types("in", member, container);
    PTERYX_ASSIGN(const size_t at, find(ev.meter(), *s, *member.string()));
    return at != std::string::npos;
  }
  if (const auto* const l = container.list()) {
    for (const Value& each : *l) {
      PTERYX_ASSIGN(const bool found, equal(ev.meter(), each, member));
      if (found) return true;
    }
    return false;
  }
  if (container.dict() != nullptr) {
    if (!member.is_string()) return false;
    PTERYX_ASSIGN(const Value* const found, ev.member(container, *member.string()));
    return found != nullptr;
  }
  return wrong_types("in", member, container);
}

Result<Value> slice(Meter& meter, const Value& of, const Value& begin, const Value& end,
                    const Value& step) {
  if (of.list() == nullptr && !of.is_string()) return wrong_types("slice", of, of);
  const std::string* const s = of.string();
  size_t count = s == nullptr ? of.list()->size() : 0;
  if (s != nullptr) {
    PTERYX_ASSIGN(count, count_chars(meter, *s));
  }
  const auto size = static_cast<int64_t>(count);
  if (!step.is_none() && (step.integer() == nullptr || *step.integer() == 0)) {
    return template_error("expected a slice step that is an integer and not 0");
  }
  const int64_t by = step.is_none() ? 1 : std::clamp<int64_t>(*step.integer(), -size - 1, size + 1);
  const int64_t low = by > 0 ? 0 : -1;
  const int64_t high = by > 0 ? size : size - 1;
  PTERYX_ASSIGN(const int64_t first, bound(begin, by > 0 ? 0 : size - 1, size, low, high));
  PTERYX_ASSIGN(const int64_t last, bound(end, by > 0 ? size : -1, size, low, high));
  if (s != nullptr) return slice_text(meter, *s, {.first = first, .last = last, .by = by});
  ListBuilder out(meter);
  for (int64_t i = first; by > 0 ? i < last : i > last; i += by) {
    PTERYX_TRY(out.push((*of.list())[static_cast<size_t>(i)]));
  }
  return out.finish();
}

}  // namespace pteryx::llm::chat
