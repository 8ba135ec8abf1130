// Expressions. SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <ctime>
#include <utility>

#include <fmt/format.h>

#include "pteryx/base/utf8.h"
#include "pteryx/llm/chat/builders.h"
#include "pteryx/llm/chat/evaluator.h"
#include "pteryx/llm/chat/text_changes.h"
#include "pteryx/llm/chat/time_text.h"

namespace pteryx::llm::chat {
namespace {

constexpr uint64_t kExpressionWork = 10;
constexpr int64_t kLongestRange = 100'000;  // the sandbox of Jinja has the same

Status not_defined(const Value& v) {
  return template_error(fmt::format("'{}' is undefined", v.missing()->name));
}

Result<Value> range(Meter& meter, const Args& args) {
  std::vector<int64_t> n;
  for (const Value& v : args.positional) {
    if (n.size() == 3 || v.integer() == nullptr || std::abs(*v.integer()) > (int64_t{1} << 40)) {
      return template_error(
          fmt::format("range(): expected one to three small integers, got {}", v.type_name()));
    }
    n.push_back(*v.integer());
  }
  if (n.empty()) return template_error("range(): expected one to three small integers");
  const int64_t begin = n.size() == 1 ? 0 : n[0];
  const int64_t end = n.size() == 1 ? n[0] : n[1];
  const int64_t step = n.size() == 3 ? n[2] : 1;
  if (step == 0) return template_error("range(): expected a step that is not 0");
  ListBuilder list(meter);
  for (int64_t i = begin; step > 0 ? i < end : i > end; i += step) {
    if (list.list().size() == kLongestRange) {
      return template_error(fmt::format("range() of more than {} numbers", kLongestRange));
    }
    PTERYX_TRY(list.push(Value(i)));
  }
  return list.finish();
}

constexpr size_t kLongestTimeFormat = 512;

std::string formatted_time(const std::string& format, const std::optional<std::tm>& now) {
  std::tm tm = {};
  if (now) {
    tm = *now;
  } else {
    const std::time_t seconds = std::time(nullptr);
    localtime_r(&seconds, &tm);
  }
  return replace_invalid(time_text(format, tm));
}

}  // namespace

Result<Value> Evaluator::eval(const Expr& e) {
  PTERYX_TRY(meter_.work(kExpressionWork));
  auto value = eval_any(e);
  if (value.ok() || value.status().message().starts_with("template line ")) return value;
  const Status& s = value.status();
  return Status(s.code(), fmt::format("template line {}: {}", e.line, s.message()));
}

Result<Value> Evaluator::eval_any(const Expr& e) {
  switch (e.kind) {
    case ExprKind::kLiteral: return e.value;
    case ExprKind::kName: return lookup(e.name);
    case ExprKind::kList:
    case ExprKind::kDict: return eval_container(e);
    case ExprKind::kCompare: return eval_compare(e);
    case ExprKind::kCondition: return eval_condition(e);
    case ExprKind::kSlice: return eval_slice(e);
    case ExprKind::kCall: return eval_call(e);
    default: break;
  }
  PTERYX_ASSIGN(const Value first, eval(*e.children[0]));
  switch (e.kind) {
    case ExprKind::kNot: return Value(!first.truth());
    case ExprKind::kAnd: return first.truth() ? eval(*e.children[1]) : Result<Value>(first);
    case ExprKind::kOr: return first.truth() ? Result<Value>(first) : eval(*e.children[1]);
    case ExprKind::kUnary: return e.name == "-" ? negate(first) : Result<Value>(first);
    case ExprKind::kAttribute: return attribute(first, e.name);
    case ExprKind::kItem: {
      PTERYX_ASSIGN(const Value key, eval(*e.children[1]));
      return item(first, key);
    }
    case ExprKind::kBinary: {
      PTERYX_ASSIGN(const Value second, eval(*e.children[1]));
      return binary(*this, e.name, first, second);
    }
    case ExprKind::kFilter: {
      PTERYX_ASSIGN(const Args args, eval_args(e));
      return filter(e.name, first, args);
    }
    default: {
      PTERYX_ASSIGN(const Args args, eval_args(e));
      PTERYX_ASSIGN(const bool passes, test(e.name, first, args));
      return Value(passes);
    }
  }
}

Result<Value> Evaluator::eval_container(const Expr& e) {
  if (e.kind == ExprKind::kList) {
    ListBuilder list(meter_);
    for (const ExprPtr& child : e.children) {
      PTERYX_ASSIGN(Value v, eval(*child));
      PTERYX_TRY(list.push(std::move(v)));
    }
    return list.finish();
  }
  DictBuilder dict(meter_);
  for (size_t i = 0; i + 1 < e.children.size(); i += 2) {
    PTERYX_ASSIGN(const Value key, eval(*e.children[i]));
    PTERYX_ASSIGN(Value value, eval(*e.children[i + 1]));
    if (!key.is_string()) {
      return template_error(fmt::format("expected a string as a key, got {}", key.type_name()));
    }
    PTERYX_TRY(dict.set(*key.string(), std::move(value)));
  }
  return dict.finish();
}

Result<Value> Evaluator::eval_compare(const Expr& e) {
  PTERYX_ASSIGN(Value left, eval(*e.children[0]));
  for (size_t i = 0; i < e.operators.size(); ++i) {
    PTERYX_ASSIGN(Value right, eval(*e.children[i + 1]));
    const std::string& op = e.operators[i];
    bool holds = false;
    if (op == "in" || op == "not in") {
      PTERYX_ASSIGN(const bool found, contains(*this, right, left));
      holds = found == (op == "in");
    } else {
      PTERYX_ASSIGN(holds, compare(meter_, op, left, right));
    }
    if (!holds) return Value(false);
    left = std::move(right);
  }
  return Value(true);
}

Result<Value> Evaluator::eval_condition(const Expr& e) {
  PTERYX_ASSIGN(const Value condition, eval(*e.children[0]));
  if (condition.truth()) return eval(*e.children[1]);
  if (e.children.size() == 3) return eval(*e.children[2]);
  return undefined("the else of an inline if");
}

Result<Value> Evaluator::eval_slice(const Expr& e) {
  Value parts[4];
  for (size_t i = 0; i < 4; ++i) {
    if (e.children[i] == nullptr) continue;
    PTERYX_ASSIGN(parts[i], eval(*e.children[i]));
  }
  return slice(meter_, parts[0], parts[1], parts[2], parts[3]);
}

Result<Args> Evaluator::eval_args(const Expr& e) {
  Args args = {.positional = {}, .named = {}, .charge = Charge(meter_)};
  PTERYX_TRY(args.charge.add(e.arguments.size() * sizeof(args.positional[0]) +
                             e.named.size() * sizeof(args.named[0])));
  args.positional.resize(e.arguments.size());
  args.named.resize(e.named.size());
  for (size_t i = 0; i < e.arguments.size(); ++i) {
    PTERYX_ASSIGN(args.positional[i], eval(*e.arguments[i]));
  }
  for (size_t i = 0; i < e.named.size(); ++i) {
    args.named[i].first = e.named[i].first;
    PTERYX_ASSIGN(args.named[i].second, eval(*e.named[i].second));
  }
  return args;
}

Result<Value> Evaluator::eval_call(const Expr& e) {
  PTERYX_ASSIGN(const Value callee, eval(*e.children[0]));
  PTERYX_ASSIGN(const Args args, eval_args(e));
  if (callee.is_undefined()) return not_defined(callee);
  const Function* const function = callee.function();
  if (function == nullptr) {
    return template_error(fmt::format("a value of type {} cannot be called", callee.type_name()));
  }
  return call(*function, args);
}

Result<Value> Evaluator::call(const Function& function, const Args& args) {
  switch (function.kind) {
    case Function::Kind::kMacro: return call_macro(*function.macro, args);
    case Function::Kind::kMethod: return call_method(*this, function.self, function.name, args);
    case Function::Kind::kCycle: {
      if (args.positional.empty()) return template_error("loop.cycle(): expected values");
      const auto at = static_cast<size_t>(*function.self.integer());
      return args.positional[at % args.positional.size()];
    }
    case Function::Kind::kGlobal: break;
  }
  return call_global(function.name, args);
}

Result<Value> Evaluator::call_global(const std::string& name, const Args& args) {
  if (name == "range") return range(meter_, args);
  if (name == "namespace" || name == "dict") {
    DictBuilder members(meter_);
    if (!args.positional.empty()) {
      if (args.positional.size() > 1 || args.positional[0].dict() == nullptr) {
        return template_error(fmt::format("{}(): expected named values or one dict", name));
      }
      PTERYX_TRY(members.copy(*args.positional[0].dict()));
    }
    for (const auto& [key, value] : args.named) PTERYX_TRY(members.set(key, value));
    return name == "dict" ? members.finish() : members.finish_namespace();
  }
  if (args.positional.size() != 1 || !args.positional[0].is_string()) {
    return template_error(fmt::format("{}(): expected one string", name));
  }
  const std::string& argument = *args.positional[0].string();
  if (name == "raise_exception") return template_error(argument);
  if (argument.size() > kLongestTimeFormat) {
    return template_error(
        fmt::format("strftime_now(): expected a format of at most {} bytes", kLongestTimeFormat));
  }
  return make_text(meter_, formatted_time(argument, options_.now));
}

Result<const Value*> Evaluator::member(const Value& of, std::string_view key) {
  const Dict* const d = of.name_space() != nullptr ? &of.name_space()->members : of.dict();
  if (d != nullptr) PTERYX_TRY(meter_.work(d->size()));
  return of.member(key);
}

Result<Value> Evaluator::attribute(const Value& of, const std::string& name) {
  if (of.is_undefined()) return not_defined(of);
  if (has_method(of, name)) {
    return function({.kind = Function::Kind::kMethod, .name = name, .self = of});
  }
  PTERYX_ASSIGN(const Value* const found, member(of, name));
  return found != nullptr ? *found : undefined(name);
}

Result<Value> Evaluator::item(const Value& of, const Value& key) {
  if (of.is_undefined()) return not_defined(of);
  if (const std::string* const name = key.string()) {
    PTERYX_ASSIGN(const Value* const found, member(of, *name));
    return found != nullptr ? *found : attribute(of, *name);
  }
  const int64_t* const n = key.integer();
  if (n == nullptr || (of.list() == nullptr && !of.is_string())) {
    return undefined(n != nullptr ? fmt::format("{}", *n) : std::string(key.type_name()));
  }
  const std::string* const s = of.string();
  size_t size = s == nullptr ? of.list()->size() : 0;
  if (s != nullptr) {
    PTERYX_ASSIGN(size, count_chars(meter_, *s));
  }
  const auto end = static_cast<int64_t>(size);
  if (*n >= end || *n < -end) return undefined(fmt::format("{}", *n));
  const auto at = static_cast<size_t>(*n < 0 ? *n + end : *n);
  if (s == nullptr) return (*of.list())[at];
  PTERYX_ASSIGN(const size_t offset, offset_of_char(meter_, *s, at));
  return make_text(meter_, std::string_view(*s).substr(offset, char_at(*s, offset).size_bytes));
}

}  // namespace pteryx::llm::chat
