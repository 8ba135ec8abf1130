// What the subcommands that run a language model share.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "command.h"

#include "pteryx/generate/generator.h"

namespace pteryx::cli {

struct ModelArguments {
  RunOptions run;
  std::string path;  // .pte, .gguf, a Hugging Face folder or a llama2.c checkpoint
  std::string tokenizer;
  uint32_t depth = 4;
  bool all_logits = false;
};
void add_model_arguments(CLI::App& app, ModelArguments& a);

struct OpenedModel {
  std::unique_ptr<generate::Model> model;
  std::shared_ptr<gpu::Device> device;
  double load_ms = 0;
};
// Opens the GPU, converts what is not a program (and keeps the result for the next time), and
// loads. On failure the message is on stderr and `exit` is what to return.
std::unique_ptr<OpenedModel> open_model(const ModelArguments& a, int& exit);

struct SamplingArguments {
  ops::SampleSettings settings{.temperature = 0.8F, .top_p = 0.95F, .top_k = 40};
  std::optional<uint64_t> seed;
  generate::GenerateOptions generate;
  generate::GenerateOptions options();  // with a seed of the clock's, unless one was given
};
void add_sampling_arguments(CLI::App& app, SamplingArguments& a);

}  // namespace pteryx::cli
