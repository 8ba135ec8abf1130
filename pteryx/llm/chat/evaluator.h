// Runs the tree of a chat template. SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pteryx/base/status.h"
#include "pteryx/llm/chat/ast.h"
#include "pteryx/llm/chat/builders.h"
#include "pteryx/llm/chat/meter.h"
#include "pteryx/llm/chat/template.h"
#include "pteryx/llm/chat/value.h"

namespace pteryx::llm::chat {

struct Args {
  std::vector<Value> positional;
  std::vector<std::pair<std::string_view, Value>> named;  // the names are the template's
  Charge charge;
};

// Something that can be called: a function of ours, a macro, or a method with what it belongs to.
struct Function {
  enum class Kind : uint8_t { kGlobal, kMacro, kMethod, kCycle };
  Kind kind = Kind::kGlobal;
  std::string name;
  Value self;
  const Stmt* macro = nullptr;
  Charge charge;
};

class Evaluator {
 public:
  Evaluator(const Dict& variables, const RenderOptions& options);

  Result<std::string> run(const Body& body);

  // For the parts below.
  const RenderOptions& options() const { return options_; }
  Meter& meter() { return meter_; }
  Result<Value> undefined(std::string_view name);
  Result<Value> filter(const std::string& name, const Value& value, const Args& args);
  Result<bool> test(const std::string& name, const Value& value, const Args& args);
  Result<Value> attribute(const Value& of, const std::string& name);
  Result<Value> item(const Value& of, const Value& key);
  Result<const Value*> member(const Value& of, std::string_view key);  // nullptr if not there

 private:
  enum class Flow : uint8_t { kOn, kBreak, kContinue };
  struct Scope {
    std::vector<std::pair<std::string, Value>> names;
    Charge charge;
  };

  // evaluator.cpp: statements
  Result<Flow> run_body(const Body& body, TextBuilder& out);
  Result<Flow> run_statement(const Stmt& stmt, TextBuilder& out);
  Result<Flow> run_if(const Stmt& stmt, TextBuilder& out);
  Result<Flow> run_for(const Stmt& stmt, TextBuilder& out);
  Result<Value> loop_items(const Stmt& stmt);
  Result<Value> loop_variable(const List& items, size_t i);
  Status run_set(const Stmt& stmt);
  Status assign(const Stmt& stmt, Value value);
  Status unpack(const std::vector<std::string>& targets, const Value& value);
  Result<Value> call_macro(const Stmt& macro, const Args& args);

  // evaluate_expression.cpp
  Result<Value> eval(const Expr& e);
  Result<Value> eval_any(const Expr& e);
  Result<Value> eval_container(const Expr& e);
  Result<Value> eval_compare(const Expr& e);
  Result<Value> eval_condition(const Expr& e);
  Result<Value> eval_slice(const Expr& e);
  Result<Value> eval_call(const Expr& e);
  Result<Args> eval_args(const Expr& e);
  Result<Value> call(const Function& function, const Args& args);
  Result<Value> call_global(const std::string& name, const Args& args);

  // select.cpp
  Result<Value> run_filter(const std::string& name, const Value& value, const Args& args);

  Result<Value> function(Function f);
  Result<Value> lookup(const std::string& name);
  Status define(const std::string& name, Value value);
  void open_scope() { scopes_.push_back({.names = {}, .charge = Charge(meter_)}); }

  const RenderOptions& options_;
  Meter meter_;              // outlives the values below
  uint32_t calls_ = 0;       // of macros, one inside the other
  uint32_t filters_ = 0;     // the same of filters
  size_t visible_from_ = 1;  // the first scope that is seen besides the outermost
  std::vector<Scope> scopes_;
};

// operators.cpp
Result<Value> binary(Evaluator& ev, std::string_view op, const Value& a, const Value& b);
Result<Value> negate(const Value& v);
Result<bool> equal(Meter& meter, const Value& a, const Value& b);
Result<bool> compare(Meter& meter, std::string_view op, const Value& a, const Value& b);
Result<bool> contains(Evaluator& ev, const Value& container, const Value& member);
Result<Value> slice(Meter& meter, const Value& of, const Value& begin, const Value& end,
                    const Value& step);

// methods.cpp
bool has_method(const Value& of, std::string_view name);
Result<Value> call_method(Evaluator& ev, const Value& of, const std::string& name,
                          const Args& args);

// An error of the template's own making, or of what it was given; the start of a long one.
Status template_error(std::string_view message);

}  // namespace pteryx::llm::chat
