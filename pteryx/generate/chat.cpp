// Messages to prompts. SPDX-License-Identifier: BSD-3-Clause
#include <optional>

#include <fmt/format.h>

#include "pteryx/llm.h"
#include "pteryx/llm/chat/template.h"
#include "pteryx/llm/tokenizer/tokenizer.h"

namespace pteryx::llm {
namespace {

// What a model without a template is likeliest to have seen.
std::string plain_text(const std::vector<Message>& messages) {
  std::string text;
  for (const Message& m : messages) {
    if (m.role == "system") {
      text += m.content + "\n";
    } else if (m.role == "user") {
      text += "User: " + m.content + "\n";
    } else {
      // An answer usually brings its space along.
      text += (m.content.starts_with(' ') ? "Assistant:" : "Assistant: ") + m.content + "\n";
    }
  }
  return text + "Assistant:";
}

std::string token_text(const Vocabulary& vocabulary, std::optional<TokenId> id) {
  return id && *id < vocabulary.tokens.size() ? vocabulary.tokens[*id].text : "";
}

}  // namespace

Result<Chat> Chat::of(const Model& model) {
  if (model.tokenizer() == nullptr)
    return invalid_argument(fmt::format("{} has no tokenizer", model.name()));
  Chat chat(model);
  if (!model.chat_template().empty()) {
    PTERYX_ASSIGN(chat::Template parsed, chat::Template::parse(model.chat_template()));
    chat.template_ = std::make_shared<const chat::Template>(std::move(parsed));
  }
  return chat;
}

Result<std::vector<TokenId>> Chat::prompt(const std::vector<Message>& messages,
                                          const PromptOptions& options) const {
  const Tokenizer& tokenizer = *model_->tokenizer();
  const Vocabulary& vocabulary = tokenizer.vocabulary();
  EncodeOptions encode{.parse_special = true};
  std::string text;
  if (template_ != nullptr) {  // which writes the token that begins a text itself
    chat::ChatOptions chat;
    chat.bos_token = token_text(vocabulary, vocabulary.bos);
    if (!vocabulary.eos.empty()) chat.eos_token = token_text(vocabulary, vocabulary.eos.front());
    chat.tools_json = options.tools;
    PTERYX_ASSIGN(text, chat::render_chat(*template_, messages, chat));
  } else {
    encode.add_bos = vocabulary.usual.add_bos;
    text = plain_text(messages);
  }
  return tokenizer.encode(text, encode);
}

}  // namespace pteryx::llm
