// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/gpu/caps.h"

#include <fmt/format.h>
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
            "timestamps max_buffer_bytes=N max_binding_bytes=N max_storage_buffers=N "
            "max_workgroups_per_dim=N max_invocations=N max_workgroup_size_x=N "
            "max_workgroup_bytes=N max_weight_bytes=N");
}

TEST(MaskCaps, LowersLimits) {
  Caps caps = everything();
  ASSERT_TRUE(mask_caps(caps, "max_binding_bytes=4MiB, max_invocations = 128 ,dot4").ok());
  EXPECT_EQ(caps.max_binding_bytes, uint64_t{4} << 20);
  EXPECT_EQ(caps.max_invocations, 128u);
  EXPECT_EQ(caps.max_buffer_bytes, uint64_t{256} << 20);
  EXPECT_EQ(caps.masked, "max_binding_bytes=4194304,max_invocations=128,dot4");
  // Never raises one.
  ASSERT_TRUE(mask_caps(caps, "max_binding_bytes=5MiB,max_buffer_bytes=17GiB").ok());
  EXPECT_EQ(caps.max_binding_bytes, uint64_t{4} << 20);
  EXPECT_EQ(caps.max_buffer_bytes, uint64_t{256} << 20);
}

TEST(MaskCaps, WeightsAreSplitBelowTheLimitOfADevice) {
  Caps caps;
  ASSERT_TRUE(mask_caps(caps, "max_weight_bytes=1KiB").ok());
  EXPECT_EQ(caps.max_weight_bytes, 1024u);
  EXPECT_EQ(caps.max_binding_bytes, Caps().max_binding_bytes);
  for (const Limit& l : all_limits()) EXPECT_NE(l.name, "max_weight_bytes");
}

TEST(MaskCaps, RejectsValuesThatAreNone) {
  for (const char* value : {"", "x", "-1", "0", "4MB", "4 MiB", "255", "18446744073709551615GiB"}) {
    Caps caps = everything();
    const Status status = mask_caps(caps, fmt::format("max_binding_bytes={}", value));
    EXPECT_EQ(status.code(), Code::kInvalidArgument) << value;
    EXPECT_EQ(status.message(),
              fmt::format("disabled 'max_binding_bytes={}': expected a number from 256 on, such "
                          "as 4096, 64KiB or 4MiB",
                          value));
    EXPECT_EQ(caps.max_binding_bytes, Caps().max_binding_bytes);
  }
  Caps caps;
  EXPECT_EQ(mask_caps(caps, "f16=1").code(), Code::kInvalidArgument);
  EXPECT_EQ(mask_caps(caps, "max_binding=4MiB").code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace pteryx::gpu
