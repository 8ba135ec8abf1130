// pteryx chat: a conversation with a language model. SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include "conversation.h"
#include "line_reader.h"
#include "model.h"

namespace pteryx::cli {
namespace {

struct Options {
  ModelArguments model;
  SamplingArguments sampling;
  std::string system;
  bool timings = false;
};

constexpr std::string_view kHelp =
    "/reset      begin a new conversation\n"
    "/save FILE  write the conversation to a file, as JSON\n"
    "/load FILE  go on with the conversation of a file\n"
    "/help       this list\n"
    "/quit       end; Ctrl-D does, too\n"
    "Ctrl-C stops an answer. Everything else is said to the model.\n";

void print_timings(const generate::Generator& g) {
  const generate::Timings& t = g.timings();
  note(
      "prompt {} tokens, {} of them cached, {:.1f} ms; answer {} tokens, {:.1f} ms, "
      "{:.1f} tokens/s (stopped by: {})\n",
      t.prompt_tokens, t.cached_tokens, t.prompt_ms, t.new_tokens, t.decode_ms, t.decode_speed(),
      name(g.reason()));
}

class Chat {
 public:
  Chat(const Options& o, generate::Model& model, ChatFormat format,
       generate::GenerateOptions generate)
      : options_(o), format_(std::move(format)), generate_(std::move(generate)), generator_(model) {
    if (!format_.has_template()) generate_.stop.emplace_back("\nUser:");
    reset();
  }

  int run() {
    LineReader lines;
    while (const auto line = lines.next()) {
      if (line->empty()) continue;
      if (line->front() == '/') {
        if (*line == "/quit") break;
        if (const Status s = command(*line); !s.ok()) fail(s, kFailed);
      } else if (const Status s = turn(*line); !s.ok()) {
        fail(s, kFailed);
        if (s.code() != Code::kInvalidArgument) return kFailed;
      }
      flush();
    }
    return kSuccess;
  }

 private:
  void reset() {
    messages_.clear();
    if (!options_.system.empty()) messages_.push_back({"system", options_.system});
  }

  Status command(const std::string& line) {
    const size_t space = std::min(line.find(' '), line.size());
    const size_t start = std::min(line.find_first_not_of(' ', space), line.size());
    const std::string word = line.substr(0, space);
    const std::string file = line.substr(start);
    const bool takes_file = word == "/save" || word == "/load";
    if (takes_file && file.empty()) return invalid_argument(word + ": expected a file, got none");
    if (!takes_file && !file.empty())
      return invalid_argument(fmt::format("{}: expected nothing behind it, got '{}'", word, file));
    if (word == "/save") return save_messages(file, messages_);
    if (word == "/load") {
      PTERYX_ASSIGN(messages_, load_messages(file));
    } else if (word == "/reset") {
      reset();
    } else if (word == "/help") {
      print("{}", kHelp);
    } else {
      return invalid_argument(fmt::format("no command '{}'; /help lists them", word));
    }
    return {};
  }

  // Either the conversation has the turn and its answer, or neither.
  Status turn(const std::string& text) {
    messages_.push_back({"user", text});
    auto said = answer();
    if (!said.ok() || (InterruptGuard::interrupted() && said->empty())) {
      messages_.pop_back();
      if (said.ok()) return {};
      return std::move(said).status().during("answering; what was said last is taken back");
    }
    messages_.push_back({"assistant", std::move(said).value()});
    return {};
  }

  Result<std::string> answer() {
    const InterruptGuard guard;
    PTERYX_ASSIGN(const auto ids, format_.encode(messages_));
    PTERYX_TRY(generator_.begin(ids, generate_));
    ++generate_.sampling.seed;  // so that a question asked again may have another answer
    std::string text;
    while (!generator_.done()) {
      if (InterruptGuard::interrupted()) {
        generator_.cancel();
        break;
      }
      PTERYX_ASSIGN(const generate::Piece piece, generator_.step());
      text += piece.text;
      write(piece.text);
      flush();
    }
    print("\n");
    flush();
    if (generator_.reason() == generate::StopReason::kContext)
      note("pteryx: the context is full; /reset begins a new conversation\n");
    if (options_.timings) print_timings(generator_);
    return text;
  }

  const Options& options_;
  ChatFormat format_;
  generate::GenerateOptions generate_;
  generate::Generator generator_;
  Messages messages_;
};

int chat(Options& o) {
  Progress progress("opening " + o.model.path);
  const auto opened = open_model(o.model, progress);
  progress.end();
  if (!opened.ok()) return fail(opened.status());
  auto format = ChatFormat::of(*opened->model, o.model.path);
  if (!format.ok()) return fail(format.status());
  if (!format->has_template()) {
    note("pteryx: {} has no chat template: using 'User:' and 'Assistant:'\n", o.model.path);
  }
  return Chat(o, *opened->model, std::move(format).value(), o.sampling.options()).run();
}

}  // namespace

void add_chat(CLI::App& app, Action& action) {
  auto o = std::make_shared<Options>();
  CLI::App* sub = app.add_subcommand("chat", "Talk with a language model");
  add_model_arguments(*sub, o->model);
  add_sampling_arguments(*sub, o->sampling);
  sub->add_option("--system", o->system, "what the model is told before the conversation")
      ->type_name("TEXT");
  sub->add_flag("--timings", o->timings, "print how long each answer took");
  sub->footer("At the prompt, /help lists the commands.");
  sub->callback([o, &action] { action = [o] { return chat(*o); }; });
}

}  // namespace pteryx::cli
