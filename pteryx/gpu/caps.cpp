// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/gpu/caps.h"

#include <algorithm>
#include <iterator>

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

std::string_view trim(std::string_view s) {
  constexpr std::string_view kSpace = " \t\n";
  const size_t first = s.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return {};
  return s.substr(first, s.find_last_not_of(kSpace) - first + 1);
}

Status unknown(std::string_view entry) {
  std::string known;
  for (const Maskable& m : kMaskable) fmt::format_to(std::back_inserter(known), " {}", m.name);
  return invalid_argument(
      fmt::format("disabled capability '{}' is unknown; known are{}", entry, known));
}

void take(Caps& caps, const Maskable& m) {
  if (!(caps.*m.flag)) return;
  caps.*m.flag = false;
  if (!caps.masked.empty()) caps.masked += ',';
  caps.masked += m.name;
}

}  // namespace

Status mask_caps(Caps& caps, std::string_view list) {
  for (size_t at = 0; at <= list.size();) {
    const size_t comma = std::min(list.find(',', at), list.size());
    const std::string_view entry = trim(list.substr(at, comma - at));
    at = comma + 1;
    if (entry.empty()) continue;
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
