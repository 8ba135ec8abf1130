// What the adapter can do, asked once. DeviceOptions::disable masks entries, so that every route
// and every limit can be tested anywhere.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>

#include "pteryx/base/status.h"

namespace pteryx::gpu {

// How much of a GPU there is to keep busy: tiles, teams and cuts are chosen by it. Nothing fails
// where it is wrong, things only take longer.
struct Sizes {
  uint32_t processors = 32;     // that run workgroups at the same time
  uint32_t invocations = 1024;  // that each of them holds

  // Half of all invocations that it holds: those hide the latency of its memory.
  int64_t enough_invocations() const { return int64_t{processors} * invocations / 2; }
  bool operator==(const Sizes&) const = default;
};

struct Caps {
  bool f16 = false;
  bool subgroups = false;
  uint32_t subgroup_min = 0;  // equal where the size is fixed
  uint32_t subgroup_max = 0;
  bool subgroup_matrix = false;  // f16 x f16 -> f32, 16x16x16
  bool dot4 = false;             // dot4I8Packed
  bool timestamps = false;
  double timestamp_ns = 1;  // of one tick
  bool software = false;    // a CPU pretending
  // Compiles large kernels in minutes, and takes gigabytes for it, as the software GPU of Chromium
  // does: small ones are taken instead where there are some.
  bool slow_compiler = false;
  bool cpu = false;  // no GPU at all: host memory and no shaders, see cpu_device.h
  // The library checks every access of a shader to memory: always in browsers, and natively where
  // DeviceOptions ask for it. Kernels are correct either way, and chosen by what it costs.
  bool bounds_checks = true;
  Sizes sizes;

  // Limits, as WebGPU promises them everywhere.
  uint64_t max_buffer_bytes = uint64_t{256} << 20;
  uint64_t max_binding_bytes = uint64_t{128} << 20;  // of storage
  // Of weights that are not split. No device has such a limit: masks lower it, so that small models
  // have parts as well.
  uint64_t max_weight_bytes = std::numeric_limits<uint64_t>::max();
  uint32_t max_storage_buffers = 8;  // per stage
  uint32_t max_workgroups_per_dim = 65535;
  uint32_t max_invocations = 256;  // per workgroup
  uint32_t max_workgroup_size_x = 256;
  uint32_t max_workgroup_bytes = 16384;
  uint32_t uniform_alignment = 256;
  uint32_t storage_alignment = 256;

  std::string adapter;   // "llvmpipe (LLVM 15.0.6, 256 bits)"; of a CPU, its name
  std::string provider;  // "dawn", "wgpu"; "" of a CPU
  std::string driver;
  std::string masked;  // what DeviceOptions::disable took away, for doctor
};

// A limit by the name that masks, files and messages have for it: that of the field.
struct Limit {
  std::string_view name;
  uint64_t least;  // that Pteryx can work with
  uint64_t Caps::* wide;
  uint32_t Caps::* narrow;  // where `wide` is null

  uint64_t get(const Caps& caps) const { return wide != nullptr ? caps.*wide : caps.*narrow; }
  void set(Caps& caps, uint64_t value) const;  // at most what the field holds
};
std::span<const Limit> all_limits();  // of devices

// Takes the capabilities named in a list such as "f16,subgroups" out of caps, and those that rest
// on them, and lowers limits that it gives a value, as "max_binding_bytes=4MiB" does; caps.masked
// then names what the adapter had. Errors: kInvalidArgument for an unknown name, with the known
// ones, and for a value that is none.
Status mask_caps(Caps& caps, std::string_view list);

}  // namespace pteryx::gpu
