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

Result<gpu::Caps> caps_of(const Json& limits) {
  if (!limits.is_object()) {
    return invalid_program(
        fmt::format("expected a JSON object of limits, got {}", limits.type_name()));
  }
  gpu::Caps caps;
  for (const auto& [name, value] : limits.items()) {
    const auto all = gpu::all_limits();
    const auto l = std::ranges::find(all, name, &gpu::Limit::name);
    if (l == all.end()) {
      return invalid_program(
          fmt::format("limit '{}' is unknown: expected some of {}", excerpt(name), known_names()));
    }
    if (!value.is_number_unsigned() || value.get<uint64_t>() < l->least) {
      return invalid_program(fmt::format("{}: expected a whole number from {} on, got {}", l->name,
                                         l->least,
                                         value.is_number() ? value.dump() : value.type_name()));
    }
    l->set(caps, value.get<uint64_t>());
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
  if (!document.is_object() || !document.contains("default")) return {};
  const Json& chosen = document["default"];
  if (!chosen.contains("capabilities")) return {};
  const Json& list = chosen["capabilities"];
  if (!list.is_object()) {
    return invalid_program(
        fmt::format("capabilities: expected a JSON object, got {}", list.type_name()));
  }
  for (const auto& [name, value] : list.items()) {
    const auto* const flag = std::ranges::find(kFlags, name, &Flag::name);
    const bool size = name == "subgroup_min" || name == "subgroup_max";
    if (flag != std::end(kFlags) && value.is_boolean()) {
      caps.*flag->field = value.get<bool>();
    } else if (size && value.is_number_unsigned() && value.get<uint64_t>() <= 1024) {
      (name == "subgroup_min" ? caps.subgroup_min : caps.subgroup_max) = value.get<uint32_t>();
    } else {
      return invalid_program(
          fmt::format("capability '{}': expected one that `doctor` tells, got {}", excerpt(name),
                      value.is_number() ? value.dump() : value.type_name()));
    }
  }
  return {};
}

// How large that GPU is; reports of older versions do not say.
Status add_sizes(const Json& document, gpu::Caps& caps) {
  if (!document.is_object() || !document.contains("default")) return {};
  const Json& chosen = document["default"];
  if (!chosen.contains("sizes")) return {};
  const Json& sizes = chosen["sizes"];
  const auto read = [&](const char* name, uint32_t& to) {
    const bool fits = sizes.is_object() && sizes.contains(name) &&
                      sizes[name].is_number_unsigned() && sizes[name].get<uint64_t>() >= 1 &&
                      sizes[name].get<uint64_t>() <= 65536;
    if (fits) to = sizes[name].get<uint32_t>();
    return fits;
  };
  if (read("processors", caps.sizes.processors) && read("invocations", caps.sizes.invocations))
    return {};
  return invalid_program(
      fmt::format("sizes: expected processors and invocations, 1 to 65536 each, got {}",
                  excerpt(sizes.dump(-1, ' ', false, Json::error_handler_t::replace))));
}

// The object of limits in a document.
Result<Json> limits_in(const Json& document) {
  if (!document.is_object() || !document.contains("providers")) return document;
  const auto chosen = document.find("default");
  if (chosen == document.end() || !chosen->is_object() || !chosen->contains("limits")) {
    return invalid_program(
        "expected the report of a machine with a GPU that can be used, got one without 'default' "
        "and its 'limits'");
  }
  return Json((*chosen)["limits"]);
}

Result<gpu::Caps> caps_in(const Json& document) {
  PTERYX_ASSIGN(const Json limits, limits_in(document));
  PTERYX_ASSIGN(gpu::Caps caps, caps_of(limits));
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
