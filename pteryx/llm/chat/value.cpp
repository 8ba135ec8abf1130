// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/llm/chat/value.h"

#include <algorithm>

#include "pteryx/llm/chat/evaluator.h"

namespace pteryx::llm::chat {
namespace {

constexpr uint64_t kBytesPerUnit = 32;
constexpr uint64_t kHeaviest = uint64_t{1} << 62;

uint64_t heavier(uint64_t a, uint64_t b) { return std::min(a + b, kHeaviest); }

template <typename T>
struct Charged {
  T value;
  Charge charge;
};

template <typename T>
std::shared_ptr<const T> charged(T value, Charge charge) {
  auto p = std::make_shared<const Charged<T>>(Charged<T>{std::move(value), std::move(charge)});
  return {p, &p->value};
}

}  // namespace

Value::Value(std::string s, Charge charge) : v_(charged(std::move(s), std::move(charge))) {}

Value::Value(List list, Charge charge) {
  for (const Value& v : list) {
    depth_ = std::max(depth_, v.depth());
    inner_weight_ = heavier(inner_weight_, v.weight());
  }
  ++depth_;
  v_ = charged(std::move(list), std::move(charge));
}

Value::Value(Dict dict, Charge charge) {
  inner_weight_ = uint64_t{dict.size()} * dict.size() / 2;  // each key is looked for
  for (const auto& [key, v] : dict) {
    depth_ = std::max(depth_, v.depth());
    inner_weight_ = heavier(inner_weight_, heavier(key.size() / kBytesPerUnit, v.weight()));
  }
  ++depth_;
  v_ = charged(std::move(dict), std::move(charge));
}

// A method holds what it belongs to.
Value::Value(std::shared_ptr<const Function> f) : depth_(f->self.depth() + 1) { v_ = std::move(f); }

uint64_t Value::weight() const {
  if (const auto* const s = string()) return 1 + s->size() / kBytesPerUnit;
  return heavier(1, inner_weight_);
}

Value Value::undefined(std::string name, Charge charge) {
  return Value(std::make_shared<const Undefined>(Undefined{std::move(name), std::move(charge)}));
}

const Value* Value::member(std::string_view key) const {
  const Dict* const d = name_space() != nullptr ? &name_space()->members : dict();
  if (d == nullptr) return nullptr;
  const auto it =
      std::find_if(d->rbegin(), d->rend(), [&](const auto& m) { return m.first == key; });
  return it == d->rend() ? nullptr : &it->second;
}

bool Value::truth() const {
  if (is_undefined() || is_none()) return false;
  if (is_number()) return number() != 0;
  if (const auto* const s = string()) return !s->empty();
  if (const auto* const l = list()) return !l->empty();
  if (const auto* const d = dict()) return !d->empty();
  return true;
}

double Value::number() const {
  if (const auto* const b = boolean()) return *b ? 1 : 0;
  if (const auto* const i = integer()) return static_cast<double>(*i);
  return real() != nullptr ? *real() : 0;
}

std::string_view Value::type_name() const {
  constexpr std::string_view kNames[] = {"undefined", "None", "bool", "int",       "float",
                                         "str",       "list", "dict", "namespace", "function"};
  return kNames[v_.index()];
}

bool operator==(const Value& a, const Value& b) {
  if (a.is_number() && b.is_number()) {
    if (a.real() == nullptr && b.real() == nullptr && a.integer() != nullptr &&
        b.integer() != nullptr) {
      return *a.integer() == *b.integer();
    }
    return a.number() == b.number();
  }
  if (a.v_.index() != b.v_.index()) return false;
  if (a.is_undefined() || a.is_none()) return true;
  if (const auto* const s = a.string()) return *s == *b.string();
  if (const auto* const l = a.list()) return *l == *b.list();
  if (const auto* const d = a.dict()) {
    return d->size() == b.dict()->size() && std::all_of(d->begin(), d->end(), [&](const auto& m) {
             const Value* const other = b.member(m.first);
             return other != nullptr && *other == m.second;
           });
  }
  return a.v_ == b.v_;
}

}  // namespace pteryx::llm::chat
