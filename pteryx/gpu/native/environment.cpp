// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/gpu/native/environment.h"

#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <system_error>

// Set by the build to the manifest of the driver that scripts/setup brings.
#ifndef PTERYX_SOFTWARE_ICD
#define PTERYX_SOFTWARE_ICD ""
#endif

namespace pteryx::gpu::native {
namespace {

std::mutex& scope_mutex() {
  static std::mutex mutex;
  return mutex;
}

bool is_set(const char* name) { return !environment(name).empty(); }

}  // namespace

std::string environment(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

bool software_drivers_differ() {
  std::error_code error;
  return !is_set("VK_ICD_FILENAMES") && !is_set("VK_DRIVER_FILES") &&
         std::filesystem::exists(PTERYX_SOFTWARE_ICD, error);
}

DriverScope::DriverScope(Drivers drivers) : lock_(scope_mutex()) {
  if (drivers == Drivers::kSoftware && software_drivers_differ()) {
    set("VK_ICD_FILENAMES", PTERYX_SOFTWARE_ICD);
  }
  // Mesa's device-select layer asks the display server and complains on stderr where there is none.
  if (!is_set("XDG_RUNTIME_DIR") && !is_set("NODEVICE_SELECT")) set("NODEVICE_SELECT", "1");
}

DriverScope::~DriverScope() {
  for (const char* name : added_) unsetenv(name);
}

void DriverScope::set(const char* name, const char* value) {
  setenv(name, value, 1);
  added_.push_back(name);
}

}  // namespace pteryx::gpu::native
