// The filters that take plain arguments. SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/llm/chat/filters.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "pteryx/llm/chat/builtin.h"
#include "pteryx/llm/chat/evaluator.h"
#include "pteryx/llm/chat/template.h"
#include "pteryx/llm/chat/text_case.h"

namespace pteryx::llm::chat {
namespace {

Result<Value> trim(const Call& c) {
  const std::string chars = c.given(0) ? c.args[0].str() : "";
  return c.ev.text(std::string(strip(c.self.str(), chars, Ends::kBoth)));
}

template <std::string (*kChange)(std::string_view)>
Result<Value> change(const Call& c) {
  return c.ev.text(kChange(c.self.str()));
}

// Words start after spaces, hyphens and opening brackets.
std::string title_words(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const size_t end = std::min(text.find_first_of("- \t\r\n({[<"), text.size());
    out += capitalize(text.substr(0, end));
    if (end < text.size()) out += text[end];
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

Result<Value> length(const Call& c) {
  if (c.self.is_string()) {
    return Value(static_cast<int64_t>(character_offsets(*c.self.string()).size() - 1));
  }
  if (c.self.list() != nullptr) return Value(static_cast<int64_t>(c.self.list()->size()));
  if (c.self.dict() != nullptr) return Value(static_cast<int64_t>(c.self.dict()->size()));
  if (c.self.is_undefined()) return Value(int64_t{0});
  return template_error(fmt::format("a value of type {} has no length", c.self.type_name()));
}

Result<Value> to_json(const Call& c) {
  JsonStyle style;
  if (c.args[0].integer() != nullptr) {
    style.indent = *c.args[0].integer();
    style.item_separator = ",";
  }
  if (c.args[1].list() != nullptr && c.args[1].list()->size() == 2) {
    style.item_separator = (*c.args[1].list())[0].str();
    style.key_separator = (*c.args[1].list())[1].str();
  }
  style.ascii_only = c.given(2) && c.args[2].truth();
  style.sort_keys = c.given(3) && c.args[3].truth();
  if (style.indent > 16) return template_error("tojson: expected an indent of at most 16");
  PTERYX_ASSIGN(std::string json, json_of_value(c.self, style));
  return c.ev.text(std::move(json));
}

Result<Value> join(const Call& c) {
  PTERYX_ASSIGN(const List parts, elements(c.self));
  const std::string separator = c.given(0) ? c.args[0].str() : "";
  std::string out;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (i != 0) out += separator;
    Value part = parts[i];
    if (c.text(1) != nullptr) {
      PTERYX_ASSIGN(part, c.ev.attribute(part, *c.text(1)));
    }
    PTERYX_TRY(c.ev.spend(part.weight() + separator.size() / 64 + 1));
    out += part.str();
  }
  return c.ev.text(std::move(out));
}

Result<Value> otherwise(const Call& c) {
  const bool use = c.self.is_undefined() || (c.given(1) && c.args[1].truth() && !c.self.truth());
  if (!use) return c.self;
  return c.args[0].is_none() ? Value("") : c.args[0];
}

template <bool kFirst>
Result<Value> end_of(const Call& c) {
  if (c.self.is_string() || c.self.list() != nullptr) {
    PTERYX_ASSIGN(const Value v, c.ev.item(c.self, Value(int64_t{kFirst ? 0 : -1})));
    return v;
  }
  PTERYX_ASSIGN(const List all, elements(c.self));
  if (all.empty()) return Value::undefined(kFirst ? "first" : "last");
  return kFirst ? all.front() : all.back();
}

Result<Value> items(const Call& c) {
  if (c.self.is_undefined()) return Value(List());
  if (c.self.dict() == nullptr) {
    return template_error(fmt::format("items: expected a dict, got {}", c.self.type_name()));
  }
  return call_method(c.ev, c.self, "items", {});
}

Result<Value> to_list(const Call& c) {
  PTERYX_ASSIGN(List all, elements(c.self));
  return c.ev.container(Value(std::move(all)));
}

Result<Value> to_string(const Call& c) { return c.ev.text(c.self.str()); }

Result<Value> to_int(const Call& c) {
  if (c.self.is_number()) {
    const double d = c.self.number();
    if (c.self.real() == nullptr)
      return Value(c.self.integer() ? *c.self.integer() : static_cast<int64_t>(d));
    if (std::abs(d) < 9e18) return Value(static_cast<int64_t>(d));
  }
  if (const auto* const s = c.self.string()) {
    const std::string_view text = strip(*s, "", Ends::kBoth);
    int64_t n = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
    if (error == std::errc() && end == text.data() + text.size() && !text.empty()) return Value(n);
  }
  return c.args[0].is_none() ? Value(int64_t{0}) : c.args[0];
}

Result<Value> to_float(const Call& c) {
  if (c.self.is_number()) return Value(c.self.number());
  if (const auto* const s = c.self.string(); s != nullptr && !s->empty()) {
    char* end = nullptr;
    const double d = std::strtod(s->c_str(), &end);
    if (end == s->c_str() + s->size()) return Value(d);
  }
  return c.args[0].is_none() ? Value(0.0) : c.args[0];
}

Result<Value> replace(const Call& c) {
  Value text(c.self.str());
  return call_method(c.ev, text, "replace", {.positional = c.args});
}

Result<Value> indent(const Call& c) {
  const int64_t width = c.args[0].integer() != nullptr ? *c.args[0].integer() : 4;
  if (width < 0 || width > 256) return template_error("indent: expected a width from 0 to 256");
  const std::string pad =
      c.text(0) != nullptr ? *c.text(0) : std::string(static_cast<size_t>(width), ' ');
  const bool first = c.given(1) && c.args[1].truth();
  const bool blank = c.given(2) && c.args[2].truth();
  const std::string text = c.self.str();
  PTERYX_TRY(c.ev.spend(text.size() * (1 + pad.size() / 64)));
  std::string out;
  for (size_t at = 0, line = 0; at <= text.size(); ++line) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const bool pads = line == 0 ? first : (blank || end > at);
    if (pads) out += pad;
    out.append(text, at, end - at);
    if (end < text.size()) out += '\n';
    at = end + 1;
  }
  return c.ev.text(std::move(out));
}

Result<Value> escape(const Call& c) {
  std::string out;
  for (const char ch : c.self.str()) {
    switch (ch) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '\'': out += "&#39;"; break;
      case '"': out += "&#34;"; break;
      default: out += ch;
    }
  }
  return c.ev.text(std::move(out));
}

