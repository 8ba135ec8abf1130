// What a chat template is made of, once it is read.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "pteryx/llm/chat/value.h"

namespace pteryx::llm::chat {

enum class ExprKind : uint8_t {
  kLiteral,    // value
  kName,       // name
  kList,       // children
  kDict,       // children: key, value, key, value ...
  kUnary,      // name: the operator
  kBinary,     // name: the operator
  kCompare,    // children; operators[i] between i and i + 1
  kAnd,        // children: two
  kOr,         // children: two
  kNot,        // children: one
  kCondition,  // children: if, then, else (or two)
  kAttribute,  // name of children[0]
  kItem,       // children: of, index
  kSlice,      // children: of, begin, end, step; nullptr where left out
  kCall,       // children[0] called with arguments
  kFilter,     // name on children[0] with arguments
  kTest,       // name on children[0] with arguments
};

struct Expr;
using ExprPtr = std::unique_ptr<Expr>;

struct Expr {
  ExprKind kind = ExprKind::kLiteral;
  uint32_t line = 1;
  uint32_t depth = 1;  // of the tree below, bounded by the parser
  std::string name;
  Value value;
  std::vector<ExprPtr> children;
  std::vector<std::string> operators;
  std::vector<ExprPtr> arguments;
  std::vector<std::pair<std::string, ExprPtr>> named;
};

enum class StmtKind : uint8_t {
  kText,   // text
  kPrint,  // expr
  kIf,     // branches
  kFor,    // targets in expr [if filter]: body, otherwise
  kSet,    // targets = expr, or the text of body
  kMacro,  // name, parameters: body
  kBreak,
  kContinue,
  kBlock,  // body alone
};

struct Stmt;
using Body = std::vector<Stmt>;

struct Parameter {
  std::string name;
  ExprPtr otherwise;  // nullptr: undefined
};
struct Branch {
  ExprPtr condition;  // nullptr: else
  Body body;
};

struct Stmt {
  StmtKind kind = StmtKind::kText;
  uint32_t line = 1;
  std::string text;  // of kText; the name of a macro
  ExprPtr expr;
  ExprPtr filter;
  std::vector<std::string> targets;
  std::string attribute;  // of kSet: targets[0].attribute = ...
  std::vector<Parameter> parameters;
  std::vector<Branch> branches;
  Body body;
  Body otherwise;
};

}  // namespace pteryx::llm::chat
