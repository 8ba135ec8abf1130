// Loading a language model. SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/generate/model.h"

#include <algorithm>

#include <fmt/format.h>

#include "pteryx/base/file.h"
#include "pteryx/program/vocabulary.h"

namespace pteryx::generate {
namespace {

constexpr std::string_view kMethod = "forward";

std::string_view as_text(Bytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// What a metadata method gives; nothing where the program has no such method.
std::vector<int64_t> metadata(Session& session, std::string_view name) {
  std::vector<int64_t> numbers;
  const auto known = std::any_of(session.methods().begin(), session.methods().end(),
                                 [&](const MethodInfo& m) { return m.name == name; });
  if (!known) return numbers;
  const auto outputs = session.run(name, {});
  if (!outputs.ok()) return numbers;
  for (const Value& v : *outputs) {
    if (v.integer() != nullptr) numbers.push_back(*v.integer());
    if (v.flag() != nullptr) numbers.push_back(*v.flag() ? 1 : 0);
  }
  return numbers;
}

std::optional<int64_t> number(Session& session, std::string_view name) {
  const std::vector<int64_t> all = metadata(session, name);
  return all.size() == 1 ? std::optional(all[0]) : std::nullopt;
}

const MethodInfo* find(const Session& session, std::string_view name) {
  for (const MethodInfo& m : session.methods()) {
    if (m.name == name) return &m;
  }
  return nullptr;
}

std::optional<llm::TokenId> id_of(const program::Vocabulary& v, std::string_view key) {
  const auto at = v.numbers.find(key);
  if (at == v.numbers.end() || at->second < 0) return std::nullopt;
  return static_cast<llm::TokenId>(at->second);
}
std::optional<bool> flag_of(const program::Vocabulary& v, std::string_view key) {
  const auto at = v.numbers.find(key);
  return at == v.numbers.end() ? std::nullopt : std::optional(at->second != 0);
}

Result<llm::TokenizerPtr> from_gguf(Bytes bytes) {
  PTERYX_ASSIGN(program::Vocabulary v, program::read_vocabulary(bytes));
  return llm::make_gguf_tokenizer({.model = v.model,
                                   .pre = v.pre,
                                   .tokens = std::move(v.tokens),
                                   .scores = std::move(v.scores),
                                   .types = std::move(v.types),
                                   .merges = std::move(v.merges),
                                   .bos = id_of(v, "bos_token_id"),
                                   .eos = id_of(v, "eos_token_id"),
                                   .unknown = id_of(v, "unknown_token_id"),
                                   .add_bos = flag_of(v, "add_bos_token"),
                                   .add_eos = flag_of(v, "add_eos_token"),
                                   .add_space_prefix = flag_of(v, "add_space_prefix")});
}

}  // namespace

Result<std::unique_ptr<Model>> Model::load(const std::string& path, const ModelOptions& options) {
  LoadOptions load = options.load;
  load.sampling = true;
  PTERYX_ASSIGN(Session session, Session::load(path, load));
  const MethodInfo* forward = find(session, kMethod);
  if (forward == nullptr || forward->inputs.size() != 3 || forward->outputs.size() != 2) {
    return unsupported(
        fmt::format("{} is not a language model with a KV cache: expected a method "
                    "'forward' (tokens [1, S], position [1]) -> logits",
                    path));
  }
  PTERYX_ASSIGN(const Steps steps, Steps::open(session, kMethod, options.depth));
  std::unique_ptr<Model> m(new Model(std::move(session), steps));
  PTERYX_TRY(m->read_info());
  Status s = m->read_tokenizer(options.tokenizer);
  if (!s.ok()) return std::move(s).during(fmt::format("loading {}", path));
  return m;
}

Status Model::read_info() {
  const MethodInfo& forward = *find(session_, kMethod);
  const Dims& tokens = forward.inputs[0].dims;
  info_.vocabulary = forward.outputs[0].dims.back();
  info_.chunk = tokens.back();
  if (const auto longest = number(session_, "get_max_seq_len"); longest && *longest > 0)
    info_.chunk = std::min(info_.chunk, *longest);
  info_.context = steps_.capacity();
  if (const auto context = number(session_, "get_max_context_len"); context && *context > 0)
    info_.context = std::min(info_.context, *context);
  info_.bos = number(session_, "get_bos_id");
  info_.eos = metadata(session_, "get_eos_ids");
  return {};
}

Status Model::read_tokenizer(const std::string& file) {
  if (const auto text = session_.named_data(program::kChatTemplateKey))
    chat_template_ = as_text(*text);
  if (!file.empty()) {
    PTERYX_ASSIGN(const auto mapped, MappedFile::open(file));
    PTERYX_ASSIGN(tokenizer_, llm::read_tokenizer(mapped->bytes()));
  } else if (const auto bytes = session_.named_data(program::kTokenizerKey)) {
    const auto kind = session_.named_data(program::kTokenizerKindKey);
    const bool gguf = kind && as_text(*kind) == "gguf";
    PTERYX_ASSIGN(tokenizer_, gguf ? from_gguf(*bytes) : llm::read_tokenizer(*bytes));
  }
  if (tokenizer_ == nullptr) return {};
  if (static_cast<int64_t>(tokenizer_->size()) > info_.vocabulary) {
    return invalid_program(
        fmt::format("the tokenizer has {} tokens, the model's vocabulary {}: it belongs to another",
                    tokenizer_->size(), info_.vocabulary));
  }
  const llm::Vocabulary& v = tokenizer_->vocabulary();
  if (!info_.bos && v.bos) info_.bos = *v.bos;
  for (const llm::TokenId id : v.eos) {
    if (std::find(info_.eos.begin(), info_.eos.end(), id) == info_.eos.end())
      info_.eos.push_back(id);
  }
  return {};
}

}  // namespace pteryx::generate
