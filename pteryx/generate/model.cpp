// Loading a language model. SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/generate/model.h"

#include <algorithm>
#include <span>

#include <fmt/format.h>

#include "pteryx/base/source.h"
#include "pteryx/llm/tokenizer/embedded.h"
#include "pteryx/program/vocabulary.h"

namespace pteryx::generate {
namespace {

constexpr std::string_view kMethod = "forward";

// A blob of the program, "" where it has none.
Result<std::string> named_text(const Session& session, std::string_view key) {
  const SourcePtr data = session.named_data(key);
  return data == nullptr ? std::string() : read_all(*data, llm::kLargestTokenizer);
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
  PTERYX_ASSIGN(Steps steps, Steps::open(session, kMethod, options.depth));
  std::unique_ptr<Model> m(new Model(std::move(session), std::move(steps)));
  PTERYX_TRY(m->read_info());
  if (options.ids_only) return m;
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
  PTERYX_ASSIGN(chat_template_, named_text(session_, program::kChatTemplateKey));
  if (!file.empty()) {
    PTERYX_ASSIGN(const std::string bytes, read_all(file, llm::kLargestTokenizer));
    PTERYX_ASSIGN(tokenizer_, llm::read_tokenizer(std::as_bytes(std::span(bytes))));
  } else if (session_.named_data(program::kTokenizerKey) != nullptr) {
    PTERYX_ASSIGN(const std::string bytes, named_text(session_, program::kTokenizerKey));
    PTERYX_ASSIGN(const std::string kind, named_text(session_, program::kTokenizerKindKey));
    PTERYX_ASSIGN(tokenizer_, llm::read_embedded_tokenizer(std::as_bytes(std::span(bytes)), kind));
  }
  if (tokenizer_ == nullptr) return {};
  PTERYX_TRY(llm::check_fit(*tokenizer_, info_.vocabulary));
  const llm::Vocabulary& v = tokenizer_->vocabulary();
  if (!info_.bos && v.bos) info_.bos = *v.bos;
  for (const llm::TokenId id : v.eos) {
    if (std::find(info_.eos.begin(), info_.eos.end(), id) == info_.eos.end())
      info_.eos.push_back(id);
  }
  return {};
}

}  // namespace pteryx::generate
