// The words of a chat template: Jinja's, with blocks trimmed as model files expect.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "pteryx/base/status.h"

namespace pteryx::llm::chat {

enum class TokenType : uint8_t {
  kText,      // between tags
  kPrint,     // {{
  kPrintEnd,  // }}
  kBlock,     // {%
  kBlockEnd,  // %}
  kName,
  kString,
  kInteger,
  kFloat,
  kOperator,
  kEnd,
};

struct Token {
  TokenType type = TokenType::kEnd;
  std::string text;  // of a string, what it means
  uint32_t line = 1;
};

// The list ends with kEnd. Errors: kInvalidProgram with the line.
Result<std::vector<Token>> lex(std::string_view source);

}  // namespace pteryx::llm::chat
