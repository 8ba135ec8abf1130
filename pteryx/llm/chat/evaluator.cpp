// Statements. SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/llm/chat/evaluator.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace pteryx::llm::chat {
namespace {

constexpr uint64_t kStatementWork = 20;
constexpr uint32_t kDeepestCalls = 16;
constexpr size_t kDeepestValue = 64;
constexpr std::string_view kWhere = "template line ";

// Says where, unless something further in has said so.
Status located(Status status, uint32_t line) {
  if (status.message().starts_with(kWhere)) return status;
  return {status.code(), fmt::format("{}{}: {}", kWhere, line, status.message())};
}

Value loop_variable(const List& items, size_t i) {
  const auto size = static_cast<int64_t>(items.size());
  const auto at = static_cast<int64_t>(i);
  const auto cycle = std::make_shared<const Function>(
      Function{.kind = Function::Kind::kCycle, .name = "cycle", .self = Value(at)});
  return Value(Dict{{"index", Value(at + 1)},
                    {"index0", Value(at)},
                    {"revindex", Value(size - at)},
                    {"revindex0", Value(size - at - 1)},
                    {"first", Value(at == 0)},
                    {"last", Value(at + 1 == size)},
                    {"length", Value(size)},
                    {"depth", Value(int64_t{1})},
                    {"depth0", Value(int64_t{0})},
                    {"previtem", i == 0 ? Value::undefined("previtem") : items[i - 1]},
                    {"nextitem", at + 1 == size ? Value::undefined("nextitem") : items[i + 1]},
                    {"cycle", Value(cycle)}});
}

}  // namespace

Status template_error(std::string message) { return invalid_argument(std::move(message)); }

Evaluator::Evaluator(const Dict& variables, const RenderOptions& options)
    : options_(options), scopes_{Scope(variables.begin(), variables.end())} {}

Result<std::string> Evaluator::run(const Body& body) {
  std::string out;
  PTERYX_ASSIGN(const Flow flow, run_body(body, out));
  if (flow != Flow::kOn) return template_error("break or continue outside of a loop");
  return out;
}

Status Evaluator::spend(uint64_t work) {
  work_ += work;
  if (work_ <= options_.most_work) return {};
  return template_error(
      fmt::format("the template takes more work than allowed ({} units)", options_.most_work));
}

Result<Value> Evaluator::text(std::string s) {
  bytes_ += s.size();
  if (bytes_ > options_.most_bytes) {
    return template_error(
        fmt::format("the template makes more text than allowed ({} bytes)", options_.most_bytes));
  }
  return Value(std::move(s));
}

Result<Value> Evaluator::container(Value v) {
  if (v.depth() > kDeepestValue) {
    return template_error(fmt::format("a value is nested more than {} deep", kDeepestValue));
  }
  PTERYX_TRY(spend(v.weight()));
  return v;
}

Value Evaluator::lookup(const std::string& name) const {
  for (size_t i = scopes_.size(); i-- > 0;) {
    if (i != 0 && i < visible_from_) i = 0;
    const Scope& scope = scopes_[i];
    const auto it = std::find_if(scope.rbegin(), scope.rend(),
                                 [&](const auto& each) { return each.first == name; });
    if (it != scope.rend()) return it->second;
  }
  static constexpr std::string_view kGlobals[] = {"range", "namespace", "dict", "raise_exception",
                                                  "strftime_now"};
  if (std::find(std::begin(kGlobals), std::end(kGlobals), name) != std::end(kGlobals)) {
    return Value(std::make_shared<const Function>(Function{.name = name}));
  }
  return Value::undefined(name);
}

void Evaluator::define(const std::string& name, Value value) {
  Scope& scope = scopes_.back();
  const auto it = std::find_if(scope.begin(), scope.end(),
                               [&](const auto& each) { return each.first == name; });
  if (it != scope.end()) {
    it->second = std::move(value);
  } else {
    scope.emplace_back(name, std::move(value));
  }
}

Result<Evaluator::Flow> Evaluator::run_body(const Body& body, std::string& out) {
  for (const Stmt& stmt : body) {
    Status spent = spend(kStatementWork);
    if (!spent.ok()) return located(std::move(spent), stmt.line);
    auto flow = run_statement(stmt, out);
    if (!flow.ok()) return located(std::move(flow).status(), stmt.line);
    if (*flow != Flow::kOn) return *flow;
  }
  return Flow::kOn;
}

Result<Evaluator::Flow> Evaluator::run_statement(const Stmt& stmt, std::string& out) {
  switch (stmt.kind) {
    case StmtKind::kText: PTERYX_TRY(print(Value(stmt.text), out)); break;
    case StmtKind::kPrint: {
      PTERYX_ASSIGN(const Value value, eval(*stmt.expr));
      PTERYX_TRY(print(value, out));
      break;
    }
    case StmtKind::kIf: return run_if(stmt, out);
    case StmtKind::kFor: return run_for(stmt, out);
    case StmtKind::kSet: PTERYX_TRY(run_set(stmt)); break;
    case StmtKind::kMacro:
      define(stmt.text, Value(std::make_shared<const Function>(Function{
                            .kind = Function::Kind::kMacro, .name = stmt.text, .macro = &stmt})));
      break;
    case StmtKind::kBreak: return Flow::kBreak;
    case StmtKind::kContinue: return Flow::kContinue;
    case StmtKind::kBlock: return run_body(stmt.body, out);
  }
  return Flow::kOn;
}

