// Options of commands: strict values, lists, and messages that name the option, what was expected
// and what was got.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <charconv>
#include <cmath>
#include <concepts>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "output.h"

namespace pteryx::cli {

// What is said of an option besides what CLI11 keeps: lists are taken apart by it, and completions
// and the manual are made of it.
struct OptionTraits {
  std::vector<std::string> choices = {};             // all values, where they are few
  bool (*belongs)(std::string_view word) = nullptr;  // of a list: whether a word is one more
  std::string_view separators = ",";                 // of a list: what else stands between two
  std::string_view variable = {};                    // of the environment, that counts without it
};
OptionTraits& traits(const CLI::Option* option);

template <typename T>
concept Number = std::integral<T> || std::floating_point<T>;

// The number that `text` is, whole and finite.
template <Number T>
std::optional<T> parse_number(std::string_view text) {
  T value{};
  const char* const begin = text.data();
  const char* const end = begin + text.size();
  const auto [at, error] = std::from_chars(begin, end, value);
  if (error != std::errc() || at != end) return std::nullopt;
  if constexpr (std::floating_point<T>) {
    if (!std::isfinite(value)) return std::nullopt;
  }
  return value;
}

template <typename T>
struct Bounds {
  T least;
  T most;
};

// "" or what is wrong with the number of an argument.
template <Number T>
std::string number_problem(std::string_view text, Bounds<T> bounds) {
  const auto value = parse_number<T>(text);
  if (value && *value >= bounds.least && *value <= bounds.most) return "";
  return fmt::format("expected {} from {} to {}, got '{}'",
                     std::integral<T> ? "an integer" : "a number", bounds.least, bounds.most,
                     printable(text));
}

template <Number T, typename Value>
CLI::Option* add_number(CLI::App& app, const std::string& names, Value& value, Bounds<T> bounds,
                        const std::string& help) {
  CLI::Option* const option = app.add_option_function<std::string>(
      names,
      [&value](const std::string& text) {
        if constexpr (Number<Value>) {
          value = *parse_number<T>(text);
        } else {
          value = parse_number<T>(text);  // an optional one
        }
      },
      help);
  option->type_name(std::integral<T> ? "N" : "X");
  if constexpr (Number<Value>) option->default_str(fmt::format("{}", value));
  option->check([bounds](const std::string& text) { return number_problem(text, bounds); });
  return option;
}

// "dawn or wgpu", "f32, f16 or q4".
std::string alternatives(const std::vector<std::string>& words);

template <typename T>
using Choices = std::vector<std::pair<std::string, T>>;

template <typename T>
CLI::Option* add_choice(CLI::App& app, const std::string& names, T& value,
                        const Choices<std::type_identity_t<T>>& choices, const std::string& help) {
  std::vector<std::string> words;
  for (const auto& [word, meaning] : choices) words.push_back(word);
  CLI::Option* const option = app.add_option_function<std::string>(
      names,
      [&value, choices](const std::string& text) {
        for (const auto& [word, meaning] : choices) {
          if (word == text) value = meaning;
        }
      },
      help);
  option->type_name(fmt::format("{}", fmt::join(words, "|")));
  option->check([words](const std::string& text) {
    const bool known = std::find(words.begin(), words.end(), text) != words.end();
    return known ? std::string()
                 : fmt::format("expected {}, got '{}'", alternatives(words), printable(text));
  });
  traits(option).choices = words;
  return option;
}

// Lists are given as `--x 1 2`, `--x 1,2`, `--x "1 2"` or `--x 1 --x 2`, before the model or after
// it: only words that belong to the list are taken.
template <Number T>
CLI::Option* add_numbers(CLI::App& app, const std::string& names, std::vector<T>& values,
                         Bounds<T> bounds, const std::string& help);
CLI::Option* add_words(CLI::App& app, const std::string& names, std::vector<std::string>& values,
                       bool (*belongs)(std::string_view word), const std::string& help);
// An option that may be repeated and takes its value as it is.
CLI::Option* add_texts(CLI::App& app, const std::string& names, std::vector<std::string>& values,
                       const std::string& help);

// --json; errors of the command are JSON then, too.
void add_json(CLI::App& app, bool& as_json, const std::string& help);

// The arguments with every list as its option repeated, which is what CLI11 is then given.
std::vector<std::string> separate_lists(const CLI::App& app, std::vector<std::string> args);

// The parts between separators, none of them empty.
std::vector<std::string> split(std::string_view text, std::string_view separators);

// The one of `names` that somebody who typed `word` may have meant; "" where none is near.
std::string nearest(std::string_view word, const std::vector<std::string>& names);

inline constexpr std::string_view kNumberSeparators = ", \t\n";
bool is_integer_list(std::string_view word);

template <Number T>
CLI::Option* add_numbers(CLI::App& app, const std::string& names, std::vector<T>& values,
                         Bounds<T> bounds, const std::string& help) {
  CLI::Option* const option = app.add_option_function<std::vector<std::string>>(
      names,
      [&values](const std::vector<std::string>& words) {
        values.clear();
        for (const std::string& w : words) values.push_back(*parse_number<T>(w));
      },
      help);
  option->type_name("N,...");
  option->allow_extra_args(false);
  if (!values.empty()) option->default_str(fmt::format("{}", fmt::join(values, ",")));
  option->check([bounds](const std::string& text) { return number_problem(text, bounds); });
  traits(option).belongs = is_integer_list;
  traits(option).separators = kNumberSeparators;
  return option;
}

}  // namespace pteryx::cli
