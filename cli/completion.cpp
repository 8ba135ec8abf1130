// pteryx completion and pteryx man: what shells and man(1) need, made of the texts of --help.
// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include "command.h"
#include "help.h"

namespace pteryx::cli {
namespace {

std::string joined(const std::vector<std::string>& words) {
  return fmt::format("{}", fmt::join(words, " "));
}

// In single quotes, for every shell.
std::string in_quotes(std::string_view text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

// For each command: values of options that have few, files after those that take one, else names.
std::string bash(const CLI::App& app) {
  std::string text =
      "# Completion of pteryx for bash: source <(pteryx completion bash)\n"
      "_pteryx() {\n"
      "  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}\n"
      "  COMPREPLY=()\n"
      "  if ((COMP_CWORD == 1)); then\n";
  text += fmt::format(
      "    mapfile -t COMPREPLY < <(compgen -W '{} --help --version' -- \"$cur\")\n    return\n  "
      "fi\n"
      "  case ${{COMP_WORDS[1]}} in\n",
      joined(command_names(app)));
  for (const CLI::App* c : commands(app)) {
    std::vector<std::string> names;
    std::vector<std::string> words;
    std::string values;
    for (const OptionHelp& o : describe_options(*c)) {
      if (o.positional) {
        words.insert(words.end(), o.choices.begin(), o.choices.end());
        continue;
      }
      names.insert(names.end(), o.names.begin(), o.names.end());
      if (o.value.empty()) continue;
      const std::string reply = o.choices.empty() ? std::string(o.takes_file ? "-f" : "")
                                                  : fmt::format("-W '{}'", joined(o.choices));
      values += fmt::format("        {})\n", fmt::join(o.names, "|"));
      if (!reply.empty())
        values +=
            fmt::format("          mapfile -t COMPREPLY < <(compgen {} -- \"$cur\")\n", reply);
      values += "          return ;;\n";
    }
    text += fmt::format("    {})\n", c->get_name());
    if (!values.empty()) text += fmt::format("      case $prev in\n{}      esac\n", values);
    text += fmt::format(
        "      if [[ $cur == -* ]]; then\n"
        "        mapfile -t COMPREPLY < <(compgen -W '{}' -- \"$cur\")\n"
        "      else\n"
        "        mapfile -t COMPREPLY < <(compgen {} -- \"$cur\")\n"
        "      fi ;;\n",
        joined(names), words.empty() ? "-f" : fmt::format("-W '{}'", joined(words)));
  }
  return text + "  esac\n}\ncomplete -o filenames -F _pteryx pteryx\n";
}

// _arguments takes colons and brackets for its own.
std::string zsh_text(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == ':' || c == '[' || c == ']' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

std::string zsh(const CLI::App& app) {
  std::string text =
      "#compdef pteryx\n"
      "# Completion of pteryx for zsh: source <(pteryx completion zsh)\n"
      "_pteryx() {\n"
      "  if ((CURRENT == 2)); then\n"
      "    local -a commands=(\n";
  for (const CLI::App* c : commands(app)) {
    text +=
        fmt::format("      {}\n", in_quotes(c->get_name() + ":" + zsh_text(c->get_description())));
  }
  text +=
      "    )\n    _describe command commands\n    return\n  fi\n  local command=$words[2]\n"
      "  shift words\n  ((CURRENT--))\n  case $command in\n";
  for (const CLI::App* c : commands(app)) {
    text += fmt::format("    {})\n      _arguments", c->get_name());
    for (const OptionHelp& o : describe_options(*c)) {
      const std::string what = !o.choices.empty() ? fmt::format("({})", joined(o.choices))
                               : o.takes_file     ? "_files"
                                                  : " ";
      if (o.positional) {
        text +=
            " \\\n        " + in_quotes(fmt::format("*:{}:{}", zsh_text(o.names.front()), what));
        continue;
      }
      for (const std::string& n : o.names) {
        const std::string value =
            o.value.empty() ? "" : fmt::format(":{}:{}", zsh_text(o.value), what);
        text += " \\\n        " + in_quotes(fmt::format("*{}[{}]{}", n, zsh_text(o.text), value));
      }
    }
    text += " ;;\n";
  }
  return text +
         "  esac\n}\nif [[ $funcstack[1] == _pteryx ]]; then _pteryx \"$@\"; else compdef "
         "_pteryx pteryx; fi\n";
}

std::string fish(const CLI::App& app) {
  std::string text =
      "# Completion of pteryx for fish: pteryx completion fish | source\n"
      "complete -c pteryx -f\n";
  for (const CLI::App* c : commands(app)) {
    text += fmt::format("complete -c pteryx -n __fish_use_subcommand -a {} -d {}\n", c->get_name(),
                        in_quotes(c->get_description()));
    const std::string in = fmt::format("-n '__fish_seen_subcommand_from {}'", c->get_name());
    for (const OptionHelp& o : describe_options(*c)) {
      std::string line = fmt::format("complete -c pteryx {}", in);
      if (o.positional) {
        text += line +
                (o.choices.empty() ? std::string(" -F")
                                   : fmt::format(" -a {}", in_quotes(joined(o.choices)))) +
                "\n";
        continue;
      }
      for (const std::string& n : o.names)
        line += n.starts_with("--") ? " -l " + n.substr(2) : " -s " + n.substr(1);
      if (!o.choices.empty()) {
        line += " -x -a " + in_quotes(joined(o.choices));
      } else if (!o.value.empty()) {
        line += o.takes_file ? " -r -F" : " -x";
      }
      text += line + " -d " + in_quotes(o.text) + "\n";
    }
  }
  return text;
}

}  // namespace

void add_completion(CLI::App& app, Action& action) {
  using Writer = std::string (*)(const CLI::App&);
  auto writer = std::make_shared<Writer>(nullptr);
  CLI::App* sub = app.add_subcommand("completion", "Print the completion script for a shell");
  add_choice(*sub, "shell", *writer, {{"bash", bash}, {"zsh", zsh}, {"fish", fish}},
             "bash, zsh or fish")
      ->required();
  sub->callback([writer, &app, &action] {
    action = [writer, &app]() -> int {
      write((*writer)(app));
      return kSuccess;
    };
  });
}

void add_man(CLI::App& app, Action& action) {
  CLI::App* sub = app.add_subcommand("man", "Print the manual page: pteryx man | man -l -");
  sub->callback([&app, &action] {
    action = [&app]() -> int {
      write(man_page(app));
      return kSuccess;
    };
  });
}

}  // namespace pteryx::cli
