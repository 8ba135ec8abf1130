// A conversation with a language model, and its file.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "pteryx/base/status.h"
#include "pteryx/llm.h"

namespace pteryx::cli {

using Messages = std::vector<llm::Message>;

// `path` names the model in messages. Errors: kInvalidArgument where it has no tokenizer, those of
// llm::Chat::of.
Result<llm::Chat> open_chat(const llm::Model& model, const std::string& path);

// A JSON list of {"role", "content"}, with "name", "tool_calls" and "tool_call_id" where there are.
nlohmann::json messages_json(const Messages& messages);
// Such a list as a file. Errors: kIo; kInvalidArgument for a file that is something
// else.
Status save_messages(const std::string& path, const Messages& messages);
Result<Messages> load_messages(const std::string& path);

}  // namespace pteryx::cli
