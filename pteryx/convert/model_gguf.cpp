// GGUF: sizes from the metadata, the vocabulary into a container of its own.
// SPDX-License-Identifier: BSD-3-Clause
#include <cmath>

#include <fmt/format.h>

#include "pteryx/convert/gguf.h"
#include "pteryx/convert/model.h"
#include "pteryx/program/vocabulary.h"

namespace pteryx::convert {
namespace {

// Keys of an architecture start with its name.
class Keys {
 public:
  Keys(const GgufFile& file, std::string_view architecture)
      : file_(file), architecture_(architecture) {}
  std::optional<int64_t> integer(std::string_view key) const { return file_.integer(full(key)); }
  std::optional<double> number(std::string_view key) const { return file_.number(full(key)); }
  std::optional<std::string_view> text(std::string_view key) const { return file_.text(full(key)); }

 private:
  std::string full(std::string_view key) const { return fmt::format("{}.{}", architecture_, key); }
  const GgufFile& file_;
  std::string_view architecture_;
};

Status read_rope(const GgufFile& file, const Keys& keys, ModelShape& s) {
  s.rope_theta = keys.number("rope.freq_base").value_or(10000);
  if (const auto turned = keys.integer("rope.dimension_count"); turned && *turned != s.head_size) {
    return unsupported(
        fmt::format("{}: rope turns {} of {} elements", s.architecture, *turned, s.head_size));
  }
  const std::string_view kind = keys.text("rope.scaling.type").value_or("none");
  if (kind == "linear") {
    s.rope_scaling = {.kind = RopeScaling::Kind::kLinear,
                      .factor = keys.number("rope.scaling.factor").value_or(1)};
  } else if (kind != "none") {
    return unsupported(
        fmt::format("{}: rope scaling '{}' (none and linear are known)", s.architecture, kind));
  }
  const SourceTensor* factors = file.tensors().find("rope_freqs.weight");
  if (factors == nullptr) return {};
  if (factors->type != SourceType::kF32 || factors->dims != Dims{s.head_size / 2}) {
    return invalid_program(fmt::format("rope_freqs.weight: expected F32 {}, got {} {}",
                                       to_string(Dims{s.head_size / 2}), name(factors->type),
                                       to_string(factors->dims)));
  }
  s.rope_factors.resize(static_cast<size_t>(s.head_size / 2));
  factors->read_row(0, s.rope_factors);
  for (const float f : s.rope_factors) {
    if (!(f > 0) || !std::isfinite(f)) {
      return invalid_program(fmt::format("rope_freqs.weight holds {}", f));
    }
  }
  return {};
}

Result<ModelShape> read_shape(const GgufFile& file) {
  const std::string_view architecture = file.text("general.architecture").value_or("none");
  if (architecture != "llama" && architecture != "qwen2" && architecture != "qwen3") {
    return unsupported(
        fmt::format("GGUF architecture '{}' (llama, qwen2 and qwen3 are read)", architecture));
  }
  const Keys keys(file, architecture);
  if (keys.integer("expert_count").value_or(0) > 0) {
    return unsupported(fmt::format("{}: mixtures of experts", architecture));
  }
  ModelShape s;
  s.architecture = architecture;
  s.hidden = keys.integer("embedding_length").value_or(0);
  s.layers = keys.integer("block_count").value_or(0);
  s.heads = keys.integer("attention.head_count").value_or(0);
  s.kv_heads = keys.integer("attention.head_count_kv").value_or(s.heads);
  s.head_size = keys.integer("attention.key_length").value_or(s.heads > 0 ? s.hidden / s.heads : 0);
  s.ffn = keys.integer("feed_forward_length").value_or(0);
  s.context = keys.integer("context_length").value_or(2048);
  s.norm_eps = keys.number("attention.layer_norm_rms_epsilon").value_or(1e-5);
  // Rows of q and k are stored for adjacent pairs in llama files only.
  s.rope = architecture == "llama" ? RopeLayout::kPairs : RopeLayout::kHalves;
  s.qk_norm = architecture == "qwen3";
  const SourceTensor* embedding = file.tensors().find("token_embd.weight");
  if (embedding != nullptr) s.vocabulary = embedding->rows();
  if (embedding == nullptr) s.vocabulary = keys.integer("vocab_size").value_or(0);
  s.tied = file.tensors().find("output.weight") == nullptr &&
           !file.tensors().unreadable.contains("output.weight");
  PTERYX_TRY(read_rope(file, keys, s));
  PTERYX_TRY(check(s));
  return s;
}

Result<program::Vocabulary> read_vocabulary(const GgufFile& file, std::string_view model) {
  program::Vocabulary v;
  v.model = model;
  v.pre = file.text("tokenizer.ggml.pre").value_or("");
  if (const GgufArray* a = file.array("tokenizer.ggml.tokens")) {
    v.tokens.assign(a->strings.begin(), a->strings.end());
  }
  if (const GgufArray* a = file.array("tokenizer.ggml.merges")) {
    v.merges.assign(a->strings.begin(), a->strings.end());
  }
  const size_t n = v.tokens.size();
  if (const GgufArray* a = file.array("tokenizer.ggml.scores")) {
    for (const double s : a->numbers) v.scores.push_back(static_cast<float>(s));
  }
  if (const GgufArray* a = file.array("tokenizer.ggml.token_type")) {
    for (const double t : a->numbers) {
      v.types.push_back(t >= 0 && t < 256 ? static_cast<int32_t>(t) : 0);
    }
  }
  if ((!v.scores.empty() && v.scores.size() != n) || (!v.types.empty() && v.types.size() != n)) {
    return invalid_program(fmt::format("GGUF: {} tokens with {} scores and {} types", n,
                                       v.scores.size(), v.types.size()));
  }
  for (const char* key :
       {"bos_token_id", "eos_token_id", "eot_token_id", "unknown_token_id", "padding_token_id",
        "add_bos_token", "add_eos_token", "add_space_prefix"}) {
    if (const auto i = file.integer(fmt::format("tokenizer.ggml.{}", key))) v.numbers[key] = *i;
  }
  return v;
}

Status attach_tokenizer(const GgufFile& file, Model& m) {
  const auto model = file.text("tokenizer.ggml.model");
  if (!model) return {};
  PTERYX_ASSIGN(const program::Vocabulary v, read_vocabulary(file, *model));
  if (const auto at = v.numbers.find("bos_token_id"); at != v.numbers.end()) m.bos = at->second;
  for (const char* key : {"eos_token_id", "eot_token_id"}) {
    const auto at = v.numbers.find(key);
    if (at == v.numbers.end() || (!m.eos.empty() && m.eos.front() == at->second)) continue;
    m.eos.push_back(at->second);
  }
  m.attachments.push_back({std::string(kTokenizerKey), program::write_vocabulary(v)});
  m.attachments.push_back({std::string(kTokenizerKindKey), "gguf"});
  if (const auto jinja = file.text("tokenizer.chat_template")) {
    m.attachments.push_back({std::string(kChatTemplateKey), std::string(*jinja)});
  }
  return {};
}

}  // namespace

Result<Model> model_from_gguf(Bytes bytes) {
  PTERYX_ASSIGN(GgufFile file, GgufFile::parse(bytes));
  Model m;
  m.naming = Naming::kGguf;
  PTERYX_ASSIGN(m.shape, read_shape(file));
  PTERYX_TRY(attach_tokenizer(file, m));
  m.weights = std::move(file).take_tensors();
  return m;
}

}  // namespace pteryx::convert
