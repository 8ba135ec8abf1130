// Chat templates: Jinja as model files use it, rendered as Hugging Face's library would.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <ctime>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pteryx/base/status.h"
#include "pteryx/llm/chat/message.h"
#include "pteryx/llm/chat/value.h"

namespace pteryx::llm::chat {

struct RenderOptions {
  std::optional<std::tm> now;                // what strftime_now() tells; the clock if not set
  uint64_t most_work = 50'000'000;           // units of some nanoseconds: well below a second
  uint64_t most_bytes = uint64_t{32} << 20;  // of memory at one time, with the output
};

struct Stmt;

// Immutable; renders from several threads need no lock.
class Template {
 public:
  // Errors: kInvalidProgram for what is no template, kUnsupported for what ours does not know; both
  // name the line.
  static Result<Template> parse(std::string_view source);

  // Errors: kInvalidArgument, with the line, for what the template refuses or cannot work with, and
  // for going past a limit.
  Result<std::string> render(const Dict& variables, const RenderOptions& options = {}) const;

 private:
  explicit Template(std::shared_ptr<const std::vector<Stmt>> body) : body_(std::move(body)) {}
  std::shared_ptr<const std::vector<Stmt>> body_;
};

// A JSON document as a value, in the order of the document. Errors: kInvalidArgument.
Result<Value> value_of_json(std::string_view json);

struct ChatOptions {
  bool add_generation_prompt = true;
  std::string bos_token;
  std::string eos_token;
  std::string tools_json;  // a list of tools as JSON; empty: none
  RenderOptions render;
};

// The prompt of a conversation. Errors as render().
Result<std::string> render_chat(const Template& chat_template, const std::vector<Message>& messages,
                                const ChatOptions& options);

}  // namespace pteryx::llm::chat
