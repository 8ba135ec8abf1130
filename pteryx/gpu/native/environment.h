// The process environment: what the user set, and what the Vulkan loader is shown while adapters
// are looked for.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

namespace pteryx::gpu::native {

// "" if the variable is not set.
std::string environment(const char* name);

enum class Drivers : uint8_t {
  kSystem,    // those the Vulkan loader finds
  kSoftware,  // the software driver of the build alone, unless the user chose drivers or it is not
              // there
};

// Whether kSoftware shows other drivers than kSystem.
bool software_drivers_differ();

// Shows the Vulkan loader the given drivers for the lifetime of the object. The loader reads its
// variables when an instance looks for adapters. Variables belong to the whole process: one scope
// at a time, and a thread that changes others meanwhile races with it, as with any setenv.
class DriverScope {
 public:
  explicit DriverScope(Drivers drivers);
  ~DriverScope();
  DriverScope(const DriverScope&) = delete;
  DriverScope& operator=(const DriverScope&) = delete;

 private:
  void set(const char* name, const char* value);

  std::lock_guard<std::mutex> lock_;
  std::vector<const char*> added_;  // none of them was set before
};

}  // namespace pteryx::gpu::native
