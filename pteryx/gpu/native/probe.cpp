// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/gpu/native/probe.h"

#include <utility>

#include "pteryx/base/bytes.h"
#include "pteryx/gpu/native/blocking.h"
#include "pteryx/gpu/native/kernels.h"

namespace pteryx::gpu::native {
namespace {

constexpr BindingKind kOneOutput[] = {BindingKind::kStorageReadWrite};

// The first word that a shader with one output writes.
Result<uint32_t> run_for_word(Device& device, const ShaderDesc& shader) {
  PTERYX_ASSIGN(const PipelineId pipeline, wait_for(device, device.create_pipeline(shader)));
  const BufferId y = device.create_buffer({.size = 4, .label = "probe"});
  const BufferId back =
      device.create_buffer({.size = 4, .kind = BufferKind::kReadback, .label = "probe result"});
  const Binding binding = {.buffer = y};
  const BindGroupId bindings = device.create_bindings(pipeline, {&binding, 1}, "probe");
  const Dispatch dispatch = {.pipeline = pipeline, .bindings = bindings};
  const Copy copy = {.src = y, .dst = back, .size = 4};
  PTERYX_TRY(device.submit({&dispatch, 1}, {&copy, 1}));
  PTERYX_ASSIGN(const Ticket ticket, device.read(back, 0, 4));
  PTERYX_TRY(wait(device, ticket));
  const uint32_t word = read_at<uint32_t>(device.mapped(ticket), 0).value_or(0);
  device.release(ticket);
  device.destroy(bindings);
  device.destroy(y);
  device.destroy(back);
  return word;
}

bool compiles(Device& device, const ShaderDesc& shader) {
  return wait_for(device, device.create_pipeline(shader)).ok();
}

}  // namespace

Status probe(NativeDevice& device, std::string_view disable) {
  Caps caps = device.caps();
  if (caps.subgroups && caps.subgroup_max == 0) {
    const Result<uint32_t> size = run_for_word(device, {.label = "probe/subgroup_size",
                                                        .code = kernels::kSubgroupSize,
                                                        .bindings = kOneOutput,
                                                        .uses_subgroups = true});
    caps.subgroups = size.ok() && *size > 0;
    caps.subgroup_min = caps.subgroup_max = caps.subgroups ? *size : 0;
  }
  if (!device.provider().tells_language_features()) {
    caps.dot4 =
        compiles(device, {.label = "probe/dot4", .code = kernels::kDot4, .bindings = kOneOutput});
    PTERYX_TRY(mask_caps(caps, disable));
  }
  device.complete_caps(std::move(caps));
  return device.take_error();
}

}  // namespace pteryx::gpu::native
