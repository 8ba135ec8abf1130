// A decoder-only language model: its sizes, its weights, and what goes along with them.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pteryx/base/status.h"
#include "pteryx/convert/checkpoint.h"
#include "pteryx/convert/gguf.h"
#include "pteryx/llm/tokenizer/tokenizer.h"

namespace pteryx::convert {

enum class RopeLayout : uint8_t {
  kPairs,   // elements 2i and 2i + 1 of a head turn together
  kHalves,  // elements i and i + head_size / 2
};

struct RopeScaling {
  enum class Kind : uint8_t { kNone, kLinear, kLlama3 };
  Kind kind = Kind::kNone;
  double factor = 1;
  double low_freq = 1, high_freq = 4;  // kLlama3 only, as is:
  double original_context = 8192;
};

struct ModelShape {
  std::string architecture;  // "llama", "qwen2", "qwen3"
  int64_t hidden = 0;
  int64_t layers = 0;
  int64_t heads = 0;
  int64_t kv_heads = 0;
  int64_t head_size = 0;
  int64_t ffn = 0;
  int64_t vocabulary = 0;
  int64_t context = 0;  // longest it was trained for
  double norm_eps = 1e-5;
  double rope_theta = 10000;
  RopeScaling rope_scaling = {};
  std::vector<float> rope_factors = {};  // each divides a frequency; empty or head_size / 2
  RopeLayout rope = RopeLayout::kPairs;
  bool qk_norm = false;
  bool tied = false;  // the output matrix is the embedding

  int64_t q_rows() const { return heads * head_size; }
  int64_t kv_rows() const { return kv_heads * head_size; }
};

inline constexpr int64_t kUnknownContext = 2048;  // where the source does not say

// Sizes that are positive, fit together and stay inside what a program can hold. Errors:
// kInvalidProgram.
Status check(const ModelShape& shape);

enum class Part : uint8_t {
  kEmbedding,
  kNorm,
  kOutput,
  // of a layer:
  kAttentionNorm,
  kQ,
  kK,
  kV,
  kO,
  kQNorm,
  kKNorm,
  kFfnNorm,
  kGate,
  kUp,
  kDown,
};

enum class Naming : uint8_t { kHuggingFace, kGguf };
std::string tensor_name(Naming naming, Part part, int64_t layer);

// A blob that the program carries for the runner.
struct Attachment {
  std::string key;
  std::string bytes;
};

// What the program carries for the runner, as files hold it; empty: none.
struct ModelTexts {
  std::string tokenizer;
  std::string tokenizer_kind;  // "tokenizer.json", "sentencepiece", "tiktoken", "llama2c", "gguf"
  std::string tokenizer_config;
  std::string chat_template;

  std::vector<Attachment> attachments() &&;
};

struct Model {
  ModelShape shape;
  Checkpoint weights;
  Naming naming = Naming::kHuggingFace;
  std::optional<int64_t> bos;
  std::vector<int64_t> eos;
  ModelTexts texts;
  std::vector<std::string> warnings;  // what convert accepts and some command will not

  // Errors: those of Checkpoint::get.
  Result<const SourceTensor*> get(Part part, int64_t layer, const Dims& dims) const;
  // Null where the model has none.
  Result<const SourceTensor*> bias(Part part, int64_t layer, int64_t rows) const;
};

// Errors: kInvalidProgram for an id that is no token; `key` is where it stands.
Status check_token_id(std::string_view key, int64_t id, int64_t vocabulary);

// Whether a runner would take the texts; what only some commands refuse becomes a warning. `read`
// knows the kinds of tokenizers that the model may have, and no more, so that a module for one of
// them is small. The names are for messages. Errors: kInvalidProgram, kUnsupported, of the
// tokenizer and the chat template.
using ReadTokenizer = Result<llm::TokenizerPtr> (*)(Bytes tokenizer, std::string_view kind);
Status check_texts(Model& m, ReadTokenizer read, const std::string& model_name,
                   const std::string& tokenizer_name);

// A GGUF file or any part of a split one, a llama2.c checkpoint or a Hugging Face folder, told
// apart by content; `tokenizer`, if given, is a file that replaces theirs. What a runner would
// refuse is refused here: a tokenizer that cannot be read or does not fit, token ids outside the
// vocabulary, a chat template that is none. Errors: kIo, kInvalidProgram, kUnsupported,
// kInvalidArgument for other kinds of files.
Result<Model> open_model(const std::string& path, const std::string& tokenizer = {});

// Whether a source's own tokenizer is wanted.
enum class TokenizerFrom : uint8_t { kSource, kElsewhere };
Result<Model> model_from_gguf(std::vector<GgufFile> parts, TokenizerFrom tokenizer);
Result<Model> model_from_llama2c(const SourcePtr& file);
Result<Model> model_from_folder(const std::string& folder, TokenizerFrom tokenizer);
Result<ModelShape> shape_from_config(Bytes config_json);

// The files of a Hugging Face folder that are read, by path. Errors: those of safetensors_files.
Result<std::vector<std::string>> folder_files(const std::string& folder);

}  // namespace pteryx::convert
