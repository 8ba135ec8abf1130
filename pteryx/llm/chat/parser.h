// Tokens to the tree of a chat template. SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "pteryx/base/status.h"
#include "pteryx/llm/chat/ast.h"
#include "pteryx/llm/chat/lexer.h"

namespace pteryx::llm::chat {

class Parser {
 public:
  explicit Parser(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

  // Errors: kInvalidProgram for what is no template, kUnsupported for what ours does not know; both
  // name the line.
  Result<Body> run();

 private:
  // parser.cpp: blocks
  Result<Body> read_body(std::initializer_list<std::string_view> ends);
  Status read_statement(Body& body);
  Result<Stmt> read_if();
  Result<Stmt> read_for();
  Result<Stmt> read_set();
  Result<Stmt> read_macro();
  Status expect_end_tag(std::string_view name);
  Result<std::vector<std::string>> read_targets(std::string_view end);
  Status end_block();

  // expressions.cpp
  Result<ExprPtr> read_expression();  // with "a if b else c"
  Result<ExprPtr> read_tuple();       // with commas
  Result<ExprPtr> read_or();
  Result<ExprPtr> read_and();
  Result<ExprPtr> read_not();
  Result<ExprPtr> read_compare();
  Result<ExprPtr> read_binary(size_t level);
  Result<ExprPtr> read_unary(bool with_filters);
  Result<ExprPtr> read_primary();
  Result<ExprPtr> read_postfix(ExprPtr expr);
  Result<ExprPtr> read_filters(ExprPtr expr);
  Result<ExprPtr> read_test(ExprPtr expr);
  Result<ExprPtr> read_subscript(ExprPtr expr);
  Result<ExprPtr> read_bracketed();
  Result<ExprPtr> read_number();
  Status read_arguments(Expr& call);
  Result<ExprPtr> make(ExprKind kind, std::string name, std::vector<ExprPtr> children);
  Status check_depth(Expr& expr);

  const Token& peek(size_t ahead = 0) const {
    const size_t at = at_ + ahead;
    return at < tokens_.size() ? tokens_[at] : tokens_.back();
  }
  Token next() { return at_ + 1 < tokens_.size() ? tokens_[at_++] : tokens_.back(); }
  bool is_operator(std::string_view text) const {
    return peek().type == TokenType::kOperator && peek().text == text;
  }
  bool is_name(std::string_view text) const {
    return peek().type == TokenType::kName && peek().text == text;
  }
  bool skip_operator(std::string_view text);
  bool skip_name(std::string_view text);
  Status expect_operator(std::string_view text);
  Result<std::string> expect_name();
  Status error(std::string_view what) const;
  Status unexpected(std::string_view expected) const;

  std::vector<Token> tokens_;
  size_t at_ = 0;
  uint32_t nesting_ = 0;
};

}  // namespace pteryx::llm::chat
