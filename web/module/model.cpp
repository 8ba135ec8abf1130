// Language models, sequences and the texts they make. SPDX-License-Identifier: BSD-3-Clause
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "module.h"

#include "pteryx/llm.h"

using namespace pteryx;       // NOLINT: all here is exports
using namespace pteryx::web;  // NOLINT

namespace {

struct WebModel {
  explicit WebModel(llm::ModelLoad l) : load(std::move(l)) {}
  std::optional<llm::ModelLoad> load;
  std::unique_ptr<llm::Model> model;
  std::optional<llm::Chat> chat;
};
// The model outlives it: the script sees to that.
struct WebSequence {
  WebModel* model;
  std::unique_ptr<llm::Sequence> sequence;
  std::unique_ptr<llm::Generator> generator;
};

Table<WebModel> models;
Table<WebSequence> sequences;

Result<Handle> load(Handle device, std::string_view request) {
  PTERYX_ASSIGN(const Json j, parse_json(request, "the request to load"));
  PTERYX_ASSIGN(auto opened, find_device(device));
  PTERYX_ASSIGN(const SourcePtr source, read_source(j["source"]));
  PTERYX_ASSIGN(std::vector<SourcePtr> data, read_sources(j["data"]));
  llm::ModelOptions options;
  PTERYX_ASSIGN(options.load, read_load_options(j, std::move(opened)));
  if (const Json& tokenizer = j["tokenizer"]; tokenizer.object() != nullptr) {
    PTERYX_ASSIGN(options.tokenizer, read_source(tokenizer));
  }
  return models.add(
      std::make_unique<WebModel>(llm::ModelLoad(source, std::move(data), std::move(options))));
}

llm::GenerateOptions read_options(const Json& j) {
  llm::GenerateOptions o;
  take(j, "temperature", o.sampling.temperature);
  take(j, "topK", o.sampling.top_k);
  take(j, "topP", o.sampling.top_p);
  take(j, "minP", o.sampling.min_p);
  take(j, "repetitionPenalty", o.sampling.repetition);
  take(j, "presencePenalty", o.sampling.presence);
  take(j, "frequencyPenalty", o.sampling.frequency);
  take(j, "seed", o.sampling.seed);
  take(j, "maxTokens", o.max_new_tokens);
  take(j, "ignoreEnd", o.ignore_end);
  take(j, "shift", o.shift);
  take(j, "logProbabilities", o.log_probabilities);
  for (const Json& s : elements(j["stop"])) {
    if (s.text() != nullptr) o.stop.push_back(*s.text());
  }
  o.responsive = true;
  return o;
}

Result<std::vector<TokenId>> read_ids(const Json& list) {
  std::vector<TokenId> ids;
  for (const Json& id : elements(list)) {
    const auto number = id.whole();
    if (!number || *number > UINT32_MAX)
      return invalid_argument(fmt::format("token {}: expected a token id", ids.size()));
    ids.push_back(static_cast<TokenId>(*number));
  }
  return ids;
}

// {"messages": [{"role", "content"}, ...]}, {"text"} or {"ids"}.
Result<std::vector<TokenId>> read_prompt(WebModel& m, const Json& j) {
  if (const Json& list = j["messages"]; !list.is_null()) {
    std::vector<llm::Message> messages;
    for (const Json& entry : elements(list)) {
      llm::Message message;
      take(entry, "role", message.role);
      take(entry, "content", message.content);
      take(entry, "name", message.name);
      messages.push_back(std::move(message));
    }
    if (!m.chat) {
      PTERYX_ASSIGN(llm::Chat chat, llm::Chat::of(*m.model));
      m.chat.emplace(std::move(chat));
    }
    return m.chat->prompt(messages);
  }
  if (const Json& ids = j["ids"]; !ids.is_null()) return read_ids(ids);
  std::string text;
  take(j, "text", text);
  return m.model->encode(text);
}

Status begin(WebSequence& s, std::string_view request) {
  PTERYX_ASSIGN(const Json j, parse_json(request, "the request to generate"));
  PTERYX_ASSIGN(const std::vector<TokenId> ids, read_prompt(*s.model, j));
  const Json& options = j["options"];
  return s.generator->begin(ids,
                            options.is_null() ? llm::GenerateOptions() : read_options(options));
}

Json describe_piece(const llm::Generator& g, const llm::Piece& piece) {
  const llm::Timings& t = g.timings();
  Json j;
  j.set("text", piece.text);
  j.set("read", g.prompt_read());
  j.set("prompt", t.prompt_tokens);
  if (piece.token) j.set("token", *piece.token);
  if (piece.log_probability) j.set("logProbability", *piece.log_probability);
  if (!g.done()) return j;
  j.set("reason", llm::name(g.reason()));
  j.set("cachedTokens", t.cached_tokens);
  j.set("newTokens", t.new_tokens);
  j.set("promptMs", t.prompt_ms);
  j.set("decodeMs", t.decode_ms);
  return j;
}

llm::Model* find_model(Handle handle) {
  WebModel* const m = models.find(handle);
  return m == nullptr ? nullptr : m->model.get();
}

}  // namespace

