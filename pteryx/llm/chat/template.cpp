// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/llm/chat/template.h"

#include <utility>

#include <fmt/format.h>

#include "pteryx/base/utf8.h"
#include "pteryx/llm/chat/evaluator.h"
#include "pteryx/llm/chat/lexer.h"
#include "pteryx/llm/chat/parser.h"

namespace pteryx::llm::chat {
namespace {

constexpr size_t kLongestSource = size_t{1} << 18;

Value text_of(std::string_view text) { return Value(replace_invalid(text)); }

}  // namespace

Result<Template> Template::parse(std::string_view source) {
  if (source.size() > kLongestSource) {
    return invalid_program(
        fmt::format("template of {} bytes: expected at most {}", source.size(), kLongestSource));
  }
  if (!is_utf8(source)) return invalid_program("template is not UTF-8");
  PTERYX_ASSIGN(auto tokens, lex(source));
  PTERYX_ASSIGN(Body body, Parser(std::move(tokens)).run());
  return Template(std::make_shared<const Body>(std::move(body)));
}

Result<std::string> Template::render(const Dict& variables, const RenderOptions& options) const {
  return Evaluator(variables, options).run(*body_);
}

Result<std::string> render_chat(const Template& chat_template, const std::vector<Message>& messages,
                                const ChatOptions& options) {
  List list;
  for (const Message& m : messages) {
    Dict message = {{"role", text_of(m.role)}, {"content", text_of(m.content)}};
    if (!m.name.empty()) message.emplace_back("name", text_of(m.name));
    if (!m.tool_calls.empty()) {
      PTERYX_ASSIGN(Value calls, value_of_json(m.tool_calls));
      message.emplace_back("tool_calls", std::move(calls));
    }
    if (!m.tool_call_id.empty()) message.emplace_back("tool_call_id", text_of(m.tool_call_id));
    list.emplace_back(std::move(message));
  }
  Value tools;
  if (!options.tools_json.empty()) {
    PTERYX_ASSIGN(tools, value_of_json(options.tools_json));
  }
  const Dict variables = {{"messages", Value(std::move(list))},
                          {"tools", std::move(tools)},
                          {"documents", Value()},
                          {"add_generation_prompt", Value(options.add_generation_prompt)},
                          {"bos_token", text_of(options.bos_token)},
                          {"eos_token", text_of(options.eos_token)}};
  return chat_template.render(variables, options.render);
}

}  // namespace pteryx::llm::chat
