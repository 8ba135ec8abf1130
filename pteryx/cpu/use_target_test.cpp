// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/cpu/use_target.h"

#include <gtest/gtest.h>
#include <hwy/base.h>

#include "pteryx/cpu/product.h"

namespace pteryx::cpu {
namespace {

// Memory that a thread needs is that of a panel, whose columns are those of the target's vectors.
size_t panel_bytes() { return scratch_bytes({.n = 64, .k = 64}, 8, Precision::kF32); }

TEST(UseTarget, ForcesEachAndGoesBack) {
  const std::vector<std::string> all = targets();
#if HWY_ARCH_X86
  ASSERT_GT(all.size(), 1U);  // at least the one without vector instructions behind another
#endif
  const size_t best = panel_bytes();
  for (const std::string& name : all) {
    ASSERT_TRUE(use_target(name).ok()) << name;
    EXPECT_EQ(targets(), std::vector<std::string>{name});
    EXPECT_LE(panel_bytes(), best) << name;
  }
  ASSERT_TRUE(use_target("").ok());
  EXPECT_EQ(targets(), all);
  EXPECT_EQ(panel_bytes(), best);
}

TEST(UseTarget, KernelsAreOfTheTarget) {
  const std::vector<std::string> all = targets();
  if (all.front().find("AVX") == std::string::npos) return;  // no vector is longer than the last's
  const size_t best = panel_bytes();
  ASSERT_TRUE(use_target(all.back()).ok());
  EXPECT_LT(panel_bytes(), best);
  ASSERT_TRUE(use_target("").ok());
}

TEST(UseTarget, RefusesOthersWithAListAndChangesNothing) {
  const std::vector<std::string> all = targets();
  const Status s = use_target("AVX9");
  EXPECT_EQ(s.code(), Code::kInvalidArgument);
  EXPECT_NE(s.message().find("'AVX9'"), std::string_view::npos) << s.message();
  for (const std::string& name : all)
    EXPECT_NE(s.message().find(name), std::string_view::npos) << s.message();
  EXPECT_EQ(targets(), all);
  ASSERT_TRUE(use_target(all.back()).ok());
  EXPECT_NE(use_target("avx2").message().find(all.front()), std::string_view::npos);
  EXPECT_EQ(targets(), std::vector<std::string>{all.back()});
  ASSERT_TRUE(use_target("").ok());
}

}  // namespace
}  // namespace pteryx::cpu
