// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/gpu/caps.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <limits>
#include <optional>

#include <fmt/format.h>

namespace pteryx::gpu {
namespace {

struct Maskable {
  std::string_view name;
  bool Caps::* flag;
};
constexpr Maskable kMaskable[] = {
    {"f16", &Caps::f16},
    {"subgroups", &Caps::subgroups},
    {"subgroup_matrix", &Caps::subgroup_matrix},
    {"dot4", &Caps::dot4},
    {"timestamps", &Caps::timestamps},
};

constexpr Limit kLimits[] = {
    {"max_buffer_bytes", 4096, &Caps::max_buffer_bytes, nullptr},
    {"max_binding_bytes", 256, &Caps::max_binding_bytes, nullptr},
    {"max_storage_buffers", 8, nullptr, &Caps::max_storage_buffers},
    {"max_workgroups_per_dim", 256, nullptr, &Caps::max_workgroups_per_dim},
    {"max_invocations", 64, nullptr, &Caps::max_invocations},
    {"max_workgroup_size_x", 64, nullptr, &Caps::max_workgroup_size_x},
    {"max_workgroup_bytes", 4096, nullptr, &Caps::max_workgroup_bytes},
    {"max_weight_bytes", 16, &Caps::max_weight_bytes, nullptr},
};

std::string_view trim(std::string_view s) {
  constexpr std::string_view kSpace = " \t\n";
  const size_t first = s.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return {};
  return s.substr(first, s.find_last_not_of(kSpace) - first + 1);
}

Status unknown(std::string_view entry) {
  std::string known;
  for (const Maskable& m : kMaskable) fmt::format_to(std::back_inserter(known), " {}", m.name);
  for (const Limit& l : kLimits) fmt::format_to(std::back_inserter(known), " {}=N", l.name);
  return invalid_argument(
      fmt::format("disabled capability '{}' is unknown; known are{}", entry, known));
}

void add_masked(Caps& caps, std::string_view text) {
  if (!caps.masked.empty()) caps.masked += ',';
  caps.masked += text;
}

void take(Caps& caps, const Maskable& m) {
  if (!(caps.*m.flag)) return;
  caps.*m.flag = false;
  add_masked(caps, m.name);
}

// "4096", "64KiB", "4MiB", "1GiB".
std::optional<uint64_t> parse_size(std::string_view text) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) return std::nullopt;
  const std::string_view unit(end, static_cast<size_t>(text.data() + text.size() - end));
  const uint32_t shift = unit == "KiB" ? 10 : unit == "MiB" ? 20 : unit == "GiB" ? 30 : 0;
  if ((shift == 0 && !unit.empty()) || value > std::numeric_limits<uint64_t>::max() >> shift)
    return std::nullopt;
  return value << shift;
}

Status lower(Caps& caps, const Limit& l, std::string_view text) {
  const std::optional<uint64_t> value = parse_size(text);
  if (!value || *value < l.least) {
    return invalid_argument(
        fmt::format("disabled '{}={}': expected a number from {} on, such as 4096, 64KiB or 4MiB",
                    l.name, text, l.least));
  }
  if (*value >= l.get(caps)) return {};
  l.set(caps, *value);
  add_masked(caps, fmt::format("{}={}", l.name, *value));
  return {};
}

}  // namespace

void Limit::set(Caps& caps, uint64_t value) const {
  if (wide != nullptr) {
    caps.*wide = value;
  } else {
    caps.*narrow =
        static_cast<uint32_t>(std::min<uint64_t>(value, std::numeric_limits<uint32_t>::max()));
  }
}

std::span<const Limit> all_limits() {
  return std::span(kLimits).first(std::size(kLimits) - 1);  // the last is none of a device's
}

Status mask_caps(Caps& caps, std::string_view list) {
  for (size_t at = 0; at <= list.size();) {
    const size_t comma = std::min(list.find(',', at), list.size());
    const std::string_view entry = trim(list.substr(at, comma - at));
    at = comma + 1;
    if (entry.empty()) continue;
    const size_t equals = std::min(entry.find('='), entry.size());
    if (equals < entry.size()) {
      const auto* const l = std::ranges::find(kLimits, trim(entry.substr(0, equals)), &Limit::name);
      if (l == std::end(kLimits)) return unknown(entry);
      PTERYX_TRY(lower(caps, *l, trim(entry.substr(equals + 1))));
      continue;
    }
    const auto* const m = std::ranges::find(kMaskable, entry, &Maskable::name);
    if (m == std::end(kMaskable)) return unknown(entry);
    take(caps, *m);
  }
  if (!caps.subgroups) caps.subgroup_min = caps.subgroup_max = 0;
  // A subgroup matrix is loaded from f16 by a subgroup.
  if (!caps.f16 || !caps.subgroups) caps.subgroup_matrix = false;
  return ok_status();
}

}  // namespace pteryx::gpu
