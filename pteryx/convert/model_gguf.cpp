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
  Keys(const GgufFile& file, std::string architecture)
      : file_(file), architecture_(std::move(architecture)) {}
  template <typename T>
  Status read(std::string_view key, T& out) const {
    return file_.read(full(key), out);
  }
  template <typename T>
  Status require(std::string_view key, T& out) const {
    return file_.require(full(key), out);
  }

 private:
  std::string full(std::string_view key) const { return fmt::format("{}.{}", architecture_, key); }
  const GgufFile& file_;
  std::string architecture_;
};

Status read_rope_factors(const SourceTensor& t, ModelShape& s) {
  const Dims dims = {s.head_size / 2};
  if (t.type != SourceType::kF32 || t.dims != dims) {
    return invalid_program(fmt::format("tensor '{}': expected F32 {}, got {} {}", t.name,
                                       to_string(dims), name(t.type), to_string(t.dims)));
  }
  s.rope_factors.resize(static_cast<size_t>(s.head_size / 2));
  PTERYX_TRY(t.read_row(0, s.rope_factors));
  for (const float f : s.rope_factors) {
    if (!(f > 0) || !std::isfinite(f)) {
      return invalid_program(fmt::format("tensor '{}' holds {}", t.name, f));
    }
  }
  return {};
}

Status read_rope(const Keys& keys, const Checkpoint& tensors, ModelShape& s) {
  PTERYX_TRY(keys.read("rope.freq_base", s.rope_theta));
  int64_t turned = s.head_size;
  PTERYX_TRY(keys.read("rope.dimension_count", turned));
  if (turned != s.head_size) {
    return unsupported(fmt::format("{}: partial rotation ({} of {} elements) is not supported",
                                   s.architecture, turned, s.head_size));
  }
  std::string kind = "none";
  PTERYX_TRY(keys.read("rope.scaling.type", kind));
  if (kind == "linear") {
    s.rope_scaling.kind = RopeScaling::Kind::kLinear;
    PTERYX_TRY(keys.require("rope.scaling.factor", s.rope_scaling.factor));
  } else if (kind != "none") {
    return unsupported(fmt::format("{}: rope scaling '{}' is not supported (none, linear are)",
                                   s.architecture, kind));
  }
  const SourceTensor* factors = tensors.find("rope_freqs.weight");
  return factors == nullptr ? Status() : read_rope_factors(*factors, s);
}

Result<std::string> architecture(const GgufFile& file) {
  std::string name;
  PTERYX_TRY(file.require("general.architecture", name));
  if (name == "llama" || name == "qwen2" || name == "qwen3") return name;
  return unsupported(
      fmt::format("architecture '{}' is not supported (llama, qwen2, qwen3 are)", name));
}

Result<ModelShape> read_shape(const GgufFile& file, const Checkpoint& tensors) {
  ModelShape s;
  PTERYX_ASSIGN(s.architecture, architecture(file));
  const Keys keys(file, s.architecture);
  int64_t experts = 0;
  PTERYX_TRY(keys.read("expert_count", experts));
  if (experts > 0) {
    return unsupported(fmt::format("{}: mixtures of experts are not supported", s.architecture));
  }
  PTERYX_TRY(keys.require("embedding_length", s.hidden));
  PTERYX_TRY(keys.require("block_count", s.layers));
  PTERYX_TRY(keys.require("attention.head_count", s.heads));
  s.kv_heads = s.heads;
  PTERYX_TRY(keys.read("attention.head_count_kv", s.kv_heads));
  s.head_size = s.heads > 0 ? s.hidden / s.heads : 0;
  PTERYX_TRY(keys.read("attention.key_length", s.head_size));
  PTERYX_TRY(keys.require("feed_forward_length", s.ffn));
  s.context = kUnknownContext;
  PTERYX_TRY(keys.read("context_length", s.context));
  PTERYX_TRY(keys.read("attention.layer_norm_rms_epsilon", s.norm_eps));
  // Rows of q and k are stored for adjacent pairs in llama files only.
  s.rope = s.architecture == "llama" ? RopeLayout::kPairs : RopeLayout::kHalves;
  s.qk_norm = s.architecture == "qwen3";
  PTERYX_TRY(keys.read("vocab_size", s.vocabulary));
  constexpr std::string_view kEmbedding = "token_embd.weight";
  const SourceTensor* embedding = tensors.find(kEmbedding);
  if (embedding != nullptr) s.vocabulary = embedding->rows();
  if (embedding == nullptr && tensors.has(kEmbedding)) {
    return tensors.get(kEmbedding, {}).status();
  }
  s.tied = !tensors.has("output.weight");
  PTERYX_TRY(read_rope(keys, tensors, s));
  PTERYX_TRY(check(s));
  return s;
}

// A list with an item for each token, or no list at all.
Status check_items(std::string_view key, size_t items, size_t tokens) {
  if (items == 0 || items == tokens) return {};
  return invalid_program(
      fmt::format("GGUF: '{}': expected {} items, one per token, got {}", key, tokens, items));
}

