// What a model says beside its weights: whether it can be used, and how a program carries it.
// SPDX-License-Identifier: BSD-3-Clause
#include <span>

#include <fmt/format.h>

#include "pteryx/convert/model.h"
#include "pteryx/llm/chat/template.h"
#include "pteryx/llm/tokenizer/embedded.h"
#include "pteryx/llm/tokenizer/tokenizer.h"
#include "pteryx/program/vocabulary.h"

namespace pteryx::convert {
namespace {

Status check_tokenizer(const Model& m, ReadTokenizer read) {
  const ModelTexts& t = m.texts;
  if (t.tokenizer_kind.empty()) return {};
  PTERYX_ASSIGN(const llm::TokenizerPtr tokenizer,
                read(std::as_bytes(std::span(t.tokenizer)), t.tokenizer_kind));
  return llm::check_fit(*tokenizer, m.shape.vocabulary);
}

// A template that is none is an error. One that uses what ours does not know only stops `chat`.
Status check_template(Model& m) {
  if (m.texts.chat_template.empty()) return {};
  auto parsed = llm::chat::Template::parse(m.texts.chat_template);
  if (parsed.ok()) return {};
  if (parsed.status().code() != Code::kUnsupported) {
    return std::move(parsed).status().during("reading the chat template");
  }
  m.warnings.push_back(fmt::format("chat will refuse this model: {}", parsed.status().message()));
  return {};
}

}  // namespace

Status check_texts(Model& m, ReadTokenizer read, const std::string& model_name,
                   const std::string& tokenizer_name) {
  Status s = check_tokenizer(m, read);
  if (!s.ok()) return std::move(s).during("reading the tokenizer of " + tokenizer_name);
  s = check_template(m);
  if (!s.ok()) return std::move(s).during("reading " + model_name);
  return {};
}

std::vector<Attachment> ModelTexts::attachments() && {
  std::vector<Attachment> out;
  for (auto& [key, text] : {std::pair(program::kTokenizerKey, &tokenizer),
                            std::pair(program::kTokenizerKindKey, &tokenizer_kind),
                            std::pair(program::kTokenizerConfigKey, &tokenizer_config),
                            std::pair(program::kChatTemplateKey, &chat_template)}) {
    if (!text->empty()) out.push_back({std::string(key), std::move(*text)});
  }
  return out;
}

}  // namespace pteryx::convert
