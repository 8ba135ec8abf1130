// Methods of strings, dicts and lists. SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "pteryx/base/utf8.h"
#include "pteryx/llm/chat/builtin.h"
#include "pteryx/llm/chat/evaluator.h"
#include "pteryx/llm/chat/text_changes.h"
#include "pteryx/llm/tokenizer/unicode.h"

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
  PTERYX_ASSIGN(const std::string_view text, strip(c.meter(), *c.self.string(), chars, kEnds));
  return make_text(c.meter(), text);
}

template <Change kChange>
Result<Value> change_method(const Call& c) {
  return changed(c.meter(), kChange, *c.self.string());
}

Status split_at(std::string_view text, std::string_view separator, int64_t most, ListBuilder& out) {
  while (most-- != 0) {
    PTERYX_ASSIGN(const size_t at, find(out.meter(), text, separator));
    if (at == text.npos) break;
    PTERYX_TRY(out.push(text.substr(0, at)));
    text.remove_prefix(at + separator.size());
  }
  return out.push(text);
}

Status split_at_spaces(std::string_view text, int64_t most, ListBuilder& out) {
  while (true) {
    PTERYX_ASSIGN(text, strip(out.meter(), text, "", Ends::kLeft));
    if (text.empty()) return {};
    if (most-- == 0) return out.push(text);
    size_t end = 0;
    while (end < text.size() && !is_python_space(char_at(text, end).code)) {
      end += char_at(text, end).size_bytes;
    }
    PTERYX_TRY(out.meter().work(4 * end));
    PTERYX_TRY(out.push(text.substr(0, end)));
    text.remove_prefix(end);
  }
}

// How often to split; below 0: wherever it can be.
Result<int64_t> most_splits(const Call& c) {
  if (!c.given(1)) return int64_t{-1};
  if (c.args[1].integer() == nullptr) return expected("an integer", c.args[1]);
  return *c.args[1].integer();
}

Result<Value> split_method(const Call& c) {
  if (c.given(0) && (c.text(0) == nullptr || c.text(0)->empty())) {
    return template_error("split(): expected a separator that is a string and not empty");
  }
  PTERYX_ASSIGN(const int64_t most, most_splits(c));
  ListBuilder out(c.meter());
  PTERYX_TRY(c.given(0) ? split_at(*c.self.string(), *c.text(0), most, out)
                        : split_at_spaces(*c.self.string(), most, out));
  return out.finish();
}

Result<Value> rsplit_method(const Call& c) {
  if (c.text(0) == nullptr || c.text(0)->empty()) {
    return template_error("rsplit(): expected a separator that is a string and not empty");
  }
  PTERYX_ASSIGN(int64_t most, most_splits(c));
  std::string_view text = *c.self.string();
  ListBuilder out(c.meter());
  while (most-- != 0) {
    PTERYX_ASSIGN(const size_t at, rfind(c.meter(), text, *c.text(0)));
    if (at == text.npos) break;
    PTERYX_TRY(out.push(text.substr(at + c.text(0)->size())));
    text = text.substr(0, at);
  }
  PTERYX_TRY(out.push(text));
  std::reverse(out.list().begin(), out.list().end());
  return out.finish();
}

Result<Value> splitlines_method(const Call& c) {
  std::string_view text = *c.self.string();
  ListBuilder out(c.meter());
  while (!text.empty()) {
    const size_t end = std::min(text.find_first_of("\r\n"), text.size());
    PTERYX_TRY(c.meter().work(end));
    PTERYX_TRY(out.push(text.substr(0, end)));
    text.remove_prefix(end);
    if (text.starts_with("\r\n")) text.remove_prefix(1);
    if (!text.empty()) text.remove_prefix(1);
  }
  return out.finish();
}

template <bool kStart>
Result<Value> affix_method(const Call& c) {
  const std::string& text = *c.self.string();
  const auto fits = [&](const std::string& affix) -> Result<bool> {
    if (affix.size() > text.size()) return false;
    PTERYX_TRY(c.meter().work(1 + affix.size() / 32));
    return kStart ? text.starts_with(affix) : text.ends_with(affix);
  };
  const auto* const any = c.args[0].list();
  if (c.text(0) == nullptr && any == nullptr) return expected("a string", c.args[0]);
  bool found = false;
  if (any == nullptr) {
    PTERYX_ASSIGN(found, fits(*c.text(0)));
    return Value(found);
  }
  for (const Value& v : *any) {
    PTERYX_TRY(c.meter().work(1));
    if (!v.is_string()) continue;
    PTERYX_ASSIGN(found, fits(*v.string()));
    if (found) break;
  }
  return Value(found);
}

