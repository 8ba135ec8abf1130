// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/llm/chat/value.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "pteryx/llm/chat/evaluator.h"

namespace pteryx::llm::chat {
namespace {

constexpr uint64_t kBytesPerUnit = 64;
constexpr uint64_t kHeaviest = uint64_t{1} << 62;

uint64_t heavier(uint64_t a, uint64_t b) { return std::min(a + b, kHeaviest); }

std::string repr_of(double d) {
  if (std::isinf(d)) return d > 0 ? "inf" : "-inf";
  if (std::isnan(d)) return "nan";
  std::string text = fmt::format("{}", d);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

std::string repr_of(std::string_view s) {
  const char quote = s.find('\'') != s.npos && s.find('"') == s.npos ? '"' : '\'';
  std::string out(1, quote);
  for (const char c : s) {
    switch (c) {
      case '\n': out += "\\n"; break;
      case '\r': out += "\\r"; break;
      case '\t': out += "\\t"; break;
      case '\\': out += "\\\\"; break;
      default:
        if (c == quote) {
          out += '\\';
          out += c;
        } else if (static_cast<uint8_t>(c) < 0x20 || c == 0x7F) {
          out += fmt::format("\\x{:02x}", static_cast<uint8_t>(c));
        } else {
          out += c;
        }
    }
  }
  return out += quote;
}

}  // namespace

Value::Value(List list) {
  for (const Value& v : list) {
    depth_ = std::max(depth_, v.depth());
    inner_weight_ = heavier(inner_weight_, v.weight());
  }
  ++depth_;
  v_ = std::make_shared<const List>(std::move(list));
}

Value::Value(Dict dict) {
  for (const auto& [key, v] : dict) {
    depth_ = std::max(depth_, v.depth());
    inner_weight_ = heavier(inner_weight_, heavier(key.size() / kBytesPerUnit, v.weight()));
  }
  ++depth_;
  v_ = std::make_shared<const Dict>(std::move(dict));
}

uint64_t Value::weight() const {
  if (const auto* const s = string()) return 1 + s->size() / kBytesPerUnit;
  return heavier(1, inner_weight_);
}

Value Value::undefined(std::string name) {
  return Value(std::make_shared<const Undefined>(Undefined{std::move(name)}));
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

std::string Value::str() const {
  if (is_undefined()) return "";
  if (const auto* const s = string()) return *s;
  return repr();
}

std::string Value::repr() const {
  if (is_undefined()) return "Undefined";
  if (is_none()) return "None";
  if (const auto* const b = boolean()) return *b ? "True" : "False";
  if (const auto* const i = integer()) return fmt::format("{}", *i);
  if (const auto* const r = real()) return repr_of(*r);
  if (const auto* const s = string()) return repr_of(std::string_view(*s));
  std::string out;
  if (const auto* const l = list()) {
    for (const Value& v : *l) out += (out.empty() ? "" : ", ") + v.repr();
    return "[" + out + "]";
  }
  if (const auto* const d = dict()) {
    for (const auto& [key, v] : *d) {
      out += (out.empty() ? "" : ", ") + repr_of(std::string_view(key)) + ": " + v.repr();
    }
    return "{" + out + "}";
  }
  return fmt::format("<{}>", type_name());
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