Status Evaluator::print(const Value& value, std::string& out) {
  PTERYX_TRY(spend(value.weight()));
  out += value.str();
  if (out.size() <= options_.longest_output) return {};
  return template_error(
      fmt::format("the output is longer than allowed ({} bytes)", options_.longest_output));
}

Result<Evaluator::Flow> Evaluator::run_if(const Stmt& stmt, std::string& out) {
  for (const Branch& branch : stmt.branches) {
    bool taken = branch.condition == nullptr;
    if (!taken) {
      PTERYX_ASSIGN(const Value condition, eval(*branch.condition));
      taken = condition.truth();
    }
    if (taken) return run_body(branch.body, out);
  }
  return Flow::kOn;
}

Status Evaluator::unpack(const std::vector<std::string>& targets, const Value& value) {
  if (targets.size() == 1) {
    define(targets[0], value);
    return {};
  }
  PTERYX_ASSIGN(List parts, elements(value));
  if (parts.size() != targets.size()) {
    return template_error(
        fmt::format("expected {} values to unpack, got {}", targets.size(), parts.size()));
  }
  for (size_t i = 0; i < parts.size(); ++i) define(targets[i], std::move(parts[i]));
  return {};
}

// The elements that pass the loop's own filter.
Result<List> Evaluator::loop_items(const Stmt& stmt) {
  PTERYX_ASSIGN(const Value over, eval(*stmt.expr));
  PTERYX_ASSIGN(List all, elements(over));
  PTERYX_TRY(spend(all.size()));
  if (stmt.filter == nullptr) return all;
  List kept;
  for (Value& each : all) {
    PTERYX_TRY(unpack(stmt.targets, each));
    PTERYX_ASSIGN(const Value keep, eval(*stmt.filter));
    if (keep.truth()) kept.push_back(std::move(each));
  }
  return kept;
}

Result<Evaluator::Flow> Evaluator::run_for(const Stmt& stmt, std::string& out) {
  scopes_.emplace_back();
  PTERYX_ASSIGN(const List items, loop_items(stmt));
  scopes_.pop_back();
  for (size_t i = 0; i < items.size(); ++i) {
    PTERYX_TRY(spend(kStatementWork));
    scopes_.emplace_back();
    define("loop", loop_variable(items, i));
    PTERYX_TRY(unpack(stmt.targets, items[i]));
    PTERYX_ASSIGN(const Flow flow, run_body(stmt.body, out));
    scopes_.pop_back();
    if (flow == Flow::kBreak) break;
  }
  if (!items.empty()) return Flow::kOn;
  scopes_.emplace_back();
  PTERYX_ASSIGN(const Flow flow, run_body(stmt.otherwise, out));
  scopes_.pop_back();
  return flow;
}

Status Evaluator::run_set(const Stmt& stmt) {
  if (stmt.expr != nullptr) {
    PTERYX_ASSIGN(Value value, eval(*stmt.expr));
    return assign(stmt, std::move(value));
  }
  std::string captured;
  scopes_.emplace_back();
  PTERYX_ASSIGN(const Flow flow, run_body(stmt.body, captured));
  scopes_.pop_back();
  if (flow != Flow::kOn) return template_error("break or continue out of a set block");
  PTERYX_ASSIGN(Value value, text(std::move(captured)));
  return assign(stmt, std::move(value));
}

Status Evaluator::assign(const Stmt& stmt, Value value) {
  if (stmt.attribute.empty()) return unpack(stmt.targets, value);
  const Value target = lookup(stmt.targets[0]);
  Namespace* const space = target.name_space();
  if (space == nullptr) {
    return template_error(fmt::format("cannot set '{}' of '{}': expected a namespace, got {}",
                                      stmt.attribute, stmt.targets[0], target.type_name()));
  }
  if (value.name_space() != nullptr) {
    return template_error("a namespace cannot be inside a namespace");
  }
  const auto it = std::find_if(space->members.begin(), space->members.end(),
                               [&](const auto& m) { return m.first == stmt.attribute; });
  if (it != space->members.end()) {
    it->second = std::move(value);
  } else {
    space->members.emplace_back(stmt.attribute, std::move(value));
  }
  return {};
}

Result<Value> Evaluator::call_macro(const Stmt& macro, const Args& args) {
  if (++calls_ > kDeepestCalls) return template_error("macros call each other too deep");
  if (args.positional.size() > macro.parameters.size()) {
    return template_error(fmt::format("macro '{}': expected at most {} arguments, got {}",
                                      macro.text, macro.parameters.size(), args.positional.size()));
  }
  Scope scope;
  for (size_t i = 0; i < macro.parameters.size(); ++i) {
    const Parameter& p = macro.parameters[i];
    const auto named = std::find_if(args.named.begin(), args.named.end(),
                                    [&](const auto& n) { return n.first == p.name; });
    Value value = Value::undefined(p.name);
    if (i < args.positional.size()) {
      value = args.positional[i];
    } else if (named != args.named.end()) {
      value = named->second;
    } else if (p.otherwise != nullptr) {
      PTERYX_ASSIGN(value, eval(*p.otherwise));
    }
    scope.emplace_back(p.name, std::move(value));
  }
  // A macro sees the outermost scope and its own, not its caller's.
  const size_t visible = std::exchange(visible_from_, scopes_.size());
  scopes_.push_back(std::move(scope));
  std::string out;
  PTERYX_ASSIGN(const Flow flow, run_body(macro.body, out));
  scopes_.pop_back();
  visible_from_ = visible;
  --calls_;
  if (flow != Flow::kOn) return template_error("break or continue out of a macro");
  return text(std::move(out));
}

}  // namespace pteryx::llm::chat
