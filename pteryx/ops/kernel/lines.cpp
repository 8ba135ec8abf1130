// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/ops/kernel/lines.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "pteryx/ops/kernel/expression.h"

namespace pteryx::ops {

std::string_view trimmed(std::string_view s) {
  const size_t begin = s.find_first_not_of(" \t\r");
  if (begin == std::string_view::npos) return {};
  return s.substr(begin, s.find_last_not_of(" \t\r") - begin + 1);
}

std::string_view take_word(std::string_view& s) {
  s = trimmed(s);
  const size_t end = std::min(s.find_first_of(" \t"), s.size());
  const std::string_view word = s.substr(0, end);
  s = trimmed(s.substr(end));
  return word;
}

bool is_name(std::string_view s) {
  return !s.empty() && is_name_start(s[0]) && std::ranges::all_of(s, is_name_part);
}

std::optional<int64_t> parse_int(std::string_view s) {
  int32_t n = 0;
  const auto [end, error] = std::from_chars(s.data(), s.data() + s.size(), n);
  if (s.empty() || error != std::errc() || end != s.data() + s.size()) return std::nullopt;
  return n;
}

Directive directive(std::string_view line) {
  std::string_view s = trimmed(line);
  if (!s.starts_with('#')) return {};
  if (const size_t comment = s.find("//"); comment != std::string_view::npos)
    s = trimmed(s.substr(0, comment));
  s.remove_prefix(1);
  const std::string_view name = take_word(s);
  return {name, s};
}

std::vector<std::string_view> split_lines(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    lines.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

namespace {

Result<OptionDeclaration> parse_option(std::string_view rest) {
  OptionDeclaration o;
  o.name = take_word(rest);
  if (!is_name(o.name)) return invalid_argument(fmt::format("'{}' is no name", o.name));
  if (rest.empty()) return o;
  if (rest == "text") {
    o.kind = OptionDeclaration::Kind::kText;
    return o;
  }
  if (const size_t dots = rest.find(".."); dots != std::string_view::npos) {
    const auto low = parse_int(trimmed(rest.substr(0, dots)));
    const auto high = parse_int(trimmed(rest.substr(dots + 2)));
    if (!low || !high || *low > *high)
      return invalid_argument(fmt::format("option {}: '{}' is no range", o.name, rest));
    o.kind = OptionDeclaration::Kind::kRange;
    o.low = *low;
    o.high = *high;
    return o;
  }
  o.kind = OptionDeclaration::Kind::kChoice;
  while (!rest.empty()) {
    const size_t bar = std::min(rest.find('|'), rest.size());
    const std::string_view word = trimmed(rest.substr(0, bar));
    const auto n = parse_int(word);
    if (!n && !is_name(word))
      return invalid_argument(fmt::format("option {}: '{}' is no word", o.name, word));
    o.choices.push_back(n ? OptionValue(*n) : OptionValue(std::string(word)));
    rest.remove_prefix(std::min(bar + 1, rest.size()));
  }
  return o;
}

// "x read f32 | f16"
Result<std::optional<OptionDeclaration>> parse_tensor(std::string_view rest) {
  const std::string_view name = take_word(rest);
  const std::string_view access = take_word(rest);
  if (!is_name(name)) return invalid_argument(fmt::format("'{}' is no name", name));
  if (!access_of(access)) {
    return invalid_argument(fmt::format(
        "tensor {}: '{}': expected read, words, elements, raw or raw_write", name, access));
  }
  if (access_is_raw(*access_of(access))) {
    if (rest.empty()) return invalid_argument(fmt::format("tensor {}: expected a type", name));
    return std::optional<OptionDeclaration>();
  }
  PTERYX_ASSIGN(
      OptionDeclaration o,
      parse_option(fmt::format("{}{} {}", name, kTypeSuffix,
                               rest.empty() ? "bool | u8 | i8 | i32 | f16 | f32" : rest)));
  return std::optional(std::move(o));
}

}  // namespace

std::optional<KernelTensor::Access> access_of(std::string_view word) {
  using Access = KernelTensor::Access;
  if (word == "read") return Access::kRead;
  if (word == "words") return Access::kWords;
  if (word == "elements") return Access::kElements;
  if (word == "raw") return Access::kRaw;
  if (word == "raw_write") return Access::kRawWrite;
  return std::nullopt;
}

Result<std::optional<OptionDeclaration>> parse_declaration(const Directive& d) {
  if (d.name == "tensor") return parse_tensor(d.rest);
  if (d.name != "option") return std::optional<OptionDeclaration>();
  PTERYX_ASSIGN(OptionDeclaration o, parse_option(d.rest));
  return std::optional(std::move(o));
}

OptionSetting::OptionSetting(const OptionValue& value) {
  if (const auto* const text = std::get_if<std::string>(&value)) {
    text_ = *text;
    is_text_ = true;
  } else {
    number_ = *std::get_if<int64_t>(&value);
  }
}

OptionValue OptionSetting::value() const {
  if (is_text_) return std::string(text_);
  return number_;
}

Options::Options(std::initializer_list<NamedSetting> settings) {
  for (const NamedSetting& s : settings) set(s.name, s.value);
}

Options& Options::set(std::string_view name, const OptionSetting& setting) {
  values_.insert_or_assign(std::string(name), setting.value());
  return *this;
}

const OptionValue* Options::find(std::string_view name) const {
  const auto it = values_.find(name);
  return it == values_.end() ? nullptr : &it->second;
}

std::string Options::describe() const {
  std::vector<std::string> all;
  all.reserve(values_.size());
  for (const auto& [name, value] : values_)
    all.push_back(fmt::format("{}={}", name, to_text(value)));
  return fmt::format("{}", fmt::join(all, ", "));
}

bool OptionDeclaration::takes(const OptionValue& v) const {
  if (kind == Kind::kChoice) return std::ranges::find(choices, v) != choices.end();
  const auto* n = std::get_if<int64_t>(&v);
  if (kind == Kind::kText) return n == nullptr;
  return n != nullptr && *n >= low && *n <= high;
}

std::string OptionDeclaration::describe() const {
  switch (kind) {
    case Kind::kFlag: return "0 or 1";
    case Kind::kRange: return fmt::format("{}..{}", low, high);
    case Kind::kChoice: {
      std::vector<std::string> words;
      words.reserve(choices.size());
      for (const OptionValue& v : choices) words.push_back(to_text(v));
      return fmt::format("{}", fmt::join(words, " | "));
    }
    case Kind::kText: return "text";
  }
  return "";
}

}  // namespace pteryx::ops
