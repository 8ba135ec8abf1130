// Statements. SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/llm/chat/evaluator.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "pteryx/base/excerpt.h"

namespace pteryx::llm::chat {
namespace {

constexpr uint64_t kStatementWork = 20;
constexpr uint64_t kParameterWork = 10;
constexpr uint64_t kRoundWork = 200;   // of a loop, with its variable
constexpr uint64_t kLoopBytes = 1600;  // of a loop's variable
constexpr uint64_t kFunctionBytes = 192;
constexpr uint32_t kDeepestCalls = 16;
constexpr std::string_view kWhere = "template line ";

// Says where, unless something further in has said so.
Status located(Status status, uint32_t line) {
  if (status.message().starts_with(kWhere)) return status;
  return {status.code(), fmt::format("{}{}: {}", kWhere, line, status.message())};
}

}  // namespace

Status template_error(std::string_view message) { return invalid_argument(excerpt(message)); }

Evaluator::Evaluator(const Dict& variables, const RenderOptions& options)
    : options_(options), meter_(options.most_bytes, options.most_work) {
  open_scope();
  scopes_[0].names.assign(variables.begin(), variables.end());
}

Result<std::string> Evaluator::run(const Body& body) {
  TextBuilder out(meter_);
  PTERYX_ASSIGN(const Flow flow, run_body(body, out));
  if (flow != Flow::kOn) return template_error("break or continue outside of a loop");
  return out.release();
}

Result<Value> Evaluator::undefined(std::string_view name) {
  Charge charge(meter_);
  PTERYX_TRY(charge.add(kObjectBytes + kLongestExcerpt));
  return Value::undefined(excerpt(name), std::move(charge));
}

Result<Value> Evaluator::function(Function f) {
  f.charge = Charge(meter_);
  PTERYX_TRY(f.charge.add(kFunctionBytes + f.name.size()));
  return Value(std::make_shared<const Function>(std::move(f)));
}

Result<Value> Evaluator::loop_variable(const List& items, size_t i) {
  const auto size = static_cast<int64_t>(items.size());
  const auto at = static_cast<int64_t>(i);
  Charge charge(meter_);
  PTERYX_TRY(charge.add(kLoopBytes));
  PTERYX_ASSIGN(Value cycle, function({.kind = Function::Kind::kCycle, .self = Value(at)}));
  Dict loop = {{"index", Value(at + 1)},
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
               {"cycle", std::move(cycle)}};
  return Value(std::move(loop), std::move(charge));
}

Result<Value> Evaluator::lookup(const std::string& name) {
  for (size_t i = scopes_.size(); i-- > 0;) {
    if (i != 0 && i < visible_from_) i = 0;
    const auto& names = scopes_[i].names;
    const auto it = std::find_if(names.rbegin(), names.rend(),
                                 [&](const auto& each) { return each.first == name; });
    PTERYX_TRY(meter_.work(static_cast<uint64_t>(it - names.rbegin())));
    if (it != names.rend()) return it->second;
  }
  static constexpr std::string_view kGlobals[] = {"range", "namespace", "dict", "raise_exception",
                                                  "strftime_now"};
  if (std::find(std::begin(kGlobals), std::end(kGlobals), name) != std::end(kGlobals)) {
    return function({.name = name});
  }
  return undefined(name);
}

Status Evaluator::define(const std::string& name, Value value) {
  auto& [names, charge] = scopes_.back();
  const auto it = std::find_if(names.begin(), names.end(),
                               [&](const auto& each) { return each.first == name; });
  PTERYX_TRY(meter_.work(static_cast<uint64_t>(it - names.begin())));
  if (it != names.end()) {
    it->second = std::move(value);
    return {};
  }
  // With the slots that a growing vector has and leaves.
  PTERYX_TRY(charge.add(3 * sizeof(names[0]) + name.size()));
  names.emplace_back(name, std::move(value));
  return {};
}

Result<Evaluator::Flow> Evaluator::run_body(const Body& body, TextBuilder& out) {
  for (const Stmt& stmt : body) {
    Status spent = meter_.work(kStatementWork);
    if (!spent.ok()) return located(std::move(spent), stmt.line);
    auto flow = run_statement(stmt, out);
    if (!flow.ok()) return located(std::move(flow).status(), stmt.line);
    if (*flow != Flow::kOn) return *flow;
  }
  return Flow::kOn;
}

Result<Evaluator::Flow> Evaluator::run_statement(const Stmt& stmt, TextBuilder& out) {
  switch (stmt.kind) {
    case StmtKind::kText: PTERYX_TRY(out.append(stmt.text)); break;
    case StmtKind::kPrint: {
      PTERYX_ASSIGN(const Value value, eval(*stmt.expr));
      PTERYX_TRY(print(value, out));
      break;
    }
    case StmtKind::kIf: return run_if(stmt, out);
    case StmtKind::kFor: return run_for(stmt, out);
    case StmtKind::kSet: PTERYX_TRY(run_set(stmt)); break;
    case StmtKind::kMacro: {
      PTERYX_ASSIGN(Value macro,
                    function({.kind = Function::Kind::kMacro, .name = stmt.text, .macro = &stmt}));
      PTERYX_TRY(define(stmt.text, std::move(macro)));
      break;
    }
    case StmtKind::kBreak: return Flow::kBreak;
    case StmtKind::kContinue: return Flow::kContinue;
    case StmtKind::kBlock: return run_body(stmt.body, out);
  }
  return Flow::kOn;
}

Result<Evaluator::Flow> Evaluator::run_if(const Stmt& stmt, TextBuilder& out) {
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
  if (targets.size() == 1) return define(targets[0], value);
  PTERYX_ASSIGN(const Value all, elements(meter_, value));
  const List& parts = *all.list();
  if (parts.size() != targets.size()) {
    return template_error(
        fmt::format("expected {} values to unpack, got {}", targets.size(), parts.size()));
  }
  for (size_t i = 0; i < parts.size(); ++i) PTERYX_TRY(define(targets[i], parts[i]));
  return {};
}

// The elements that pass the loop's own filter.
Result<Value> Evaluator::loop_items(const Stmt& stmt) {
  PTERYX_ASSIGN(const Value over, eval(*stmt.expr));
  PTERYX_ASSIGN(Value all, elements(meter_, over));
  if (stmt.filter == nullptr) return all;
  ListBuilder kept(meter_);
  for (const Value& each : *all.list()) {
    PTERYX_TRY(unpack(stmt.targets, each));
    PTERYX_ASSIGN(const Value keep, eval(*stmt.filter));
    if (keep.truth()) PTERYX_TRY(kept.push(each));
  }
  return kept.finish();
}

Result<Evaluator::Flow> Evaluator::run_for(const Stmt& stmt, TextBuilder& out) {
  open_scope();
  PTERYX_ASSIGN(const Value all, loop_items(stmt));
  scopes_.pop_back();
  const List& items = *all.list();
  for (size_t i = 0; i < items.size(); ++i) {
    PTERYX_TRY(meter_.work(kRoundWork));
    open_scope();
    PTERYX_ASSIGN(Value loop, loop_variable(items, i));
    PTERYX_TRY(define("loop", std::move(loop)));
    PTERYX_TRY(unpack(stmt.targets, items[i]));
    PTERYX_ASSIGN(const Flow flow, run_body(stmt.body, out));
    scopes_.pop_back();
    if (flow == Flow::kBreak) break;
  }
  if (!items.empty()) return Flow::kOn;
  open_scope();
  PTERYX_ASSIGN(const Flow flow, run_body(stmt.otherwise, out));
  scopes_.pop_back();
  return flow;
}

Status Evaluator::run_set(const Stmt& stmt) {
  if (stmt.expr != nullptr) {
    PTERYX_ASSIGN(Value value, eval(*stmt.expr));
    return assign(stmt, std::move(value));
  }
  TextBuilder captured(meter_);
  open_scope();
  PTERYX_ASSIGN(const Flow flow, run_body(stmt.body, captured));
  scopes_.pop_back();
  if (flow != Flow::kOn) return template_error("break or continue out of a set block");
  PTERYX_ASSIGN(Value value, captured.finish());
  return assign(stmt, std::move(value));
}

Status Evaluator::assign(const Stmt& stmt, Value value) {
  if (stmt.attribute.empty()) return unpack(stmt.targets, value);
  PTERYX_ASSIGN(const Value target, lookup(stmt.targets[0]));
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
  PTERYX_TRY(meter_.work(static_cast<uint64_t>(it - space->members.begin())));
  if (it != space->members.end()) {
    it->second = std::move(value);
  } else {
    PTERYX_TRY(space->charge.add(3 * sizeof(Dict::value_type) + stmt.attribute.size()));
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
  Scope scope = {.names = {}, .charge = Charge(meter_)};
  for (size_t i = 0; i < macro.parameters.size(); ++i) {
    const Parameter& p = macro.parameters[i];
    PTERYX_TRY(meter_.work(kParameterWork + args.named.size()));
    const auto named = std::find_if(args.named.begin(), args.named.end(),
                                    [&](const auto& n) { return n.first == p.name; });
    Value value;
    if (i < args.positional.size()) {
      value = args.positional[i];
    } else if (named != args.named.end()) {
      value = named->second;
    } else if (p.otherwise != nullptr) {
      PTERYX_ASSIGN(value, eval(*p.otherwise));
    } else {
      PTERYX_ASSIGN(value, undefined(p.name));
    }
    PTERYX_TRY(scope.charge.add(3 * sizeof(scope.names[0]) + p.name.size()));
    scope.names.emplace_back(p.name, std::move(value));
  }
  // A macro sees the outermost scope and its own, not its caller's.
  const size_t visible = std::exchange(visible_from_, scopes_.size());
  scopes_.push_back(std::move(scope));
  TextBuilder out(meter_);
  PTERYX_ASSIGN(const Flow flow, run_body(macro.body, out));
  scopes_.pop_back();
  visible_from_ = visible;
  --calls_;
  if (flow != Flow::kOn) return template_error("break or continue out of a macro");
  return out.finish();
}

}  // namespace pteryx::llm::chat
