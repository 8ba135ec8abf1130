// SPDX-License-Identifier: BSD-3-Clause
#include "limits_file.h"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>

#include "pteryx/base/excerpt.h"
#include "pteryx/base/json.h"
#include "pteryx/base/source.h"

namespace pteryx::cli {
namespace {

constexpr uint64_t kLargestFile = uint64_t{16} << 20;

std::string known_names() {
  std::string names;
  for (const gpu::Limit& l : gpu::all_limits())
    fmt::format_to(std::back_inserter(names), "{}{}", names.empty() ? "" : ", ", l.name);
  return names;
}

// For messages.
std::string number_or_type(const Json& value) {
  return value.number() ? value.dump() : std::string(value.type_name());
}

Result<gpu::Caps> caps_of(const Json& limits) {
  if (limits.object() == nullptr) {
    return invalid_program(
        fmt::format("expected a JSON object of limits, got {}", limits.type_name()));
  }
  gpu::Caps caps;
  for (const auto& [name, value] : *limits.object()) {
    const auto all = gpu::all_limits();
    const auto l = std::ranges::find(all, name, &gpu::Limit::name);
    if (l == all.end()) {
      return invalid_program(
          fmt::format("limit '{}' is unknown: expected some of {}", excerpt(name), known_names()));
    }
    const auto number = value.whole();
    if (!number || *number < l->least) {
      return invalid_program(fmt::format("{}: expected a whole number from {} on, got {}", l->name,
                                         l->least, number_or_type(value)));
    }
    l->set(caps, *number);
  }
  return caps;
}

struct Flag {
  std::string_view name;
  bool gpu::Caps::* field;
};
constexpr Flag kFlags[] = {
    {"f16", &gpu::Caps::f16},
    {"subgroups", &gpu::Caps::subgroups},
    {"subgroup_matrix", &gpu::Caps::subgroup_matrix},
    {"dot4", &gpu::Caps::dot4},
    {"timestamps", &gpu::Caps::timestamps},
    {"software", &gpu::Caps::software},
    {"bounds_checks", &gpu::Caps::bounds_checks},
};

// What the GPU of a report can do besides; reports of older versions do not say.
Status add_capabilities(const Json& document, gpu::Caps& caps) {
  const Json& list = document["default"]["capabilities"];
  if (list.is_null()) return {};
  if (list.object() == nullptr) {
    return invalid_program(
        fmt::format("capabilities: expected a JSON object, got {}", list.type_name()));
  }
  for (const auto& [name, value] : *list.object()) {
    const auto* const flag = std::ranges::find(kFlags, name, &Flag::name);
    const bool size = name == "subgroup_min" || name == "subgroup_max";
    const auto number = value.whole();
    if (flag != std::end(kFlags) && value.flag() != nullptr) {
      caps.*flag->field = *value.flag();
    } else if (size && number && *number <= 1024) {
      (name == "subgroup_min" ? caps.subgroup_min : caps.subgroup_max) =
          static_cast<uint32_t>(*number);
    } else {
      return invalid_program(
          fmt::format("capability '{}': expected one that `doctor` tells, got {}", excerpt(name),
                      number_or_type(value)));
    }
  }
  return {};
}

// How large that GPU is; reports of older versions do not say.
Status add_sizes(const Json& document, gpu::Caps& caps) {
  const Json& sizes = document["default"]["sizes"];
  if (sizes.is_null()) return {};
  const auto read = [&](std::string_view name, uint32_t& to) {
    const auto number = sizes[name].whole();
    const bool fits = number && *number >= 1 && *number <= 65536;
    if (fits) to = static_cast<uint32_t>(*number);
    return fits;
  };
  if (read("processors", caps.sizes.processors) && read("invocations", caps.sizes.invocations))
    return {};
  return invalid_program(
      fmt::format("sizes: expected processors and invocations, 1 to 65536 each, got {}",
                  excerpt(sizes.dump())));
}

// The object of limits in a document.
Result<const Json*> limits_in(const Json& document) {
  if (document["providers"].is_null()) return &document;
  const Json& limits = document["default"]["limits"];
  if (limits.is_null()) {
    return invalid_program(
        "expected the report of a machine with a GPU that can be used, got one without 'default' "
        "and its 'limits'");
  }
  return &limits;
}

Result<gpu::Caps> caps_in(const Json& document) {
  PTERYX_ASSIGN(const Json* const limits, limits_in(document));
  PTERYX_ASSIGN(gpu::Caps caps, caps_of(*limits));
  PTERYX_TRY(add_capabilities(document, caps));
  PTERYX_TRY(add_sizes(document, caps));
  return caps;
}

}  // namespace

Result<gpu::Caps> read_limits(const std::string& from) {
  if (from == "default") return gpu::Caps();
  PTERYX_ASSIGN(const std::string text, read_all(from, kLargestFile));
  PTERYX_ASSIGN(const Json document, parse_json(text, from, {.unique = true}));
  auto caps = caps_in(document);
  if (!caps.ok()) return std::move(caps).status().during("reading limits from " + from);
  return caps;
}

}  // namespace pteryx::cli
