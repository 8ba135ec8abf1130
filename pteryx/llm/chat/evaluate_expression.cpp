// Expressions. SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <ctime>
#include <utility>

#include <fmt/format.h>

#include "pteryx/llm/chat/evaluator.h"
#include "pteryx/llm/tokenizer/utf8.h"

namespace pteryx::llm::chat {
namespace {

constexpr uint64_t kExpressionWork = 10;
constexpr int64_t kLongestRange = 100'000;  // the sandbox of Jinja has the same

Status not_defined(const Value& v) {
  return template_error(fmt::format("'{}' is undefined", v.missing()->name));
}

bool may_contain(const Value& member) { return member.name_space() == nullptr; }

Result<Value> range(const Args& args) {
  std::vector<int64_t> n;
  for (const Value& v : args.positional) {
    if (v.integer() == nullptr || std::abs(*v.integer()) > (int64_t{1} << 40)) {
      return template_error(fmt::format("range(): expected small integers, got {}", v.repr()));
    }
    n.push_back(*v.integer());
  }
  if (n.empty() || n.size() > 3) return template_error("range(): expected one to three integers");
  const int64_t begin = n.size() == 1 ? 0 : n[0];
  const int64_t end = n.size() == 1 ? n[0] : n[1];
  const int64_t step = n.size() == 3 ? n[2] : 1;
  if (step == 0) return template_error("range(): expected a step that is not 0");
  List list;
  for (int64_t i = begin; step > 0 ? i < end : i > end; i += step) {
    if (list.size() == kLongestRange) {
      return template_error(fmt::format("range() of more than {} numbers", kLongestRange));
    }
    list.emplace_back(i);
  }
  return Value(std::move(list));
}

std::string formatted_time(const std::string& format, const std::optional<std::tm>& now) {
  std::tm tm = {};
  if (now) {
    tm = *now;
  } else {
    const std::time_t seconds = std::time(nullptr);
    localtime_r(&seconds, &tm);
  }
  char buffer[512];
  const size_t size = std::strftime(buffer, sizeof(buffer), format.c_str(), &tm);
  return replace_invalid({buffer, size});
}

}  // namespace

Result<Value> Evaluator::eval(const Expr& e) {
  PTERYX_TRY(spend(kExpressionWork));
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
      PTERYX_TRY(spend(first.weight() + second.weight()));
      return binary(*this, e.name, first, second);
    }
    case ExprKind::kFilter: {
      PTERYX_ASSIGN(const Args args, eval_args(e));
      PTERYX_TRY(spend(first.weight()));
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
  List members;
  for (const ExprPtr& child : e.children) {
    PTERYX_ASSIGN(Value v, eval(*child));
    if (!may_contain(v)) return template_error("a namespace cannot be inside a list or dict");
    members.push_back(std::move(v));
  }
  if (e.kind == ExprKind::kList) return container(Value(std::move(members)));
  Dict dict;
  for (size_t i = 0; i + 1 < members.size(); i += 2) {
    const std::string* const key = members[i].string();
    if (key == nullptr) {
      return template_error(
          fmt::format("expected a string as a key, got {}", members[i].type_name()));
    }
    const auto it =
        std::find_if(dict.begin(), dict.end(), [&](const auto& m) { return m.first == *key; });
    if (it != dict.end()) {
      it->second = std::move(members[i + 1]);
    } else {
      dict.emplace_back(*key, std::move(members[i + 1]));
    }
  }
  return container(Value(std::move(dict)));
}

Result<Value> Evaluator::eval_compare(const Expr& e) {
  PTERYX_ASSIGN(Value left, eval(*e.children[0]));
  for (size_t i = 0; i < e.operators.size(); ++i) {
    PTERYX_ASSIGN(Value right, eval(*e.children[i + 1]));
    PTERYX_TRY(spend(left.weight() + right.weight()));
    const std::string& op = e.operators[i];
    bool holds = false;
    if (op == "in" || op == "not in") {
      PTERYX_ASSIGN(const bool found, contains(right, left));
      holds = found == (op == "in");
    } else {
      PTERYX_ASSIGN(holds, compare(op, left, right));
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
  return Value::undefined("the else of an inline if");
}

Result<Value> Evaluator::eval_slice(const Expr& e) {
  Value parts[4];
  for (size_t i = 0; i < 4; ++i) {
    if (e.children[i] == nullptr) continue;
    PTERYX_ASSIGN(parts[i], eval(*e.children[i]));
  }
  PTERYX_TRY(spend(parts[0].weight()));
  return slice(*this, parts[0], parts[1], parts[2], parts[3]);
}

Result<Args> Evaluator::eval_args(const Expr& e) {
  Args args;
  for (const ExprPtr& argument : e.arguments) {
    PTERYX_ASSIGN(Value v, eval(*argument));
    PTERYX_TRY(spend(v.weight()));
    args.positional.push_back(std::move(v));
  }
  for (const auto& [name, argument] : e.named) {
    PTERYX_ASSIGN(Value v, eval(*argument));
    PTERYX_TRY(spend(v.weight()));
    args.named.emplace_back(name, std::move(v));
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
    case Function::Kind::kMethod:
      PTERYX_TRY(spend(function.self.weight()));
      return call_method(*this, function.self, function.name, args);
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
  if (name == "range") {
    PTERYX_ASSIGN(Value list, range(args));
    return container(std::move(list));
  }
  if (name == "namespace" || name == "dict") {
    Dict members;
    if (!args.positional.empty()) {
      if (args.positional.size() > 1 || args.positional[0].dict() == nullptr) {
        return template_error(fmt::format("{}(): expected named values or one dict", name));
      }
      members = *args.positional[0].dict();
    }
    for (const auto& [key, value] : args.named) {
      if (!may_contain(value)) return template_error("a namespace cannot be inside another value");
      members.emplace_back(key, value);
    }
    if (name == "dict") return container(Value(std::move(members)));
    return Value(std::make_shared<Namespace>(Namespace{std::move(members)}));
  }
  if (args.positional.size() != 1 || !args.positional[0].is_string()) {
    return template_error(fmt::format("{}(): expected one string", name));
  }
  const std::string& argument = *args.positional[0].string();
  if (name == "raise_exception") return template_error(argument);
  return text(formatted_time(argument, options_.now));
}

Result<Value> Evaluator::attribute(const Value& of, const std::string& name) {
  if (of.is_undefined()) return not_defined(of);
  if (has_method(of, name)) {
    return Value(std::make_shared<const Function>(
        Function{.kind = Function::Kind::kMethod, .name = name, .self = of}));
  }
  const Value* const member = of.member(name);
  return member != nullptr ? *member : Value::undefined(name);
}

Result<Value> Evaluator::item(const Value& of, const Value& key) {
  if (of.is_undefined()) return not_defined(of);
  if (const std::string* const name = key.string()) {
    const Value* const member = of.member(*name);
    return member != nullptr ? *member : attribute(of, *name);
  }
  if (key.integer() == nullptr || (of.list() == nullptr && of.string() == nullptr)) {
    return Value::undefined(key.str());
  }
  const std::string* const s = of.string();
  std::vector<size_t> offsets;
  if (s != nullptr) {
    PTERYX_TRY(spend(s->size() / 8));
    offsets = character_offsets(*s);
  }
  const auto size = static_cast<int64_t>(s != nullptr ? offsets.size() - 1 : of.list()->size());
  const int64_t n = *key.integer();
  if (n >= size || n < -size) return Value::undefined(key.str());
  const auto at = static_cast<size_t>(n < 0 ? n + size : n);
  if (s == nullptr) return (*of.list())[at];
  return text(s->substr(offsets[at], offsets[at + 1] - offsets[at]));
}

}  // namespace pteryx::llm::chat
