// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "pteryx/gpu/device.h"
#include "pteryx/gpu/native/blocking.h"
#include "pteryx/gpu/testing/compute.h"

namespace pteryx::gpu {
namespace {

constexpr BindingKind kOutput[] = {BindingKind::kStorageReadWrite};

constexpr std::string_view kFill = R"(
@group(0) @binding(0) var<storage, read_write> y: array<u32>;
override value: u32 = 1;
override more: u32 = 0;
@compute @workgroup_size(4)
fn main(@builtin(local_invocation_index) i: u32) { y[i] = value + more; }
)";

ShaderDesc fill(std::string_view label, std::span<const Constant> constants) {
  return {.label = label, .code = kFill, .constants = constants, .bindings = kOutput};
}

bool mentions(const Status& status, std::string_view text) {
  return status.message().find(text) != std::string_view::npos;
}

// What the first words of the only binding are after one workgroup.
template <typename T = uint32_t>
std::vector<T> run(Device& device, const ShaderDesc& desc, size_t words) {
  const PipelineId pipeline = pipeline_or_die(device, desc);
  const BufferId y = buffer_or_die(device, {.size = words * 4, .label = "y"});
  const Binding binding = {.buffer = y};
  const Dispatch dispatch = {pipeline, bindings_or_die(device, pipeline, {&binding, 1}), {}};
  EXPECT_TRUE(device.submit({&dispatch, 1}, {}).ok());
  return values_from<T>(device, y, words);
}

TEST(Pipeline, TakesConstants) {
  const auto device = open_or_die();
  const Constant constants[] = {{"value", 40}, {"more", 2}};
  EXPECT_EQ(run(*device, fill("fill", {}), 2), (std::vector<uint32_t>{1, 1}));
  EXPECT_EQ(run(*device, fill("fill", {constants, 1}), 2), (std::vector<uint32_t>{40, 40}));
  EXPECT_EQ(run(*device, fill("fill", constants), 2), (std::vector<uint32_t>{42, 42}));
}

TEST(Pipeline, IsMadeOnceForTheSameShader) {
  const auto device = open_or_die();
  const Constant one[] = {{"value", 1}};
  const Constant two[] = {{"value", 2}};
  const PipelineId a = pipeline_or_die(*device, fill("a", one));
  const PipelineId b = pipeline_or_die(*device, fill("b", two));
  EXPECT_NE(a, b);
  EXPECT_EQ(pipeline_or_die(*device, fill("again", one)), a);
  EXPECT_EQ(pipeline_or_die(*device, fill("again", two)), b);
  std::string other(kFill);
  other += "\n";
  ShaderDesc desc = fill("other text", one);
  desc.code = other;
  EXPECT_NE(pipeline_or_die(*device, desc), a);
  EXPECT_EQ(device->counters().pipelines_created, 3u);
  EXPECT_EQ(device->counters().pipeline_cache_hits, 2u);
}

TEST(Pipeline, ManyCompileAtOnce) {
  const auto device = open_or_die();
  std::vector<PipelineId> ids;
  for (int i = 0; i < 24; ++i) {
    const Constant constant = {"value", static_cast<double>(i)};
    ids.push_back(device->create_pipeline(fill("one of many", {&constant, 1})));
  }
  for (const PipelineId id : ids) ASSERT_TRUE(settle(*device, id).ok());
  const BufferId y = buffer_or_die(*device, {.size = 16, .label = "y"});
  for (uint32_t i = 0; i < 24; ++i) {
    const Binding binding = {.buffer = y};
    const Dispatch dispatch = {ids[i], bindings_or_die(*device, ids[i], {&binding, 1}), {}};
    ASSERT_TRUE(device->submit({&dispatch, 1}, {}).ok());
    EXPECT_EQ(values_from<uint32_t>(*device, y, 1), std::vector<uint32_t>{i});
  }
}

TEST(Pipeline, CloseWhileCompiling) {
  const auto device = open_or_die();
  for (int i = 0; i < 4; ++i) {
    const Constant constant = {"value", static_cast<double>(i)};
    EXPECT_NE(device->create_pipeline(fill("left alone", {&constant, 1})), PipelineId::kNone);
  }
}

TEST(Pipeline, BrokenShaderIsReportedWithLabelAndCompilerText) {
  const auto device = open_or_die();
  const ShaderDesc broken = {.label = "test/broken",
                             .code = "@compute @workgroup_size(1)\nfn main() { let x = nowhere; }",
                             .constants = {},
                             .bindings = {}};
  for (int attempt = 0; attempt < 2; ++attempt) {
    const PipelineId id = device->create_pipeline(broken);
    const Status status = settle(*device, id);
    EXPECT_EQ(status.code(), Code::kDevice);
    EXPECT_TRUE(mentions(status, "shader 'test/broken': ")) << status.message();
    EXPECT_TRUE(mentions(status, "nowhere")) << status.message();
    EXPECT_TRUE(mentions(status, "2:21")) << "the line is not the shader's: " << status.message();

    const Status bindings = settle(*device, device->create_bindings(id, {}, "test"));
    EXPECT_TRUE(mentions(bindings, "test/broken")) << bindings.message();
    const Dispatch dispatch = {id, BindGroupId::kNone, {}};
    const Status submitted = device->submit({&dispatch, 1}, {});
    EXPECT_TRUE(mentions(submitted, "test/broken")) << submitted.message();
  }
  // Nobody else hears of it.
  const PipelineId other = device->create_pipeline(fill("fill", {}));
  device->create_pipeline(broken);
  EXPECT_TRUE(settle(*device, other).ok());
  EXPECT_EQ(run(*device, fill("fill", {}), 1), std::vector<uint32_t>{1});
}

TEST(Pipeline, ErrorsBehindTheCompilerAreReported) {
  const auto device = open_or_die();
  const Constant unknown[] = {{"no_such_constant", 1}};
  const ShaderDesc cases[] = {
      {.label = "test/no_main", .code = "@compute @workgroup_size(1) fn other() {}"},
      {.label = "test/big", .code = "@compute @workgroup_size(100000) fn main() {}"},
      {.label = "test/kind", .code = kFill, .constants = {}, .bindings = {}},
      {.label = "test/constant", .code = kFill, .constants = unknown, .bindings = kOutput},
  };
  for (const ShaderDesc& desc : cases) {
    const Status status = settle(*device, device->create_pipeline(desc));
    EXPECT_EQ(status.code(), Code::kDevice) << desc.label;
    EXPECT_TRUE(mentions(status, desc.label)) << status.message();
  }
  EXPECT_TRUE(device->take_error().ok());
}

TEST(Pipeline, MustBeFinishedBeforeUse) {
  const auto device = open_or_die();
  if (device->caps().provider != "dawn") return;  // the other compiles in create_pipeline
  const PipelineId id = device->create_pipeline(fill("test/unfinished", {}));
  const BufferId y = buffer_or_die(*device, {.size = 16, .label = "y"});
  const Binding binding = {.buffer = y};
  const Dispatch dispatch = {id, bindings_or_die(*device, id, {&binding, 1}), {}};
  const Status status = device->submit({&dispatch, 1}, {});
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_EQ(status.message(), "shader 'test/unfinished' is dispatched before it is settled");
}

TEST(Bindings, MistakesAreNamed) {
  const auto device = open_or_die();
  const PipelineId pipeline = pipeline_or_die(*device, fill("test/fill", {}));
  const BufferId y = buffer_or_die(*device, {.size = 1024, .label = "y"});
  const BufferId params =
      buffer_or_die(*device, {.size = 16, .kind = BufferKind::kUniform, .label = "params"});
  const BufferId gone = buffer_or_die(*device, {.size = 16, .label = "gone"});
  device->destroy(gone);
  struct Case {
    std::vector<Binding> bindings;
    std::string message;
  };
  const std::string start = "bindings 'b' of shader 'test/fill': ";
  const Case cases[] = {
      {{}, start + "expected 1, got 0"},
      {{{.buffer = y}, {.buffer = y}}, start + "expected 1, got 2"},
      {{{.buffer = gone}}, start + "binding 0: its buffer is not on this device"},
      {{{.buffer = params}}, start + "binding 0: expects a storage buffer, 'params' is none"},
      {{{.buffer = y, .offset = 2048}},
       start + "binding 0: 0 bytes at 2048 do not fit buffer 'y' of 1024"},
      {{{.buffer = y, .size = 2048}},
       start + "binding 0: 2048 bytes at 0 do not fit buffer 'y' of 1024"},
      {{{.buffer = y, .offset = 4}},
       start + "binding 0: offset 4 is not a multiple of " +
           std::to_string(device->caps().storage_alignment)},
  };
  for (const Case& c : cases) {
    const BindGroupId id = device->create_bindings(pipeline, c.bindings, "b");
    const Status bindings = settle(*device, id);
    EXPECT_EQ(bindings.code(), Code::kInvalidArgument);
    EXPECT_EQ(bindings.message(), c.message);
    const Dispatch dispatch = {pipeline, id, {}};
    EXPECT_EQ(device->submit({&dispatch, 1}, {}).message(), c.message);
    device->destroy(id);
  }
  EXPECT_EQ(device->counters().bind_groups_created, 0u);
}

TEST(Bindings, CoverPartOfABuffer) {
  const auto device = open_or_die();
  const PipelineId pipeline = pipeline_or_die(*device, fill("test/fill", {}));
  const uint64_t offset = device->caps().storage_alignment;
  const BufferId y = buffer_or_die(*device, {.size = offset * 3, .label = "y"});
  const Binding binding = {.buffer = y, .offset = offset, .size = 8};
  const Dispatch dispatch = {pipeline, bindings_or_die(*device, pipeline, {&binding, 1}), {}};
  ASSERT_TRUE(device->submit({&dispatch, 1}, {}).ok());
  const std::vector<uint32_t> words = values_from<uint32_t>(*device, y, offset * 3 / 4);
  // The shader writes four words, the binding has room for two.
  EXPECT_EQ(std::ranges::count(words, 1u), 2);
  EXPECT_EQ(words[offset / 4], 1u);
  EXPECT_EQ(words[offset / 4 + 1], 1u);
}

constexpr ShaderDesc kHalf = {.label = "test/half",
                              .code = R"(
@group(0) @binding(0) var<storage, read_write> y: array<f32>;
@compute @workgroup_size(1)
fn main() { y[0] = f32(f16(2049.0) + f16(y[0])); }
)",
                              .constants = {},
                              .bindings = kOutput,
                              .uses_f16 = true};
