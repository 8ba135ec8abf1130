// Which provider and which adapter: open_device.
// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cctype>
#include <charconv>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "pteryx/gpu/cpu_device.h"
#include "pteryx/gpu/native/broken_libraries.h"
#include "pteryx/gpu/native/instance.h"

namespace pteryx::gpu {
namespace {

using native::AdapterRecord;
using native::Backend;
using native::Instance;
using native::ProviderSearch;

std::string lower(std::string_view s) {
  std::string out(s);
  for (char& c : out) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

// What DeviceOptions::adapter asks for.
struct Wish {
  enum class Kind : uint8_t { kHardware, kSoftware, kNull, kIndex, kName };
  Kind kind = Kind::kHardware;
  size_t index = 0;       // among a provider's adapters
  std::string name = {};  // lower case
};

Wish parse_wish(std::string_view adapter) {
  if (adapter.empty()) return {.kind = Wish::Kind::kHardware};
  if (adapter == "software") return {.kind = Wish::Kind::kSoftware};
  if (adapter == "null") return {.kind = Wish::Kind::kNull};
  size_t index = 0;
  const auto [end, error] = std::from_chars(adapter.data(), adapter.data() + adapter.size(), index);
  if (error == std::errc() && end == adapter.data() + adapter.size()) {
    return {.kind = Wish::Kind::kIndex, .index = index};
  }
  return {.kind = Wish::Kind::kName, .name = lower(adapter)};
}

const AdapterRecord* choose(const Wish& wish, std::span<const AdapterRecord> adapters) {
  for (size_t i = 0; i < adapters.size(); ++i) {
    const AdapterRecord& a = adapters[i];
    bool fits = false;
    switch (wish.kind) {
      case Wish::Kind::kNull: fits = true; break;
      case Wish::Kind::kHardware: fits = !a.caps.software; break;
      case Wish::Kind::kSoftware: fits = a.caps.software; break;
      case Wish::Kind::kIndex: fits = i == wish.index; break;
      case Wish::Kind::kName:
        fits = lower(a.name).find(wish.name) != std::string::npos ||
               lower(a.description).find(wish.name) != std::string::npos;
        break;
    }
    if (fits) return &a;
  }
  return nullptr;
}

std::string list_names(std::span<const AdapterRecord> adapters) {
  if (adapters.empty()) return "no adapter";
  std::string names;
  for (const AdapterRecord& a : adapters) {
    if (!names.empty()) names += ", ";
    names += fmt::format("'{}' ({})", a.name, native::name(a.type));
  }
  return names;
}

// A provider, the instance made when it is first looked at, and what went wrong with it.
struct Place {
  ProviderSearch search;
  std::shared_ptr<const Instance> instance = nullptr;
  std::string problem = {};  // not that no adapter fits

  void note(std::string_view text) {
    if (!problem.empty()) problem += "; ";
    problem += text;
  }
  std::string line() const {
    const std::string what = problem.empty() ? list_names(instance->adapters()) : problem;
    return search.name.empty() ? what : fmt::format("{}: {}", search.name, what);
  }
};

// Opens the adapter of one place that fits the wish; null if none does or it cannot be used.
Result<std::shared_ptr<Device>> open_at(Place& place, const Wish& wish,
                                        const DeviceOptions& options) {
  if (place.instance == nullptr) {
    if (!place.problem.empty()) return std::shared_ptr<Device>();
    const bool null = wish.kind == Wish::Kind::kNull;
    auto created = Instance::create(*place.search.found, null ? Backend::kNull : Backend::kDefault);
    if (!created.ok()) {
      place.note(created.status().message());
      return std::shared_ptr<Device>();
    }
    place.instance = std::move(created).value();
  }
  const AdapterRecord* const adapter = choose(wish, place.instance->adapters());
  if (adapter == nullptr) return std::shared_ptr<Device>();
  auto device = native::open_adapter(place.instance, *adapter, options);
  if (!device.ok() && device.status().code() == Code::kDevice) {
    place.note(fmt::format("'{}': {}", adapter->name, device.status().message()));
    return std::shared_ptr<Device>();
  }
  return device;
}

}  // namespace

Result<std::shared_ptr<Device>> open_device(const DeviceOptions& options) {
  Caps known;
  PTERYX_TRY(mask_caps(known, options.disable));
  PTERYX_ASSIGN(const std::vector<ProviderSearch> providers,
                native::find_providers(options.provider, options.library));
  std::vector<Place> places;
  places.reserve(providers.size());
  for (const ProviderSearch& p : providers) places.push_back({.search = p, .problem = p.problem});
  const Wish wish = parse_wish(options.adapter);
  for (Place& place : places) {
    PTERYX_ASSIGN(std::shared_ptr<Device> device, open_at(place, wish, options));
    if (device != nullptr) return device;
  }
  if (places.empty())
    return device_error("no GPU adapter can be used: the WebGPU library to use is 'none'");
  std::string tried;
  for (const Place& place : places) tried += "\n  " + place.line();
  const std::string wanted =
      options.adapter.empty() ? "" : fmt::format(" that fits '{}'", options.adapter);
  return device_error(fmt::format("no GPU adapter{} can be used; tried:{}", wanted, tried));
}

Result<std::shared_ptr<Device>> open_gpu_or_cpu(const DeviceOptions& options) {
  auto device = open_device(options);
  if (device.ok() || !options.adapter.empty() || device.status().code() != Code::kDevice)
    return device;
  if (options.library.empty() && options.provider.empty()) return cpu_device();
  PTERYX_ASSIGN(const std::vector<ProviderSearch> named,
                native::find_providers(options.provider, options.library));
  const bool opened = std::ranges::all_of(named, [](const auto& p) { return p.found != nullptr; });
  return opened ? cpu_device() : std::move(device);
}

std::string broken_libraries(const DeviceOptions& options) {
  std::string lines;
  const auto searches = native::find_providers(options.provider, options.library);
  if (!searches.ok()) return lines;
  for (const ProviderSearch& p : *searches) {
    if (!p.broken) continue;
    if (!lines.empty()) lines += "\n  ";
    lines += fmt::format("{}: {}", p.name, p.problem);
  }
  return lines;
}

}  // namespace pteryx::gpu
