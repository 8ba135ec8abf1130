// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/gpu/testing/compute.h"

#include <cstdio>
#include <cstdlib>
#include <utility>

#include <gtest/gtest.h>

#include "pteryx/base/checked.h"
#include "pteryx/gpu/cpu_device.h"
#include "pteryx/gpu/environment.h"
#include "pteryx/gpu/native/blocking.h"

namespace pteryx::gpu {
namespace {

void or_die(const Status& status, std::string_view what) {
  if (status.ok()) return;
  ADD_FAILURE() << what << ": " << status.message();
  std::fprintf(stderr, "%.*s: %.*s\n", static_cast<int>(what.size()), what.data(),
               static_cast<int>(status.message().size()), status.message().data());
  std::abort();
}

template <typename T>
T or_die(Result<T> result, std::string_view what) {
  if (!result.ok()) or_die(result.status(), what);
  return std::move(result).value();
}

}  // namespace

std::shared_ptr<Device> open_or_die(const DeviceOptions& options) {
  if (variable("PTERYX_DEVICE") == "cpu") return cpu_device();
  DeviceOptions all = options_from_environment(options);
  all.folder = options.folder;  // what a user keeps is nothing to tests
  if (all.adapter.empty()) {
    if (auto gpu = open_device(all); gpu.ok()) return std::move(gpu).value();
    all.adapter = "software";
  }
  return or_die(open_device(all), "open_device");
}

const std::shared_ptr<Device>& shared_device() {
  static const std::shared_ptr<Device> device = open_or_die();
  return device;
}

std::array<std::shared_ptr<Device>, 2> gpu_and_cpu() { return {shared_device(), cpu_device()}; }

BufferId buffer_or_die(Device& device, const BufferDesc& desc) {
  return or_die(wait_for(device, device.create_buffer(desc)), "create_buffer");
}

PipelineId pipeline_or_die(Device& device, const ShaderDesc& desc) {
  return or_die(wait_for(device, device.create_pipeline(desc)), "create_pipeline");
}

BindGroupId bindings_or_die(Device& device, PipelineId pipeline,
                            std::span<const Binding> bindings) {
  return or_die(wait_for(device, device.create_bindings(pipeline, bindings, "test")),
                "create_bindings");
}

BufferId buffer_with(Device& device, Bytes bytes, std::string_view label) {
  const BufferId id = buffer_or_die(device, {.size = bytes.size(), .label = label});
  or_die(device.write(id, 0, bytes), "write");
  return id;
}

std::vector<std::byte> bytes_from(Device& device, BufferId buffer, uint64_t offset, uint64_t size) {
  const uint64_t padded = align_up(size, 4);
  const BufferId back =
      buffer_or_die(device, {.size = padded, .kind = BufferKind::kReadback, .label = "result"});
  const Copy copy = {.src = buffer, .src_offset = offset, .dst = back, .size = padded};
  or_die(device.submit({}, {&copy, 1}), "submit");
  const Ticket ticket = or_die(device.read(back, 0, size), "read");
  or_die(wait(device, ticket), "wait");
  const Bytes bytes = device.mapped(ticket);
  std::vector<std::byte> copied(bytes.begin(), bytes.end());
  device.release(ticket);
  device.destroy(back);
  return copied;
}

}  // namespace pteryx::gpu