constexpr ShaderDesc kSubgroup = {.label = "test/subgroup",
                                  .code = R"(
@group(0) @binding(0) var<storage, read_write> y: array<u32>;
@compute @workgroup_size(64)
fn main(@builtin(subgroup_size) size: u32, @builtin(local_invocation_index) i: u32) {
  let sum = subgroupAdd(1u);
  if (i == 0u) { y[0] = sum; y[1] = size; }
}
)",
                                  .constants = {},
                                  .bindings = kOutput,
                                  .uses_subgroups = true};

TEST(Features, HalfPrecisionRounds) {
  const auto device = open_or_die();
  ASSERT_TRUE(device->caps().f16) << "the software GPU of the tests has f16";
  EXPECT_EQ(run<float>(*device, kHalf, 1), std::vector<float>{2048});
}

TEST(Features, SubgroupsHaveTheSizeTheCapsTell) {
  const auto device = open_or_die();
  const Caps& caps = device->caps();
  ASSERT_TRUE(caps.subgroups) << "the software GPU of the tests has subgroups";
  const std::vector<uint32_t> y = run(*device, kSubgroup, 2);
  EXPECT_EQ(y[0], y[1]);
  EXPECT_GE(y[1], caps.subgroup_min);
  EXPECT_LE(y[1], caps.subgroup_max);
}

TEST(Features, MaskedOnesAreRefused) {
  const auto device = open_or_die({.disable = "f16,subgroups,dot4"});
  EXPECT_FALSE(device->caps().f16);
  EXPECT_FALSE(device->caps().subgroups);
  EXPECT_EQ(device->caps().subgroup_max, 0u);
  EXPECT_FALSE(device->caps().dot4);
  EXPECT_EQ(device->caps().masked, "f16,subgroups,dot4");
  const Status half = settle(*device, device->create_pipeline(kHalf));
  EXPECT_EQ(half.code(), Code::kUnsupported);
  EXPECT_EQ(half.message(), "shader 'test/half': uses f16, which the device does not offer");
  EXPECT_EQ(settle(*device, device->create_pipeline(kSubgroup)).code(), Code::kUnsupported);
  EXPECT_EQ(run(*device, fill("fill", {}), 1), std::vector<uint32_t>{1});
}

}  // namespace
}  // namespace pteryx::gpu
