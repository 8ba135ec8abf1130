// Help and manual. SPDX-License-Identifier: BSD-3-Clause
#include "help.h"

#include <algorithm>

#include <sys/ioctl.h>
#include <unistd.h>

#include <fmt/format.h>

#include "arguments.h"

namespace pteryx::cli {
namespace {

constexpr size_t kNarrowest = 60;
constexpr size_t kWidest = 110;
constexpr size_t kUsualWidth = 80;
constexpr size_t kTextColumn = 30;

size_t terminal_width() {
  winsize size = {};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return kUsualWidth;
  return std::clamp<size_t>(size.ws_col, kNarrowest, kWidest);
}

// Words in lines of that width; all but the first line indented.
std::string wrap(std::string_view text, size_t indent, size_t width) {
  std::string out;
  size_t column = indent;
  while (!text.empty()) {
    const size_t end = std::min(text.find(' '), text.size());
    if (column > indent && column + 1 + end > width) {
      out += '\n' + std::string(indent, ' ');
      column = indent;
    } else if (column > indent) {
      out += ' ';
      ++column;
    }
    out += text.substr(0, end);
    column += end;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

std::string entry(const std::string& head, const std::string& text, size_t width) {
  std::string line = "  " + head;
  if (line.size() + 2 > kTextColumn) {
    line += '\n' + std::string(kTextColumn, ' ');
  } else {
    line.resize(kTextColumn, ' ');
  }
  return line + wrap(text, kTextColumn, width) + '\n';
}

}  // namespace

bool names_a_file(std::string_view value) {
  return value == "FILE" || value == "DIR" || value == "MODEL" || value == "SOURCE" ||
         value.find('.') != std::string_view::npos || value == "X,...";
}

namespace {

OptionHelp describe(const CLI::Option* o) {
  OptionHelp h{.text = o->get_description(),
               .choices = traits(o).choices,
               .positional = o->get_positional()};
  if (h.positional) {
    h.names = {o->get_type_name()};
  } else {
    for (const std::string& n : o->get_snames()) h.names.push_back("-" + n);
    for (const std::string& n : o->get_lnames()) h.names.push_back("--" + n);
    h.group = o->get_group();
    if (o->get_items_expected_max() > 0) h.value = o->get_type_name();
  }
  h.takes_file = names_a_file(o->get_type_name());
  const std::string value = o->get_default_str();
  if (!value.empty()) h.text += fmt::format(" (default: {})", value);
  if (!traits(o).variable.empty()) h.text += fmt::format(" [{}]", traits(o).variable);
  return h;
}

// Text as groff takes it: no control lines by accident, hyphens that can be copied.
std::string groff(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else {
      out += c;
    }
  }
  return out.starts_with('.') || out.starts_with('\'') ? "\\&" + out : out;
}

std::string command_man(const CLI::App& command) {
  std::string page = fmt::format(".SS {}\n{}.\n.PP\n.B {}\n", groff(command.get_name()),
                                 groff(command.get_description()), groff(usage_line(command)));
  for (const OptionHelp& o : describe_options(command))
    page += fmt::format(".TP\n.B {}\n{}\n", groff(o.signature()), groff(o.text));
  return page;
}

}  // namespace

std::string OptionHelp::signature() const {
  return fmt::format("{}{}{}", fmt::join(names, ", "), value.empty() ? "" : " ", value);
}

std::vector<OptionHelp> describe_options(const CLI::App& command) {
  std::vector<OptionHelp> all;
  for (const CLI::Option* o : command.get_options()) {
    if (o->get_positional()) all.push_back(describe(o));
  }
  for (const std::string& group : command.get_groups()) {
    for (const CLI::Option* o : command.get_options()) {
      if (!o->get_positional() && o->get_group() == group) all.push_back(describe(o));
    }
  }
  return all;
}

std::vector<const CLI::App*> commands(const CLI::App& app) {
  const auto all = app.get_subcommands({});
  return {all.begin(), all.end()};
}

std::vector<std::string> command_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* c : commands(app)) names.push_back(c->get_name());
  return names;
}

std::string usage_line(const CLI::App& command) {
  std::string line = "pteryx";
  if (command.get_parent() != nullptr) line += " " + command.get_name();
  line += command.get_parent() == nullptr ? " COMMAND [OPTIONS]" : " [OPTIONS]";
  for (const CLI::Option* o : command.get_options()) {
    if (!o->get_positional()) continue;
    line += o->get_required() ? " " + o->get_type_name() : " [" + o->get_type_name() + "]";
  }
  return line;
}

std::string help_text(const CLI::App& app) {
  const size_t width = terminal_width();
  std::string text = wrap(app.get_description(), 0, width) + "\n\nUsage: " + usage_line(app) + "\n";
  if (const auto list = commands(app); !list.empty()) {
    text += "\nCommands:\n";
    for (const CLI::App* c : list) text += entry(c->get_name(), c->get_description(), width);
  }
  std::string group = "none yet";
  for (const OptionHelp& o : describe_options(app)) {
    if (o.group != group) text += o.group.empty() ? "\n" : fmt::format("\n{}:\n", o.group);
    group = o.group;
    text += entry(o.signature(), o.text, width);
  }
  if (!app.get_footer().empty()) text += "\n" + wrap(app.get_footer(), 0, width) + "\n";
  return text;
}

std::string man_page(const CLI::App& app) {
  std::string page = fmt::format(
      ".TH PTERYX 1 \"\" \"{}\" \"User Commands\"\n.SH NAME\npteryx \\- run PyTorch models and "
      "language models on any GPU\n.SH SYNOPSIS\n.B pteryx\n.I COMMAND\n[OPTIONS]\n.SH "
      "DESCRIPTION\n{}\n.SH COMMANDS\n",
      app.version(), groff(app.get_description()));
  for (const CLI::App* c : commands(app)) page += command_man(*c);
  page +=
      ".SH EXIT STATUS\n.TP\n.B 0\nsuccess\n.TP\n.B 1\nthe run failed, or its output could not be "
      "written\n.TP\n.B 2\nwrong usage: an option, an input or a token id\n.TP\n.B 3\na file "
      "cannot "
      "be read, written or used\n.TP\n.B 4\nthere is no usable GPU where one was asked "
      "for\n.TP\n.B 130\ninterrupted\n";
  return page;
}

}  // namespace pteryx::cli
