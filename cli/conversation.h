// A conversation with a language model: its text for the model, and its file.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "pteryx/base/status.h"
#include "pteryx/generate/model.h"
#include "pteryx/llm/chat/template.h"

namespace pteryx::cli {

using Messages = std::vector<llm::chat::Message>;

// Makes token ids of conversations, with the model's chat template where it has one and as
// "User: ...", "Assistant: ..." where it has none.
class ChatFormat {
 public:
  // `path` names the model in messages. Errors: kInvalidArgument where it has no tokenizer, those
  // of Template::parse.
  static Result<ChatFormat> of(const generate::Model& model, const std::string& path);

  bool has_template() const { return template_.has_value(); }
  // The conversation, up to where the answer begins. Errors: those of render_chat and encode.
  Result<std::vector<int64_t>> encode(const Messages& messages) const;

 private:
  explicit ChatFormat(const llm::Tokenizer& tokenizer) : tokenizer_(&tokenizer) {}

  const llm::Tokenizer* tokenizer_;
  std::optional<llm::chat::Template> template_;
};

// A JSON list of {"role", "content"}.
nlohmann::json messages_json(const Messages& messages);
// Such a list as a file. Errors: kIo; kInvalidArgument for a file that is something
// else.
Status save_messages(const std::string& path, const Messages& messages);
Result<Messages> load_messages(const std::string& path);

}  // namespace pteryx::cli
