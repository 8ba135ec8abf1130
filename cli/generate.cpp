// pteryx generate: text from a language model. SPDX-License-Identifier: BSD-3-Clause
#include <cstdio>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "model.h"

#include "pteryx/base/file.h"

namespace pteryx::cli {
namespace {

using nlohmann::json;

struct Options {
  ModelArguments model;
  SamplingArguments sampling;
  std::string prompt;
  std::string prompt_file;
  std::vector<int64_t> prompt_ids;
  bool echo = false;
  bool as_json = false;
  bool ids_only = false;
};

Result<std::vector<int64_t>> prompt_of(const Options& o, const generate::Model& model) {
  if (!o.prompt_ids.empty()) return o.prompt_ids;
  std::string text = o.prompt;
  if (!o.prompt_file.empty()) {
    PTERYX_ASSIGN(const auto file, MappedFile::open(o.prompt_file));
    text.assign(reinterpret_cast<const char*>(file->bytes().data()), file->bytes().size());
  }
  if (model.tokenizer() == nullptr) {
    return invalid_argument(fmt::format(
        "{} has no tokenizer: give one with --tokenizer, or ids with --prompt-ids", o.model.path));
  }
  llm::EncodeOptions options = model.tokenizer()->vocabulary().usual;
  options.add_eos = false;
  options.parse_special = true;
  PTERYX_ASSIGN(const auto ids, model.tokenizer()->encode(text, options));
  std::vector<int64_t> out(ids.begin(), ids.end());
  if (out.empty() && model.info().bos) out.push_back(*model.info().bos);
  return out;
}

void print_timings(const OpenedModel& m, const generate::Generator& g) {
  const generate::Timings& t = g.timings();
  fmt::print(stderr, "\n{} through {}\n", m.device->caps().adapter, m.device->caps().provider);
  fmt::print(stderr, "load     {:>8.0f} ms\n", m.load_ms);
  fmt::print(stderr, "prompt   {:>8.1f} ms  {:>6} tokens  {:>9.1f} tokens/s\n", t.prompt_ms,
             t.prompt_tokens - t.cached_tokens, t.prompt_speed());
  fmt::print(stderr, "text     {:>8.1f} ms  {:>6} tokens  {:>9.1f} tokens/s  (stopped by: {})\n",
             t.decode_ms, t.new_tokens, t.decode_speed(), name(g.reason()));
}

json report(const OpenedModel& m, const generate::Generator& g, const std::string& text,
            uint64_t seed, const std::vector<double>& log_probabilities) {
  const generate::Timings& t = g.timings();
  json j = {{"text", text},
            {"ids", std::vector<int64_t>(g.ids().begin() + t.prompt_tokens, g.ids().end())},
            {"prompt_tokens", t.prompt_tokens},
            {"new_tokens", t.new_tokens},
            {"stopped_by", name(g.reason())},
            {"seed", seed},
            {"load_ms", m.load_ms},
            {"prompt_ms", t.prompt_ms},
            {"decode_ms", t.decode_ms},
            {"gpu", m.device->caps().adapter}};
  if (!log_probabilities.empty()) j["log_probabilities"] = log_probabilities;
  return j;
}

int generate_text(Options& o) {
  int exit = kSuccess;
  const auto opened = open_model(o.model, exit);
  if (opened == nullptr) return exit;
  const auto prompt = prompt_of(o, *opened->model);
  if (!prompt.ok()) return fail(prompt.status(), kUsage);
  generate::Generator g(*opened->model);
  const generate::GenerateOptions options = o.sampling.options();
  if (const Status s = g.begin(*prompt, options); !s.ok()) return fail(s, kUsage);
  std::string text;
  std::vector<double> log_probabilities;
  const bool stream = !o.as_json && opened->model->tokenizer() != nullptr;
  if (stream && o.echo) fmt::print("{}", o.prompt);
  while (!g.done()) {
    const auto piece = g.step();
    if (!piece.ok()) return fail(piece.status(), kFailed);
    const auto count = static_cast<size_t>(g.timings().new_tokens);
    if (piece->log_probability && log_probabilities.size() < count)
      log_probabilities.push_back(*piece->log_probability);
    text += piece->text;
    if (stream && !piece->text.empty()) {
      std::fwrite(piece->text.data(), 1, piece->text.size(), stdout);
      std::fflush(stdout);
    }
  }
  if (o.as_json) {
    fmt::print("{}\n", report(*opened, g, text, *o.sampling.seed, log_probabilities)
                           .dump(2, ' ', false, json::error_handler_t::replace));
    return kSuccess;
  }
  if (!stream) {
    const auto drawn = std::span(g.ids()).subspan(prompt->size());
    fmt::print("{}", fmt::join(drawn, " "));
  }
  fmt::print("\n");
  std::fflush(stdout);
  print_timings(*opened, g);
  return kSuccess;
}

}  // namespace

void add_generate(CLI::App& app, Action& action) {
  auto o = std::make_shared<Options>();
  CLI::App* sub = app.add_subcommand("generate", "Go on with a text");
  add_model_arguments(*sub, o->model);
  auto* group = sub->add_option_group("prompt");
  group->add_option("-p,--prompt", o->prompt, "text to go on with")->type_name("TEXT");
  group->add_option("-f,--prompt-file", o->prompt_file, "file with that text")->type_name("FILE");
  group->add_option("--prompt-ids", o->prompt_ids, "token ids to go on with")->type_name("ID");
  group->require_option(1);
  add_sampling_arguments(*sub, o->sampling);
  sub->add_flag("--log-probabilities", o->sampling.generate.log_probabilities,
                "with --json: how likely each token was; slower");
  sub->add_flag("--echo", o->echo, "print the prompt as well");
  sub->add_flag("--json", o->as_json, "print one JSON object at the end");
  sub->callback([o, &action] { action = [o] { return generate_text(*o); }; });
}

}  // namespace pteryx::cli
