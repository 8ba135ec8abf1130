// The filters that take plain arguments. SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/llm/chat/filters.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "pteryx/base/numbers.h"
#include "pteryx/llm/chat/builders.h"
#include "pteryx/llm/chat/builtin.h"
#include "pteryx/llm/chat/evaluator.h"
#include "pteryx/llm/chat/json.h"
#include "pteryx/llm/chat/text_changes.h"

namespace pteryx::llm::chat {
namespace {

Result<Value> self_text(const Call& c) { return text_of(c.meter(), c.self); }
Result<Value> arg_text(const Call& c, size_t i) {
  return c.given(i) ? text_of(c.meter(), c.args[i]) : Result<Value>(Value(""));
}

Result<Value> trim(const Call& c) {
  PTERYX_ASSIGN(const Value text, self_text(c));
  PTERYX_ASSIGN(const Value chars, arg_text(c, 0));
  PTERYX_ASSIGN(const std::string_view trimmed,
                strip(c.meter(), *text.string(), *chars.string(), Ends::kBoth));
  return make_text(c.meter(), trimmed);
}

template <Change kChange>
Result<Value> change(const Call& c) {
  PTERYX_ASSIGN(const Value text, self_text(c));
  return changed(c.meter(), kChange, *text.string());
}

Result<Value> length(const Call& c) {
  if (c.self.is_string()) {
    PTERYX_ASSIGN(const size_t count, count_chars(c.meter(), *c.self.string()));
    return Value(static_cast<int64_t>(count));
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
  Value separators[2];
  if (const List* const given = c.args[1].list(); given != nullptr && given->size() == 2) {
    PTERYX_ASSIGN(separators[0], text_of(c.meter(), (*given)[0]));
    PTERYX_ASSIGN(separators[1], text_of(c.meter(), (*given)[1]));
    style.item_separator = *separators[0].string();
    style.key_separator = *separators[1].string();
  }
  style.ascii_only = c.given(2) && c.args[2].truth();
  style.sort_keys = c.given(3) && c.args[3].truth();
  if (style.indent > 16) return template_error("tojson: expected an indent of at most 16");
  TextBuilder out(c.meter());
  PTERYX_TRY(write_json(c.self, style, out));
  return out.finish();
}

Result<Value> join(const Call& c) {
  PTERYX_ASSIGN(const Value parts, elements(c.meter(), c.self));
  PTERYX_ASSIGN(const Value separator, arg_text(c, 0));
  TextBuilder out(c.meter());
  for (size_t i = 0; i < parts.list()->size(); ++i) {
    if (i != 0) PTERYX_TRY(out.append(*separator.string()));
    Value part = (*parts.list())[i];
    if (c.text(1) != nullptr) {
      PTERYX_ASSIGN(part, c.ev.attribute(part, *c.text(1)));
    }
    PTERYX_TRY(print(part, out));
  }
  return out.finish();
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
  PTERYX_ASSIGN(const Value all, elements(c.meter(), c.self));
  if (all.list()->empty()) return c.ev.undefined(kFirst ? "first" : "last");
  return kFirst ? all.list()->front() : all.list()->back();
}

Result<Value> items(const Call& c) {
  if (c.self.is_undefined()) return Value(List());
  if (c.self.dict() == nullptr) {
    return template_error(fmt::format("items: expected a dict, got {}", c.self.type_name()));
  }
  return call_method(c.ev, c.self, "items", {});
}

Result<Value> to_list(const Call& c) { return elements(c.meter(), c.self); }

Result<Value> to_string(const Call& c) { return self_text(c); }

Result<Value> to_int(const Call& c) {
  if (c.self.is_number()) {
    const double d = c.self.number();
    if (c.self.real() == nullptr)
      return Value(c.self.integer() ? *c.self.integer() : static_cast<int64_t>(d));
    if (std::abs(d) < 9e18) return Value(static_cast<int64_t>(d));
  }
  if (const auto* const s = c.self.string()) {
    PTERYX_ASSIGN(const std::string_view text, strip(c.meter(), *s, "", Ends::kBoth));
    PTERYX_TRY(c.meter().work(text.size()));
    int64_t n = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
    if (error == std::errc() && end == text.data() + text.size() && !text.empty()) return Value(n);
  }
  return c.args[0].is_none() ? Value(int64_t{0}) : c.args[0];
}

Result<Value> to_float(const Call& c) {
  if (c.self.is_number()) return Value(c.self.number());
  if (const auto* const s = c.self.string(); s != nullptr) {
    PTERYX_ASSIGN(const std::string_view text, strip(c.meter(), *s, "", Ends::kBoth));
    PTERYX_TRY(c.meter().work(4 * text.size()));
    if (const auto d = read_real(text)) return Value(*d);
  }
  return c.args[0].is_none() ? Value(0.0) : c.args[0];
}

Result<Value> replace(const Call& c) {
  PTERYX_ASSIGN(const Value text, self_text(c));
  return call_method(c.ev, text, "replace", {.positional = c.args, .named = {}, .charge = {}});
}

Result<Value> indent(const Call& c) {
  const int64_t width = c.args[0].integer() != nullptr ? *c.args[0].integer() : 4;
  if (width < 0 || width > 256) return template_error("indent: expected a width from 0 to 256");
  const std::string spaces(static_cast<size_t>(width), ' ');
  const std::string& pad = c.text(0) != nullptr ? *c.text(0) : spaces;
  const bool first = c.given(1) && c.args[1].truth();
  const bool blank = c.given(2) && c.args[2].truth();
  PTERYX_ASSIGN(const Value self, self_text(c));
  const std::string_view text = *self.string();
  TextBuilder out(c.meter());
  for (size_t at = 0, line = 0; at <= text.size(); ++line) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const bool pads = line == 0 ? first : (blank || end > at);
    if (pads) PTERYX_TRY(out.append(pad));
    PTERYX_TRY(out.append(text.substr(at, end + 1 - at)));
    at = end + 1;
  }
  return out.finish();
}

Result<Value> escape(const Call& c) {
  PTERYX_ASSIGN(const Value self, self_text(c));
  const std::string_view text = *self.string();
  TextBuilder out(c.meter());
  for (size_t at = 0; at < text.size(); ++at) {
    switch (text[at]) {
      case '&': PTERYX_TRY(out.append("&amp;")); break;
      case '<': PTERYX_TRY(out.append("&lt;")); break;
      case '>': PTERYX_TRY(out.append("&gt;")); break;
      case '\'': PTERYX_TRY(out.append("&#39;")); break;
      case '"': PTERYX_TRY(out.append("&#34;")); break;
      default: PTERYX_TRY(out.append(text.substr(at, 1)));
    }
  }
  return out.finish();
}

Result<Value> same(const Call& c) { return c.self; }

Result<Value> reversed(const Call& c) {
  if (c.self.is_string()) {
    return slice(c.meter(), c.self, Value(), Value(), Value(int64_t{-1}));
  }
  PTERYX_ASSIGN(const Value all, elements(c.meter(), c.self));
  ListBuilder out(c.meter());
  PTERYX_TRY(out.append(*all.list()));
  std::reverse(out.list().begin(), out.list().end());
  return out.finish();
}

Result<Value> unique(const Call& c) {
  PTERYX_ASSIGN(const Value all, elements(c.meter(), c.self));
  ListBuilder out(c.meter());
  for (const Value& v : *all.list()) {
    bool found = false;
    for (size_t i = 0; i < out.list().size() && !found; ++i) {
      PTERYX_ASSIGN(found, equal(c.meter(), out.list()[i], v));
    }
    if (!found) PTERYX_TRY(out.push(v));
  }
  return out.finish();
}

Result<Value> absolute(const Call& c) {
  if (!c.self.is_number()) return template_error("abs: expected a number");
  return c.self.number() < 0 ? negate(c.self) : Result<Value>(c.self);
}

Result<Value> rounded(const Call& c) {
  if (!c.self.is_number()) return template_error("round: expected a number");
  const int64_t digits = c.args[0].integer() != nullptr ? *c.args[0].integer() : 0;
  const double scale = decimal_value(fmt::format("1e{}", std::clamp<int64_t>(digits, -300, 300)));
  return Value(std::nearbyint(c.self.number() * scale) / scale);
}

Result<Value> sum(const Call& c) {
  PTERYX_ASSIGN(const Value all, elements(c.meter(), c.self));
  Value total(int64_t{0});
  for (const Value& v : *all.list()) {
    PTERYX_TRY(c.meter().work(10));
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
