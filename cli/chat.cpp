// pteryx chat: a conversation with a language model. SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "chat_commands.h"
#include "chat_input.h"
#include "chat_session.h"
#include "terminal_text.h"

#include "pteryx/base/excerpt.h"
#include "pteryx/base/utf8.h"

namespace pteryx::cli {
namespace {

using nlohmann::json;

struct Options {
  ModelArguments model;
  SamplingArguments sampling;
  std::string system;
  std::optional<std::string> prompt;
  std::string prompt_file;
  bool timings = false;
  bool as_json = false;
};

constexpr std::string_view kShiftAdvice =
    "--shift forgets the oldest messages instead; `pteryx convert --max-context` makes a larger "
    "context";

bool is_blank(std::string_view text) {
  return text.find_first_not_of(" \t\r\n") == std::string_view::npos;
}

std::string count_of(size_t messages) {
  return fmt::format("{} message{}", messages, messages == 1 ? "" : "s");
}

// Everything that the model is read from.
std::vector<std::string> model_files(const ModelArguments& a) {
  std::vector<std::string> files = a.run.data_files;
  files.push_back(a.path);
  if (!a.tokenizer.empty()) files.push_back(a.tokenizer);
  std::error_code error;
  std::filesystem::directory_iterator it(a.path, error);
  for (; !error && it != std::filesystem::directory_iterator(); it.increment(error))
    files.push_back(it->path().string());
  return files;
}

std::string expand_home(const std::string& path) {
  const char* const home = std::getenv("HOME");
  return home != nullptr && path.starts_with("~/") ? home + path.substr(1) : path;
}

// Messages and commands until somebody quits.
class Chat {
 public:
  Chat(const Options& o, const OpenedModel& opened, ChatSession& session)
      : options_(o), opened_(opened), session_(session), input_(complete_chat_line) {}

  int run() {
    const bool typed = input_.at_terminal();
    std::optional<InterruptGuard> guard;
    if (typed) {
      guard.emplace();  // for good: Ctrl-C is no end between a prompt and an answer, either
      greet();
    }
    while (!quit_ && flush()) {
      if (typed) const InterruptGuard forget_the_last;
      auto entry = input_.next();
      if (!entry.ok()) return fail(entry.status());
      if (!typed) guard.emplace();
      const Status s = handle(*entry);
      const int signal = InterruptGuard::signal();
      if (!typed) guard.reset();
      if (!flush()) break;
      if (!s.ok()) failed(s);
      if (signal == SIGTERM || signal == SIGHUP) static_cast<void>(std::raise(signal));
    }
    return typed ? static_cast<int>(kSuccess) : exit_;
  }

 private:
  void greet() {
    note("{} on {}, context {} tokens; /help lists commands\n",
         printable(std::filesystem::path(options_.model.path).filename().string()),
         opened_.device->caps().adapter, session_.context());
  }

  void failed(const Status& s) {
    const int exit = fail(s);
    if (exit_ == kSuccess) exit_ = exit;
    const bool lost = s.code() == Code::kDevice || s.code() == Code::kMemory;
    if (lost && !input_.at_terminal()) quit_ = true;  // else there may be something to save
  }

  Status handle(const ChatEntry& entry) {
    const bool interrupted = entry.kind == ChatEntry::Kind::kInterrupt;
    if (!interrupted) interrupted_ = false;
    switch (entry.kind) {
      case ChatEntry::Kind::kEnd: quit_ = true; return {};
      case ChatEntry::Kind::kInterrupt: interrupt(entry.text); return {};
      case ChatEntry::Kind::kCommand: return command(entry.text);
      case ChatEntry::Kind::kMessage: break;
    }
    if (is_blank(entry.text)) return {};
    return answered(session_.say(entry.text), "the message was taken back");
  }

