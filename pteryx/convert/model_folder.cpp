// Hugging Face folders: config.json says the sizes, the other files go along as they are.
// SPDX-License-Identifier: BSD-3-Clause
#include <array>
#include <filesystem>
#include <optional>
#include <span>

#include <fmt/format.h>

#include "pteryx/base/source.h"
#include "pteryx/convert/model.h"
#include "pteryx/convert/safetensors.h"
#include "pteryx/llm/tokenizer/config.h"
#include "pteryx/llm/tokenizer/json_fields.h"
#include "pteryx/llm/tokenizer/tokenizer.h"

namespace pteryx::convert {
namespace {

using llm::JsonField;

constexpr const char* kConfig = "config.json";
constexpr const char* kGeneration = "generation_config.json";
constexpr const char* kTokenizerConfig = "tokenizer_config.json";
constexpr const char* kTemplate = "chat_template.jinja";
constexpr std::array kTokenizers = {"tokenizer.json", "tokenizer.model"};  // the first is used

constexpr uint64_t kLargestText = 64 << 20;

std::string in(const std::string& folder, const char* file) {
  return (std::filesystem::path(folder) / file).string();
}
bool exists(const std::string& folder, const char* file) {
  std::error_code ignored;
  return std::filesystem::exists(in(folder, file), ignored);
}
const char* tokenizer_of(const std::string& folder) {
  for (const char* file : kTokenizers) {
    if (exists(folder, file)) return file;
  }
  return nullptr;
}

Bytes bytes_of_text(const std::string& s) { return std::as_bytes(std::span(s)); }

// Sets `out` if the member is there. Errors: kInvalidProgram for a value of another type.
Status read(const JsonField& field, int64_t& out) {
  if (field.is_null()) return {};
  PTERYX_ASSIGN(out, field.integer());
  return {};
}
Status read(const JsonField& field, double& out) {
  if (field.is_null()) return {};
  PTERYX_ASSIGN(out, field.real());
  return {};
}
// The same for members that have to be there.
template <typename T>
Status require(const JsonField& field, T& out) {
  if (field.is_null()) return invalid_program(fmt::format("{} is missing", field.path()));
  return read(field, out);
}

Result<std::string> architecture(const JsonField& config) {
  const JsonField list = config.member("architectures");
  if (list.is_null()) return invalid_program("architectures is missing");
  PTERYX_TRY(list.expect_array());
  if (list.size() == 0) return invalid_program("architectures: expected a name, got none");
  PTERYX_ASSIGN(const std::string name, list.at(0).string());
  if (name == "LlamaForCausalLM") return std::string("llama");
  if (name == "Qwen2ForCausalLM") return std::string("qwen2");
  if (name == "Qwen3ForCausalLM") return std::string("qwen3");
  return unsupported(fmt::format(
      "architecture '{}' is not supported (LlamaForCausalLM, Qwen2ForCausalLM, Qwen3ForCausalLM "
      "are)",
      name));
}

Status read_llama3(const JsonField& scaling, RopeScaling& r) {
  r.kind = RopeScaling::Kind::kLlama3;
  PTERYX_TRY(require(scaling.member("factor"), r.factor));
  PTERYX_TRY(require(scaling.member("low_freq_factor"), r.low_freq));
  PTERYX_TRY(require(scaling.member("high_freq_factor"), r.high_freq));
  return require(scaling.member("original_max_position_embeddings"), r.original_context);
}

Status read_rope(const JsonField& config, ModelShape& s) {
  // Newer files keep the base beside the scaling.
  JsonField scaling = config.member("rope_parameters");
  if (scaling.is_null()) scaling = config.member("rope_scaling");
  PTERYX_TRY(read(config.member("rope_theta"), s.rope_theta));
  if (scaling.is_null()) return {};
  PTERYX_TRY(scaling.expect_object());
  PTERYX_TRY(read(scaling.member("rope_theta"), s.rope_theta));
  JsonField type = scaling.member("rope_type");
  if (type.is_null()) type = scaling.member("type");
  PTERYX_ASSIGN(const std::string kind, type.string_or("default"));
  RopeScaling& r = s.rope_scaling;
  if (kind == "default") return {};
  if (kind == "llama3") return read_llama3(scaling, r);
  if (kind == "linear") {
    r.kind = RopeScaling::Kind::kLinear;
    return require(scaling.member("factor"), r.factor);
  }
  return unsupported(fmt::format(
      "{}: rope type '{}' is not supported (default, linear, llama3 are)", scaling.path(), kind));
}

Status check_supported(const JsonField& config) {
  PTERYX_ASSIGN(const std::string act, config.member("hidden_act").string_or("silu"));
  if (act != "silu") {
    return unsupported(fmt::format("hidden_act '{}' is not supported (silu is)", act));
  }
  PTERYX_ASSIGN(const bool window, config.member("use_sliding_window").boolean(false));
  if (window) return unsupported("use_sliding_window: sliding windows are not supported");
  double part = 1;
  PTERYX_TRY(read(config.member("partial_rotary_factor"), part));
  if (part != 1) {
    return unsupported(fmt::format("partial_rotary_factor {} is not supported (1 is)", part));
  }
  return {};
}

Result<ModelShape> read_shape(const JsonField& config) {
  PTERYX_TRY(config.expect_object());
  ModelShape s;
  PTERYX_ASSIGN(s.architecture, architecture(config));
  PTERYX_TRY(check_supported(config));
  PTERYX_TRY(require(config.member("hidden_size"), s.hidden));
  PTERYX_TRY(require(config.member("num_hidden_layers"), s.layers));
  PTERYX_TRY(require(config.member("num_attention_heads"), s.heads));
  s.kv_heads = s.heads;
  PTERYX_TRY(read(config.member("num_key_value_heads"), s.kv_heads));
  s.head_size = s.heads > 0 ? s.hidden / s.heads : 0;
  PTERYX_TRY(read(config.member("head_dim"), s.head_size));
  PTERYX_TRY(require(config.member("intermediate_size"), s.ffn));
  PTERYX_TRY(require(config.member("vocab_size"), s.vocabulary));
  s.context = kUnknownContext;
  PTERYX_TRY(read(config.member("max_position_embeddings"), s.context));
  s.norm_eps = 1e-6;
  PTERYX_TRY(read(config.member("rms_norm_eps"), s.norm_eps));
  s.rope = RopeLayout::kHalves;
  s.qk_norm = s.architecture == "qwen3";
  PTERYX_ASSIGN(s.tied, config.member("tie_word_embeddings").boolean(false));
  PTERYX_TRY(read_rope(config, s));
  PTERYX_TRY(check(s));
  return s;
}

// One id or a list of them, all in the vocabulary.
Result<std::vector<int64_t>> token_ids(const JsonField& field, int64_t vocabulary) {
  std::vector<int64_t> ids;
  if (field.is_null()) return ids;
  const bool list = field.value().array() != nullptr;
  for (size_t i = 0; i < (list ? field.size() : 1); ++i) {
    const JsonField item = list ? field.at(i) : field;
    PTERYX_ASSIGN(const int64_t id, item.integer());
    PTERYX_TRY(check_token_id(item.path(), id, vocabulary));
    ids.push_back(id);
  }
  return ids;
}

// generation_config.json is read first and has the last word.
Status read_ids(const JsonField& config, Model& m) {
  PTERYX_TRY(config.expect_object());
  PTERYX_ASSIGN(const auto bos, token_ids(config.member("bos_token_id"), m.shape.vocabulary));
  PTERYX_ASSIGN(auto eos, token_ids(config.member("eos_token_id"), m.shape.vocabulary));
  if (!m.bos && !bos.empty()) m.bos = bos[0];
  if (m.eos.empty()) m.eos = std::move(eos);
  return {};
}

// A JSON file of the folder, handed to `use`; errors name it.
template <typename Use>
Status with_json(const std::string& path, Use use) {
  PTERYX_ASSIGN(const std::string text, read_all(path, kLargestText));
  auto json = parse_json(bytes_of_text(text), path);
  if (!json.ok()) return std::move(json).status();
  Status s = use(JsonField(*json, ""));
  if (!s.ok()) return std::move(s).during("reading " + path);
  return s;
}

Status read_texts(const std::string& folder, TokenizerFrom from, ModelTexts& texts) {
  if (const char* file = tokenizer_of(folder); file != nullptr && from == TokenizerFrom::kSource) {
    PTERYX_ASSIGN(texts.tokenizer, read_all(in(folder, file), llm::kLargestTokenizer));
    texts.tokenizer_kind = name(llm::tokenizer_file(bytes_of_text(texts.tokenizer)));
  }
  if (exists(folder, kTokenizerConfig)) {
    const std::string path = in(folder, kTokenizerConfig);
    PTERYX_ASSIGN(texts.tokenizer_config, read_all(path, kLargestText));
    auto config = llm::read_tokenizer_config(bytes_of_text(texts.tokenizer_config));
    if (!config.ok()) return std::move(config).status().during("reading " + path);
    texts.chat_template = std::move(config->chat_template);
  }
  if (exists(folder, kTemplate)) {
    PTERYX_ASSIGN(texts.chat_template, read_all(in(folder, kTemplate), kLargestText));
  }
  return {};
}

}  // namespace

Result<ModelShape> shape_from_config(Bytes config_json) {
  PTERYX_ASSIGN(const Json config, parse_json(config_json, kConfig));
  return read_shape(JsonField(config, ""));
}

Result<std::vector<std::string>> folder_files(const std::string& folder) {
  std::vector<std::string> files = {in(folder, kConfig)};
  for (const char* file : {kGeneration, tokenizer_of(folder), kTokenizerConfig, kTemplate}) {
    if (file != nullptr && exists(folder, file)) files.push_back(in(folder, file));
  }
  PTERYX_ASSIGN(const std::vector<std::string> weights, safetensors_files(folder));
  files.insert(files.end(), weights.begin(), weights.end());
  return files;
}

Result<Model> model_from_folder(const std::string& folder, TokenizerFrom tokenizer) {
  Model m;
  const std::string config = in(folder, kConfig);
  PTERYX_TRY(with_json(config, [&](const JsonField& json) -> Status {
    PTERYX_ASSIGN(m.shape, read_shape(json));
    return {};
  }));
  const auto ids = [&](const JsonField& json) { return read_ids(json, m); };
  if (exists(folder, kGeneration)) PTERYX_TRY(with_json(in(folder, kGeneration), ids));
  PTERYX_TRY(with_json(config, ids));
  PTERYX_ASSIGN(m.weights, open_safetensors(folder));
  PTERYX_TRY(read_texts(folder, tokenizer, m.texts));
  return m;
}

}  // namespace pteryx::convert