Result<Value> replace_method(const Call& c) {
  if (c.text(0) == nullptr) return expected("a string", c.args[0]);
  if (c.text(1) == nullptr) return expected("a string", c.args[1]);
  if (c.given(2) && c.args[2].integer() == nullptr) return expected("an integer", c.args[2]);
  return replaced(c.meter(), *c.self.string(), *c.text(0), *c.text(1),
                  c.given(2) ? *c.args[2].integer() : -1);
}

Result<Value> find_method(const Call& c) {
  if (c.text(0) == nullptr) return expected("a string", c.args[0]);
  const std::string_view text = *c.self.string();
  PTERYX_ASSIGN(const size_t at, find(c.meter(), text, *c.text(0)));
  if (at == text.npos) return Value(int64_t{-1});
  PTERYX_ASSIGN(const size_t before, count_chars(c.meter(), text.substr(0, at)));
  return Value(static_cast<int64_t>(before));
}

Result<Value> count_method(const Call& c) {
  if (c.text(0) == nullptr || c.text(0)->empty())
    return expected("a string with characters", c.args[0]);
  int64_t count = 0;
  for (size_t from = 0;; ++count) {
    PTERYX_ASSIGN(const size_t at, find(c.meter(), *c.self.string(), *c.text(0), from));
    if (at == std::string::npos) return Value(count);
    from = at + c.text(0)->size();
  }
}

Result<Value> join_method(const Call& c) {
  PTERYX_ASSIGN(const Value parts, elements(c.meter(), c.args[0]));
  TextBuilder out(c.meter());
  for (size_t i = 0; i < parts.list()->size(); ++i) {
    const Value& part = (*parts.list())[i];
    if (!part.is_string()) return expected("strings to join", part);
    if (i != 0) PTERYX_TRY(out.append(*c.self.string()));
    PTERYX_TRY(out.append(*part.string()));
  }
  return out.finish();
}

template <bool (*kIs)(char32_t)>
Result<Value> all_method(const Call& c) {
  const std::string& text = *c.self.string();
  for (size_t at = 0; at < text.size(); at += char_at(text, at).size_bytes) {
    PTERYX_TRY(c.meter().work(10));
    if (!kIs(char_at(text, at).code)) return Value(false);
  }
  return Value(!text.empty());
}

bool is_letter(char32_t ch) { return is_word(ch) && !is_numeric(ch) && !is_mark(ch) && ch != '_'; }
bool is_alphanumeric(char32_t ch) { return is_letter(ch) || is_numeric(ch); }

template <Change kChange>
Result<Value> is_case_method(const Call& c) {
  PTERYX_ASSIGN(const bool is, is_all_case(c.meter(), kChange, *c.self.string()));
  return Value(is);
}

Result<Value> items_method(const Call& c) {
  ListBuilder out(c.meter());
  for (const auto& [key, value] : *c.self.dict()) {
    ListBuilder pair(c.meter());
    PTERYX_TRY(pair.push(std::string_view(key)));
    PTERYX_TRY(pair.push(value));
    PTERYX_ASSIGN(Value both, pair.finish());
    PTERYX_TRY(out.push(std::move(both)));
  }
  return out.finish();
}

Result<Value> keys_method(const Call& c) { return elements(c.meter(), c.self); }

Result<Value> values_method(const Call& c) {
  ListBuilder out(c.meter());
  for (const auto& [key, value] : *c.self.dict()) PTERYX_TRY(out.push(value));
  return out.finish();
}

Result<Value> get_method(const Call& c) {
  if (c.text(0) == nullptr) return c.args[1];
  PTERYX_ASSIGN(const Value* const found, c.ev.member(c.self, *c.text(0)));
  return found != nullptr ? *found : c.args[1];
}

Result<Value> index_method(const Call& c) {
  const List& list = *c.self.list();
  for (size_t i = 0; i < list.size(); ++i) {
    PTERYX_ASSIGN(const bool found, equal(c.meter(), list[i], c.args[0]));
    if (found) return Value(static_cast<int64_t>(i));
  }
  return template_error("the value is not in the list");
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
