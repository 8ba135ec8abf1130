// Opening language models. SPDX-License-Identifier: BSD-3-Clause
#include "model.h"

#include <array>
#include <chrono>
#include <limits>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "pteryx/base/excerpt.h"

namespace pteryx::cli {
namespace {

// What a number among the sampling options is and may be; --NAME on the command line, /set NAME in
// a chat.
struct Setting {
  std::string_view name;
  float Sampling::* member;
  Bounds<float> bounds;
  const char* help;
};
constexpr std::array<Setting, 6> kSettings = {{
    {"temperature",
     &Sampling::temperature,
     {0, 100},
     "randomness; 0 always takes the most likely token"},
    {"top-p",
     &Sampling::top_p,
     {0, 1},
     "sample from the smallest set of tokens with this total probability; 1: all"},
    {"min-p",
     &Sampling::min_p,
     {0, 1},
     "drop tokens less likely than this fraction of the most likely one; 0: none"},
    {"repetition-penalty",
     &Sampling::repetition,
     {0.01F, 100},
     "above 1 makes tokens that already occurred less likely"},
    {"presence-penalty",
     &Sampling::presence,
     {-100, 100},
     "subtracted from the logit of every token that already occurred"},
    {"frequency-penalty",
     &Sampling::frequency,
     {-100, 100},
     "subtracted for every earlier occurrence of a token"},
}};
constexpr Bounds<uint32_t> kTopK = {0, 1U << 30U};
constexpr int64_t kMostTokens = std::numeric_limits<int32_t>::max();

Result<std::unique_ptr<llm::Model>> load(const std::string& program, const ModelArguments& a,
                                         const std::shared_ptr<gpu::Device>& device,
                                         Progress& progress) {
  llm::ModelOptions options;
  options.load = load_options(a.run, device, &progress);
  options.load.precision = a.run.precision.value_or(Precision::kF16);
  options.load.kv_cache = a.kv;
  options.load.all_logits = a.all_logits;
  if (!a.tokenizer.empty()) {
    PTERYX_ASSIGN(options.tokenizer, open_source(a.tokenizer));
  }
  options.depth = a.depth;
  options.ids_only = a.ids_only;
  return llm::Model::load(program, options);
}

}  // namespace

void add_model_arguments(CLI::App& app, ModelArguments& a) {
  app.add_option(
         "model", a.path,
         "a .pte program, or a GGUF file, Hugging Face folder or llama2.c checkpoint, which "
         "is converted first")
      ->required()
      ->type_name("MODEL");
  app.add_option("--tokenizer", a.tokenizer, "tokenizer to use instead of the model's own")
      ->type_name("FILE");
  add_number<uint32_t>(app, "--ahead", a.depth, {1, 64},
                       "how many tokens the GPU may compute ahead of the output");
  add_run_options(app, a.run);
  app.get_option("--precision")->default_str("f16");
  add_choice(app, "--kv", a.kv, {{"f32", DType::kF32}, {"f16", DType::kF16}},
             "element type of the KV cache")
      ->default_str("f16 with --precision f16, else as in the file")
      ->group(app.get_option("--precision")->get_group());
}

Result<OpenedModel> open_model(const ModelArguments& a, Progress& progress) {
  const auto start = std::chrono::steady_clock::now();
  PTERYX_ASSIGN(convert::ProgramFile program, open_program(a.path, a.run.threads, progress));
  OpenedModel opened;
  PTERYX_ASSIGN(opened.device, open_device(a.run, &progress));
  auto model = load(program.path(), a, opened.device, progress);
  const bool unusable = !model.ok() && (model.status().code() == Code::kInvalidProgram ||
                                        model.status().code() == Code::kIo);
  if (unusable && program.was_kept() && a.tokenizer.empty()) {
    PTERYX_TRY(repeat_conversion(program, progress));
    model = load(program.path(), a, opened.device, progress);
  }
  if (!model.ok()) return std::move(model).status();
  opened.model = std::move(model).value();
  for (const MethodInfo& m : opened.model->session().methods()) {
    if (!m.note.empty()) note("pteryx: {}\n", m.note);
  }
  opened.load_ms =
      std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  return opened;
}

void add_sampling_arguments(CLI::App& app, SamplingArguments& a) {
  const std::string before = app.option_defaults()->get_group();
  app.option_defaults()->group("Sampling");
  add_number<int64_t>(app, "-n,--max-new-tokens", a.generate.max_new_tokens, {-1, kMostTokens},
                      "maximum number of new tokens; -1: until the context is full");
  for (const Setting& s : kSettings) {
    add_number<float>(app, fmt::format("--{}", s.name), a.settings.*s.member, s.bounds, s.help);
    if (s.name == "temperature") {
      add_number<uint32_t>(app, "--top-k", a.settings.top_k, kTopK,
                           "sample from the k most likely tokens; 0: all");
    }
  }
  add_number<uint64_t>(app, "--seed", a.seed, {0, std::numeric_limits<uint64_t>::max()},
                       "seed of the random choices: the same seed gives the same text");
  add_texts(app, "--stop", a.generate.stop, "stop before this text; may be repeated")
      ->type_name("TEXT");
  app.add_flag("--ignore-end", a.generate.ignore_end,
               "continue past the model's end-of-text token");
  app.add_flag("--shift", a.generate.shift,
               "when the context is full, drop its older half and continue");
  app.option_defaults()->group(before);
}

Status set_sampling(Sampling& settings, std::string_view name, std::string_view value) {
  const auto set = [&]<typename T>(T& target, Bounds<T> bounds) -> Status {
    std::string problem = number_problem(value, bounds);
    if (!problem.empty()) return invalid_argument(fmt::format("{}: {}", name, problem));
    target = *parse_number<T>(value);
    return {};
  };
  if (name == "top-k") return set(settings.top_k, kTopK);
  std::vector<std::string> names = {"top-k"};
  for (const Setting& s : kSettings) {
    if (s.name == name) return set(settings.*s.member, s.bounds);
    names.emplace_back(s.name);
  }
  return invalid_argument(
      fmt::format("there is no setting '{}': expected {}", excerpt(name), alternatives(names)));
}

llm::GenerateOptions SamplingArguments::options() {
  if (!seed)
    seed = static_cast<uint64_t>(std::chrono::system_clock::now().time_since_epoch().count());
  llm::GenerateOptions o = generate;
  o.sampling = settings;
  o.sampling.seed = *seed;
  return o;
}

nlohmann::json generation_json(const OpenedModel& m, const llm::Generator& g, uint64_t seed) {
  const llm::Timings& t = g.timings();
  nlohmann::json j = {{"prompt_tokens", t.prompt_tokens},
                      {"new_tokens", t.new_tokens},
                      {"stopped_by", name(g.reason())},
                      {"seed", seed},
                      {"load_ms", m.load_ms},
                      {"prompt_ms", t.prompt_ms},
                      {"decode_ms", t.decode_ms},
                      {device_key(m.device->caps()), m.device->caps().adapter}};
  add_use(j, m.model->session());
  return j;
}

Result<std::vector<TokenId>> encode_text(const llm::Model& model, const std::string& path,
                                         std::string_view text, std::string_view ids_option) {
  if (model.tokenizer() == nullptr) {
    return invalid_argument(fmt::format(
        "{} has no tokenizer: give one with --tokenizer, or token ids with {}", path, ids_option));
  }
  return model.encode(text);
}

Result<std::vector<TokenId>> token_ids(const llm::Model& model, std::span<const int64_t> ids) {
  const int64_t size = model.info().vocabulary;
  std::vector<TokenId> tokens;
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] < 0 || ids[i] >= size) {
      return invalid_argument(
          fmt::format("token {} is {}: expected an id from 0 to {}", i, ids[i], size - 1));
    }
    tokens.push_back(static_cast<TokenId>(ids[i]));
  }
  return tokens;
}

}  // namespace pteryx::cli
