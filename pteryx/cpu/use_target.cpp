// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/cpu/targets.h"

// Highway's own headers know what is compiled by what was included before.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <hwy/highway.h>

#include "pteryx/cpu/use_target.h"

namespace pteryx::cpu {

std::vector<std::string> targets() {
  std::vector<std::string> names;
  for (const int64_t target : hwy::SupportedAndGeneratedTargets())
    names.emplace_back(hwy::TargetName(target));
  return names;
}

Status use_target(std::string_view name) {
  const int64_t before = hwy::SupportedTargets();
  hwy::SetSupportedTargetsForTest(0);  // all that the processor runs
  int64_t chosen = 0;
  for (const int64_t target : hwy::SupportedAndGeneratedTargets()) {
    if (name == hwy::TargetName(target)) chosen = target;
  }
  if (chosen == 0 && !name.empty()) {
    const std::vector<std::string> all = targets();
    hwy::SetSupportedTargetsForTest(before);
    return invalid_argument(fmt::format("expected a target of this processor ({}), got '{}'",
                                        fmt::join(all, ", "), name));
  }
  hwy::SetSupportedTargetsForTest(chosen);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  return {};
}

}  // namespace pteryx::cpu
