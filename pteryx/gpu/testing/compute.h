// Small steps that tests of the GPU repeat: a device, a buffer with contents, a dispatch, the bytes
// back.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <cstring>
#include <memory>
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

#include "pteryx/gpu/device.h"

namespace pteryx::gpu {

// Each fails the running test and ends the process where it cannot go on: without a device there is
// nothing to test.
// Options left empty are those of the environment, see pteryx/gpu/environment.h; where these name
// no adapter either, a GPU or, without one, the software one. With PTERYX_DEVICE=cpu it is the CPU,
// for tests that hold there, too.
std::shared_ptr<Device> open_or_die(const DeviceOptions& options = {});
const std::shared_ptr<Device>& shared_device();  // the default one, opened once
// The same and the CPU, for what must hold on both.
std::array<std::shared_ptr<Device>, 2> gpu_and_cpu();
BufferId buffer_or_die(Device& device, const BufferDesc& desc);
PipelineId pipeline_or_die(Device& device, const ShaderDesc& desc);
BindGroupId bindings_or_die(Device& device, PipelineId pipeline, std::span<const Binding> bindings);

// A storage buffer that holds the bytes.
BufferId buffer_with(Device& device, Bytes bytes, std::string_view label = "input");

// The bytes of a storage buffer, through a readback buffer made for it.
std::vector<std::byte> bytes_from(Device& device, BufferId buffer, uint64_t offset, uint64_t size);

template <typename T>
std::vector<T> values_from(Device& device, BufferId buffer, size_t count) {
  static_assert(std::is_trivially_copyable_v<T>);
  const std::vector<std::byte> bytes = bytes_from(device, buffer, 0, count * sizeof(T));
  std::vector<T> values(bytes.size() / sizeof(T));
  if (!values.empty()) std::memcpy(values.data(), bytes.data(), values.size() * sizeof(T));
  return values;
}

}  // namespace pteryx::gpu
