// What --help, the manual and the completions say: one description of each command and option.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>

namespace pteryx::cli {

struct OptionHelp {
  std::string group;               // "" for positionals
  std::vector<std::string> names;  // "-n", "--max-new-tokens"; of a positional "MODEL"
  std::string value;               // "N"; "" for flags
  std::string text;                // what it is for, with the default
  std::vector<std::string> choices;
  bool positional = false;
  bool takes_file = false;

  std::string signature() const;  // "-n, --max-new-tokens N"
};
// Whether what an option is said to take ("FILE", "MODEL.pte") is a file or a folder.
bool names_a_file(std::string_view value);
// In the order in which they are shown.
std::vector<OptionHelp> describe_options(const CLI::App& command);
std::vector<const CLI::App*> commands(const CLI::App& app);
std::vector<std::string> command_names(const CLI::App& app);
std::string usage_line(const CLI::App& command);  // "pteryx generate [OPTIONS] MODEL"

// As wide as the terminal, within reason.
std::string help_text(const CLI::App& app);
std::string man_page(const CLI::App& app);

}  // namespace pteryx::cli
