// The expressions of a chat template. SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include <fmt/format.h>

#include "pteryx/base/excerpt.h"
#include "pteryx/base/numbers.h"
#include "pteryx/llm/chat/parser.h"

namespace pteryx::llm::chat {
namespace {

constexpr uint32_t kDeepestExpression = 100;

// From the loosest to the tightest.
constexpr std::array<std::array<std::string_view, 4>, 4> kLevels = {
    {{"+", "-"}, {"~"}, {"*", "/", "//", "%"}, {"**"}}};

bool is_one_of(std::string_view text, const auto& all) {
  return !text.empty() && std::find(std::begin(all), std::end(all), text) != std::end(all);
}

}  // namespace

Status Parser::check_depth(Expr& e) {
  const auto see = [&](const ExprPtr& child) {
    if (child != nullptr) e.depth = std::max(e.depth, child->depth + 1);
  };
  std::for_each(e.children.begin(), e.children.end(), see);
  std::for_each(e.arguments.begin(), e.arguments.end(), see);
  for (const auto& [name, child] : e.named) see(child);
  return e.depth > kDeepestExpression ? error("an expression is nested too deep") : Status();
}

Result<ExprPtr> Parser::make(ExprKind kind, std::string name, std::vector<ExprPtr> children) {
  auto e = std::make_unique<Expr>();
  e->kind = kind;
  e->line = peek().line;
  e->name = std::move(name);
  e->children = std::move(children);
  PTERYX_TRY(check_depth(*e));
  return e;
}

namespace {

template <typename... Children>
std::vector<ExprPtr> list_of(Children... children) {
  std::vector<ExprPtr> list;
  (list.push_back(std::move(children)), ...);
  return list;
}

}  // namespace

Result<ExprPtr> Parser::read_tuple() {
  PTERYX_ASSIGN(ExprPtr first, read_expression());
  if (!is_operator(",")) return first;
  std::vector<ExprPtr> all = list_of(std::move(first));
  while (skip_operator(",")) {
    if (is_operator(")") || peek().type == TokenType::kBlockEnd) break;
    PTERYX_ASSIGN(ExprPtr each, read_expression());
    all.push_back(std::move(each));
  }
  return make(ExprKind::kList, "", std::move(all));
}

Result<ExprPtr> Parser::read_expression() {
  if (++nesting_ > kDeepestExpression) return error("an expression is nested too deep");
  PTERYX_ASSIGN(ExprPtr value, read_or());
  while (skip_name("if")) {
    PTERYX_ASSIGN(ExprPtr condition, read_or());
    std::vector<ExprPtr> parts = list_of(std::move(condition), std::move(value));
    if (skip_name("else")) {
      PTERYX_ASSIGN(ExprPtr otherwise, read_expression());
      parts.push_back(std::move(otherwise));
    }
    PTERYX_ASSIGN(value, make(ExprKind::kCondition, "", std::move(parts)));
  }
  --nesting_;
  return value;
}

Result<ExprPtr> Parser::read_or() {
  PTERYX_ASSIGN(ExprPtr left, read_and());
  while (skip_name("or")) {
    PTERYX_ASSIGN(ExprPtr right, read_and());
    PTERYX_ASSIGN(left, make(ExprKind::kOr, "or", list_of(std::move(left), std::move(right))));
  }
  return left;
}

Result<ExprPtr> Parser::read_and() {
  PTERYX_ASSIGN(ExprPtr left, read_not());
  while (skip_name("and")) {
    PTERYX_ASSIGN(ExprPtr right, read_not());
    PTERYX_ASSIGN(left, make(ExprKind::kAnd, "and", list_of(std::move(left), std::move(right))));
  }
  return left;
}

Result<ExprPtr> Parser::read_not() {
  if (!skip_name("not")) return read_compare();
  if (++nesting_ > kDeepestExpression) return error("an expression is nested too deep");
  PTERYX_ASSIGN(ExprPtr inner, read_not());
  --nesting_;
  return make(ExprKind::kNot, "not", list_of(std::move(inner)));
}

Result<ExprPtr> Parser::read_compare() {
  constexpr std::string_view kCompares[] = {"==", "!=", "<", "<=", ">", ">="};
  PTERYX_ASSIGN(ExprPtr first, read_binary(0));
  std::vector<ExprPtr> all = list_of(std::move(first));
  std::vector<std::string> operators;
  while (true) {
    if (peek().type == TokenType::kOperator && is_one_of(peek().text, kCompares)) {
      operators.push_back(next().text);
    } else if (skip_name("in")) {
      operators.emplace_back("in");
    } else if (is_name("not") && peek(1).type == TokenType::kName && peek(1).text == "in") {
      next();
      next();
      operators.emplace_back("not in");
    } else {
      break;
    }
    PTERYX_ASSIGN(ExprPtr each, read_binary(0));
    all.push_back(std::move(each));
  }
  if (operators.empty()) return std::move(all[0]);
  PTERYX_ASSIGN(ExprPtr e, make(ExprKind::kCompare, "", std::move(all)));
  e->operators = std::move(operators);
  return e;
}

Result<ExprPtr> Parser::read_binary(size_t level) {
  if (level == kLevels.size()) return read_unary(true);
  PTERYX_ASSIGN(ExprPtr left, read_binary(level + 1));
  while (peek().type == TokenType::kOperator && is_one_of(peek().text, kLevels[level])) {
    std::string op = next().text;
    PTERYX_ASSIGN(ExprPtr right, read_binary(level + 1));
    PTERYX_ASSIGN(
        left, make(ExprKind::kBinary, std::move(op), list_of(std::move(left), std::move(right))));
  }
  return left;
}

Result<ExprPtr> Parser::read_unary(bool with_filters) {
  ExprPtr e;
  if (is_operator("-") || is_operator("+")) {
    std::string op = next().text;
    if (++nesting_ > kDeepestExpression) return error("an expression is nested too deep");
    PTERYX_ASSIGN(ExprPtr inner, read_unary(false));
    --nesting_;
    PTERYX_ASSIGN(e, make(ExprKind::kUnary, std::move(op), list_of(std::move(inner))));
  } else {
    PTERYX_ASSIGN(e, read_primary());
  }
  PTERYX_ASSIGN(e, read_postfix(std::move(e)));
  if (!with_filters) return e;
  return read_filters(std::move(e));
}

Result<ExprPtr> Parser::read_number() {
  const Token token = next();
  PTERYX_ASSIGN(ExprPtr e, make(ExprKind::kLiteral, "", {}));
  if (token.type == TokenType::kFloat) {
    e->value = Value(decimal_value(token.text));
    return e;
  }
  int64_t number = 0;
  const char* const end = token.text.data() + token.text.size();
  if (std::from_chars(token.text.data(), end, number).ptr != end) {
    return error(fmt::format("the number {} is too large", excerpt(token.text)));
  }
  e->value = Value(number);
  return e;
}

Result<ExprPtr> Parser::read_primary() {
  const Token& token = peek();
  if (token.type == TokenType::kInteger || token.type == TokenType::kFloat) return read_number();
  if (token.type == TokenType::kString) {
    std::string text;
    while (peek().type == TokenType::kString) text += next().text;
    PTERYX_ASSIGN(ExprPtr e, make(ExprKind::kLiteral, "", {}));
    e->value = Value(std::move(text));
    return e;
  }
  if (token.type == TokenType::kName) {
    std::string name = next().text;
    PTERYX_ASSIGN(ExprPtr e, make(ExprKind::kLiteral, "", {}));
    if (name == "true" || name == "True") {
      e->value = Value(true);
    } else if (name == "false" || name == "False") {
      e->value = Value(false);
    } else if (name != "none" && name != "None") {
      e->kind = ExprKind::kName;
      e->name = std::move(name);
    }
    return e;
  }
  if (token.type == TokenType::kOperator) return read_bracketed();
  return unexpected("a value");
}

// A list, a dict, or an expression in brackets.
Result<ExprPtr> Parser::read_bracketed() {
  if (skip_operator("(")) {
    if (skip_operator(")")) return make(ExprKind::kList, "", {});
    PTERYX_ASSIGN(ExprPtr inner, read_tuple());
    PTERYX_TRY(expect_operator(")"));
    return inner;
  }
  const bool is_dict = is_operator("{");
  if (!is_dict && !is_operator("[")) return unexpected("a value");
  const std::string_view close = is_dict ? "}" : "]";
  next();
  std::vector<ExprPtr> members;
  while (!is_operator(close)) {
    PTERYX_ASSIGN(ExprPtr member, read_expression());
    members.push_back(std::move(member));
    if (is_dict) {
      PTERYX_TRY(expect_operator(":"));
      PTERYX_ASSIGN(ExprPtr value, read_expression());
      members.push_back(std::move(value));
    }
    if (!skip_operator(",")) break;
  }
  PTERYX_TRY(expect_operator(close));
  return make(is_dict ? ExprKind::kDict : ExprKind::kList, "", std::move(members));
}

Result<ExprPtr> Parser::read_postfix(ExprPtr e) {
  while (true) {
    if (skip_operator(".")) {
      if (peek().type == TokenType::kInteger) {
        PTERYX_ASSIGN(ExprPtr index, read_number());
        PTERYX_ASSIGN(e, make(ExprKind::kItem, "", list_of(std::move(e), std::move(index))));
        continue;
      }
      PTERYX_ASSIGN(std::string name, expect_name());
      PTERYX_ASSIGN(e, make(ExprKind::kAttribute, std::move(name), list_of(std::move(e))));
    } else if (is_operator("[")) {
      PTERYX_ASSIGN(e, read_subscript(std::move(e)));
    } else if (is_operator("(")) {
      PTERYX_ASSIGN(e, make(ExprKind::kCall, "", list_of(std::move(e))));
      PTERYX_TRY(read_arguments(*e));
    } else {
      return e;
    }
  }
}

Result<ExprPtr> Parser::read_subscript(ExprPtr e) {
  next();  // [
  std::vector<ExprPtr> parts = list_of(std::move(e));
  bool slice = false;
  for (int i = 0; i < 3; ++i) {
    ExprPtr part;
    if (!is_operator(":") && !is_operator("]")) {
      PTERYX_ASSIGN(part, read_expression());
    }
    parts.push_back(std::move(part));
    if (!is_operator(":") || i == 2) break;
    next();
    slice = true;
  }
  PTERYX_TRY(expect_operator("]"));
  if (!slice) {
    if (parts[1] == nullptr) return error("expected an index");
    return make(ExprKind::kItem, "", std::move(parts));
  }
  parts.resize(4);
  return make(ExprKind::kSlice, "", std::move(parts));
}

Status Parser::read_arguments(Expr& call) {
  PTERYX_TRY(expect_operator("("));
  while (!is_operator(")")) {
    if (is_operator("*") || is_operator("**")) {
      return unsupported(
          fmt::format("template line {}: unpacked arguments are not supported", peek().line));
    }
    const bool named = peek().type == TokenType::kName && peek(1).type == TokenType::kOperator &&
                       peek(1).text == "=";
    std::string name;
    if (named) {
      name = next().text;
      next();
    }
    PTERYX_ASSIGN(ExprPtr value, read_expression());
    if (named) {
      call.named.emplace_back(std::move(name), std::move(value));
    } else {
      call.arguments.push_back(std::move(value));
    }
    if (!skip_operator(",")) break;
  }
  PTERYX_TRY(expect_operator(")"));
  return check_depth(call);
}

Result<ExprPtr> Parser::read_filters(ExprPtr e) {
  while (true) {
    if (skip_operator("|")) {
      PTERYX_ASSIGN(std::string name, expect_name());
      PTERYX_ASSIGN(e, make(ExprKind::kFilter, std::move(name), list_of(std::move(e))));
      if (is_operator("(")) PTERYX_TRY(read_arguments(*e));
    } else if (skip_name("is")) {
      PTERYX_ASSIGN(e, read_test(std::move(e)));
    } else {
      return e;
    }
  }
}

Result<ExprPtr> Parser::read_test(ExprPtr e) {
  constexpr std::string_view kNoArgument[] = {"else", "or", "and", "is", "if", "not", "in"};
  const bool negated = skip_name("not");
  PTERYX_ASSIGN(std::string name, expect_name());
  PTERYX_ASSIGN(e, make(ExprKind::kTest, std::move(name), list_of(std::move(e))));
  const TokenType type = peek().type;
  const bool value = type == TokenType::kString || type == TokenType::kInteger ||
                     type == TokenType::kFloat || is_operator("[") || is_operator("{") ||
                     (type == TokenType::kName && !is_one_of(peek().text, kNoArgument));
  if (is_operator("(")) {
    PTERYX_TRY(read_arguments(*e));
  } else if (value) {
    PTERYX_ASSIGN(ExprPtr argument, read_primary());
    PTERYX_ASSIGN(argument, read_postfix(std::move(argument)));
    e->arguments.push_back(std::move(argument));
    PTERYX_TRY(check_depth(*e));
  }
  if (!negated) return e;
  return make(ExprKind::kNot, "not", list_of(std::move(e)));
}

}  // namespace pteryx::llm::chat
