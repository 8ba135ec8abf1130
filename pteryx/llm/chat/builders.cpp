// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/llm/chat/builders.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "pteryx/base/utf8.h"
#include "pteryx/llm/chat/evaluator.h"

namespace pteryx::llm::chat {
namespace {

constexpr size_t kDeepestValue = 64;
constexpr size_t kInPlace = 15;  // characters that a std::string holds without the heap
constexpr size_t kFewest = 4;    // elements of a list that grows

Status check_member(const Value& v) {
  if (v.name_space() == nullptr) return {};
  return template_error("a namespace cannot be inside a list or dict");
}

Result<Value> check_depth(Value v) {
  if (v.depth() <= kDeepestValue) return v;
  return template_error(fmt::format("a value is nested more than {} deep", kDeepestValue));
}

std::string repr_of(double d) {
  if (std::isinf(d)) return d > 0 ? "inf" : "-inf";
  if (std::isnan(d)) return "nan";
  std::string text = fmt::format("{}", d);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

Status print_quoted(std::string_view s, TextBuilder& out) {
  const char quote = s.find('\'') != s.npos && s.find('"') == s.npos ? '"' : '\'';
  PTERYX_TRY(out.append({&quote, 1}));
  size_t done = 0;  // what needs no escape is copied in one piece
  for (size_t at = 0; at < s.size(); ++at) {
    const char c = s[at];
    if (static_cast<uint8_t>(c) >= 0x20 && c != 0x7F && c != '\\' && c != quote) continue;
    PTERYX_TRY(out.append(s.substr(done, at - done)));
    done = at + 1;
    switch (c) {
      case '\n': PTERYX_TRY(out.append("\\n")); break;
      case '\r': PTERYX_TRY(out.append("\\r")); break;
      case '\t': PTERYX_TRY(out.append("\\t")); break;
      case '\\': PTERYX_TRY(out.append("\\\\")); break;
      default:
        PTERYX_TRY(out.meter().work(10));
        PTERYX_TRY(out.append(c == quote ? std::string{'\\', quote}
                                         : fmt::format("\\x{:02x}", static_cast<uint8_t>(c))));
    }
  }
  PTERYX_TRY(out.append(s.substr(done)));
  return out.append({&quote, 1});
}

}  // namespace

Status TextBuilder::grow(size_t more) {
  // The old memory is there until the text has moved.
  const size_t capacity = std::max(text_.size() + more, 2 * text_.capacity());
  const size_t old = text_.capacity() > kInPlace ? text_.capacity() + 1 : 0;
  PTERYX_TRY(charge_.add(capacity + 1));
  text_.reserve(capacity);
  charge_.give_back(old);
  return {};
}

Status TextBuilder::append_code(char32_t code) {
  std::string character;
  append_utf8(character, code);
  return append(character);
}

Result<Value> TextBuilder::finish() {
  PTERYX_TRY(charge_.add(kObjectBytes));
  return Value(std::move(text_), std::move(charge_));
}

Status ListBuilder::reserve(size_t count) {
  if (count <= list_.capacity()) return {};
  const size_t capacity = std::max({count, 2 * list_.capacity(), kFewest});
  const size_t old = list_.capacity();
  PTERYX_TRY(charge_.add(capacity * sizeof(Value)));
  list_.reserve(capacity);
  charge_.give_back(old * sizeof(Value));
  return {};
}

Status ListBuilder::push(Value value) {
  PTERYX_TRY(check_member(value));
  PTERYX_TRY(meter_.work(6));
  PTERYX_TRY(reserve(list_.size() + 1));
  list_.push_back(std::move(value));
  return {};
}

Status ListBuilder::push(std::string_view text) {
  PTERYX_ASSIGN(Value value, make_text(meter_, text));
  return push(std::move(value));
}

Status ListBuilder::append(const List& list) {
  PTERYX_TRY(meter_.work(4 * list.size()));
  PTERYX_TRY(reserve(list_.size() + list.size()));
  list_.insert(list_.end(), list.begin(), list.end());
  return {};
}

Result<Value> ListBuilder::finish() {
  PTERYX_TRY(charge_.add(kObjectBytes));
  PTERYX_TRY(meter_.work(list_.size()));
  return check_depth(Value(std::move(list_), std::move(charge_)));
}

Status DictBuilder::set(std::string_view key, Value value) {
  PTERYX_TRY(check_member(value));
  PTERYX_TRY(meter_.work(dict_.size()));
  const auto it =
      std::find_if(dict_.begin(), dict_.end(), [&](const auto& m) { return m.first == key; });
  if (it == dict_.end()) return add(key, std::move(value));
  it->second = std::move(value);
  return {};
}

Status DictBuilder::add(std::string_view key, Value value) {
  // Twice: the old members are there until they have moved.
  PTERYX_TRY(charge_.add(3 * sizeof(Dict::value_type) + key.size()));
  PTERYX_TRY(meter_.work(10 + key.size() / 8));
  dict_.emplace_back(key, std::move(value));
  return {};
}

Status DictBuilder::copy(const Dict& dict) {
  for (const auto& [key, value] : dict) PTERYX_TRY(add(key, value));
  return {};
}

Result<Value> DictBuilder::finish() {
  PTERYX_TRY(charge_.add(kObjectBytes));
  return check_depth(Value(std::move(dict_), std::move(charge_)));
}

Result<Value> DictBuilder::finish_namespace() {
  PTERYX_TRY(charge_.add(kObjectBytes));
  return Value(std::make_shared<Namespace>(Namespace{std::move(dict_), std::move(charge_)}));
}

Result<Value> make_text(Meter& meter, std::string_view text) {
  TextBuilder out(meter);
  PTERYX_TRY(out.append(text));
  return out.finish();
}

Result<Value> text_of(Meter& meter, const Value& value) {
  if (value.is_string()) return value;
  TextBuilder out(meter);
  PTERYX_TRY(print(value, out));
  return out.finish();
}

Status print(const Value& value, TextBuilder& out) {
  if (value.is_undefined()) return {};
  if (const auto* const s = value.string()) return out.append(*s);
  return print_repr(value, out);
}

Status print_repr(const Value& value, TextBuilder& out) {
  if (value.is_undefined()) return out.append("Undefined");
  if (value.is_none()) return out.append("None");
  if (const auto* const b = value.boolean()) return out.append(*b ? "True" : "False");
  if (const auto* const s = value.string()) return print_quoted(*s, out);
  if (value.is_number()) {
    PTERYX_TRY(out.meter().work(20));
    const int64_t* const i = value.integer();
    return out.append(i != nullptr ? fmt::format("{}", *i) : repr_of(*value.real()));
  }
  if (const auto* const l = value.list()) {
    PTERYX_TRY(out.append("["));
    for (size_t i = 0; i < l->size(); ++i) {
      if (i != 0) PTERYX_TRY(out.append(", "));
      PTERYX_TRY(print_repr((*l)[i], out));
    }
    return out.append("]");
  }
  if (const auto* const d = value.dict()) {
    PTERYX_TRY(out.append("{"));
    for (size_t i = 0; i < d->size(); ++i) {
      if (i != 0) PTERYX_TRY(out.append(", "));
      PTERYX_TRY(print_quoted((*d)[i].first, out));
      PTERYX_TRY(out.append(": "));
      PTERYX_TRY(print_repr((*d)[i].second, out));
    }
    return out.append("}");
  }
  return out.append(fmt::format("<{}>", value.type_name()));
}

Result<Value> elements(Meter& meter, const Value& value) {
  if (value.list() != nullptr) return value;
  ListBuilder out(meter);
  if (const auto* const d = value.dict()) {
    for (const auto& [key, member] : *d) PTERYX_TRY(out.push(std::string_view(key)));
  } else if (const auto* const s = value.string()) {
    for (size_t at = 0; at < s->size();) {
      const uint32_t size = char_at(*s, at).size_bytes;
      PTERYX_TRY(out.push(std::string_view(*s).substr(at, size)));
      at += size;
    }
  } else if (!value.is_undefined()) {
    return template_error(fmt::format("a value of type {} has no elements", value.type_name()));
  }
  return out.finish();
}

}  // namespace pteryx::llm::chat
