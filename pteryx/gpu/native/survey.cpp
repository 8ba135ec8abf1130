// What `pteryx doctor` shows: every library, every adapter, and whether a device opens on it.
// SPDX-License-Identifier: BSD-3-Clause
#include <utility>

#include "pteryx/gpu/native/instance.h"

namespace pteryx::gpu {
namespace {

using native::AdapterRecord;
using native::Instance;
using native::ProviderSearch;

AdapterReport report_adapter(const std::shared_ptr<const Instance>& instance,
                             const AdapterRecord& adapter, const DeviceOptions& options) {
  AdapterReport report = {.provider = std::string(instance->provider().name()),
                          .name = adapter.name,
                          .vendor = adapter.vendor,
                          .architecture = adapter.architecture,
                          .description = adapter.description,
                          .backend = std::string(native::name(adapter.backend)),
                          .type = std::string(native::name(adapter.type)),
                          .caps = adapter.caps,
                          .problem = {}};
  auto device = native::open_adapter(instance, adapter, options);
  if (device.ok()) {
    report.caps = (*device)->caps();
  } else {
    report.problem = device.status().message();
  }
  return report;
}

ProviderReport report_provider(const ProviderSearch& search, const DeviceOptions& options) {
  ProviderReport report = {.provider = search.name,
                           .library = search.path,
                           .version = {},
                           .problem = search.problem,
                           .adapters = {}};
  if (search.found == nullptr) return report;
  report.version = search.found->version();
  auto instance = Instance::create(*search.found);
  if (!instance.ok()) {
    report.problem = instance.status().message();
    return report;
  }
  for (const AdapterRecord& adapter : (*instance)->adapters()) {
    report.adapters.push_back(report_adapter(*instance, adapter, options));
  }
  return report;
}

}  // namespace

std::vector<ProviderReport> survey(const DeviceOptions& options) {
  std::vector<ProviderReport> reports;
  const auto providers = native::find_providers("", options.library);
  if (!providers.ok()) return reports;
  for (const ProviderSearch& search : *providers) {
    reports.push_back(report_provider(search, options));
  }
  return reports;
}

}  // namespace pteryx::gpu
