// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/cpu/targets.h"

// Highway's own headers know what is compiled by what was included before.
#include <gtest/gtest.h>
#include <hwy/highway.h>

#include "pteryx/cpu/testing/each_target.h"

namespace pteryx::cpu::testing {

void for_each_target(const std::function<void()>& body) {
  const auto targets = hwy::SupportedAndGeneratedTargets();
  EXPECT_FALSE(targets.empty());
  for (const int64_t target : targets) {
    SCOPED_TRACE(hwy::TargetName(target));
    hwy::GetChosenTarget().Update(target);
    body();
  }
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

}  // namespace pteryx::cpu::testing
