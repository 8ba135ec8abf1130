// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/llm/chat/parser.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "pteryx/base/excerpt.h"

namespace pteryx::llm::chat {
namespace {

constexpr uint32_t kDeepestBlocks = 64;

std::string shown(const Token& token) {
  switch (token.type) {
    case TokenType::kEnd: return "the end of the template";
    case TokenType::kPrintEnd: return "'}}'";
    case TokenType::kBlockEnd: return "'%}'";
    case TokenType::kString: return "a string";
    default: return fmt::format("'{}'", excerpt(token.text));
  }
}

}  // namespace

Status Parser::error(std::string_view what) const {
  return invalid_program(fmt::format("template line {}: {}", peek().line, what));
}

Status Parser::unexpected(std::string_view expected) const {
  return error(fmt::format("expected {}, got {}", expected, shown(peek())));
}

bool Parser::skip_operator(std::string_view text) {
  if (!is_operator(text)) return false;
  next();
  return true;
}

bool Parser::skip_name(std::string_view text) {
  if (!is_name(text)) return false;
  next();
  return true;
}

Status Parser::expect_operator(std::string_view text) {
  return skip_operator(text) ? Status() : unexpected(fmt::format("'{}'", text));
}

Result<std::string> Parser::expect_name() {
  if (peek().type != TokenType::kName) return unexpected("a name");
  return next().text;
}

Status Parser::end_block() {
  if (peek().type != TokenType::kBlockEnd) return unexpected("'%}'");
  next();
  return {};
}

Result<Body> Parser::run() { return read_body({}); }

// Up to one of the tags that end it, which is left to the caller; without any, up to the end.
Result<Body> Parser::read_body(std::initializer_list<std::string_view> ends) {
  if (++nesting_ > kDeepestBlocks) return error("blocks are nested too deep");
  Body body;
  while (peek().type != TokenType::kEnd) {
    const uint32_t line = peek().line;
    if (peek().type == TokenType::kText) {
      body.push_back({.kind = StmtKind::kText, .line = line, .text = next().text});
    } else if (peek().type == TokenType::kPrint) {
      next();
      PTERYX_ASSIGN(ExprPtr expr, read_tuple());
      if (peek().type != TokenType::kPrintEnd) return unexpected("'}}'");
      next();
      body.push_back({.kind = StmtKind::kPrint, .line = line, .expr = std::move(expr)});
    } else if (std::find(ends.begin(), ends.end(), peek(1).text) != ends.end()) {
      --nesting_;
      return body;
    } else {
      PTERYX_TRY(read_statement(body));
    }
  }
  --nesting_;
  if (ends.size() == 0) return body;
  return unexpected(fmt::format("'{}'", *(ends.end() - 1)));
}

Status Parser::read_statement(Body& body) {
  next();  // {%
  const uint32_t line = peek().line;
  PTERYX_ASSIGN(const std::string name, expect_name());
  Result<Stmt> stmt = Stmt();
  if (name == "if") {
    stmt = read_if();
  } else if (name == "for") {
    stmt = read_for();
  } else if (name == "set") {
    stmt = read_set();
  } else if (name == "macro") {
    stmt = read_macro();
  } else if (name == "break" || name == "continue") {
    stmt = Stmt{.kind = name == "break" ? StmtKind::kBreak : StmtKind::kContinue};
    PTERYX_TRY(end_block());
  } else if (name == "generation") {
    PTERYX_TRY(end_block());
    PTERYX_ASSIGN(Body inner, read_body({"endgeneration"}));
    PTERYX_TRY(expect_end_tag("endgeneration"));
    stmt = Stmt{.kind = StmtKind::kBlock, .body = std::move(inner)};
  } else if (name.starts_with("end") || name == "else" || name == "elif") {
    return error(fmt::format("'{}' has no beginning", excerpt(name)));
  } else {
    return unsupported(
        fmt::format("template line {}: tag '{}' is not supported", line, excerpt(name)));
  }
  if (!stmt.ok()) return std::move(stmt).status();
  stmt->line = line;
  body.push_back(std::move(stmt).value());
  return {};
}

Status Parser::expect_end_tag(std::string_view name) {
  next();  // {%
  if (!skip_name(name)) return unexpected(fmt::format("'{}'", name));
  return end_block();
}

Result<Stmt> Parser::read_if() {
  Stmt stmt = {.kind = StmtKind::kIf};
  bool last = false;
  while (true) {
    Branch branch;
    if (!last) {
      PTERYX_ASSIGN(branch.condition, read_tuple());
    }
    PTERYX_TRY(end_block());
    if (last) {
      PTERYX_ASSIGN(branch.body, read_body({"endif"}));
    } else {
      PTERYX_ASSIGN(branch.body, read_body({"elif", "else", "endif"}));
    }
    stmt.branches.push_back(std::move(branch));
    if (peek(1).text == "endif") break;
    next();  // {%
    last = next().text == "else";
  }
  PTERYX_TRY(expect_end_tag("endif"));
  return stmt;
}

Result<std::vector<std::string>> Parser::read_targets(std::string_view end) {
  const bool bracketed = skip_operator("(");
  std::vector<std::string> names;
  do {
    PTERYX_ASSIGN(std::string name, expect_name());
    names.push_back(std::move(name));
  } while (skip_operator(",") && !is_name(end) && !is_operator(end));
  if (bracketed) PTERYX_TRY(expect_operator(")"));
  return names;
}

Result<Stmt> Parser::read_for() {
  Stmt stmt = {.kind = StmtKind::kFor};
  PTERYX_ASSIGN(stmt.targets, read_targets("in"));
  if (!skip_name("in")) return unexpected("'in'");
  PTERYX_ASSIGN(stmt.expr, read_or());
  if (skip_name("if")) {
    PTERYX_ASSIGN(stmt.filter, read_expression());
  }
  if (is_name("recursive")) {
    return unsupported(
        fmt::format("template line {}: recursive loops are not supported", peek().line));
  }
  PTERYX_TRY(end_block());
  PTERYX_ASSIGN(stmt.body, read_body({"else", "endfor"}));
  if (peek(1).text == "else") {
    PTERYX_TRY(expect_end_tag("else"));
    PTERYX_ASSIGN(stmt.otherwise, read_body({"endfor"}));
  }
  PTERYX_TRY(expect_end_tag("endfor"));
  return stmt;
}

Result<Stmt> Parser::read_set() {
  Stmt stmt = {.kind = StmtKind::kSet};
  PTERYX_ASSIGN(stmt.targets, read_targets("="));
  if (stmt.targets.size() == 1 && skip_operator(".")) {
    PTERYX_ASSIGN(stmt.attribute, expect_name());
  }
  if (skip_operator("=")) {
    PTERYX_ASSIGN(stmt.expr, read_tuple());
    PTERYX_TRY(end_block());
    return stmt;
  }
  if (stmt.targets.size() != 1) return unexpected("'='");
  if (is_operator("|")) {
    return unsupported(
        fmt::format("template line {}: filters of a set block are not supported", peek().line));
  }
  PTERYX_TRY(end_block());
  PTERYX_ASSIGN(stmt.body, read_body({"endset"}));
  PTERYX_TRY(expect_end_tag("endset"));
  return stmt;
}

Result<Stmt> Parser::read_macro() {
  Stmt stmt = {.kind = StmtKind::kMacro};
  PTERYX_ASSIGN(stmt.text, expect_name());
  PTERYX_TRY(expect_operator("("));
  while (!is_operator(")")) {
    Parameter parameter;
    PTERYX_ASSIGN(parameter.name, expect_name());
    if (skip_operator("=")) {
      PTERYX_ASSIGN(parameter.otherwise, read_expression());
    }
    stmt.parameters.push_back(std::move(parameter));
    if (!skip_operator(",")) break;
  }
  PTERYX_TRY(expect_operator(")"));
  PTERYX_TRY(end_block());
  PTERYX_ASSIGN(stmt.body, read_body({"endmacro"}));
  PTERYX_TRY(expect_end_tag("endmacro"));
  return stmt;
}

}  // namespace pteryx::llm::chat
