// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/gpu/caps.h"

#include <gtest/gtest.h>

namespace pteryx::gpu {
namespace {

Caps everything() {
  return {.f16 = true,
          .subgroups = true,
          .subgroup_min = 32,
          .subgroup_max = 32,
          .subgroup_matrix = true,
          .dot4 = true,
          .timestamps = true};
}

TEST(MaskCaps, EmptyListTakesNothing) {
  for (const char* list : {"", " ", ",", " , "}) {
    Caps caps = everything();
    ASSERT_TRUE(mask_caps(caps, list).ok());
    EXPECT_TRUE(caps.f16 && caps.subgroups && caps.subgroup_matrix && caps.dot4 && caps.timestamps);
    EXPECT_EQ(caps.subgroup_min, 32u);
    EXPECT_EQ(caps.masked, "");
  }
}

TEST(MaskCaps, TakesWhatIsNamed) {
  Caps caps = everything();
  ASSERT_TRUE(mask_caps(caps, " dot4 ,timestamps").ok());
  EXPECT_FALSE(caps.dot4 || caps.timestamps);
  EXPECT_TRUE(caps.f16 && caps.subgroups && caps.subgroup_matrix);
  EXPECT_EQ(caps.masked, "dot4,timestamps");
}

TEST(MaskCaps, TakesWhatRestsOnIt) {
  Caps no_f16 = everything();
  ASSERT_TRUE(mask_caps(no_f16, "f16").ok());
  EXPECT_FALSE(no_f16.subgroup_matrix);
  EXPECT_TRUE(no_f16.subgroups);

  Caps no_subgroups = everything();
  ASSERT_TRUE(mask_caps(no_subgroups, "subgroups").ok());
  EXPECT_FALSE(no_subgroups.subgroup_matrix);
  EXPECT_EQ(no_subgroups.subgroup_min, 0u);
  EXPECT_EQ(no_subgroups.subgroup_max, 0u);
}

TEST(MaskCaps, NamesOnlyWhatTheAdapterHad) {
  Caps caps = {.f16 = true};
  ASSERT_TRUE(mask_caps(caps, "f16,dot4,f16").ok());
  EXPECT_EQ(caps.masked, "f16");
}

TEST(MaskCaps, RejectsUnknownNamesAndListsTheKnown) {
  Caps caps = everything();
  const Status status = mask_caps(caps, "dot4,fp16");
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_EQ(status.message(),
            "disabled capability 'fp16' is unknown; known are f16 subgroups subgroup_matrix dot4 "
            "timestamps");
}

}  // namespace
}  // namespace pteryx::gpu
