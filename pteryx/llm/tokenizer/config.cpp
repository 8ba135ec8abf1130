// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/llm/tokenizer/config.h"

#include "pteryx/llm/tokenizer/json_fields.h"

namespace pteryx::llm {
namespace {

// A token is its text, or an object with it.
Result<std::string> read_token(const JsonField& json) {
  if (json.value().object() != nullptr) return json.member("content").string();
  return json.string_or("");
}

// A template, or a list of templates with names.
Result<std::string> read_template(const JsonField& json) {
  if (json.value().array() == nullptr) return json.string_or("");
  std::string chosen;
  for (size_t i = 0; i < json.size(); ++i) {
    PTERYX_ASSIGN(const std::string_view name, json.at(i).member("name").text());
    PTERYX_ASSIGN(const std::string_view text, json.at(i).member("template").text());
    if (i == 0 || name == "default") chosen = text;
  }
  return chosen;
}

Result<std::optional<bool>> read_flag(const JsonField& json) {
  if (json.is_null()) return std::optional<bool>();
  PTERYX_ASSIGN(const bool flag, json.boolean(false));
  return std::optional<bool>(flag);
}

}  // namespace

Result<TokenizerConfig> read_tokenizer_config(Bytes json) {
  PTERYX_ASSIGN(const Json document, parse_json(json, "tokenizer_config.json"));
  const JsonField root(document, "");
  PTERYX_TRY(root.expect_object());
  TokenizerConfig config;
  PTERYX_ASSIGN(config.bos_token, read_token(root.member("bos_token")));
  PTERYX_ASSIGN(config.eos_token, read_token(root.member("eos_token")));
  PTERYX_ASSIGN(config.chat_template, read_template(root.member("chat_template")));
  PTERYX_ASSIGN(config.add_bos, read_flag(root.member("add_bos_token")));
  PTERYX_ASSIGN(config.add_eos, read_flag(root.member("add_eos_token")));
  return config;
}

}  // namespace pteryx::llm
