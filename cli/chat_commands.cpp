// The table of commands. SPDX-License-Identifier: BSD-3-Clause
#include "chat_commands.h"

#include <algorithm>
#include <array>
#include <filesystem>

#include <fmt/format.h>

#include "arguments.h"

namespace pteryx::cli {
namespace {

enum class Argument : uint8_t { kNone, kOptional, kRequired };

struct Entry {
  ChatVerb verb;
  std::string_view name;
  std::string_view aliases;  // with spaces between them
  Argument argument;
  std::string_view argument_name;
  std::string_view help;
};

constexpr std::array<Entry, 10> kCommands = {{
    {ChatVerb::kHelp, "/help", "/?", Argument::kNone, "", "Show this list"},
    {ChatVerb::kReset, "/reset", "/new /clear", Argument::kNone, "", "Begin a new conversation"},
    {ChatVerb::kRegenerate, "/regenerate", "/regen", Argument::kNone, "",
     "Answer the last message again"},
    {ChatVerb::kUndo, "/undo", "", Argument::kNone, "",
     "Take back the last message and its answer"},
    {ChatVerb::kSystem, "/system", "", Argument::kOptional, "[TEXT]",
     "Show or set the system message; - removes it"},
    {ChatVerb::kSet, "/set", "", Argument::kOptional, "[NAME VALUE]",
     "Show or change how answers are sampled"},
    {ChatVerb::kInfo, "/info", "", Argument::kNone, "",
     "Show the model, the device, the context and the settings"},
    {ChatVerb::kSave, "/save", "", Argument::kRequired, "FILE",
     "Save the conversation to a JSON file"},
    {ChatVerb::kLoad, "/load", "", Argument::kRequired, "FILE",
     "Load a conversation and continue it"},
    {ChatVerb::kQuit, "/quit", "/exit /bye", Argument::kNone, "", "Quit; so does Ctrl-D"},
}};

constexpr std::string_view kMore =
    "\n"
    "Ctrl-C stops an answer. Tab completes commands, settings and files.\n"
    "Several lines: paste them, put them between two \"\"\", or end a line with \\.\n"
    "A message that begins with / is written with two: //etc/hosts\n";

bool is_called(const Entry& c, std::string_view name) {
  const auto aliases = split(c.aliases, " ");
  return c.name == name || std::find(aliases.begin(), aliases.end(), name) != aliases.end();
}

const Entry* find(std::string_view name) {
  const auto* const it = std::find_if(kCommands.begin(), kCommands.end(),
                                      [&](const Entry& c) { return is_called(c, name); });
  return it == kCommands.end() ? nullptr : it;
}

Status no_such_command(std::string_view name) {
  std::vector<std::string> names;
  for (const Entry& c : kCommands) {
    names.emplace_back(c.name);
    for (const std::string& alias : split(c.aliases, " ")) names.push_back(alias);
  }
  const std::string near = nearest(name, names);
  return invalid_argument(fmt::format(
      "there is no command '{}'{}\n  /help lists the commands; a message that begins with / is "
      "written with two",
      printable(name), near.empty() ? "" : fmt::format("; did you mean {}?", near)));
}

// Files whose path begins so; folders with a slash behind them.
std::vector<std::string> files(const std::string& beginning) {
  const size_t slash = beginning.rfind('/') + 1;  // 0 where there is none
  const std::string folder = beginning.substr(0, slash);
  const std::string name = beginning.substr(slash);
  std::vector<std::string> found;
  std::error_code error;
  std::filesystem::directory_iterator it(folder.empty() ? "." : folder, error);
  for (; !error && it != std::filesystem::directory_iterator(); it.increment(error)) {
    const std::string entry = it->path().filename().string();
    if (!entry.starts_with(name) || (name.empty() && entry.starts_with('.'))) continue;
    std::error_code ignored;
    found.push_back(folder + entry + (it->is_directory(ignored) ? "/" : ""));
  }
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace

Result<ChatCommand> parse_chat_command(std::string_view line) {
  const size_t end = std::min(line.find_first_of(" \t\n"), line.size());
  const size_t start = std::min(line.find_first_not_of(" \t\n", end), line.size());
  const std::string_view name = line.substr(0, end);
  std::string_view argument = line.substr(start);
  argument = argument.substr(0, argument.find_last_not_of(" \t\n") + 1);
  const Entry* const c = find(name);
  if (c == nullptr) return no_such_command(name);
  if (c->argument == Argument::kRequired && argument.empty())
    return invalid_argument(fmt::format("{}: expected a file, got none", name));
  if (c->argument == Argument::kNone && !argument.empty()) {
    return invalid_argument(
        fmt::format("{} takes no argument, got '{}'", name, printable(argument)));
  }
  return ChatCommand{.verb = c->verb, .argument = std::string(argument)};
}

std::string chat_help() {
  std::string text;
  for (const Entry& c : kCommands) {
    text += fmt::format("{:<21}{}", fmt::format("{} {}", c.name, c.argument_name), c.help);
    const auto aliases = split(c.aliases, " ");
    text += aliases.empty() ? "\n" : fmt::format(" (also {})\n", fmt::join(aliases, ", "));
  }
  return text + std::string(kMore);
}

std::vector<std::string> complete_chat_line(std::string_view beginning) {
  std::vector<std::string> all;
  const size_t space = beginning.find(' ');
  if (space == std::string_view::npos) {
    for (const Entry& c : kCommands) {
      if (c.name.starts_with(beginning))
        all.push_back(std::string(c.name) + (c.argument == Argument::kNone ? "" : " "));
    }
    return all;
  }
  const Entry* const c = find(beginning.substr(0, space));
  const std::string head(beginning.substr(0, space + 1));
  const std::string rest(beginning.substr(space + 1));
  if (c != nullptr && (c->verb == ChatVerb::kSave || c->verb == ChatVerb::kLoad)) {
    for (const std::string& file : files(rest)) all.push_back(head + file);
  } else if (c != nullptr && c->verb == ChatVerb::kSet) {
    for (const std::string& name : chat_settings()) {
      if (name.starts_with(rest)) all.push_back(head + name + " ");
    }
  }
  return all;
}

const std::vector<std::string>& chat_settings() {
  static const std::vector<std::string> names = {"temperature",
                                                 "top-k",
                                                 "top-p",
                                                 "min-p",
                                                 "repetition-penalty",
                                                 "presence-penalty",
                                                 "frequency-penalty",
                                                 "max-new-tokens",
                                                 "seed"};
  return names;
}

}  // namespace pteryx::cli
