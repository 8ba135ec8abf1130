// Runs the tree of a chat template. SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pteryx/base/status.h"
#include "pteryx/llm/chat/ast.h"
#include "pteryx/llm/chat/template.h"
#include "pteryx/llm/chat/value.h"

namespace pteryx::llm::chat {

struct Args {
  std::vector<Value> positional;
  std::vector<std::pair<std::string, Value>> named;
};

// Something that can be called: a function of ours, a macro, or a method with what it belongs to.
struct Function {
  enum class Kind : uint8_t { kGlobal, kMacro, kMethod, kCycle };
  Kind kind = Kind::kGlobal;
  std::string name;
  Value self;
  const Stmt* macro = nullptr;
};

class Evaluator {
 public:
  Evaluator(const Dict& variables, const RenderOptions& options);

  Result<std::string> run(const Body& body);

  // For the parts below.
  const RenderOptions& options() const { return options_; }
  Status spend(uint64_t work);               // kInvalidArgument when there is no more
  Result<Value> text(std::string s);         // a new string, counted
  Result<Value> container(Value container);  // a new list or dict, counted and not too deep
  Result<Value> filter(const std::string& name, const Value& value, const Args& args);
  Result<bool> test(const std::string& name, const Value& value, const Args& args);
  Result<Value> attribute(const Value& of, const std::string& name);
  Result<Value> item(const Value& of, const Value& key);

 private:
  enum class Flow : uint8_t { kOn, kBreak, kContinue };
  using Scope = std::vector<std::pair<std::string, Value>>;

  // evaluator.cpp: statements
  Result<Flow> run_body(const Body& body, std::string& out);
  Result<Flow> run_statement(const Stmt& stmt, std::string& out);
  Result<Flow> run_if(const Stmt& stmt, std::string& out);
  Result<Flow> run_for(const Stmt& stmt, std::string& out);
  Result<List> loop_items(const Stmt& stmt);
  Status run_set(const Stmt& stmt);
  Status assign(const Stmt& stmt, Value value);
  Status unpack(const std::vector<std::string>& targets, const Value& value);
  Status print(const Value& value, std::string& out);
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

  Value lookup(const std::string& name) const;
  void define(const std::string& name, Value value);

  const RenderOptions& options_;
  uint64_t work_ = 0;
  uint64_t bytes_ = 0;
  uint32_t calls_ = 0;       // of macros, one inside the other
  size_t visible_from_ = 1;  // the first scope that is seen besides the outermost
  std::vector<Scope> scopes_;
};

// operators.cpp
Result<Value> binary(Evaluator& ev, std::string_view op, const Value& a, const Value& b);
Result<Value> negate(const Value& v);
Result<bool> compare(std::string_view op, const Value& a, const Value& b);
Result<bool> contains(const Value& container, const Value& member);
Result<Value> slice(Evaluator& ev, const Value& of, const Value& begin, const Value& end,
                    const Value& step);
// Where the characters of a text start, and where it ends.
std::vector<size_t> character_offsets(std::string_view text);
// What a loop goes over: elements, keys, characters; nothing for undefined.
Result<List> elements(const Value& v);

// methods.cpp
bool has_method(const Value& of, std::string_view name);
Result<Value> call_method(Evaluator& ev, const Value& of, const std::string& name,
                          const Args& args);

// An error of the template's own making, or of what it was given.
Status template_error(std::string message);

}  // namespace pteryx::llm::chat