// {"source", "data", "tokenizer", "precision", ...}: see read_load_options.
PTERYX_EXPORT(model_load)
int32_t export_model_load(Handle device, const char* request, size_t size) {
  const auto handle = load(device, {request, size});
  return handle.ok() ? give(*handle) : fail(handle.status());
}

PTERYX_EXPORT(model_advance) int32_t export_model_advance(Handle handle) {
  WebModel* const m = models.find(handle);
  if (m == nullptr) return fail_handle("model");
  if (m->model != nullptr) return done();
  const auto loaded = m->load->advance();
  if (!loaded.ok()) return fail(loaded.status());
  if (!*loaded) return kLater;
  m->model = m->load->take();
  m->load.reset();
  return done();
}

PTERYX_EXPORT(model_describe) int32_t export_model_describe(Handle handle) {
  const llm::Model* const m = find_model(handle);
  if (m == nullptr) return fail_handle("model");
  Json j;
  j.set("vocabulary", m->info().vocabulary);
  j.set("context", m->info().context);
  j.set("hasTokenizer", m->tokenizer() != nullptr);
  j.set("hasChatTemplate", !m->chat_template().empty());
  return give(j);
}

PTERYX_EXPORT(model_encode)
int32_t export_model_encode(Handle handle, const char* text, size_t size) {
  const llm::Model* const m = find_model(handle);
  if (m == nullptr) return fail_handle("model");
  const auto ids = m->encode({text, size});
  if (!ids.ok()) return fail(ids.status());
  return give(Json::list(*ids));
}

// `ids`: a JSON list.
PTERYX_EXPORT(model_decode)
int32_t export_model_decode(Handle handle, const char* list, size_t size) {
  const llm::Model* const m = find_model(handle);
  if (m == nullptr) return fail_handle("model");
  const auto json = parse_json(std::string_view(list, size), "the list of tokens");
  if (!json.ok()) return fail(json.status());
  const auto ids = read_ids(*json);
  if (!ids.ok()) return fail(ids.status());
  if (Status s = m->check(*ids); !s.ok()) return fail(s);
  const auto text = m->decode(*ids);
  if (!text.ok()) return fail(text.status());
  return give(std::as_bytes(std::span(*text)));
}

PTERYX_EXPORT(model_free) void export_model_free(Handle handle) { models.erase(handle); }

PTERYX_EXPORT(sequence_create) int32_t export_sequence_create(Handle model) {
  WebModel* const m = models.find(model);
  if (m == nullptr || m->model == nullptr) return fail_handle("model");
  auto sequence = llm::Sequence::create(*m->model);
  if (!sequence.ok()) return fail(sequence.status());
  auto made = std::make_unique<WebSequence>(WebSequence{m, std::move(sequence).value(), nullptr});
  made->generator = std::make_unique<llm::Generator>(*made->sequence);
  return give(sequences.add(std::move(made)));
}

PTERYX_EXPORT(sequence_free) void export_sequence_free(Handle handle) { sequences.erase(handle); }

// {"messages" | "text" | "ids", "options"}
PTERYX_EXPORT(generate_begin)
int32_t export_generate_begin(Handle handle, const char* request, size_t size) {
  WebSequence* const s = sequences.find(handle);
  if (s == nullptr) return fail_handle("sequence");
  return give(begin(*s, {request, size}));
}

// Once done, result() is a piece; with "reason", the last one.
PTERYX_EXPORT(generate_advance) int32_t export_generate_advance(Handle handle) {
  WebSequence* const s = sequences.find(handle);
  if (s == nullptr) return fail_handle("sequence");
  const auto there = s->generator->advance();
  if (!there.ok()) return fail(there.status());
  if (!*there) return kLater;
  const llm::Piece piece = s->generator->piece();
  return give(describe_piece(*s->generator, piece));
}

PTERYX_EXPORT(generate_cancel) int32_t export_generate_cancel(Handle handle) {
  WebSequence* const s = sequences.find(handle);
  if (s == nullptr) return fail_handle("sequence");
  s->generator->cancel();
  return give(describe_piece(*s->generator, {}));
}
