// JSON: documents from outside, whose nesting is bounded before any of it is built, and documents
// that the library writes.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "pteryx/base/bytes.h"
#include "pteryx/base/status.h"

namespace pteryx {

inline constexpr size_t kDeepestJson = 64;
inline constexpr size_t kLargestJson = size_t{256} << 20;

class Json {
 public:
  using Array = std::vector<Json>;
  using Object = std::map<std::string, Json, std::less<>>;

  Json() = default;  // null
  Json(bool b) : value_(b) {}
  template <std::unsigned_integral T>
    requires(!std::same_as<T, bool>)
  Json(T n) : value_(uint64_t{n}) {}
  template <std::signed_integral T>
  Json(T n) {
    if (n < 0) {
      value_ = int64_t{n};
    } else {
      value_ = static_cast<uint64_t>(n);
    }
  }
  Json(double d) : value_(d) {}
  Json(std::string s) : value_(std::move(s)) {}
  Json(std::string_view s) : value_(std::string(s)) {}
  Json(const char* s) : value_(std::string(s)) {}
  Json(Array a) : value_(std::move(a)) {}
  Json(Object o) : value_(std::move(o)) {}
  // Not in place everywhere: there is much of it.
  Json(const Json&);
  Json(Json&&) noexcept;
  Json& operator=(const Json&);
  Json& operator=(Json&&) noexcept;
  ~Json();
  // The elements of any list.
  template <typename List>
  static Json list(const List& elements) {
    Array a;
    for (const auto& e : elements) a.push_back(Json(e));
    return a;
  }

  bool is_null() const { return std::holds_alternative<std::monostate>(value_); }
  const bool* flag() const { return std::get_if<bool>(&value_); }
  const std::string* text() const { return std::get_if<std::string>(&value_); }
  const Array* array() const { return std::get_if<Array>(&value_); }
  const Object* object() const { return std::get_if<Object>(&value_); }
  // Any number.
  std::optional<double> number() const;
  // One without a point or an exponent that fits; whole() from 0 on.
  std::optional<int64_t> integer() const;
  std::optional<uint64_t> whole() const;
  // "string", "array" ...: what messages call it.
  std::string_view type_name() const;

  // The member of an object, or a null value where there is none.
  const Json& operator[](std::string_view key) const;
  // Elements of an array, members of an object; 0 for what is neither.
  size_t size() const;

  // Both make what is neither an object nor an array one, and return it.
  Json& set(std::string_view key, Json value);
  Json& push(Json value);
  // Whether there was such a member.
  bool erase(std::string_view key);

  // With a line for each member, indented by so much for each level; below 0 all on one line.
  // U+FFFD stands for what is not UTF-8, and null for numbers that are not finite.
  std::string dump(int indent = -1) const;

 private:
  friend class JsonBuilder;

  // Negative numbers are int64_t, others uint64_t, unless they have a point, an exponent or too
  // many digits.
  std::variant<std::monostate, bool, int64_t, uint64_t, double, std::string, Array, Object> value_;
};

struct JsonRules {
  size_t deepest = kDeepestJson;
  bool unique = false;  // no two members of the outermost object may have one name
};

// Of members with one name the last counts. `what` names the document in messages. Errors:
// kInvalidProgram with the byte, for what is no JSON, is too large or is nested deeper than the
// rules allow, or with the name that occurs twice.
Result<Json> parse_json(std::string_view text, std::string_view what, const JsonRules& rules = {});
Result<Json> parse_json(Bytes bytes, std::string_view what, const JsonRules& rules = {});

}  // namespace pteryx
