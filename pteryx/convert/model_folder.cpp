// Hugging Face folders: config.json says the sizes, the other files go along as they are.
// SPDX-License-Identifier: BSD-3-Clause
#include <filesystem>

#include <fmt/format.h>

#include "pteryx/base/file.h"
#include "pteryx/convert/json_fields.h"
#include "pteryx/convert/model.h"
#include "pteryx/convert/safetensors.h"

namespace pteryx::convert {
namespace {

// A file of the folder, or nothing where there is none.
Result<std::optional<std::string>> optional_file(const std::string& folder, const char* file) {
  const std::string path = (std::filesystem::path(folder) / file).string();
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return std::optional<std::string>();
  PTERYX_ASSIGN(const auto mapped, MappedFile::open(path));
  const Bytes b = mapped->bytes();
  return std::optional(std::string(reinterpret_cast<const char*>(b.data()), b.size()));
}

Result<std::optional<Json>> optional_json(const std::string& folder, const char* file) {
  PTERYX_ASSIGN(const auto content, optional_file(folder, file));
  if (!content) return std::optional<Json>();
  PTERYX_ASSIGN(Json j, parse_object(std::as_bytes(std::span(*content)), file));
  return std::optional(std::move(j));
}

Result<std::string> architecture(const Json& config) {
  const Json* list = member(config, "architectures");
  const std::string name =
      list != nullptr && list->is_array() && !list->empty() && list->front().is_string()
          ? list->front().get<std::string>()
          : std::string("none");
  if (name == "LlamaForCausalLM") return std::string("llama");
  if (name == "Qwen2ForCausalLM") return std::string("qwen2");
  if (name == "Qwen3ForCausalLM") return std::string("qwen3");
  return unsupported(fmt::format(
      "config.json: architecture {} (LlamaForCausalLM, Qwen2ForCausalLM and Qwen3ForCausalLM are "
      "read)",
      name));
}

Status read_rope(const Json& config, ModelShape& s) {
  // Newer files keep the base beside the scaling.
  const Json* scaling = member(config, "rope_parameters");
  if (scaling == nullptr) scaling = member(config, "rope_scaling");
  s.rope_theta = number(config, "rope_theta").value_or(10000);
  if (scaling == nullptr) return {};
  s.rope_theta = number(*scaling, "rope_theta").value_or(s.rope_theta);
  const std::string kind =
      text(*scaling, "rope_type").value_or(text(*scaling, "type").value_or("default"));
  RopeScaling& r = s.rope_scaling;
  r.factor = number(*scaling, "factor").value_or(1);
  if (kind == "default") {
    r = {};
  } else if (kind == "linear") {
    r.kind = RopeScaling::Kind::kLinear;
  } else if (kind == "llama3") {
    r.kind = RopeScaling::Kind::kLlama3;
    r.low_freq = number(*scaling, "low_freq_factor").value_or(1);
    r.high_freq = number(*scaling, "high_freq_factor").value_or(4);
    r.original_context = number(*scaling, "original_max_position_embeddings").value_or(8192);
  } else {
    return unsupported(
        fmt::format("config.json: rope scaling '{}' (default, linear and llama3 are known)", kind));
  }
  return {};
}

Status check_supported(const Json& config) {
  const std::string act = text(config, "hidden_act").value_or("silu");
  if (act != "silu") return unsupported(fmt::format("config.json: hidden_act '{}'", act));
  if (flag(config, "use_sliding_window").value_or(false)) {
    return unsupported("config.json: sliding-window attention");
  }
  if (number(config, "partial_rotary_factor").value_or(1) != 1) {
    return unsupported("config.json: partial_rotary_factor");
  }
  return {};
}

Result<ModelShape> read_shape(const Json& config) {
  ModelShape s;
  PTERYX_ASSIGN(s.architecture, architecture(config));
  PTERYX_TRY(check_supported(config));
  s.hidden = integer(config, "hidden_size").value_or(0);
  s.layers = integer(config, "num_hidden_layers").value_or(0);
  s.heads = integer(config, "num_attention_heads").value_or(0);
  s.kv_heads = integer(config, "num_key_value_heads").value_or(s.heads);
  s.head_size = integer(config, "head_dim").value_or(s.heads > 0 ? s.hidden / s.heads : 0);
  s.ffn = integer(config, "intermediate_size").value_or(0);
  s.vocabulary = integer(config, "vocab_size").value_or(0);
  s.context = integer(config, "max_position_embeddings").value_or(2048);
  s.norm_eps = number(config, "rms_norm_eps").value_or(1e-6);
  s.rope = RopeLayout::kHalves;
  s.qk_norm = s.architecture == "qwen3";
  s.tied = flag(config, "tie_word_embeddings").value_or(false);
  PTERYX_TRY(read_rope(config, s));
  PTERYX_TRY(check(s));
  return s;
}

// One id or a list of them; generation_config.json has the last word.
std::vector<int64_t> token_ids(const Json& config, const char* key) {
  const Json* v = member(config, key);
  std::vector<int64_t> ids;
  if (v == nullptr) return ids;
  const Json list = v->is_array() ? *v : Json::array({*v});
  for (const Json& item : list) {
    if (const auto id = as_integer(item); id && *id >= 0) ids.push_back(*id);
  }
  return ids;
}

// A template is text, or a list of named ones of which "default" is meant.
std::optional<std::string> chat_template(const Json& config) {
  const Json* v = member(config, "chat_template");
  if (v == nullptr) return std::nullopt;
  if (v->is_string()) return v->get<std::string>();
  if (!v->is_array()) return std::nullopt;
  for (const Json& item : *v) {
    if (text(item, "name") == "default") return text(item, "template");
  }
  return std::nullopt;
}

Status attach_tokenizer(const std::string& folder, Model& m) {
  const auto attach = [&](std::string_view key, std::string bytes) {
    m.attachments.push_back({std::string(key), std::move(bytes)});
  };
  constexpr std::pair<const char*, const char*> kKinds[] = {{"tokenizer.json", "tokenizer.json"},
                                                            {"tokenizer.model", "sentencepiece"}};
  for (const auto& [file, kind] : kKinds) {
    PTERYX_ASSIGN(auto content, optional_file(folder, file));
    if (!content) continue;
    attach(kTokenizerKey, *std::move(content));
    attach(kTokenizerKindKey, kind);
    break;
  }
  PTERYX_ASSIGN(const auto config, optional_json(folder, "tokenizer_config.json"));
  PTERYX_ASSIGN(auto jinja, optional_file(folder, "chat_template.jinja"));
  if (!jinja && config) jinja = chat_template(*config);
  if (config)
    attach(kTokenizerConfigKey, config->dump(-1, ' ', false, Json::error_handler_t::replace));
  if (jinja) attach(kChatTemplateKey, *std::move(jinja));
  return {};
}

}  // namespace

Result<ModelShape> shape_from_config(Bytes config_json) {
  PTERYX_ASSIGN(const Json config, parse_object(config_json, "config.json"));
  return read_shape(config);
}

Result<Model> model_from_folder(const std::string& folder) {
  const std::string path = (std::filesystem::path(folder) / "config.json").string();
  PTERYX_ASSIGN(const auto mapped, MappedFile::open(path));
  PTERYX_ASSIGN(const Json config, parse_object(mapped->bytes(), path));
  Model m;
  PTERYX_ASSIGN(m.shape, read_shape(config));
  PTERYX_ASSIGN(m.weights, open_safetensors(folder));
  PTERYX_ASSIGN(const auto generation, optional_json(folder, "generation_config.json"));
  for (const Json* c : {generation ? &*generation : nullptr, &config}) {
    if (c == nullptr) continue;
    if (const auto ids = token_ids(*c, "bos_token_id"); !m.bos && !ids.empty()) m.bos = ids[0];
    if (m.eos.empty()) m.eos = token_ids(*c, "eos_token_id");
  }
  PTERYX_TRY(attach_tokenizer(folder, m));
  return m;
}

}  // namespace pteryx::convert