  // At the prompt: gives up what was typed, and quits the second time.
  void interrupt(std::string_view typed) {
    if (interrupted_ && typed.empty()) {
      quit_ = true;
      return;
    }
    if (!hinted_ || typed.empty())
      note("(Ctrl-C again or Ctrl-D quits; /save FILE keeps the conversation)\n");
    interrupted_ = hinted_ = true;
  }

  static Status answered(Result<ChatSession::Outcome> outcome, std::string_view left) {
    if (!outcome.ok()) return std::move(outcome).status();
    if (*outcome == ChatSession::Outcome::kTakenBack) note("(stopped; {})\n", left);
    return {};
  }

  Status command(const std::string& line) {
    PTERYX_ASSIGN(const ChatCommand c, parse_chat_command(line));
    switch (c.verb) {
      case ChatVerb::kHelp: write(chat_help()); return {};
      case ChatVerb::kReset:
        session_.reset();
        note("(a new conversation)\n");
        return {};
      case ChatVerb::kRegenerate: return answered(session_.regenerate(), "the answer is as it was");
      case ChatVerb::kUndo: return undo();
      case ChatVerb::kSystem: return system(c.argument);
      case ChatVerb::kSet: return set(c.argument);
      case ChatVerb::kInfo: return info();
      case ChatVerb::kSave: return save(expand_home(c.argument));
      case ChatVerb::kLoad: return load(expand_home(c.argument));
      case ChatVerb::kQuit: quit_ = true; return {};
    }
    return {};
  }

  Status undo() {
    PTERYX_ASSIGN(const std::string text, session_.undo());
    note("(taken back: {})\n", excerpt(text));
    return {};
  }

  Status system(const std::string& text) {
    if (text.empty()) {
      const std::string& now = session_.system();
      write_text(now.empty() ? "(no system message)" : now);
      write("\n");
      return {};
    }
    session_.set_system(text == "-" ? "" : text);
    write_note(text == "-" ? "(no system message)\n" : "(system message set)\n");
    return {};
  }

  Status set(const std::string& argument) {
    if (argument.empty()) {
      print_settings();
      return {};
    }
    const size_t end = std::min(argument.find_first_of(" \t="), argument.size());
    const size_t start = std::min(argument.find_first_not_of(" \t=", end), argument.size());
    std::string name = argument.substr(0, end);
    std::replace(name.begin(), name.end(), '_', '-');
    const auto& names = chat_settings();
    if (std::find(names.begin(), names.end(), name) == names.end()) {
      const std::string near = nearest(name, names);
      return invalid_argument(fmt::format("there is no setting '{}': expected {}{}",
                                          printable(name), alternatives(names),
                                          near.empty() ? "" : "; did you mean " + near + "?"));
    }
    if (start < argument.size()) PTERYX_TRY(session_.set(name, argument.substr(start)));
    print("{} {}\n", name, session_.setting(name));
    return {};
  }

  void print_settings() const {
    for (const std::string& name : chat_settings())
      print("{:<20}{}\n", name, session_.setting(name));
  }

  Status info() const {
    PTERYX_ASSIGN(const int64_t used, session_.used());
    const gpu::Caps& caps = opened_.device->caps();
    print("{:<20}{}\n", "model", printable(options_.model.path));
    print("{:<20}{}\n", caps.cpu ? "CPU" : "GPU", device_text(caps));
    print("{:<20}{} of {} tokens used\n", "context", used, session_.context());
    print("{:<20}{}\n", "messages", session_.messages().size());
    print_settings();
    return {};
  }

  Status save(const std::string& file) const {
    if (!check_output(file, model_files(options_.model)).ok()) {
      return invalid_argument(
          fmt::format("{} is a file of the model: expected another to save to", file));
    }
    const Messages messages = session_.messages();
    PTERYX_TRY(save_messages(file, messages));
    note("(saved {} to {})\n", count_of(messages.size()), printable(file));
    return {};
  }

  Status load(const std::string& file) {
    PTERYX_ASSIGN(Messages messages, load_messages(file));
    note("(loaded {} from {})\n", count_of(messages.size()), printable(file));
    session_.set_messages(std::move(messages));
    return {};
  }

