// Every kernel file expands and compiles with options drawn at random from those it declares.
// SPDX-License-Identifier: BSD-3-Clause
#include <map>
#include <random>
#include <string>

#include <gtest/gtest.h>

#include "pteryx/gpu/device.h"
#include "pteryx/gpu/native/blocking.h"
#include "pteryx/gpu/testing/compute.h"
#include "pteryx/ops/bind.h"
#include "pteryx/ops/kernel/expand.h"
#include "pteryx/ops/kernel/files.h"
#include "pteryx/ops/op.h"

namespace pteryx::ops {
namespace {

constexpr int kDraws = 12;
constexpr int kTries = 4000;  // most are refused at once, of files with many options

// What stands for pieces of WGSL.
const std::map<std::string, std::string, std::less<>> kTexts = {
    {"unary.wgsl apply", "x"}, {"binary.wgsl apply", "a"}, {"softmax.wgsl result", "x"}};

OptionValue draw(std::string_view file, const OptionDeclaration& o, std::mt19937& random) {
  if (o.kind == OptionDeclaration::Kind::kText) {
    const auto it = kTexts.find(std::string(file) + " " + o.name);
    EXPECT_NE(it, kTexts.end()) << file << ": " << o.name;
    return it == kTexts.end() ? std::string() : it->second;
  }
  if (o.kind == OptionDeclaration::Kind::kChoice) return o.choices[random() % o.choices.size()];
  return o.low + static_cast<int64_t>(random() % static_cast<uint64_t>(o.high - o.low + 1));
}

// What has everything and runs nothing. Its limits are the smallest allowed: of a kernel without
// fault it may say that it needs too much workgroup memory.
gpu::Device& null_device() {
  static const auto device = gpu::open_device({.adapter = "null", .provider = "dawn"});
  EXPECT_TRUE(device.ok()) << device.status().message();
  return **device;
}

Status compile(const Kernel& kernel, std::string_view file) {
  const gpu::Caps& caps = gpu::shared_device()->caps();
  const bool null = kernel.subgroup_matrix && !caps.subgroup_matrix;
  if (!null && ((kernel.f16 && !caps.f16) || (kernel.subgroups && !caps.subgroups))) return {};
  PlannedDispatch d;
  d.label = std::string(file);
  d.code = kernel.code;
  for (const KernelTensor& t : kernel.tensors) d.bindings.push_back({.written = t.is_written()});
  if (kernel.code.find("var<uniform> params") != std::string::npos) d.params.resize(16);
  d.f16 = kernel.f16;
  d.subgroups = kernel.subgroups;
  d.subgroup_matrix = kernel.subgroup_matrix;
  gpu::Device& device = null ? null_device() : *gpu::shared_device();
  Status s = gpu::settle(device, create_pipeline(device, d));
  // The null adapter has less memory for workgroups than devices with such matrices.
  if (null && s.message().find("workgroup storage") != std::string_view::npos) return {};
  return s;
}

TEST(KernelVariants, AllCompile) {
  std::mt19937 random(7);
  int files = 0;
  for (const KernelFile& file : kernel_files()) {
    if (file.name.find("common/") != std::string_view::npos) continue;  // parts of kernels
    const auto declared = declared_options(file.name, kernel_file);
    ASSERT_TRUE(declared.ok()) << declared.status().message();
    int compiled = 0;
    for (int i = 0; i < kTries && compiled < kDraws; ++i) {
      Options options;
      for (const OptionDeclaration& o : *declared) options.set(o.name, draw(file.name, o, random));
      const auto kernel = expand_kernel(file.name, options, kernel_file);
      if (!kernel.ok()) {  // a combination that it refuses
        EXPECT_NE(kernel.status().message().find("it is not so that"), std::string_view::npos)
            << kernel.status().message();
        continue;
      }
      const Status s = compile(*kernel, file.name);
      // One for devices with more of it.
      if (s.message().find("workgroup storage") != std::string_view::npos) continue;
      ++compiled;
      EXPECT_TRUE(s.ok()) << file.name << " with " << options.describe() << ": " << s.message();
    }
    EXPECT_GT(compiled, 0) << file.name;
    ++files;
  }
  EXPECT_GT(files, 0);
}

}  // namespace
}  // namespace pteryx::ops
