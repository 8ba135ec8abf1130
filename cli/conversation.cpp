// Conversations as text and as files. SPDX-License-Identifier: BSD-3-Clause
#include "conversation.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "document.h"

#include "pteryx/base/file.h"
#include "pteryx/base/output_file.h"

namespace pteryx::cli {
namespace {

using nlohmann::json;

constexpr size_t kLargestFile = size_t{64} << 20;
constexpr std::array<std::string_view, 4> kRoles = {"system", "user", "assistant", "tool"};

// Null where there is none, or nothing in it.
const json* member(const json& message, const char* key) {
  if (!message.is_object()) return nullptr;
  const auto it = message.find(key);
  return it == message.end() || it->is_null() ? nullptr : &*it;
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
    const json& m = document[i];
    llm::Message message;
    PTERYX_ASSIGN(message.role, text_member(m, "role", i));
    const json* const calls = member(m, "tool_calls");
    if (calls != nullptr && !calls->is_array()) {
      return invalid_argument(
          fmt::format("message {}: tool_calls: expected a list, got {}", i, calls->type_name()));
    }
    if (calls != nullptr)
      message.tool_calls = calls->dump(-1, ' ', false, json::error_handler_t::replace);
    // Who asks for a tool need not say anything.
    if (calls == nullptr || member(m, "content") != nullptr) {
      PTERYX_ASSIGN(message.content, text_member(m, "content", i));
    }
    if (member(m, "name") != nullptr) {
      PTERYX_ASSIGN(message.name, text_member(m, "name", i));
    }
    if (member(m, "tool_call_id") != nullptr) {
      PTERYX_ASSIGN(message.tool_call_id, text_member(m, "tool_call_id", i));
    }
    if (std::find(kRoles.begin(), kRoles.end(), message.role) == kRoles.end()) {
      return invalid_argument(fmt::format("message {}: role: expected {}, got '{}'", i,
                                          fmt::join(kRoles, ", "), message.role));
    }
    messages.push_back(std::move(message));
  }
  return messages;
}

}  // namespace

Result<llm::Chat> open_chat(const llm::Model& model, const std::string& path) {
  if (model.tokenizer() == nullptr) {
    return invalid_argument(fmt::format("{} has no tokenizer: give one with --tokenizer", path));
  }
  return llm::Chat::of(model);
}

json messages_json(const Messages& messages) {
  json document = json::array();
  for (const llm::Message& m : messages) {
    json message = {{"role", m.role}, {"content", m.content}};
    if (!m.name.empty()) message["name"] = m.name;
    if (!m.tool_calls.empty()) message["tool_calls"] = json::parse(m.tool_calls, nullptr, false);
    if (!m.tool_call_id.empty()) message["tool_call_id"] = m.tool_call_id;
    document.push_back(std::move(message));
  }
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
  PTERYX_ASSIGN(const json document, read_document(file->bytes(), path));
  auto messages = messages_of(document);
  if (!messages.ok()) return std::move(messages).status().during("reading " + path);
  return messages;
}

}  // namespace pteryx::cli