Result<program::Vocabulary> read_vocabulary(const GgufFile& file) {
  constexpr std::string_view kTokens = "tokenizer.ggml.tokens";
  constexpr std::string_view kScores = "tokenizer.ggml.scores";
  constexpr std::string_view kTypes = "tokenizer.ggml.token_type";
  program::Vocabulary v;
  PTERYX_TRY(file.read(kTokens, v.tokens));
  if (v.tokens.empty()) {
    return invalid_program(
        fmt::format("GGUF: no vocabulary ('{}'): give one with --tokenizer", kTokens));
  }
  PTERYX_TRY(file.read("tokenizer.ggml.model", v.model));
  PTERYX_TRY(file.read("tokenizer.ggml.pre", v.pre));
  PTERYX_TRY(file.read("tokenizer.ggml.merges", v.merges));
  std::vector<double> scores;
  PTERYX_TRY(file.read(kScores, scores));
  PTERYX_TRY(check_items(kScores, scores.size(), v.tokens.size()));
  for (const double s : scores) v.scores.push_back(static_cast<float>(s));
  std::vector<double> types;
  PTERYX_TRY(file.read(kTypes, types));
  PTERYX_TRY(check_items(kTypes, types.size(), v.tokens.size()));
  for (const double t : types) {
    v.types.push_back(t >= 0 && t < 256 ? static_cast<int32_t>(t) : -1);  // no token has type -1
  }
  return v;
}

// The ids and flags among the metadata. Those that end up in the program have to be tokens.
Status read_numbers(const GgufFile& file, int64_t vocabulary,
                    std::map<std::string, int64_t, std::less<>>& numbers) {
  constexpr std::string_view kPaddingId = "padding_token_id";  // nobody uses it
  for (const std::string_view name :
       {std::string_view("bos_token_id"), std::string_view("eos_token_id"),
        std::string_view("eot_token_id"), std::string_view("unknown_token_id"), kPaddingId}) {
    const std::string key = fmt::format("tokenizer.ggml.{}", name);
    if (!file.has(key)) continue;
    int64_t id = 0;
    PTERYX_TRY(file.read(key, id));
    if (name != kPaddingId) PTERYX_TRY(check_token_id(key, id, vocabulary));
    numbers[std::string(name)] = id;
  }
  for (const char* name : {"add_bos_token", "add_eos_token", "add_space_prefix"}) {
    const std::string key = fmt::format("tokenizer.ggml.{}", name);
    if (!file.has(key)) continue;
    bool flag = false;
    PTERYX_TRY(file.read(key, flag));
    numbers[name] = flag ? 1 : 0;
  }
  return {};
}

Status read_texts(const GgufFile& file, TokenizerFrom from, Model& m) {
  std::map<std::string, int64_t, std::less<>> numbers;
  PTERYX_TRY(read_numbers(file, m.shape.vocabulary, numbers));
  if (const auto at = numbers.find("bos_token_id"); at != numbers.end()) m.bos = at->second;
  for (const char* key : {"eos_token_id", "eot_token_id"}) {
    const auto at = numbers.find(key);
    if (at == numbers.end() || (!m.eos.empty() && m.eos.front() == at->second)) continue;
    m.eos.push_back(at->second);
  }
  PTERYX_TRY(file.read("tokenizer.chat_template", m.texts.chat_template));
  if (from == TokenizerFrom::kElsewhere) return {};
  PTERYX_ASSIGN(program::Vocabulary v, read_vocabulary(file));
  v.numbers = std::move(numbers);
  m.texts.tokenizer = program::write_vocabulary(v);
  m.texts.tokenizer_kind = "gguf";
  return {};
}

// Parts have to be all of one model, in order.
Status check_parts(const std::vector<GgufFile>& parts) {
  const GgufSplit& first = parts.front().split();
  size_t tensors = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    const GgufSplit& s = parts[i].split();
    if (std::cmp_not_equal(s.part, i) || std::cmp_not_equal(s.parts, parts.size())) {
      return invalid_program(fmt::format("{}: expected part {} of {}, got part {} of {}",
                                         parts[i].name(), i + 1, parts.size(), s.part + 1,
                                         s.parts));
    }
    tensors += parts[i].tensors().size();
  }
  if (parts.size() > 1 && std::cmp_not_equal(first.tensors, tensors)) {
    return invalid_program(fmt::format("{}: 'split.tensors.count': expected {}, got {}",
                                       parts.front().name(), tensors, first.tensors));
  }
  return {};
}

}  // namespace

Result<Model> model_from_gguf(std::vector<GgufFile> parts, TokenizerFrom tokenizer) {
  PTERYX_TRY(check_parts(parts));
  Model m;
  m.naming = Naming::kGguf;
  for (GgufFile& part : parts) {
    PTERYX_TRY(m.weights.add_all(part.take_tensors()));
  }
  const GgufFile& file = parts.front();  // has the metadata of all
  PTERYX_ASSIGN(m.shape, read_shape(file, m.weights));
  PTERYX_TRY(read_texts(file, tokenizer, m));
  return m;
}

}  // namespace pteryx::convert
