// The values of chat templates: Python's, as far as templates use them. All are immutable but
// namespaces, and nothing can contain a namespace, so that values form no cycles. Texts are UTF-8.
// What a template makes is made by builders.h, and holds the memory it was charged for.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "pteryx/llm/chat/meter.h"

namespace pteryx::llm::chat {

class Value;
using List = std::vector<Value>;
// In the order of insertion.
using Dict = std::vector<std::pair<std::string, Value>>;

struct Undefined {
  std::string name;  // what was looked for
  Charge charge;
};
struct None {};
struct Namespace {
  Dict members;
  Charge charge;
};
struct Function;  // evaluator.h

class Value {
 public:
  using Text = std::shared_ptr<const std::string>;
  using Variant = std::variant<std::shared_ptr<const Undefined>, None, bool, int64_t, double, Text,
                               std::shared_ptr<const List>, std::shared_ptr<const Dict>,
                               std::shared_ptr<Namespace>, std::shared_ptr<const Function>>;

  Value() : Value(None()) {}
  Value(None) : v_(None()) {}  // NOLINT: implicit by design
  explicit Value(bool b) : v_(b) {}
  explicit Value(int64_t i) : v_(i) {}
  explicit Value(double d) : v_(d) {}
  explicit Value(std::string s) : Value(std::move(s), Charge()) {}
  explicit Value(std::string_view s) : Value(std::string(s)) {}
  explicit Value(const char* s) : Value(std::string(s)) {}
  explicit Value(List list) : Value(std::move(list), Charge()) {}
  explicit Value(Dict dict) : Value(std::move(dict), Charge()) {}
  explicit Value(std::shared_ptr<Namespace> n) : v_(std::move(n)), depth_(1) {}
  explicit Value(std::shared_ptr<const Function> f);
  static Value undefined(std::string name, Charge charge = {});
  // With the memory that was charged for it.
  Value(std::string s, Charge charge);
  Value(List list, Charge charge);
  Value(Dict dict, Charge charge);

  bool is_undefined() const { return holds<std::shared_ptr<const Undefined>>(); }
  bool is_none() const { return holds<None>(); }
  bool is_string() const { return holds<Text>(); }
  bool is_number() const { return holds<bool>() || holds<int64_t>() || holds<double>(); }

  // nullptr if it is something else.
  const bool* boolean() const { return std::get_if<bool>(&v_); }
  const int64_t* integer() const { return std::get_if<int64_t>(&v_); }
  const double* real() const { return std::get_if<double>(&v_); }
  const std::string* string() const { return pointee<const std::string>(); }
  const List* list() const { return pointee<const List>(); }
  const Dict* dict() const { return pointee<const Dict>(); }
  Namespace* name_space() const { return pointee<Namespace>(); }
  const Function* function() const { return pointee<const Function>(); }
  const Undefined* missing() const { return pointee<const Undefined>(); }

  const Value* member(std::string_view key) const;  // of a dict or namespace
  size_t depth() const { return depth_; }           // how deep lists and dicts are nested
  uint64_t weight() const;                          // units of work to compare it

  bool truth() const;
  double number() const;  // of a bool, integer or real
  std::string_view type_name() const;

  friend bool operator==(const Value& a, const Value& b);

 private:
  template <typename T>
  bool holds() const {
    return std::holds_alternative<T>(v_);
  }
  template <typename T>
  T* pointee() const {
    const auto* const p = std::get_if<std::shared_ptr<T>>(&v_);
    return p == nullptr ? nullptr : p->get();
  }
  explicit Value(std::shared_ptr<const Undefined> u) : v_(std::move(u)) {}

  Variant v_;
  size_t depth_ = 0;
  uint64_t inner_weight_ = 0;  // of a list or dict
};

}  // namespace pteryx::llm::chat