  const Options& options_;
  const OpenedModel& opened_;
  ChatSession& session_;
  ChatInput input_;
  bool quit_ = false;
  bool interrupted_ = false;  // the last that came was Ctrl-C
  bool hinted_ = false;
  int exit_ = kSuccess;
};

// The message that is to be answered once; none: there will be a conversation.
Result<std::optional<std::string>> only_message(const Options& o) {
  std::optional<std::string> text = o.prompt;
  if (!o.prompt_file.empty()) {
    PTERYX_ASSIGN(text, read_text(o.prompt_file));
    text->resize(text->find_last_not_of("\r\n") + 1);
  }
  if (!text && o.as_json)
    return invalid_argument("--json: expected --prompt or --prompt-file, too");
  if (text && is_blank(*text)) return invalid_argument("the message is empty");
  if (text) text = replace_invalid(*text);
  return text;
}

int answer_once(ChatSession& session, const OpenedModel& opened, std::string text,
                const Options& o) {
  const auto outcome = session.say(std::move(text));
  if (!outcome.ok()) return fail(outcome.status());
  if (o.as_json) {
    json report = generation_json(opened, session.generator(), *o.sampling.seed);
    report["messages"] = messages_json(session.messages());
    print_json(report);
  }
  return InterruptGuard::interrupted() ? kInterrupted : kSuccess;
}

int chat(Options& o) {
  std::optional<InterruptGuard> guard(std::in_place);
  auto message = only_message(o);
  if (!message.ok()) return fail(message.status());
  Progress progress("opening " + o.model.path);
  const auto opened = open_model(o.model, progress);
  progress.end();
  if (!opened.ok()) return fail(opened.status());
  if (InterruptGuard::interrupted()) return kInterrupted;
  auto format = open_chat(*opened->model, o.model.path);
  if (!format.ok()) return fail(format.status());
  const auto sequence = llm::Sequence::create(*opened->model);
  if (!sequence.ok()) return fail(sequence.status());
  if (!format->has_template() && !o.as_json) {
    note("pteryx: {} has no chat template: using 'User:' and 'Assistant:'\n",
         printable(o.model.path));
  }
  const bool once = message->has_value();
  ChatOptions options{.generate = o.sampling.options(),
                      .stream = !o.as_json,
                      .timings = o.timings,
                      .context_advice = std::string(kShiftAdvice)};
  options.generate.responsive = stdin_is_terminal() || stderr_is_terminal();
  if (!once) options.context_advice = "/undo and /reset make room; " + options.context_advice;
  ChatSession session(**sequence, std::move(format).value(), std::move(options));
  session.set_system(replace_invalid(o.system));
  if (once) return answer_once(session, *opened, **message, o);
  guard.reset();
  return Chat(o, *opened, session).run();
}

}  // namespace

void add_chat(CLI::App& app, Action& action) {
  auto o = std::make_shared<Options>();
  CLI::App* sub = app.add_subcommand("chat", "Talk with a language model");
  add_model_arguments(*sub, o->model);
  auto* prompt =
      sub->add_option("-p,--prompt", o->prompt, "answer this message and quit")->type_name("TEXT");
  sub->add_option("-f,--prompt-file", o->prompt_file,
                  "answer the message in this file and quit; -: stdin")
      ->type_name("FILE")
      ->excludes(prompt);
  sub->add_option("--system", o->system, "system message")->type_name("TEXT");
  add_sampling_arguments(*sub, o->sampling);
  sub->add_flag("--timings", o->timings, "print how long each answer took");
  add_json(*sub, o->as_json, "with --prompt or --prompt-file: print one JSON object");
  sub->footer("At the prompt, /help lists the commands. Each line of a pipe is a message.");
  sub->callback([o, &action] { action = [o] { return chat(*o); }; });
}

}  // namespace pteryx::cli
