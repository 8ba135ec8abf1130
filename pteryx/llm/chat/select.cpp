// Filters over elements, and tests. SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "pteryx/llm/chat/evaluator.h"
#include "pteryx/llm/chat/filters.h"
#include "pteryx/llm/chat/text_case.h"

namespace pteryx::llm::chat {
namespace {

const Value* named(const Args& args, std::string_view name) {
  const auto it = std::find_if(args.named.begin(), args.named.end(),
                               [&](const auto& n) { return n.first == name; });
  return it == args.named.end() ? nullptr : &it->second;
}

// The arguments behind the first `count`.
Args rest(const Args& args, size_t count) {
  Args out;
  for (size_t i = count; i < args.positional.size(); ++i)
    out.positional.push_back(args.positional[i]);
  return out;
}

// "function.name" of an element.
Result<Value> attribute_path(Evaluator& ev, Value v, std::string_view path,
                             const Value* otherwise = nullptr) {
  while (true) {
    const size_t dot = std::min(path.find('.'), path.size());
    PTERYX_ASSIGN(v, ev.item(v, Value(path.substr(0, dot))));
    if (v.is_undefined() && otherwise != nullptr) return *otherwise;
    if (dot == path.size()) return v;
    path.remove_prefix(dot + 1);
  }
}

Result<Value> map(Evaluator& ev, const List& all, const Args& args) {
  List out;
  const Value* const attribute = named(args, "attribute");
  const Value* const otherwise = named(args, "default");
  for (const Value& v : all) {
    PTERYX_TRY(ev.spend(10 + v.weight()));
    Value mapped;
    if (attribute != nullptr) {
      if (!attribute->is_string()) return template_error("map: expected the name of an attribute");
      PTERYX_ASSIGN(mapped, attribute_path(ev, v, *attribute->string(), otherwise));
    } else {
      if (args.positional.empty() || !args.positional[0].is_string()) {
        return template_error("map: expected a filter or an attribute");
      }
      PTERYX_ASSIGN(mapped, ev.filter(*args.positional[0].string(), v, rest(args, 1)));
    }
    out.push_back(std::move(mapped));
  }
  return ev.container(Value(std::move(out)));
}

struct Selection {
  bool by_attribute = false;
  bool rejects = false;
};

Result<Value> select(Evaluator& ev, const List& all, const Args& args, Selection how) {
  const size_t skip = how.by_attribute ? 1 : 0;
  if (args.positional.size() < skip || (skip == 1 && !args.positional[0].is_string())) {
    return template_error("selectattr: expected the name of an attribute");
  }
  const bool has_test = args.positional.size() > skip;
  if (has_test && !args.positional[skip].is_string()) {
    return template_error("select: expected the name of a test");
  }
  List out;
  for (const Value& v : all) {
    PTERYX_TRY(ev.spend(10));
    Value tested = v;
    if (how.by_attribute) {
      PTERYX_ASSIGN(tested, attribute_path(ev, v, *args.positional[0].string()));
    }
    bool passes = tested.truth();
    if (has_test) {
      PTERYX_ASSIGN(passes, ev.test(*args.positional[skip].string(), tested, rest(args, skip + 1)));
    }
    if (passes != how.rejects) out.push_back(v);
  }
  return ev.container(Value(std::move(out)));
}

// Values by a key each, in order; equal ones keep theirs.
Result<List> sorted(Evaluator& ev, List all, const Args& args) {
  const Value* const attribute = named(args, "attribute");
  const Value* const reverse = named(args, "reverse");
  std::vector<std::pair<Value, Value>> keyed;
  for (Value& v : all) {
    Value key = v;
    if (attribute != nullptr && attribute->is_string()) {
      PTERYX_ASSIGN(key, attribute_path(ev, v, *attribute->string()));
    }
    if (key.is_string()) key = Value(lower(*key.string()));
    PTERYX_TRY(ev.spend(100 + key.weight() * 20));
    const bool comparable = key.is_number()
                                ? keyed.empty() || keyed[0].first.is_number()
                                : key.is_string() && (keyed.empty() || keyed[0].first.is_string());
    if (!comparable)
      return template_error(fmt::format("cannot sort values of type {}", key.type_name()));
    keyed.emplace_back(std::move(key), std::move(v));
  }
  const bool down = reverse != nullptr && reverse->truth();
  std::stable_sort(keyed.begin(), keyed.end(), [&](const auto& a, const auto& b) {
    const auto& [x, y] = down ? std::pair(b.first, a.first) : std::pair(a.first, b.first);
    return x.is_number() ? x.number() < y.number() : *x.string() < *y.string();
  });
  List out;
  for (auto& [key, v] : keyed) out.push_back(std::move(v));
  return out;
}

Result<Value> extreme(Evaluator& ev, const List& all, const Args& args, bool largest) {
  PTERYX_ASSIGN(const List order, sorted(ev, all, args));
  if (order.empty()) return Value::undefined("an element of nothing");
  return largest ? order.back() : order.front();
}

Result<Value> dictsort(Evaluator& ev, const Value& of) {
  if (of.dict() == nullptr) return template_error("dictsort: expected a dict");
  PTERYX_ASSIGN(List keys, elements(of));
  PTERYX_ASSIGN(keys, sorted(ev, std::move(keys), {}));
  List keyed;
  for (const Value& key : keys) keyed.emplace_back(List{key, *of.member(*key.string())});
  return ev.container(Value(std::move(keyed)));
}

bool is_whole(const Value& v) { return v.integer() != nullptr; }

}  // namespace

Result<Value> Evaluator::filter(const std::string& name, const Value& value, const Args& args) {
  if (const Builtin* const plain = find_builtin(plain_filters(), name)) {
    PTERYX_ASSIGN(auto bound, bind(*plain, args));
    return plain->run({*this, value, std::move(bound)});
  }
  if (name == "dictsort") return dictsort(*this, value);
  if (name == "attr") {
    if (args.positional.size() != 1 || !args.positional[0].is_string()) {
      return template_error("attr: expected a name");
    }
    return attribute(value, *args.positional[0].string());
  }
  static constexpr std::string_view kOverElements[] = {
      "map", "select", "reject", "selectattr", "rejectattr", "sort", "min", "max"};
  if (std::find(std::begin(kOverElements), std::end(kOverElements), name) ==
      std::end(kOverElements)) {
    return unsupported(fmt::format("filter '{}' is not supported", name));
  }
  PTERYX_ASSIGN(List all, elements(value));
  PTERYX_TRY(spend(all.size()));
  if (name == "map") return map(*this, all, args);
  if (name == "sort") {
    PTERYX_ASSIGN(List order, sorted(*this, std::move(all), args));
    return container(Value(std::move(order)));
  }
  if (name == "min" || name == "max") return extreme(*this, all, args, name == "max");
  return select(*this, all, args,
                {.by_attribute = name.ends_with("attr"), .rejects = name.starts_with("reject")});
}

Result<bool> Evaluator::test(const std::string& name, const Value& v, const Args& args) {
  if (name == "upper" || name == "lower") PTERYX_TRY(spend(v.weight()));
  if (name == "defined") return !v.is_undefined();
  if (name == "undefined") return v.is_undefined();
  if (name == "none") return v.is_none();
  if (name == "string") return v.is_string();
  if (name == "mapping") return v.dict() != nullptr;
  if (name == "sequence") return v.is_string() || v.list() != nullptr || v.dict() != nullptr;
  if (name == "iterable")
    return v.is_string() || v.list() != nullptr || v.dict() != nullptr || v.is_undefined();
  if (name == "number") return v.is_number();
  if (name == "integer") return is_whole(v);
  if (name == "float") return v.real() != nullptr;
  if (name == "boolean") return v.boolean() != nullptr;
  if (name == "true") return v.boolean() != nullptr && *v.boolean();
  if (name == "false") return v.boolean() != nullptr && !*v.boolean();
  if (name == "callable") return v.function() != nullptr;
  if (name == "upper") return v.str() == upper(v.str()) && v.str() != lower(v.str());
  if (name == "lower") return v.str() == lower(v.str()) && v.str() != upper(v.str());
  if (name == "odd" || name == "even") {
    if (!is_whole(v))
      return template_error(fmt::format("{}: expected an integer, got {}", name, v.type_name()));
    return (*v.integer() % 2 != 0) == (name == "odd");
  }
  static constexpr std::pair<std::string_view, std::string_view> kCompares[] = {
      {"eq", "=="}, {"equalto", "=="}, {"==", "=="},         {"sameas", "=="}, {"ne", "!="},
      {"!=", "!="}, {"lt", "<"},       {"lessthan", "<"},    {"<", "<"},       {"le", "<="},
      {"<=", "<="}, {"gt", ">"},       {"greaterthan", ">"}, {">", ">"},       {"ge", ">="},
      {">=", ">="}, {"in", "in"},      {"divisibleby", "%"}};
  const auto it = std::find_if(std::begin(kCompares), std::end(kCompares),
                               [&](const auto& each) { return each.first == name; });
  if (it == std::end(kCompares))
    return unsupported(fmt::format("test '{}' is not supported", name));
  if (args.positional.size() != 1) {
    return template_error(
        fmt::format("test '{}': expected one value, got {}", name, args.positional.size()));
  }
  const Value& other = args.positional[0];
  PTERYX_TRY(spend(v.weight() + other.weight()));
  if (it->second == "in") return contains(other, v);
  if (it->second == "%") {
    PTERYX_ASSIGN(const Value remainder, binary(*this, "%", v, other));
    return !remainder.truth();
  }
  return compare(it->second, v, other);
}

}  // namespace pteryx::llm::chat
