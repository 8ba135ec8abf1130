// pteryx eval: how well a language model knows a text. SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "model.h"

#include "pteryx/base/file.h"

namespace pteryx::cli {
namespace {

using nlohmann::json;

struct Options {
  ModelArguments model;
  std::string text_file;
  std::vector<int64_t> ids;
  int64_t chunk = 64;
  bool as_json = false;
};

// Of every position but the first: what the model held likeliest, and -log p of what stands there.
struct Scores {
  std::vector<int64_t> ids;
  std::vector<int64_t> top1;
  std::vector<double> nll;
};

Result<std::vector<int64_t>> ids_of(const Options& o, const generate::Model& model) {
  if (!o.ids.empty()) return o.ids;
  if (model.tokenizer() == nullptr) {
    return invalid_argument(fmt::format(
        "{} has no tokenizer: give one with --tokenizer, or ids with --ids", o.model.path));
  }
  PTERYX_ASSIGN(const auto file, MappedFile::open(o.text_file));
  const std::string_view text(reinterpret_cast<const char*>(file->bytes().data()),
                              file->bytes().size());
  llm::EncodeOptions options = model.tokenizer()->vocabulary().usual;
  options.add_eos = false;
  PTERYX_ASSIGN(const auto ids, model.tokenizer()->encode(text, options));
  return std::vector<int64_t>(ids.begin(), ids.end());
}

void score(std::span<const float> logits, int64_t next, Scores& s) {
  const auto best = std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float v : logits) sum += std::exp(static_cast<double>(v) - *best);
  s.top1.push_back(best - logits.begin());
  s.nll.push_back(*best + std::log(sum) - logits[static_cast<size_t>(next)]);
}

// Windows as long as the context, each from position 0 on, in chunks.
Result<Scores> evaluate(generate::Model& m, std::vector<int64_t> ids, int64_t chunk) {
  Scores s;
  const auto width = static_cast<size_t>(m.info().vocabulary);
  const auto window = static_cast<size_t>(m.info().context);
  const auto step = static_cast<size_t>(std::min(chunk, m.info().chunk));
  for (size_t begin = 0; begin + 1 < ids.size(); begin += window) {
    const size_t end = std::min(begin + window, ids.size() - 1);
    for (size_t at = begin; at < end; at += step) {
      const size_t count = std::min(step, end - at);
      PTERYX_ASSIGN(const Steps::Drawn d, m.steps().run(std::span(ids).subspan(at, count),
                                                        static_cast<int64_t>(at - begin)));
      if (d.all.size() != count * width)
        return unsupported("the model gives the logits of the last position only");
      for (size_t i = 0; i < count; ++i) score(d.all.subspan(i * width, width), ids[at + i + 1], s);
    }
  }
  s.ids = std::move(ids);
  return s;
}

int eval(const Options& o) {
  int exit = kSuccess;
  ModelArguments arguments = o.model;
  arguments.all_logits = true;
  const auto opened = open_model(arguments, exit);
  if (opened == nullptr) return exit;
  auto ids = ids_of(o, *opened->model);
  if (!ids.ok()) return fail(ids.status(), kUsage);
  if (ids->size() < 2) return fail(invalid_argument("the text has less than two tokens"), kUsage);
  const auto scores = evaluate(*opened->model, std::move(ids).value(), o.chunk);
  if (!scores.ok()) {
    const bool usage = scores.status().code() == Code::kInvalidArgument;
    return fail(scores.status(), usage ? kUsage : kFailed);
  }
  double sum = 0;
  size_t right = 0;
  for (size_t i = 0; i < scores->nll.size(); ++i) {
    sum += scores->nll[i];
    right += scores->top1[i] == scores->ids[i + 1] ? 1 : 0;
  }
  const auto count = static_cast<double>(scores->nll.size());
  const double perplexity = std::exp(sum / count);
  if (o.as_json) {
    const json j = {{"perplexity", perplexity},
                    {"ids", scores->ids},
                    {"top1", scores->top1},
                    {"nll", scores->nll},
                    {"tokens", scores->nll.size()}};
    fmt::print("{}\n", j.dump());
  } else {
    fmt::print("perplexity {:.4f} over {} tokens, {:.1f} % of them the likeliest\n", perplexity,
               scores->nll.size(), 100 * static_cast<double>(right) / count);
  }
  return kSuccess;
}

}  // namespace

void add_eval(CLI::App& app, Action& action) {
  auto o = std::make_shared<Options>();
  CLI::App* sub = app.add_subcommand("eval", "Measure how well a model knows a text");
  add_model_arguments(*sub, o->model);
  auto* group = sub->add_option_group("text");
  group->add_option("--text", o->text_file, "file with the text")->type_name("FILE");
  group->add_option("--ids", o->ids, "the text as token ids")->type_name("ID");
  group->require_option(1);
  sub->add_option("--chunk", o->chunk, "tokens of one call")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  sub->add_flag("--json", o->as_json, "print ids, likeliest ids and -log p of every position");
  sub->callback([o, &action] { action = [o] { return eval(*o); }; });
}

}  // namespace pteryx::cli
