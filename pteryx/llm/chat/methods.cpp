// Methods of strings, dicts and lists. SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "pteryx/llm/chat/builtin.h"
#include "pteryx/llm/chat/evaluator.h"
#include "pteryx/llm/chat/text_case.h"
#include "pteryx/llm/tokenizer/unicode.h"
#include "pteryx/llm/tokenizer/utf8.h"

namespace pteryx::llm::chat {
namespace {

Status expected(const char* what, const Value& got) {
  return template_error(fmt::format("expected {}, got {}", what, got.type_name()));
}

template <Ends kEnds>
Result<Value> strip_method(const Call& c) {
  if (c.given(0) && c.text(0) == nullptr) return expected("a string", c.args[0]);
  const std::string_view chars = c.given(0) ? std::string_view(*c.text(0)) : "";
  if (c.given(0) && chars.empty()) return c.self;
  return c.ev.text(std::string(strip(*c.self.string(), chars, kEnds)));
}

template <std::string (*kChange)(std::string_view)>
Result<Value> change_method(const Call& c) {
  return c.ev.text(kChange(*c.self.string()));
}

// Pieces between spaces, or between a separator.
List split_text(std::string_view text, const std::string* separator, int64_t most) {
  List out;
  if (separator != nullptr) {
    for (size_t at = text.find(*separator); at != text.npos && most != 0;
         at = text.find(*separator)) {
      out.emplace_back(text.substr(0, at));
      text.remove_prefix(at + separator->size());
      --most;
    }
    out.emplace_back(text);
    return out;
  }
  while (true) {
    text = strip(text, "", Ends::kLeft);
    if (text.empty()) return out;
    if (most-- == 0) {
      out.emplace_back(text);
      return out;
    }
    size_t end = 0;
    while (end < text.size() && !is_python_space(char_at(text, end).code)) {
      end += char_at(text, end).size_bytes;
    }
    out.emplace_back(text.substr(0, end));
    text.remove_prefix(end);
  }
}

Result<Value> split_method(const Call& c) {
  if (c.given(0) && (c.text(0) == nullptr || c.text(0)->empty())) {
    return template_error("split(): expected a separator that is a string and not empty");
  }
  if (c.given(1) && c.args[1].integer() == nullptr) return expected("an integer", c.args[1]);
  const int64_t most = c.given(1) ? *c.args[1].integer() : -1;
  return c.ev.container(Value(split_text(*c.self.string(), c.text(0), most)));
}

Result<Value> rsplit_method(const Call& c) {
  if (c.text(0) == nullptr || c.text(0)->empty()) {
    return template_error("rsplit(): expected a separator that is a string and not empty");
  }
  if (c.given(1) && c.args[1].integer() == nullptr) return expected("an integer", c.args[1]);
  int64_t most = c.given(1) ? *c.args[1].integer() : -1;
  std::string_view text = *c.self.string();
  List out;
  for (size_t at = text.rfind(*c.text(0)); at != text.npos && most != 0;
       at = text.rfind(*c.text(0))) {
    out.emplace_back(text.substr(at + c.text(0)->size()));
    text = text.substr(0, at);
    --most;
  }
  out.emplace_back(text);
  std::reverse(out.begin(), out.end());
  return c.ev.container(Value(std::move(out)));
}

Result<Value> splitlines_method(const Call& c) {
  std::string_view text = *c.self.string();
  List out;
  while (!text.empty()) {
    const size_t end = std::min(text.find_first_of("\r\n"), text.size());
    out.emplace_back(text.substr(0, end));
    text.remove_prefix(end);
    if (text.starts_with("\r\n")) text.remove_prefix(1);
    if (!text.empty()) text.remove_prefix(1);
  }
  return c.ev.container(Value(std::move(out)));
}

template <bool kStart>
Result<Value> affix_method(const Call& c) {
  const auto fits = [&](const std::string& affix) {
    return kStart ? c.self.string()->starts_with(affix) : c.self.string()->ends_with(affix);
  };
  if (const auto* const affix = c.text(0)) return Value(fits(*affix));
  if (const auto* const any = c.args[0].list()) {
    return Value(std::any_of(any->begin(), any->end(),
                             [&](const Value& v) { return v.is_string() && fits(*v.string()); }));
  }
  return expected("a string", c.args[0]);
}

Result<Value> replace_method(const Call& c) {
  if (c.text(0) == nullptr) return expected("a string", c.args[0]);
  if (c.text(1) == nullptr) return expected("a string", c.args[1]);
  if (c.given(2) && c.args[2].integer() == nullptr) return expected("an integer", c.args[2]);
  const std::string& text = *c.self.string();
  // The result is at most this long; it is counted before it is made.
  const uint64_t longest =
      text.size() + text.size() / std::max<size_t>(c.text(0)->size(), 1) * c.text(1)->size();
  PTERYX_TRY(c.ev.spend(longest / 64));
  return c.ev.text(
      replace_all(text, *c.text(0), *c.text(1), c.given(2) ? *c.args[2].integer() : -1));
}

Result<Value> find_method(const Call& c) {
  if (c.text(0) == nullptr) return expected("a string", c.args[0]);
  const size_t at = c.self.string()->find(*c.text(0));
  if (at == std::string::npos) return Value(int64_t{-1});
  const auto offsets = character_offsets(std::string_view(*c.self.string()).substr(0, at));
  return Value(static_cast<int64_t>(offsets.size() - 1));
}

Result<Value> count_method(const Call& c) {
  if (c.text(0) == nullptr || c.text(0)->empty())
    return expected("a string with characters", c.args[0]);
  int64_t count = 0;
  for (size_t at = c.self.string()->find(*c.text(0)); at != std::string::npos;
       at = c.self.string()->find(*c.text(0), at + c.text(0)->size())) {
    ++count;
  }
  return Value(count);
}

Result<Value> join_method(const Call& c) {
  PTERYX_ASSIGN(const List parts, elements(c.args[0]));
  std::string out;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (!parts[i].is_string()) return expected("strings to join", parts[i]);
    if (i != 0) out += *c.self.string();
    out += *parts[i].string();
    PTERYX_TRY(c.ev.spend(1 + c.self.weight()));
  }
  return c.ev.text(std::move(out));
}

template <bool (*kIs)(char32_t)>
Result<Value> all_method(const Call& c) {
  const std::string& text = *c.self.string();
  for (size_t at = 0; at < text.size(); at += char_at(text, at).size_bytes) {
    if (!kIs(char_at(text, at).code)) return Value(false);
  }
  return Value(!text.empty());
}

bool is_letter(char32_t ch) { return is_word(ch) && !is_numeric(ch) && !is_mark(ch) && ch != '_'; }
bool is_alphanumeric(char32_t ch) { return is_letter(ch) || is_numeric(ch); }

template <std::string (*kChange)(std::string_view)>
Result<Value> is_case_method(const Call& c) {
  const std::string& text = *c.self.string();
  return Value(kChange(text) == text && (upper(text) != text || lower(text) != text));
}

Result<Value> items_method(const Call& c) {
  List out;
  for (const auto& [key, value] : *c.self.dict()) out.emplace_back(List{Value(key), value});
  return c.ev.container(Value(std::move(out)));
}

Result<Value> keys_method(const Call& c) {
  PTERYX_ASSIGN(List keys, elements(c.self));
  return c.ev.container(Value(std::move(keys)));
}

Result<Value> values_method(const Call& c) {
  List out;
  for (const auto& [key, value] : *c.self.dict()) out.push_back(value);
  return c.ev.container(Value(std::move(out)));
}

Result<Value> get_method(const Call& c) {
  const Value* const found = c.text(0) == nullptr ? nullptr : c.self.member(*c.text(0));
  return found != nullptr ? *found : c.args[1];
}

Result<Value> index_method(const Call& c) {
  const List& list = *c.self.list();
  const auto it = std::find(list.begin(), list.end(), c.args[0]);
  if (it == list.end())
    return template_error(fmt::format("{} is not in the list", c.args[0].repr()));
  return Value(static_cast<int64_t>(it - list.begin()));
}

const std::vector<Builtin>& string_methods() {
  static const std::vector<Builtin> kMethods = {
      {"strip", {"chars"}, strip_method<Ends::kBoth>},
      {"lstrip", {"chars"}, strip_method<Ends::kLeft>},
      {"rstrip", {"chars"}, strip_method<Ends::kRight>},
      {"upper", {}, change_method<upper>},
      {"lower", {}, change_method<lower>},
      {"title", {}, change_method<title>},
      {"capitalize", {}, change_method<capitalize>},
      {"split", {"sep", "maxsplit"}, split_method},
      {"rsplit", {"sep", "maxsplit"}, rsplit_method},
      {"splitlines", {}, splitlines_method},
      {"startswith", {"prefix"}, affix_method<true>},
      {"endswith", {"suffix"}, affix_method<false>},
      {"replace", {"old", "new", "count"}, replace_method},
      {"find", {"sub"}, find_method},
      {"count", {"sub"}, count_method},
      {"join", {"iterable"}, join_method},
      {"isdigit", {}, all_method<is_numeric>},
      {"isalpha", {}, all_method<is_letter>},
      {"isalnum", {}, all_method<is_alphanumeric>},
      {"isspace", {}, all_method<is_python_space>},
      {"isupper", {}, is_case_method<upper>},
      {"islower", {}, is_case_method<lower>},
  };
  return kMethods;
}

const std::vector<Builtin>& dict_methods() {
  static const std::vector<Builtin> kMethods = {{"items", {}, items_method},
                                                {"keys", {}, keys_method},
                                                {"values", {}, values_method},
                                                {"get", {"key", "default"}, get_method}};
  return kMethods;
}

const std::vector<Builtin>& list_methods() {
  static const std::vector<Builtin> kMethods = {{"index", {"value"}, index_method}};
  return kMethods;
}

const Builtin* find_method_of(const Value& of, std::string_view name) {
  if (of.is_string()) return find_builtin(string_methods(), name);
  if (of.dict() != nullptr) return find_builtin(dict_methods(), name);
  if (of.list() != nullptr) return find_builtin(list_methods(), name);
  return nullptr;
}

}  // namespace

bool has_method(const Value& of, std::string_view name) {
  return find_method_of(of, name) != nullptr;
}

Result<Value> call_method(Evaluator& ev, const Value& of, const std::string& name,
                          const Args& args) {
  const Builtin& method = *find_method_of(of, name);
  PTERYX_ASSIGN(auto bound, bind(method, args));
  return method.run({ev, of, std::move(bound)});
}

}  // namespace pteryx::llm::chat
