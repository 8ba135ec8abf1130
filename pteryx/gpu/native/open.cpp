// Which provider and which adapter: open_device.
// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cctype>
#include <charconv>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "pteryx/gpu/native/instance.h"

namespace pteryx::gpu {
namespace {

using native::AdapterRecord;
using native::Backend;
using native::Drivers;
using native::Instance;
using native::Provider;
using native::ProviderSearch;

std::string lower(std::string_view s) {
  std::string out(s);
  for (char& c : out) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

// What PTERYX_ADAPTER asks for.
struct Wish {
  enum class Kind : uint8_t { kHardware, kSoftware, kNull, kIndex, kName };
  Kind kind = Kind::kHardware;  // software if there is none
  size_t index = 0;  // among a provider's adapters, system drivers before the software one
  std::string name;  // lower case
};

Wish parse_wish(std::string_view adapter) {
  if (adapter.empty()) return {};
  if (adapter == "software") return {.kind = Wish::Kind::kSoftware};
  if (adapter == "null") return {.kind = Wish::Kind::kNull};
  size_t index = 0;
  const auto [end, error] = std::from_chars(adapter.data(), adapter.data() + adapter.size(), index);
  if (error == std::errc() && end == adapter.data() + adapter.size()) {
    return {.kind = Wish::Kind::kIndex, .index = index};
  }
  return {.kind = Wish::Kind::kName, .name = lower(adapter)};
}

// One place to look for adapters.
struct Place {
  const Provider* provider;
  Drivers drivers = Drivers::kSystem;
  Backend backend = Backend::kDefault;
};

std::vector<Place> places(const Wish& wish, std::span<const ProviderSearch> providers) {
  using enum Drivers;
  std::vector<Place> list;
  const auto add = [&](Drivers drivers, Backend backend = Backend::kDefault) {
    for (const ProviderSearch& p : providers) {
      if (p.found != nullptr) list.push_back({p.found, drivers, backend});
    }
  };
  switch (wish.kind) {
    case Wish::Kind::kNull: add(kSystem, Backend::kNull); break;
    case Wish::Kind::kSoftware: add(kSoftware); break;
    case Wish::Kind::kHardware:
      add(kSystem);
      add(kSoftware);
      break;
    case Wish::Kind::kIndex:
    case Wish::Kind::kName:
      for (const ProviderSearch& p : providers) {
        if (p.found == nullptr) continue;
        list.push_back({p.found, kSystem});
        if (native::software_drivers_differ()) list.push_back({p.found, kSoftware});
      }
      break;
  }
  return list;
}

// How many adapters of the provider under way came before those of this place.
struct Seen {
  const Provider* provider = nullptr;
  size_t count = 0;
};

const AdapterRecord* choose(const Wish& wish, const Place& place,
                            std::span<const AdapterRecord> adapters, Seen& seen) {
  if (seen.provider != place.provider) seen = {place.provider, 0};
  const size_t first = seen.count;
  seen.count += adapters.size();
  for (size_t i = 0; i < adapters.size(); ++i) {
    const AdapterRecord& a = adapters[i];
    const bool software = a.caps.software;
    bool fits = false;
    switch (wish.kind) {
      case Wish::Kind::kNull: fits = true; break;
      case Wish::Kind::kSoftware: fits = software; break;
      case Wish::Kind::kHardware: fits = software == (place.drivers == Drivers::kSoftware); break;
      case Wish::Kind::kIndex: fits = first + i == wish.index; break;
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

// Opens the adapter of one place that fits the wish; null if none does, with a line in `tried`.
Result<std::shared_ptr<Device>> open_at(const Place& place, const Wish& wish,
                                        const DeviceOptions& options, Seen& seen,
                                        std::string& tried) {
  const auto note = [&](std::string_view text) {
    tried += fmt::format("\n  {}{}: {}", place.provider->name(),
                         place.drivers == Drivers::kSoftware ? ", software driver" : "", text);
  };
  auto instance = Instance::create(*place.provider, place.drivers, place.backend);
  if (!instance.ok()) {
    note(instance.status().message());
    return std::shared_ptr<Device>();
  }
  const std::span<const AdapterRecord> adapters = (*instance)->adapters();
  const AdapterRecord* const adapter = choose(wish, place, adapters, seen);
  if (adapter == nullptr) {
    note(list_names(adapters));
    return std::shared_ptr<Device>();
  }
  auto device = native::open_adapter(*instance, *adapter, options);
  if (!device.ok() && device.status().code() == Code::kDevice) {
    note(fmt::format("'{}': {}", adapter->name, device.status().message()));
    return std::shared_ptr<Device>();
  }
  return device;
}

}  // namespace

namespace native {

DeviceOptions with_environment(DeviceOptions options) {
  if (options.adapter.empty()) options.adapter = environment("PTERYX_ADAPTER");
  if (options.provider.empty()) options.provider = environment("PTERYX_PROVIDER");
  if (options.disable.empty()) options.disable = environment("PTERYX_DISABLE");
  const std::string unchecked = environment("PTERYX_UNCHECKED");
  if (!unchecked.empty() && unchecked != "0") options.validate = false;
  return options;
}

}  // namespace native

Result<std::shared_ptr<Device>> open_device(const DeviceOptions& given) {
  const DeviceOptions options = native::with_environment(given);
  Caps known;
  PTERYX_TRY(mask_caps(known, options.disable));
  PTERYX_ASSIGN(const std::vector<ProviderSearch> providers,
                native::find_providers(options.provider));
  std::string tried;
  for (const ProviderSearch& p : providers) {
    if (p.found == nullptr) tried += fmt::format("\n  {}: {}", p.name, p.problem);
  }
  const Wish wish = parse_wish(options.adapter);
  Seen seen;
  for (const Place& place : places(wish, providers)) {
    PTERYX_ASSIGN(std::shared_ptr<Device> device, open_at(place, wish, options, seen, tried));
    if (device != nullptr) return device;
  }
  const std::string wanted =
      options.adapter.empty() ? "" : fmt::format(" that fits '{}'", options.adapter);
  return device_error(fmt::format("no GPU adapter{} can be used; tried:{}", wanted, tried));
}

}  // namespace pteryx::gpu
