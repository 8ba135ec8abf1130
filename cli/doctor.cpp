// pteryx doctor: WebGPU libraries, adapters and what they can do. SPDX-License-Identifier:
// BSD-3-Clause
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "command.h"

#include "pteryx/cpu/processors.h"
#include "pteryx/cpu/use_target.h"
#include "pteryx/gpu/cpu_device.h"
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

// What a run without options would use, and why it is not a GPU.
struct Found {
  std::shared_ptr<gpu::Device> device;  // null: nothing can be used
  Status problem;                       // with GPUs
};

Found find_device(const RunOptions& options) {
  auto device = open_device(options, nullptr);
  if (!device.ok()) return {.device = nullptr, .problem = std::move(device).status()};
  const bool instead = (*device)->caps().cpu && options.choice != DeviceChoice::kCpu;
  return {.device = *device, .problem = instead ? gpu_problem(options) : Status()};
}

json providers_json(const std::vector<gpu::ProviderReport>& providers) {
  json list = json::array();
  for (const gpu::ProviderReport& p : providers) {
    json adapters = json::array();
    for (const gpu::AdapterReport& a : p.adapters) adapters.push_back(adapter_json(a));
    list.push_back({{"provider", p.provider},
                    {"library", p.library},
                    {"version", p.version},
                    {"problem", p.problem},
                    {"adapters", adapters}});
  }
  return list;
}

json cpu_json() {
  const cpu::Processors p = cpu::processors();
  return {{"name", gpu::cpu_name()},
          {"target", cpu::targets().front()},
          {"threads", p.usable()},
          {"threads_reason", p.reason()},
          {"processors",
           {{"online", p.online},
            {"allowed", p.allowed},
            {"cores", p.cores},
            {"quota", p.quota ? json(*p.quota) : json()}}}};
}

json default_json(const gpu::Caps& c) {
  if (c.cpu) return {{"cpu", c.adapter}};
  return {{"adapter", c.adapter},
          {"provider", c.provider},
          {"capabilities", capabilities_json(c)},
          {"limits", limits_json(c)},
          {"sizes", sizes_json(c)}};
}

void print_providers(const std::vector<gpu::ProviderReport>& providers) {
  for (const gpu::ProviderReport& p : providers) {
    print("{}{}{}\n", p.provider, p.version.empty() ? "" : " " + p.version,
          p.library.empty() ? "" : "  " + p.library);
    if (!p.problem.empty()) print("  {}\n", p.problem);
    for (size_t i = 0; i < p.adapters.size(); ++i) print_adapter(i, p.adapters[i]);
  }
}

void print_cpu() {
  const cpu::Processors p = cpu::processors();
  print("CPU  {}\n", gpu::cpu_name());
  print("      kernels       {}\n", cpu::targets().front());
  print("      threads       {}: {}\n", p.usable(), p.reason());
}

// Why a run without options would use what it would.
std::string reason(const RunOptions& options, const Found& found) {
  if (options.choice == DeviceChoice::kCpu) return "PTERYX_DEVICE asks for the CPU";
  if (found.device->caps().cpu) return "no GPU can be used";
  if (!options.device.adapter.empty())
    return fmt::format("PTERYX_ADAPTER asks for '{}'", printable(options.device.adapter));
  if (options.choice == DeviceChoice::kGpu) return "PTERYX_DEVICE asks for a GPU";
  return "a GPU is taken where there is one";
}

void print_choice(const RunOptions& options, const Found& found) {
  const gpu::Caps& caps = found.device->caps();
  if (caps.cpu && options.choice != DeviceChoice::kCpu) {
    print("\n{}\nSoftware GPUs are used only where they are asked for: --adapter software.\n",
          printable(found.problem.message()));
  } else {
    print("\n{}.\n", reason(options, found));
  }
  print("Pteryx would use {}{}.\n", caps.cpu ? "the CPU: " : "", device_text(caps));
}

int run(const RunOptions& options, bool as_json) {
  const std::vector<gpu::ProviderReport> providers = survey(options);
  const Found found = find_device(options);
  if (as_json) {
    json whole = {{"providers", providers_json(providers)}, {"cpu", cpu_json()}};
    if (found.device != nullptr) {
      whole["default"] = default_json(found.device->caps());
      whole["reason"] = reason(options, found);
    }
    if (!found.problem.ok()) whole["problem"] = found.problem.message();
    print_json(whole);
  } else {
    print_providers(providers);
    print_cpu();
    if (found.device != nullptr) print_choice(options, found);
  }
  if (found.device != nullptr) return kSuccess;
  note("pteryx: {}\n", printable(found.problem.message()));
  return kNoGpu;
}

}  // namespace

void add_doctor(CLI::App& app, Action& action) {
  auto as_json = std::make_shared<bool>(false);
  CLI::App* sub = app.add_subcommand(
      "doctor", "Show WebGPU libraries, GPUs, the CPU, and what a run would use and why");
  add_json(*sub, *as_json, "print as JSON");
  sub->callback([as_json, &action] {
    RunOptions options{.choice = device_of_environment(),
                       .device = gpu::options_from_environment()};
    // Whatever adapter is asked for, all of them are shown.
    gpu::show_software_driver("", PTERYX_SOFTWARE_ICD);
    action = [as_json, options] { return run(options, *as_json); };
  });
}

}  // namespace pteryx::cli
