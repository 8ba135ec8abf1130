// What options a kernel file has, and their combinations. SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "pteryx/ops/kernel/expand.h"
#include "pteryx/ops/kernel/expression.h"
#include "pteryx/ops/kernel/lines.h"

namespace pteryx::ops {
namespace {

// The values an option can have; a text has the one that is given.
std::vector<OptionValue> values_of(const OptionDeclaration& o, const Options& texts) {
  std::vector<OptionValue> all;
  if (o.kind == OptionDeclaration::Kind::kText) {
    const OptionValue* text = texts.find(o.name);
    all.push_back(text == nullptr ? OptionValue(std::string()) : *text);
  } else if (o.kind == OptionDeclaration::Kind::kChoice) {
    all = o.choices;
  } else {
    for (int64_t i = o.low; i <= o.high; ++i) all.emplace_back(i);
  }
  return all;
}

}  // namespace

Result<std::vector<OptionDeclaration>> declared_options(std::string_view file,
                                                        const KernelFiles& files) {
  const auto text = files(file);
  if (!text) return invalid_argument(fmt::format("there is no kernel file '{}'", file));
  std::vector<OptionDeclaration> options;
  const std::vector<std::string_view> lines = split_lines(*text);
  for (size_t i = 0; i < lines.size(); ++i) {
    auto parsed = parse_declaration(directive(lines[i]));
    if (!parsed.ok())
      return invalid_argument(fmt::format("{}:{}: {}", file, i + 1, parsed.status().message()));
    const auto same = [&](const OptionDeclaration& o) { return o.name == (*parsed)->name; };
    if (*parsed && std::ranges::none_of(options, same)) options.push_back(**std::move(parsed));
  }
  return options;
}

Result<std::vector<Options>> kernel_variants(std::string_view file, const Options& texts,
                                             const KernelFiles& files, size_t most) {
  PTERYX_ASSIGN(const std::vector<OptionDeclaration> declared, declared_options(file, files));
  std::vector<Options> all = {{}};
  for (const OptionDeclaration& o : declared) {
    const std::vector<OptionValue> values = values_of(o, texts);
    if (all.size() * values.size() > most) {
      return invalid_argument(fmt::format("{}: more than {} combinations of options", file, most));
    }
    std::vector<Options> next;
    for (const Options& before : all) {
      for (const OptionValue& v : values) next.push_back(Options(before).set(o.name, v));
    }
    all = std::move(next);
  }
  const std::vector<std::string_view> lines = split_lines(*files(file));
  std::vector<Options> possible;
  for (Options& o : all) {
    bool holds = true;
    for (const std::string_view line : lines) {
      const Directive d = directive(line);
      if (d.name != "require" || !holds) continue;
      const auto v = evaluate(d.rest, [&](std::string_view name) -> std::optional<NamedValue> {
        const OptionValue* const value = o.find(name);
        if (value == nullptr) return std::nullopt;
        const auto of = std::ranges::find(declared, name, &OptionDeclaration::name);
        return NamedValue{.value = *value, .option = &*of};
      });
      if (!v.ok()) return invalid_argument(fmt::format("{}: {}", file, v.status().message()));
      holds = *v != OptionValue(int64_t{0});
    }
    if (holds) possible.push_back(std::move(o));
  }
  return possible;
}

}  // namespace pteryx::ops
