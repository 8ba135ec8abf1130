// How a device is found, and what is said when none is.
// SPDX-License-Identifier: BSD-3-Clause
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "pteryx/gpu/device.h"
#include "pteryx/gpu/environment.h"
#include "pteryx/gpu/native/blocking.h"
#include "pteryx/gpu/native/broken_libraries.h"
#include "pteryx/gpu/testing/compute.h"

namespace pteryx::gpu {
namespace {

TEST(Open, SoftwareIsAlwaysThere) {
  const auto device = open_or_die({.adapter = "software"});
  EXPECT_TRUE(device->caps().software);
  EXPECT_NE(device->caps().adapter.find("llvmpipe"), std::string::npos) << device->caps().adapter;
}

TEST(Open, SoftwareOnlyWhereItIsAskedFor) {
  const DeviceOptions options = {.provider = options_from_environment().provider};
  const auto device = open_device(options);
  if (device.ok()) {
    EXPECT_FALSE((*device)->caps().software);
  } else {
    EXPECT_EQ(device.status().code(), Code::kDevice);
    EXPECT_NE(device.status().message().find("llvmpipe"), std::string::npos)
        << device.status().message();
  }
  const auto either = open_gpu_or_cpu(options);
  ASSERT_TRUE(either.ok()) << either.status().message();
  EXPECT_FALSE((*either)->caps().software);
  EXPECT_EQ((*either)->caps().cpu, !device.ok());
}

TEST(Open, TheCpuWhereThereIsNoLibrary) {
  const auto device = open_gpu_or_cpu({.library = "none"});
  ASSERT_TRUE(device.ok()) << device.status().message();
  EXPECT_TRUE((*device)->caps().cpu);
  EXPECT_EQ(broken_libraries({.library = "none"}), "");
  EXPECT_EQ(open_device({.library = "none"}).status().message(),
            "no GPU adapter can be used: the WebGPU library to use is 'none'");
  EXPECT_TRUE(survey({.library = "none"}).empty());
}

TEST(Open, TheCpuIsNotTakenForALibraryThatIsNamed) {
  EXPECT_EQ(broken_libraries({}), "");
  for (const char* library : {"/nowhere/libwebgpu.so", "libm.so.6"}) {
    const auto device = open_gpu_or_cpu({.library = library});
    ASSERT_FALSE(device.ok()) << library;
    EXPECT_EQ(device.status().code(), Code::kDevice);
    EXPECT_NE(device.status().message().find(library), std::string_view::npos)
        << device.status().message();
  }
}

TEST(Open, TheCpuIsNoAnswerToAWrongQuestion) {
  for (const DeviceOptions& options : {DeviceOptions{.adapter = "no such card"},
                                       {.adapter = "software", .library = "/nowhere/libwebgpu.so"}})
    EXPECT_EQ(open_gpu_or_cpu(options).status().code(), Code::kDevice);
  for (const DeviceOptions& options :
       {DeviceOptions{.provider = "angle"}, {.disable = "tensor_cores"}})
    EXPECT_EQ(open_gpu_or_cpu(options).status().code(), Code::kInvalidArgument);
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
  const Result<std::shared_ptr<Device>> device = open_device({.disable = "f16,tensor_cores"});
  ASSERT_FALSE(device.ok());
  EXPECT_EQ(device.status().code(), Code::kInvalidArgument);
  EXPECT_EQ(device.status().message().find("disabled capability 'tensor_cores' is unknown"), 0u);
}

TEST(Open, DisabledCapabilitiesAreMasked) {
  const auto device = open_or_die({.disable = "f16"});
  EXPECT_FALSE(device->caps().f16);
  EXPECT_EQ(device->caps().masked, "f16");
}

TEST(Open, LibraryThatIsNone) {
  const Result<std::shared_ptr<Device>> device = open_device({.library = "libm.so.6"});
  ASSERT_FALSE(device.ok());
  EXPECT_EQ(device.status().code(), Code::kDevice);
  const std::string message(device.status().message());
  EXPECT_EQ(message,
            "no GPU adapter can be used; tried:\n"
            "  libm.so.6: not a WebGPU library, wgpuCreateInstance is missing");
}

TEST(Open, LibraryThatIsMissing) {
  const Result<std::shared_ptr<Device>> device = open_device({.library = "/nowhere/libwebgpu.so"});
  ASSERT_FALSE(device.ok());
  EXPECT_NE(std::string(device.status().message()).find("/nowhere/libwebgpu.so"),
            std::string::npos);
}

// Whatever the provider asked for, and for both ways to ask.
TEST(Open, LibraryByItsPath) {
  std::string dawn;
  for (const ProviderReport& report : survey()) {
    if (report.provider == "dawn") dawn = report.library;
  }
  const auto device = open_or_die({.provider = "wgpu", .library = dawn});
  EXPECT_EQ(device->caps().provider, "dawn");
  const std::vector<ProviderReport> reports = survey({.library = dawn});
  ASSERT_EQ(reports.size(), 1u);
  EXPECT_EQ(reports[0].library, dawn);
  EXPECT_EQ(reports[0].provider, "dawn");
}

TEST(Open, WithAndWithoutBoundsChecks) {
  for (const bool checks : {false, true}) {
    const auto device = open_or_die({.bounds_checks = checks});
    EXPECT_TRUE(device->caps().bounds_checks || !checks);  // the environment may ask for them, too
    const BufferId buffer = buffer_with(*device, bytes_of(uint32_t{42}));
    EXPECT_EQ(values_from<uint32_t>(*device, buffer, 1), std::vector<uint32_t>{42});
    const PipelineId broken =
        device->create_pipeline({.label = "test/broken", .code = "fn main( {"});
    EXPECT_EQ(settle(*device, broken).code(), Code::kDevice);
  }
}

TEST(Open, NullCompilesSubgroupMatrices) {
  const auto device = open_or_die({.adapter = "null", .provider = "dawn"});
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

TEST(Survey, MasksWhatTheOptionsSay) {
  for (const ProviderReport& report : survey({.disable = "subgroups"})) {
    ASSERT_FALSE(report.adapters.empty());
    for (const AdapterReport& adapter : report.adapters) {
      if (!adapter.problem.empty()) continue;
      EXPECT_FALSE(adapter.caps.subgroups);
    }
  }
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
