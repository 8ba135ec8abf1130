// What somebody said in a conversation.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

namespace pteryx::llm {

// As chat templates read it. What is empty is not there.
struct Message {
  std::string role;  // "system", "user", "assistant", "tool"
  std::string content;
  std::string name = {};          // of who said it, or of the tool
  std::string tool_calls = {};    // a JSON list: what an assistant asks of tools
  std::string tool_call_id = {};  // which of them this answers
};

}  // namespace pteryx::llm
