// pteryx doctor: WebGPU libraries, adapters and what they can do. SPDX-License-Identifier:
// BSD-3-Clause
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "command.h"

#include "pteryx/gpu/environment.h"

namespace pteryx::cli {
namespace {

using nlohmann::json;

std::string capabilities(const gpu::Caps& c) {
  std::string text;
  const auto add = [&](bool has, const std::string& what) {
    if (has) text += (text.empty() ? "" : ", ") + what;
  };
  add(c.f16, "f16");
  add(c.subgroups, c.subgroup_min == c.subgroup_max
                       ? fmt::format("subgroups of {}", c.subgroup_max)
                       : fmt::format("subgroups of {} to {}", c.subgroup_min, c.subgroup_max));
  add(c.subgroup_matrix, "subgroup matrices");
  add(c.dot4, "dot4");
  add(c.timestamps, "timestamps");
  return text.empty() ? "none beyond WebGPU's core" : text;
}

json limits_json(const gpu::Caps& c) {
  json limits = json::object();
  for (const gpu::Limit& l : gpu::all_limits()) limits[std::string(l.name)] = l.get(c);
  return limits;
}

json capabilities_json(const gpu::Caps& c) {
  return {{"f16", c.f16},
          {"subgroups", c.subgroups},
          {"subgroup_min", c.subgroup_min},
          {"subgroup_max", c.subgroup_max},
          {"subgroup_matrix", c.subgroup_matrix},
          {"dot4", c.dot4},
          {"timestamps", c.timestamps},
          {"software", c.software},
          {"bounds_checks", c.bounds_checks}};
}

json sizes_json(const gpu::Caps& c) {
  return {{"processors", c.sizes.processors}, {"invocations", c.sizes.invocations}};
}

json adapter_json(const gpu::AdapterReport& a) {
  const gpu::Caps& c = a.caps;
  return {{"name", a.name},
          {"vendor", a.vendor},
          {"architecture", a.architecture},
          {"description", a.description},
          {"backend", a.backend},
          {"type", a.type},
          {"driver", c.driver},
          {"problem", a.problem},
          {"masked", c.masked},
          {"capabilities", capabilities_json(c)},
          {"limits", limits_json(c)},
          {"sizes", sizes_json(c)}};
}

void print_adapter(size_t number, const gpu::AdapterReport& a) {
  const gpu::Caps& c = a.caps;
  print("  [{}] {} ({}, {})\n", number, a.name, a.type, a.backend);
  if (!c.driver.empty()) print("      driver        {}\n", c.driver);
  if (!a.problem.empty()) {
    print("      cannot be used: {}\n", a.problem);
    return;
  }
  print("      capabilities  {}\n", capabilities(c));
  if (!c.masked.empty()) print("      disabled      {} (PTERYX_DISABLE)\n", c.masked);
  print(
      "      limits        buffers {} MiB, bindings {} MiB, {} storage buffers, {} invocations, {} "
      "KiB workgroup "
      "memory\n",
      c.max_buffer_bytes >> 20, c.max_binding_bytes >> 20, c.max_storage_buffers, c.max_invocations,
      c.max_workgroup_bytes >> 10);
  print("      size          {} processors of {} invocations (`pteryx tune` measures them)\n",
        c.sizes.processors, c.sizes.invocations);
}

int run(bool as_json) {
  RunOptions options;
  options.device = gpu::options_from_environment();
  // Whatever adapter is asked for, all of them are shown.
  gpu::show_software_driver("", PTERYX_SOFTWARE_ICD);
  const std::vector<gpu::ProviderReport> providers = survey(options);
  const auto device = open_gpu(options, nullptr);
  bool usable = false;
  json list = json::array();
  size_t number = 0;
  for (const gpu::ProviderReport& p : providers) {
    json adapters = json::array();
    if (!as_json) {
      print("{}{}{}\n", p.provider, p.version.empty() ? "" : " " + p.version,
            p.library.empty() ? "" : "  " + p.library);
      if (!p.problem.empty()) print("  {}\n", p.problem);
      number = 0;
    }
    for (const gpu::AdapterReport& a : p.adapters) {
      usable = usable || a.problem.empty();
      adapters.push_back(adapter_json(a));
      if (!as_json) print_adapter(number++, a);
    }
    list.push_back({{"provider", p.provider},
                    {"library", p.library},
                    {"version", p.version},
                    {"problem", p.problem},
                    {"adapters", adapters}});
  }
  if (as_json) {
    json whole = {{"providers", list}};
    if (device.ok())
      whole["default"] = {{"adapter", (*device)->caps().adapter},
                          {"provider", (*device)->caps().provider},
                          {"capabilities", capabilities_json((*device)->caps())},
                          {"limits", limits_json((*device)->caps())},
                          {"sizes", sizes_json((*device)->caps())}};
    else
      whole["problem"] = device.status().message();
    print_json(whole);
  } else if (device.ok()) {
    print("\nPteryx would use {} through {}.\n", (*device)->caps().adapter,
          (*device)->caps().provider);
  }
  if (!device.ok()) note("pteryx: {}\n", printable(device.status().message()));
  return device.ok() && usable ? kSuccess : kNoGpu;
}

}  // namespace

void add_doctor(CLI::App& app, Action& action) {
  auto as_json = std::make_shared<bool>(false);
  CLI::App* sub = app.add_subcommand("doctor", "Show WebGPU libraries, GPUs and what they can do");
  add_json(*sub, *as_json, "print as JSON");
  sub->callback([as_json, &action] { action = [as_json] { return run(*as_json); }; });
}

}  // namespace pteryx::cli
