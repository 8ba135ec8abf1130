// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/llm/tokenizer/presets.h"

#include <algorithm>

#include <fmt/format.h>

#include "pteryx/base/excerpt.h"

namespace pteryx::llm {
namespace {

constexpr std::string_view kGpt2 =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
constexpr std::string_view kLlama3 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kQwen2 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

struct Preset {
  std::string_view name;
  std::vector<std::string_view> patterns;  // each cuts what the one before left
};

const std::vector<Preset>& presets() {
  static const std::vector<Preset> kPresets = {
      {"default", {R"([\p{P}\$\+<=>\^~\|]+)", kGpt2, R"(\p{N}+)", "[0-9][0-9][0-9]"}},
      {"gpt-2", {kGpt2}},
      {"phi-2", {kGpt2}},
      {"olmo", {kGpt2}},
      {"smollm", {R"(\p{N})", kGpt2}},
      {"starcoder", {R"(\p{N})", kGpt2}},
      {"refact", {R"(\p{N})", kGpt2}},
      {"command-r", {R"(\p{N})", kGpt2}},
      {"llama-bpe", {kLlama3}},
      {"llama3", {kLlama3}},
      {"llama-v3", {kLlama3}},
      {"qwen2", {kQwen2}},
      {"deepseek-r1-qwen", {kQwen2}},
      {"stablelm2", {kQwen2}},
  };
  return kPresets;
}

}  // namespace

Result<std::vector<PreTokenizer>> preset_pre_tokenizers(std::string_view name) {
  const auto preset = std::find_if(presets().begin(), presets().end(),
                                   [&](const Preset& p) { return p.name == name; });
  if (preset == presets().end()) {
    return unsupported(fmt::format("pre-tokenizer '{}' is not supported", excerpt(name)));
  }
  std::vector<PreTokenizer> steps;
  for (const std::string_view pattern : preset->patterns) {
    PTERYX_ASSIGN(Regex regex, Regex::compile(pattern));
    steps.emplace_back(Split{.pattern = {std::move(regex)}});
  }
  return steps;
}

bool preset_takes_whole_words(std::string_view name) {
  return name == "llama-bpe" || name == "llama3" || name == "llama-v3";
}

}  // namespace pteryx::llm
