// Conversations as text and as files. SPDX-License-Identifier: BSD-3-Clause
#include "conversation.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "pteryx/base/file.h"
#include "pteryx/base/json.h"
#include "pteryx/base/output_file.h"

namespace pteryx::cli {
namespace {

using nlohmann::json;

constexpr size_t kLargestFile = size_t{64} << 20;
constexpr std::array<std::string_view, 3> kRoles = {"system", "user", "assistant"};

// What a model without a template is likeliest to have seen.
std::string plain_text(const Messages& messages) {
  std::string text;
  for (const llm::chat::Message& m : messages) {
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

std::string token_text(const llm::Vocabulary& vocabulary, std::optional<llm::TokenId> id) {
  return id && *id < vocabulary.tokens.size() ? vocabulary.tokens[*id].text : "";
}

Result<std::string> text_member(const json& message, const char* key, size_t index) {
  const auto it = message.is_object() ? message.find(key) : message.end();
  if (it == message.end() || !it->is_string()) {
    return invalid_argument(fmt::format("message {}: {}: expected text, got {}", index, key,
                                        it == message.end() ? "nothing" : it->type_name()));
  }
  return it->get<std::string>();
}

Result<Messages> messages_of(const json& document) {
  if (!document.is_array()) {
    return invalid_argument(
        fmt::format("expected a JSON list of messages, got {}", document.type_name()));
  }
  Messages messages;
  for (size_t i = 0; i < document.size(); ++i) {
    PTERYX_ASSIGN(std::string role, text_member(document[i], "role", i));
    PTERYX_ASSIGN(std::string content, text_member(document[i], "content", i));
    if (std::find(kRoles.begin(), kRoles.end(), role) == kRoles.end()) {
      return invalid_argument(
          fmt::format("message {}: role: expected {}, got '{}'", i, fmt::join(kRoles, ", "), role));
    }
    messages.push_back({.role = std::move(role), .content = std::move(content)});
  }
  return messages;
}

}  // namespace

Result<ChatFormat> ChatFormat::of(const generate::Model& model, const std::string& path) {
  if (model.tokenizer() == nullptr) {
    return invalid_argument(fmt::format("{} has no tokenizer: give one with --tokenizer", path));
  }
  ChatFormat format(*model.tokenizer());
  if (!model.chat_template().empty()) {
    PTERYX_ASSIGN(format.template_, llm::chat::Template::parse(model.chat_template()));
  }
  return format;
}

Result<std::vector<int64_t>> ChatFormat::encode(const Messages& messages) const {
  const llm::Vocabulary& vocabulary = tokenizer_->vocabulary();
  llm::EncodeOptions options{.parse_special = true};
  std::string text;
  if (template_) {  // which writes the token that begins a text itself
    llm::chat::ChatOptions chat;
    chat.bos_token = token_text(vocabulary, vocabulary.bos);
    if (!vocabulary.eos.empty()) chat.eos_token = token_text(vocabulary, vocabulary.eos.front());
    PTERYX_ASSIGN(text, llm::chat::render_chat(*template_, messages, chat));
  } else {
    options.add_bos = vocabulary.usual.add_bos;
    text = plain_text(messages);
  }
  PTERYX_ASSIGN(const auto ids, tokenizer_->encode(text, options));
  return std::vector<int64_t>(ids.begin(), ids.end());
}

json messages_json(const Messages& messages) {
  json document = json::array();
  for (const llm::chat::Message& m : messages)
    document.push_back({{"role", m.role}, {"content", m.content}});
  return document;
}

Status save_messages(const std::string& path, const Messages& messages) {
  const json document = messages_json(messages);
  return write_file(path, document.dump(2, ' ', false, json::error_handler_t::replace) + "\n");
}

Result<Messages> load_messages(const std::string& path) {
  PTERYX_ASSIGN(const auto file, MappedFile::open(path));
  if (file->bytes().size() > kLargestFile) {
    return invalid_argument(fmt::format("{}: expected at most {} MiB", path, kLargestFile >> 20));
  }
  PTERYX_ASSIGN(const json document, parse_json(file->bytes(), path));
  auto messages = messages_of(document);
  if (!messages.ok()) return std::move(messages).status().during("reading " + path);
  return messages;
}

}  // namespace pteryx::cli
