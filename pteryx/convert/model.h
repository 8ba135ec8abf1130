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
#include "pteryx/convert/source.h"
#include "pteryx/program/vocabulary.h"

namespace pteryx::convert {

using program::kChatTemplateKey;
using program::kTokenizerConfigKey;
using program::kTokenizerKey;
using program::kTokenizerKindKey;

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

struct Model {
  ModelShape shape;
  Checkpoint weights;
  Naming naming = Naming::kHuggingFace;
  std::optional<int64_t> bos;
  std::vector<int64_t> eos;
  std::vector<Attachment> attachments;

  // Errors: those of Checkpoint::get.
  Result<const SourceTensor*> get(Part part, int64_t layer, const Dims& dims) const;
  // Null where the model has none.
  Result<const SourceTensor*> bias(Part part, int64_t layer, int64_t rows) const;
};

// A .gguf file, a llama2.c checkpoint or a Hugging Face folder; `tokenizer`, if given, is a file
// that replaces what they say about theirs. Errors: kIo, kInvalidProgram, kUnsupported.
Result<Model> open_model(const std::string& path, const std::string& tokenizer = {});

Result<Model> model_from_gguf(Bytes file);
Result<Model> model_from_llama2c(Bytes file);
Result<Model> model_from_folder(const std::string& folder);
Result<ModelShape> shape_from_config(Bytes config_json);

}  // namespace pteryx::convert
