// Lists, near names and the rest of reading arguments. SPDX-License-Identifier: BSD-3-Clause
#include "arguments.h"

#include <algorithm>
#include <filesystem>
#include <map>

namespace pteryx::cli {
namespace {

const CLI::Option* find_option(const CLI::App& app, const std::string& name) {
  return name.size() > 1 && name[0] == '-' ? app.get_option_no_throw(name) : nullptr;
}

std::string long_name(const CLI::Option* option) {
  const auto& names = option->get_lnames();
  return names.empty() ? "" : "--" + names.front();
}

// How many letters must be put in, taken out, changed or swapped with the next to make `b` of `a`.
size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<size_t>> d(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) {
    for (size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        d[i][j] = i + j;
        continue;
      }
      d[i][j] = std::min(
          {d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0U : 1U)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
    }
  }
  return d[a.size()][b.size()];
}

}  // namespace

std::vector<std::string> split(std::string_view text, std::string_view separators) {
  std::vector<std::string> parts;
  for (size_t at = 0; at < text.size();) {
    at = std::min(text.find_first_not_of(separators, at), text.size());
    const size_t end = std::min(text.find_first_of(separators, at), text.size());
    if (end > at) parts.emplace_back(text.substr(at, end - at));
    at = end;
  }
  return parts;
}

OptionTraits& traits(const CLI::Option* option) {
  static std::map<const CLI::Option*, OptionTraits> all;
  return all[option];
}

std::string alternatives(const std::vector<std::string>& words) {
  std::string text;
  for (size_t i = 0; i < words.size(); ++i)
    text += (i == 0 ? "" : i + 1 == words.size() ? " or " : ", ") + words[i];
  return text;
}

CLI::Option* add_words(CLI::App& app, const std::string& names, std::vector<std::string>& values,
                       bool (*belongs)(std::string_view word), const std::string& help) {
  CLI::Option* const option = add_texts(app, names, values, help);
  traits(option).belongs = belongs;
  return option;
}

CLI::Option* add_texts(CLI::App& app, const std::string& names, std::vector<std::string>& values,
                       const std::string& help) {
  return app.add_option(names, values, help)->allow_extra_args(false);
}

void add_json(CLI::App& app, bool& as_json, const std::string& help) {
  app.add_flag_callback(
      "--json",
      [&as_json] {
        as_json = true;
        answer_in_json();
      },
      help);
}

std::vector<std::string> separate_lists(const CLI::App& app, std::vector<std::string> args) {
  const auto commands = app.get_subcommands({});
  const auto named =
      args.begin();  // main has seen to it that it is a command, or help is asked for
  const auto at_command = std::find_if(commands.begin(), commands.end(), [&](const CLI::App* c) {
    return named != args.end() && c->get_name() == *named;
  });
  if (at_command == commands.end()) return args;
  const CLI::App* const command = *at_command;
  std::vector<std::string> out(args.begin(), named + 1);
  for (auto at = named + 1; at != args.end(); ++at) {
    if (*at == "--") {  // all that follows is meant as it is
      out.insert(out.end(), at, args.end());
      break;
    }
    const size_t equals = at->find('=');
    const CLI::Option* const option = find_option(*command, at->substr(0, equals));
    if (option == nullptr || traits(option).belongs == nullptr) {
      out.push_back(*at);
      if (option != nullptr && equals == std::string::npos && option->get_expected_min() > 0 &&
          at + 1 != args.end())
        out.push_back(*++at);  // its value, whatever it looks like
      continue;
    }
    std::vector<std::string> words;
    if (equals != std::string::npos) words.push_back(at->substr(equals + 1));
    while (at + 1 != args.end() &&
           (words.empty() ? (at + 1)->rfind("--", 0) != 0 : traits(option).belongs(at[1])))
      words.push_back(*++at);
    if (words.empty()) out.push_back(*at);  // CLI11 says what is missing
    for (const std::string& word : words) {
      std::error_code ignored;
      const bool file = std::filesystem::exists(word, ignored);  // its name is what it is
      const auto parts = file ? std::vector{word} : split(word, traits(option).separators);
      for (const std::string& part : parts)
        out.push_back(fmt::format("{}={}", long_name(option), part));
    }
  }
  return out;
}

std::string nearest(std::string_view word, const std::vector<std::string>& names) {
  std::string best;
  size_t least = std::max<size_t>(2, word.size() / 3) + 1;
  for (const std::string& name : names) {
    const size_t d = distance(word.substr(0, 64), name);
    // Half a word is meant for the whole, and a longer word for its beginning.
    const bool part = word.size() > 2 && (name.starts_with(word) || word.starts_with(name));
    const size_t near = part ? 1 : d;
    if (near < least) {
      least = near;
      best = name;
    }
  }
  return best;
}

bool is_integer_list(std::string_view word) {
  const std::vector<std::string> parts = split(word, kNumberSeparators);
  return !parts.empty() && std::all_of(parts.begin(), parts.end(), [](const std::string& p) {
    const size_t digits = p.find_first_not_of("+-");
    return digits <= 1 && digits != std::string::npos &&
           p.find_first_not_of("0123456789", digits) == std::string::npos;
  });
}

}  // namespace pteryx::cli
