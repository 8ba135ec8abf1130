// What the subcommands that run a language model share.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "cache.h"
#include "command.h"
#include "interrupt.h"
#include "text.h"

#include "pteryx/llm.h"
#include "pteryx/llm/tokenizer/tokenizer.h"

namespace pteryx::cli {

struct ModelArguments {
  RunOptions run;
  std::string path;  // .pte, .gguf, a Hugging Face folder or a llama2.c checkpoint
  std::string tokenizer;
  uint32_t depth = 4;
  std::optional<DType> kv;  // element type of the KV cache; none: as in the file
  bool all_logits = false;
  bool ids_only = false;  // works on token ids: a tokenizer that cannot be read is no hindrance
};
void add_model_arguments(CLI::App& app, ModelArguments& a);

struct OpenedModel {
  std::unique_ptr<llm::Model> model;
  std::shared_ptr<gpu::Device> device;
  double load_ms = 0;
};
// Opens the GPU, converts what is not a program (and keeps the result for the next time), and
// loads.
Result<OpenedModel> open_model(const ModelArguments& a, Progress& progress);

struct SamplingArguments {
  Sampling settings{.temperature = 0.8F, .top_p = 0.95F, .top_k = 40};
  std::optional<uint64_t> seed;
  llm::GenerateOptions generate;
  llm::GenerateOptions options();  // with a seed of the clock's, unless one was given
};
void add_sampling_arguments(CLI::App& app, SamplingArguments& a);
// Sets one of the sampling options by its name without dashes ("temperature"), as a chat does.
// Errors: kInvalidArgument with what was expected.
Status set_sampling(Sampling& settings, std::string_view name, std::string_view value);

// What came of a generation, for scripts: counts, times, seed and GPU.
nlohmann::json generation_json(const OpenedModel& m, const llm::Generator& g, uint64_t seed);

// The ids of a text that is to be continued. Errors: kInvalidArgument where the model has no
// tokenizer, naming the option that takes ids instead.
Result<std::vector<TokenId>> encode_text(const llm::Model& model, const std::string& path,
                                         std::string_view text, std::string_view ids_option);
// What somebody typed, as tokens. Errors: kInvalidArgument for an id outside the vocabulary, with
// its place.
Result<std::vector<TokenId>> token_ids(const llm::Model& model, std::span<const int64_t> ids);

}  // namespace pteryx::cli
