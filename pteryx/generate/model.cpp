// Loading a language model. SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <span>

#include <fmt/format.h>

#include "pteryx/base/advance_all.h"
#include "pteryx/base/source.h"
#include "pteryx/llm.h"
#include "pteryx/llm/tokenizer/embedded.h"
#include "pteryx/llm/tokenizer/tokenizer.h"
#include "pteryx/program/vocabulary.h"
#include "pteryx/session/steps.h"

namespace pteryx::llm {
namespace {

// What is fetched of a program's blobs, in this order.
enum Text : uint8_t { kTemplate, kTokenizer, kTokenizerKind };

std::string text_of(const FetchedBytes& fetched) {
  const Bytes bytes = fetched.bytes();
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// What a metadata method gives; nothing where the program has no such method. It has no
// instructions, so that it is finished at once.
std::vector<int64_t> metadata(Session& session, std::string_view name) {
  std::vector<int64_t> numbers;
  const auto known = std::any_of(session.methods().begin(), session.methods().end(),
                                 [&](const MethodInfo& m) { return m.name == name; });
  if (!known) return numbers;
  auto run = session.start(name, {});
  if (!run.ok()) return numbers;
  const auto finished = run->advance();
  if (!finished.ok() || !*finished) return numbers;
  for (const Value& v : run->outputs()) {
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

ModelLoad::ModelLoad(const SourcePtr& program, std::vector<SourcePtr> data, ModelOptions options)
    : name_(program->name()), options_(std::move(options)), session_(program, std::move(data), [&] {
        LoadOptions load = options_.load;
        load.sampling = true;
        return load;
      }()) {}

Result<bool> ModelLoad::advance() {
  if (stage_ == Stage::kSession) {
    PTERYX_ASSIGN(const bool loaded, session_.advance());
    if (!loaded) return false;
    model_.reset(new Model(name_, session_.take(), options_.depth));
    PTERYX_TRY(model_->read_info());
    PTERYX_TRY(begin_tokenizer());
    stage_ = Stage::kTokenizer;
  }
  if (stage_ == Stage::kTokenizer) {
    PTERYX_ASSIGN(const bool read, advance_all(texts_));
    if (!read) return false;
    Status s = finish_tokenizer();
    if (!s.ok()) return std::move(s).during(fmt::format("loading {}", name_));
    stage_ = Stage::kDone;
  }
  return true;
}

Status ModelLoad::fetch(const SourcePtr& source) {
  const uint64_t size = source == nullptr ? 0 : source->size();
  if (size > kLargestTokenizer) {
    return invalid_program(
        fmt::format("{}: a tokenizer or chat template of {} bytes, expected at "
                    "most {}",
                    source->name(), size, kLargestTokenizer));
  }
  const SourcePtr nothing = std::make_shared<MemorySource>("", Bytes());
  texts_.emplace_back(source == nullptr ? nothing : source, 0, size, 1);
  return {};
}

Status ModelLoad::begin_tokenizer() {
  if (options_.ids_only) return {};
  const Session& session = model_->session();
  PTERYX_TRY(fetch(session.named_data(program::kChatTemplateKey)));
  const bool own = options_.tokenizer == nullptr;
  PTERYX_TRY(fetch(own ? session.named_data(program::kTokenizerKey) : options_.tokenizer));
  return fetch(own ? session.named_data(program::kTokenizerKindKey) : nullptr);
}

Status ModelLoad::finish_tokenizer() {
  if (options_.ids_only) return {};
  model_->chat_template_ = text_of(texts_[kTemplate]);
  const Bytes file = texts_[kTokenizer].bytes();
  TokenizerPtr tokenizer;
  if (options_.tokenizer != nullptr) {
    PTERYX_ASSIGN(tokenizer, read_tokenizer(file));
  } else if (model_->session().named_data(program::kTokenizerKey) != nullptr) {
    PTERYX_ASSIGN(tokenizer, read_embedded_tokenizer(file, text_of(texts_[kTokenizerKind])));
  }
  return tokenizer == nullptr ? Status() : model_->take(std::move(tokenizer));
}

Model::Model(std::string name, Session session, uint32_t depth)
    : name_(std::move(name)), session_(std::move(session)), depth_(depth) {}
Model::~Model() = default;

Status Model::read_info() {
  const auto methods = Steps::find(session_);
  if (!methods.ok()) {
    return unsupported(fmt::format("{} is not a language model with a KV cache: {}", name_,
                                   methods.status().message()));
  }
  const MethodInfo& prompt = *find(session_, methods->prompt);
  const Dims& tokens = prompt.inputs[0].dims;
  info_.vocabulary = prompt.outputs[0].dims.back();
  info_.chunk = tokens.back();
  if (const auto longest = number(session_, "get_max_seq_len"); longest && *longest > 0)
    info_.chunk = std::min(info_.chunk, *longest);
  PTERYX_ASSIGN(info_.context, Steps::capacity(session_));
  if (const auto context = number(session_, "get_max_context_len"); context && *context > 0)
    info_.context = std::min(info_.context, *context);
  const auto is_token = [&](int64_t id) { return id >= 0 && id < info_.vocabulary; };
  if (const auto bos = number(session_, "get_bos_id"); bos && is_token(*bos))
    info_.bos = static_cast<TokenId>(*bos);
  for (const int64_t id : metadata(session_, "get_eos_ids")) {
    if (is_token(id)) info_.eos.push_back(static_cast<TokenId>(id));
  }
  return {};
}

Status Model::take(TokenizerPtr tokenizer) {
  tokenizer_ = std::move(tokenizer);
  PTERYX_TRY(check_fit(*tokenizer_, info_.vocabulary));
  const Vocabulary& v = tokenizer_->vocabulary();
  if (!info_.bos) info_.bos = v.bos;
  for (const TokenId id : v.eos) {
    if (std::find(info_.eos.begin(), info_.eos.end(), id) == info_.eos.end())
      info_.eos.push_back(id);
  }
  return {};
}

Result<std::vector<TokenId>> Model::encode(std::string_view text) const {
  if (tokenizer_ == nullptr) return invalid_argument(fmt::format("{} has no tokenizer", name_));
  EncodeOptions options = tokenizer_->vocabulary().usual;
  options.add_eos = false;
  options.parse_special = true;
  return tokenizer_->encode(text, options);
}

Result<std::string> Model::decode(std::span<const TokenId> ids) const {
  if (tokenizer_ == nullptr) return invalid_argument(fmt::format("{} has no tokenizer", name_));
  return tokenizer_->decode(ids, Specials::kSkip);
}

Status Model::check(std::span<const TokenId> ids) const {
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] < info_.vocabulary) continue;
    return invalid_argument(fmt::format("token {} is {}: expected an id from 0 to {}", i, ids[i],
                                        info_.vocabulary - 1));
  }
  return {};
}

}  // namespace pteryx::llm
