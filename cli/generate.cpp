// pteryx generate: text from a language model. SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <limits>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "conversation.h"
#include "model.h"
#include "terminal_text.h"

namespace pteryx::cli {
namespace {

using nlohmann::json;

struct Options {
  ModelArguments model;
  SamplingArguments sampling;
  std::optional<std::string> prompt;
  std::string prompt_file;
  std::vector<int64_t> prompt_ids;
  std::string system;
  bool chat = false;
  bool echo = false;
  bool as_json = false;
};

struct Prompt {
  std::vector<TokenId> ids;
  std::string text;  // what --echo prints
};

// Where the prompt comes from, before anything slow: an option, or stdin if nobody types there. The
// end of a file's last line is not part of it.
Result<std::string> prompt_text(const Options& o) {
  if (o.prompt) return *o.prompt;
  if (o.prompt_file.empty() && stdin_is_terminal()) {
    return invalid_argument(
        "there is no prompt: expected --prompt, --prompt-file, --prompt-ids or a text on stdin");
  }
  PTERYX_ASSIGN(std::string text, read_text(o.prompt_file.empty() ? "-" : o.prompt_file));
  if (text.ends_with('\n')) text.pop_back();
  if (text.ends_with('\r')) text.pop_back();
  return text;
}

Result<Prompt> encode(const Options& o, const llm::Model& model, std::string text) {
  Prompt p;
  if (!o.prompt_ids.empty()) {
    PTERYX_ASSIGN(p.ids, token_ids(model, o.prompt_ids));
    p.text = fmt::format("{}", fmt::join(p.ids, " "));
    const llm::Tokenizer* const tokenizer = model.tokenizer();
    // The vocabulary of the model may be wider than the tokenizer's.
    if (tokenizer != nullptr && *std::max_element(p.ids.begin(), p.ids.end()) < tokenizer->size()) {
      PTERYX_ASSIGN(p.text, tokenizer->decode(p.ids, llm::Specials::kSkip));
    }
    return p;
  }
  p.text = std::move(text);
  if (o.chat) {
    PTERYX_ASSIGN(const llm::Chat chat, open_chat(model, o.model.path));
    Messages messages;
    if (!o.system.empty()) messages.push_back({.role = "system", .content = o.system});
    messages.push_back({.role = "user", .content = p.text});
    PTERYX_ASSIGN(p.ids, chat.prompt(messages));
    return p;
  }
  PTERYX_ASSIGN(p.ids, encode_text(model, o.model.path, p.text, "--prompt-ids"));
  if (p.ids.empty() && model.info().bos) p.ids.push_back(*model.info().bos);
  return p;
}

void print_timings(const OpenedModel& m, const llm::Generator& g) {
  const llm::Timings& t = g.timings();
  note("\n{}\n", device_text(m.device->caps()));
  note("load     {:>8.0f} ms\n", m.load_ms);
  note("prompt   {:>8.1f} ms  {:>6} tokens  {:>9.1f} tokens/s\n", t.prompt_ms,
       t.prompt_tokens - t.cached_tokens, t.prompt_speed());
  note("text     {:>8.1f} ms  {:>6} tokens  {:>9.1f} tokens/s  (stopped by: {})\n", t.decode_ms,
       t.new_tokens, t.decode_speed(), name(g.reason()));
}

json report(const OpenedModel& m, const llm::Generator& g, const std::string& text, uint64_t seed,
            const std::vector<double>& log_probabilities) {
  json j = generation_json(m, g, seed);
  j["text"] = text;
  j["ids"] = std::vector<TokenId>(g.ids().begin() + g.timings().prompt_tokens, g.ids().end());
  if (!log_probabilities.empty()) j["log_probabilities"] = log_probabilities;
  return j;
}

// Until the text ends, somebody interrupts, or nobody reads it any more.
struct Text {
  std::string text;
  std::vector<double> log_probabilities;
};
Result<Text> generate_all(llm::Generator& g, bool stream, Progress& progress) {
  Text all;
  while (!g.done()) {
    if (InterruptGuard::interrupted()) {
      g.cancel();
      break;
    }
    progress.set(static_cast<uint64_t>(g.prompt_read()),
                 static_cast<uint64_t>(g.timings().prompt_tokens));
    PTERYX_ASSIGN(const llm::Piece piece, g.step());
    if (!piece.token) continue;
    progress.end();
    const auto count = static_cast<size_t>(g.timings().new_tokens);
    if (piece.log_probability && all.log_probabilities.size() < count)
      all.log_probabilities.push_back(*piece.log_probability);
    all.text += piece.text;
    if (!stream || piece.text.empty()) continue;
    write_text(piece.text);
    if (!flush()) g.cancel();
  }
  progress.end();
  return all;
}

int generate_text(Options& o) {
  const InterruptGuard guard;
  std::string text;
  if (o.prompt_ids.empty()) {
    auto read = prompt_text(o);
    if (!read.ok()) return fail(read.status());
    text = std::move(read).value();
  }
  Progress progress("opening " + o.model.path);
  const auto opened = open_model(o.model, progress);
  if (!opened.ok()) return fail(opened.status());
  const auto prompt = encode(o, *opened->model, std::move(text));
  if (!prompt.ok()) return fail(prompt.status());
  llm::GenerateOptions options = o.sampling.options();
  options.responsive = stderr_is_terminal();
  const auto sequence = llm::Sequence::create(*opened->model);
  if (!sequence.ok()) return fail(sequence.status());
  llm::Generator g(**sequence);
  if (const Status s = g.begin(prompt->ids, options); !s.ok()) return fail(s);
  progress.begin("reading the prompt");
  const bool stream = !o.as_json && opened->model->tokenizer() != nullptr;
  if (o.echo && !o.as_json) print("{}{}", prompt->text, stream ? "" : " ");
  const auto all = generate_all(g, stream, progress);
  if (!all.ok()) return fail(all.status());
  const bool interrupted = InterruptGuard::interrupted();
  if (o.as_json) {
    json j = report(*opened, g, all->text, *o.sampling.seed, all->log_probabilities);
    if (o.echo) j["prompt"] = prompt->text;
    print_json(j);
  } else {
    if (!stream)
      write(fmt::format("{}", fmt::join(std::span(g.ids()).subspan(prompt->ids.size()), " ")));
    print("\n");
    if (flush()) print_timings(*opened, g);
  }
  return interrupted ? kInterrupted : kSuccess;
}

}  // namespace

void add_generate(CLI::App& app, Action& action) {
  auto o = std::make_shared<Options>();
  CLI::App* sub = app.add_subcommand("generate", "Continue a prompt");
  add_model_arguments(*sub, o->model);
  auto* prompt = sub->add_option("-p,--prompt", o->prompt, "text to continue")->type_name("TEXT");
  auto* file = sub->add_option("-f,--prompt-file", o->prompt_file,
                               "file with the text to continue; -: stdin, as without a prompt")
                   ->type_name("FILE")
                   ->excludes(prompt);
  auto* ids = add_numbers<int64_t>(
                  *sub, "--prompt-ids", o->prompt_ids,
                  {std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max()},
                  "token ids to continue")
                  ->excludes(prompt)
                  ->excludes(file);
  auto* chat = sub->add_flag("--chat", o->chat,
                             "answer the prompt as a chat message, with the model's chat template")
                   ->excludes(ids);
  sub->add_option("--system", o->system, "system message; with --chat")
      ->type_name("TEXT")
      ->needs(chat);
  add_sampling_arguments(*sub, o->sampling);
  sub->add_flag("--log-probabilities", o->sampling.generate.log_probabilities,
                "with --json: the log-probability of every token; slower");
  sub->add_flag("--echo", o->echo, "print the prompt as well");
  add_json(*sub, o->as_json, "print one JSON object at the end");
  sub->callback([o, &action] { action = [o] { return generate_text(*o); }; });
}

}  // namespace pteryx::cli
