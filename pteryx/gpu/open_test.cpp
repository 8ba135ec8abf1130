// How a device is found, and what is said when none is.
// SPDX-License-Identifier: BSD-3-Clause
#include <cstdlib>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "pteryx/gpu/device.h"
#include "pteryx/gpu/native/blocking.h"
#include "pteryx/gpu/testing/compute.h"

namespace pteryx::gpu {
namespace {

// Sets a variable for the time of a test.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) {
    if (const char* before = std::getenv(name)) before_ = before;
    setenv(name, value, 1);
  }
  ~Variable() { before_.empty() ? unsetenv(name_) : setenv(name_, before_.c_str(), 1); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
  std::string before_;
};

TEST(Open, SoftwareIsAlwaysThere) {
  const auto device = open_or_die({.adapter = "software"});
  EXPECT_TRUE(device->caps().software);
  EXPECT_NE(device->caps().adapter.find("llvmpipe"), std::string::npos) << device->caps().adapter;
}

TEST(Open, LeavesTheEnvironmentAsItWas) {
  const char* const before = std::getenv("VK_ICD_FILENAMES");
  const auto device = open_or_die({.adapter = "software"});
  EXPECT_STREQ(std::getenv("VK_ICD_FILENAMES"), before);
}

TEST(Open, FallsBackToSoftware) {
  const Variable any("PTERYX_ADAPTER", "");
  const auto device = open_or_die();
  EXPECT_FALSE(device->caps().adapter.empty());
}

TEST(Open, ByPartOfTheName) {
  const auto device = open_or_die({.adapter = "LLVMpipe"});
  EXPECT_TRUE(device->caps().software);
}

TEST(Open, ByIndex) {
  const std::string provider = open_or_die()->caps().provider;
  for (const ProviderReport& report : survey()) {
    if (report.provider != provider) continue;
    ASSERT_FALSE(report.adapters.empty());
    for (size_t i = 0; i < report.adapters.size(); ++i) {
      if (!report.adapters[i].problem.empty()) continue;
      const auto device = open_or_die({.adapter = std::to_string(i)});
      EXPECT_EQ(device->caps().driver, report.adapters[i].description);
    }
  }
}

TEST(Open, UnknownAdapterListsThoseThereAre) {
  const Result<std::shared_ptr<Device>> device = open_device({.adapter = "no such card"});
  ASSERT_FALSE(device.ok());
  EXPECT_EQ(device.status().code(), Code::kDevice);
  const std::string message(device.status().message());
  EXPECT_EQ(message.find("no GPU adapter that fits 'no such card' can be used; tried:"), 0u);
  EXPECT_NE(message.find("llvmpipe"), std::string::npos) << message;
}

TEST(Open, UnknownProviderListsTheKnown) {
  const Result<std::shared_ptr<Device>> device = open_device({.provider = "angle"});
  ASSERT_FALSE(device.ok());
  EXPECT_EQ(device.status().code(), Code::kInvalidArgument);
  EXPECT_EQ(device.status().message(), "provider 'angle' is unknown; known are dawn wgpu");
}

TEST(Open, UnknownCapabilityIsAnError) {
  const Variable disable("PTERYX_DISABLE", "f16,tensor_cores");
  const Result<std::shared_ptr<Device>> device = open_device();
  ASSERT_FALSE(device.ok());
  EXPECT_EQ(device.status().code(), Code::kInvalidArgument);
  EXPECT_EQ(device.status().message().find("disabled capability 'tensor_cores' is unknown"), 0u);
}

TEST(Open, DisableReadsTheEnvironment) {
  const Variable disable("PTERYX_DISABLE", "f16");
  EXPECT_EQ(open_or_die()->caps().masked, "f16");
}

TEST(Open, LibraryThatIsNone) {
  const Variable library("PTERYX_WEBGPU_LIBRARY", "libm.so.6");
  const Result<std::shared_ptr<Device>> device = open_device();
  ASSERT_FALSE(device.ok());
  EXPECT_EQ(device.status().code(), Code::kDevice);
  const std::string message(device.status().message());
  EXPECT_NE(message.find("libm.so.6: not a WebGPU library, wgpuCreateInstance is missing"),
            std::string::npos)
      << message;
}

TEST(Open, LibraryThatIsMissing) {
  const Variable library("PTERYX_WEBGPU_LIBRARY", "/nowhere/libwebgpu.so");
  const Result<std::shared_ptr<Device>> device = open_device();
  ASSERT_FALSE(device.ok());
  EXPECT_NE(std::string(device.status().message()).find("/nowhere/libwebgpu.so"),
            std::string::npos);
}

TEST(Open, UncheckedComputesTheSame) {
  const auto device = open_or_die({.validate = false});
  const BufferId buffer = buffer_with(*device, bytes_of(uint32_t{42}));
  EXPECT_EQ(values_from<uint32_t>(*device, buffer, 1), std::vector<uint32_t>{42});
  const PipelineId broken = device->create_pipeline({.label = "test/broken", .code = "fn main( {"});
  EXPECT_EQ(settle(*device, broken).code(), Code::kDevice);
}

TEST(Open, NullCompilesSubgroupMatrices) {
  const Variable provider("PTERYX_PROVIDER", "dawn");
  const auto device = open_or_die({.adapter = "null"});
  EXPECT_TRUE(device->caps().subgroup_matrix);
  constexpr BindingKind kKinds[] = {BindingKind::kStorageRead, BindingKind::kStorageReadWrite};
  pipeline_or_die(*device, {.label = "test/matrix",
                            .code = R"(
@group(0) @binding(0) var<storage, read> x: array<f16>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@compute @workgroup_size(128)
fn main() {
  let a = subgroupMatrixLoad<subgroup_matrix_left<f16, 16, 16>>(&x, 0, false, 16);
  let b = subgroupMatrixLoad<subgroup_matrix_right<f16, 16, 16>>(&x, 256, false, 16);
  var c = subgroup_matrix_result<f32, 16, 16>();
  c = subgroupMatrixMultiplyAccumulate(a, b, c);
  subgroupMatrixStore(&y, 0, c, false, 16);
}
)",
                            .constants = {},
                            .bindings = kKinds,
                            .uses_f16 = true,
                            .uses_subgroups = true,
                            .uses_subgroup_matrix = true});
}

TEST(Survey, ShowsEveryLibraryAndAdapter) {
  const std::vector<ProviderReport> reports = survey();
  ASSERT_EQ(reports.size(), 2u);
  for (const ProviderReport& report : reports) {
    EXPECT_EQ(report.problem, "");
    EXPECT_FALSE(report.library.empty());
    bool usable = false;
    for (const AdapterReport& adapter : report.adapters) {
      EXPECT_EQ(adapter.provider, report.provider);
      EXPECT_FALSE(adapter.name.empty());
      EXPECT_EQ(adapter.backend, "vulkan");
      usable = usable || adapter.problem.empty();
    }
    EXPECT_TRUE(usable) << report.provider;
  }
  EXPECT_EQ(reports[0].provider, "dawn");
  EXPECT_EQ(reports[1].provider, "wgpu");
  EXPECT_FALSE(reports[1].version.empty());
}

}  // namespace
}  // namespace pteryx::gpu
