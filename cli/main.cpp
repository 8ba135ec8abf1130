// The pteryx command. SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <exception>

#include <CLI/CLI.hpp>

#include "command.h"
#include "help.h"
#include "interrupt.h"

#include "pteryx/cpu/use_target.h"
#include "pteryx/gpu/environment.h"

namespace pteryx::cli {
namespace {

std::vector<std::string> option_names(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* o : command.get_options()) {
    for (const std::string& n : o->get_lnames()) names.push_back("--" + n);
  }
  return names;
}

std::string or_did_you_mean(const std::string& name) {
  return name.empty() ? "" : fmt::format("; did you mean '{}'?", name);
}

// What is wrong with the words of a command that CLI11 could not place.
std::string unplaced(const CLI::App& command) {
  for (const std::string& word : command.remaining()) {
    if (word.size() > 1 && word[0] == '-') {
      const std::string name = word.substr(0, word.find('='));
      return fmt::format("there is no option '{}'{}", name,
                         or_did_you_mean(nearest(name, option_names(command))));
    }
  }
  const std::vector<std::string> rest = command.remaining();
  return fmt::format("unexpected argument '{}'", rest.empty() ? "" : rest.front());
}

int usage(const std::string& message) { return fail(invalid_argument(message), kUsage); }

int parse(CLI::App& app, std::vector<std::string> args) {
  if (args.empty()) {
    write_note(help_text(app));
    return kUsage;
  }
  const std::vector<std::string> names = command_names(app);
  const std::string first = args[0];
  const bool known = std::find(names.begin(), names.end(), first) != names.end();
  if (!known && args[0] != "--help" && args[0] != "-h" && args[0] != "--version") {
    const bool option = args[0].starts_with('-');
    const std::string near =
        nearest(args[0], option ? std::vector<std::string>{"--help", "--version"} : names);
    return usage(fmt::format("there is no {} '{}'{}\n  commands: {}", option ? "option" : "command",
                             args[0], or_did_you_mean(near), fmt::join(names, ", ")));
  }
  try {
    args = separate_lists(app, std::move(args));
    std::reverse(args.begin(), args.end());  // as CLI11 takes them
    app.parse(args);
  } catch (const CLI::Success&) {
    const auto chosen = app.get_subcommands();
    const bool version = !app.get_option("--version")->empty();
    write(version ? app.version() + "\n" : help_text(chosen.empty() ? app : *chosen.front()));
    return kSuccess;
  } catch (const CLI::ParseError& e) {
    const CLI::App& command = known ? *app.get_subcommand(first) : app;
    std::string what = e.what();
    if (dynamic_cast<const CLI::ExtrasError*>(&e) != nullptr) what = unplaced(command);
    if (dynamic_cast<const CLI::ArgumentMismatch*>(&e) != nullptr)
      what = what.substr(0, what.find(':')) + ": expected a value, got none";
    const std::string name = known ? command.get_name() + ": " : "";
    return usage(fmt::format("{}{}\n  `pteryx {}--help` lists the options", name, what,
                             known ? command.get_name() + " " : ""));
  }
  return -1;  // go on
}

// An empty name is a variable that was not set, never "none".
void refuse_empty_names(CLI::App& command) {
  for (CLI::Option* o : command.get_options([](CLI::Option*) { return true; })) {
    if (!names_a_file(o->get_type_name())) continue;
    o->check([](const std::string& text) {
      return text.empty() ? std::string("expected the name of a file, got none") : std::string();
    });
  }
}

int run(int argc, char** argv) {
  CLI::App app{"Run PyTorch models exported by ExecuTorch, and language models, on any GPU.",
               "pteryx"};
  app.set_version_flag("--version", "pteryx " PTERYX_VERSION);
  app.require_subcommand(1);
  app.set_help_flag("-h,--help", "print this help");
  app.get_option("--version")->description("print the version");
  Action action;
  add_generate(app, action);
  add_chat(app, action);
  add_convert(app, action);
  add_bench(app, action);
  add_profile(app, action);
  add_eval(app, action);
  add_run(app, action);
  add_inspect(app, action);
  add_verify(app, action);
  add_synth(app, action);
  add_cache(app, action);
  add_tune(app, action);
  add_doctor(app, action);
  add_ops(app, action);
  add_completion(app, action);
  add_man(app, action);
  for (CLI::App* c : app.get_subcommands({})) refuse_empty_names(*c);
  std::vector<std::string> args(argv + 1, argv + argc);
  if (std::find(args.begin(), args.end(), "--json") != args.end()) answer_in_json();
  const int parsed = parse(app, std::move(args));
  if (parsed >= 0) return parsed;
  if (const Status s = cpu::use_target(gpu::variable("PTERYX_CPU_TARGET")); !s.ok())
    return usage(fmt::format("PTERYX_CPU_TARGET: {}", s.message()));
  return action();
}

}  // namespace
}  // namespace pteryx::cli

int main(int argc, char** argv) {
  using namespace pteryx::cli;
  prepare_streams();
  explain_truncated_files();
  try {
    return finish(run(argc, argv));
  } catch (const std::bad_alloc&) {
    return finish(fail(pteryx::memory_error("out of memory")));
  } catch (const std::exception& e) {
    return finish(fail(pteryx::io_error(e.what()), kFailed));
  }
}
