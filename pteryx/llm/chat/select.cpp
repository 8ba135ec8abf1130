// Filters over elements, and tests. SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "pteryx/base/excerpt.h"
#include "pteryx/base/order.h"
#include "pteryx/llm/chat/builders.h"
#include "pteryx/llm/chat/evaluator.h"
#include "pteryx/llm/chat/filters.h"
#include "pteryx/llm/chat/text_changes.h"

namespace pteryx::llm::chat {
namespace {

constexpr uint64_t kElementWork = 10;
constexpr uint64_t kSortWork = 100;  // for each of up to a million
constexpr uint32_t kDeepestFilters = 16;

const Value* named(const Args& args, std::string_view name) {
  const auto it = std::find_if(args.named.begin(), args.named.end(),
                               [&](const auto& n) { return n.first == name; });
  return it == args.named.end() ? nullptr : &it->second;
}

// The arguments behind the first `count`.
Result<Args> rest(Meter& meter, const Args& args, size_t count) {
  Args out = {.positional = {}, .named = {}, .charge = Charge(meter)};
  if (count >= args.positional.size()) return out;
  PTERYX_TRY(meter.work(args.positional.size()));
  PTERYX_TRY(out.charge.add(args.positional.size() * sizeof(Value)));
  out.positional.assign(args.positional.begin() + static_cast<int64_t>(count),
                        args.positional.end());
  return out;
}

// "function.name" of an element.
Result<Value> attribute_path(Evaluator& ev, Value v, std::string_view path,
                             const Value* otherwise = nullptr) {
  while (true) {
    const size_t dot = std::min(path.find('.'), path.size());
    PTERYX_ASSIGN(const Value name, make_text(ev.meter(), path.substr(0, dot)));
    PTERYX_ASSIGN(v, ev.item(v, name));
    if (v.is_undefined() && otherwise != nullptr) return *otherwise;
    if (dot == path.size()) return v;
    path.remove_prefix(dot + 1);
  }
}

Result<Value> map(Evaluator& ev, const List& all, const Args& args) {
  ListBuilder out(ev.meter());
  const Value* const attribute = named(args, "attribute");
  const Value* const otherwise = named(args, "default");
  if (attribute != nullptr && !attribute->is_string()) {
    return template_error("map: expected the name of an attribute");
  }
  if (attribute == nullptr && (args.positional.empty() || !args.positional[0].is_string())) {
    return template_error("map: expected a filter or an attribute");
  }
  PTERYX_ASSIGN(const Args filter_args, rest(ev.meter(), args, 1));
  for (const Value& v : all) {
    PTERYX_TRY(ev.meter().work(kElementWork));
    Value mapped;
    if (attribute != nullptr) {
      PTERYX_ASSIGN(mapped, attribute_path(ev, v, *attribute->string(), otherwise));
    } else {
      PTERYX_ASSIGN(mapped, ev.filter(*args.positional[0].string(), v, filter_args));
    }
    PTERYX_TRY(out.push(std::move(mapped)));
  }
  return out.finish();
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
  PTERYX_ASSIGN(const Args test_args, rest(ev.meter(), args, skip + 1));
  ListBuilder out(ev.meter());
  for (const Value& v : all) {
    PTERYX_TRY(ev.meter().work(kElementWork));
    Value tested = v;
    if (how.by_attribute) {
      PTERYX_ASSIGN(tested, attribute_path(ev, v, *args.positional[0].string()));
    }
    bool passes = tested.truth();
    if (has_test) {
      PTERYX_ASSIGN(passes, ev.test(*args.positional[skip].string(), tested, test_args));
    }
    if (passes != how.rejects) PTERYX_TRY(out.push(v));
  }
  return out.finish();
}

struct Keyed {
  Value key;
  Value value;
};

bool before(const Value& a, const Value& b) {
  return a.is_number() ? a.number() < b.number() : *a.string() < *b.string();
}

// Values by a key each, in order; equal ones keep theirs.
Result<Value> sorted(Evaluator& ev, const List& all, const Args& args) {
  const Value* const attribute = named(args, "attribute");
  const Value* const reverse = named(args, "reverse");
  Charge charge(ev.meter());
  PTERYX_TRY(charge.add(2 * all.size() * sizeof(Keyed)));  // the sort moves half of them aside
  std::vector<Keyed> keyed;
  keyed.reserve(all.size());
  for (const Value& v : all) {
    Value key = v;
    if (attribute != nullptr && attribute->is_string()) {
      PTERYX_ASSIGN(key, attribute_path(ev, v, *attribute->string()));
    }
    if (key.is_string()) {
      PTERYX_ASSIGN(key, changed(ev.meter(), lower, *key.string()));
    }
    PTERYX_TRY(ev.meter().work(kSortWork + key.weight() * 20));
    const bool comparable = key.is_number()
                                ? keyed.empty() || keyed[0].key.is_number()
                                : key.is_string() && (keyed.empty() || keyed[0].key.is_string());
    if (!comparable)
      return template_error(fmt::format("cannot sort values of type {}", key.type_name()));
    keyed.push_back({std::move(key), v});
  }
  const bool down = reverse != nullptr && reverse->truth();
  const std::vector<uint32_t> order = sorted_places(keyed.size(), [&](uint32_t a, uint32_t b) {
    return down ? before(keyed[b].key, keyed[a].key) : before(keyed[a].key, keyed[b].key);
  });
  ListBuilder out(ev.meter());
  PTERYX_TRY(out.reserve(keyed.size()));
  for (const uint32_t i : order) PTERYX_TRY(out.push(std::move(keyed[i].value)));
  return out.finish();
}

Result<Value> extreme(Evaluator& ev, const List& all, const Args& args, bool largest) {
  PTERYX_ASSIGN(const Value order, sorted(ev, all, args));
  if (order.list()->empty()) return ev.undefined("an element of nothing");
  return largest ? order.list()->back() : order.list()->front();
}

Result<Value> dictsort(Evaluator& ev, const Value& of) {
  if (of.dict() == nullptr) return template_error("dictsort: expected a dict");
  PTERYX_ASSIGN(Value keys, elements(ev.meter(), of));
  PTERYX_ASSIGN(keys, sorted(ev, *keys.list(), {}));
  ListBuilder out(ev.meter());
  for (const Value& key : *keys.list()) {
    PTERYX_ASSIGN(const Value* const value, ev.member(of, *key.string()));
    ListBuilder pair(ev.meter());
    PTERYX_TRY(pair.push(key));
    PTERYX_TRY(pair.push(*value));
    PTERYX_ASSIGN(Value both, pair.finish());
    PTERYX_TRY(out.push(std::move(both)));
  }
  return out.finish();
}

bool is_whole(const Value& v) { return v.integer() != nullptr; }

}  // namespace

Result<Value> Evaluator::filter(const std::string& name, const Value& value, const Args& args) {
  if (filters_ == kDeepestFilters) {
    return template_error(fmt::format("filters are nested more than {} deep", kDeepestFilters));
  }
  ++filters_;  // map runs others
  auto result = run_filter(name, value, args);
  --filters_;
  return result;
}

Result<Value> Evaluator::run_filter(const std::string& name, const Value& value, const Args& args) {
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
    return unsupported(fmt::format("filter '{}' is not supported", excerpt(name)));
  }
  PTERYX_ASSIGN(const Value over, elements(meter_, value));
  const List& all = *over.list();
  if (name == "map") return map(*this, all, args);
  if (name == "sort") return sorted(*this, all, args);
  if (name == "min" || name == "max") return extreme(*this, all, args, name == "max");
  return select(*this, all, args,
                {.by_attribute = name.ends_with("attr"), .rejects = name.starts_with("reject")});
}

Result<bool> Evaluator::test(const std::string& name, const Value& v, const Args& args) {
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
  if (name == "upper" || name == "lower") {
    PTERYX_ASSIGN(const Value text, text_of(meter_, v));
    return is_all_case(meter_, name == "upper" ? upper : lower, *text.string());
  }
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
    return unsupported(fmt::format("test '{}' is not supported", excerpt(name)));
  if (args.positional.size() != 1) {
    return template_error(
        fmt::format("test '{}': expected one value, got {}", name, args.positional.size()));
  }
  const Value& other = args.positional[0];
  if (it->second == "in") return contains(*this, other, v);
  if (it->second == "%") {
    PTERYX_ASSIGN(const Value remainder, binary(*this, "%", v, other));
    return !remainder.truth();
  }
  return compare(meter_, it->second, v, other);
}

}  // namespace pteryx::llm::chat
