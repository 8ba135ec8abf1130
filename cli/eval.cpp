// pteryx eval: the perplexity of a text. SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "model.h"

#include "pteryx/session/native/blocking.h"

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

// Of every position but the first: the most likely id, and -log p of the one that is there.
struct Scores {
  std::vector<TokenId> ids;
  std::vector<TokenId> top1;
  std::vector<double> nll;
};

Result<std::vector<TokenId>> ids_of(const Options& o, const llm::Model& model,
                                    std::string_view text) {
  std::vector<TokenId> ids;
  if (o.ids.empty()) {
    PTERYX_ASSIGN(ids, encode_text(model, o.model.path, text, "--ids"));
    PTERYX_TRY(model.check(ids));
  } else {
    PTERYX_ASSIGN(ids, token_ids(model, o.ids));
  }
  if (ids.size() < 2) {
    return invalid_argument(
        fmt::format("expected a text of at least two tokens, got {}", ids.size()));
  }
  return ids;
}

void score(std::span<const float> logits, TokenId next, Scores& s) {
  const auto best = std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float v : logits) sum += std::exp(static_cast<double>(v) - *best);
  s.top1.push_back(static_cast<TokenId>(best - logits.begin()));
  s.nll.push_back(*best + std::log(sum) - logits[next]);
}

// Windows as long as the context, each from position 0 on, in chunks.
Result<Scores> evaluate(llm::Model& m, std::vector<TokenId> ids, int64_t chunk,
                        Progress& progress) {
  Scores s;
  PTERYX_ASSIGN(const auto sequence, llm::Sequence::create(m));
  const auto width = static_cast<size_t>(m.info().vocabulary);
  const auto window = static_cast<size_t>(m.info().context);
  const auto step = static_cast<size_t>(std::min(chunk, m.info().chunk));
  for (size_t begin = 0; begin + 1 < ids.size(); begin += window) {
    const size_t end = std::min(begin + window, ids.size() - 1);
    for (size_t at = begin; at < end; at += step) {
      PTERYX_TRY(InterruptGuard::check());
      progress.set(at, ids.size());
      const size_t count = std::min(step, end - at);
      PTERYX_ASSIGN(const Steps::Drawn d,
                    blocking::run(sequence->steps(), std::span(ids).subspan(at, count),
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
  const InterruptGuard guard;
  ModelArguments arguments = o.model;
  arguments.all_logits = true;
  arguments.ids_only = !o.ids.empty();
  Result<std::string> text = std::string();
  if (!o.text_file.empty()) text = read_text(o.text_file);
  if (!text.ok()) return fail(text.status());
  Progress progress("opening " + o.model.path);
  const auto opened = open_model(arguments, progress);
  if (!opened.ok()) return fail(opened.status());
  auto ids = ids_of(o, *opened->model, *text);
  if (!ids.ok()) return fail(ids.status());
  progress.begin("reading the text");
  const auto scores = evaluate(*opened->model, std::move(ids).value(), o.chunk, progress);
  progress.end();
  if (!scores.ok()) return fail(scores.status());
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
    print_json(j);
  } else {
    print("perplexity {:.4f} over {} tokens; {:.1f} % of them were the most likely one\n",
          perplexity, scores->nll.size(), 100 * static_cast<double>(right) / count);
  }
  return kSuccess;
}

}  // namespace

void add_eval(CLI::App& app, Action& action) {
  auto o = std::make_shared<Options>();
  CLI::App* sub = app.add_subcommand("eval", "Print the perplexity of a text");
  add_model_arguments(*sub, o->model);
  auto* text =
      sub->add_option("--text", o->text_file, "file with the text; -: stdin")->type_name("FILE");
  auto* ids = add_numbers<int64_t>(
                  *sub, "--ids", o->ids,
                  {std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max()},
                  "the text as token ids")
                  ->excludes(text);
  add_number<int64_t>(*sub, "--chunk", o->chunk, {1, 1 << 20}, "tokens to evaluate at once");
  add_json(*sub, o->as_json, "print ids, most likely ids and negative log-likelihoods as JSON");
  sub->callback([o, text, ids, &action] {
    if (text->empty() && ids->empty()) throw CLI::RequiredError("--text or --ids");
    action = [o] { return eval(*o); };
  });
}

}  // namespace pteryx::cli