Result<Value> same(const Call& c) { return c.self; }

Result<Value> reversed(const Call& c) {
  PTERYX_ASSIGN(List all, elements(c.self));
  std::reverse(all.begin(), all.end());
  if (!c.self.is_string()) return c.ev.container(Value(std::move(all)));
  std::string out;
  for (const Value& v : all) out += *v.string();
  return c.ev.text(std::move(out));
}

Result<Value> unique(const Call& c) {
  PTERYX_ASSIGN(const List all, elements(c.self));
  List out;
  for (const Value& v : all) {
    PTERYX_TRY(c.ev.spend(out.size() * v.weight()));
    if (std::find(out.begin(), out.end(), v) == out.end()) out.push_back(v);
  }
  return c.ev.container(Value(std::move(out)));
}

Result<Value> absolute(const Call& c) {
  if (!c.self.is_number()) return template_error("abs: expected a number");
  return c.self.number() < 0 ? negate(c.self) : Result<Value>(c.self);
}

Result<Value> rounded(const Call& c) {
  if (!c.self.is_number()) return template_error("round: expected a number");
  const int64_t digits = c.args[0].integer() != nullptr ? *c.args[0].integer() : 0;
  const double scale = std::pow(10.0, static_cast<double>(std::clamp<int64_t>(digits, -300, 300)));
  return Value(std::nearbyint(c.self.number() * scale) / scale);
}

Result<Value> sum(const Call& c) {
  PTERYX_ASSIGN(const List all, elements(c.self));
  Value total(int64_t{0});
  for (const Value& v : all) {
    PTERYX_ASSIGN(total, binary(c.ev, "+", total, v));
  }
  return total;
}

}  // namespace

const std::vector<Builtin>& plain_filters() {
  static const std::vector<Builtin> kFilters = {
      {"trim", {"chars"}, trim},
      {"length", {}, length},
      {"count", {}, length},
      {"tojson", {"indent", "separators", "ensure_ascii", "sort_keys"}, to_json},
      {"upper", {}, change<upper>},
      {"lower", {}, change<lower>},
      {"capitalize", {}, change<capitalize>},
      {"title", {}, change<title_words>},
      {"join", {"d", "attribute"}, join},
      {"default", {"default_value", "boolean"}, otherwise},
      {"d", {"default_value", "boolean"}, otherwise},
      {"first", {}, end_of<true>},
      {"last", {}, end_of<false>},
      {"items", {}, items},
      {"list", {}, to_list},
      {"string", {}, to_string},
      {"int", {"default", "base"}, to_int},
      {"float", {"default"}, to_float},
      {"replace", {"old", "new", "count"}, replace},
      {"indent", {"width", "first", "blank"}, indent},
      {"escape", {}, escape},
      {"e", {}, escape},
      {"safe", {}, same},
      {"reverse", {}, reversed},
      {"unique", {}, unique},
      {"abs", {}, absolute},
      {"round", {"precision"}, rounded},
      {"sum", {}, sum},
  };
  return kFilters;
}

}  // namespace pteryx::llm::chat
