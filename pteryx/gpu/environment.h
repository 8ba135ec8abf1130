// The environment of a process, for the mains of the command line tool, the tests and the
// benchmarks. The library neither reads nor sets a variable, so none of its sources includes this.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>

#include "pteryx/gpu/device.h"

namespace pteryx::gpu {

// "" if the variable is not set.
inline std::string variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

// Where things are kept between runs; "": nowhere, no variable names a folder.
inline std::string cache_folder() {
  if (std::string own = variable("PTERYX_CACHE"); !own.empty()) return own;
  if (const std::string xdg = variable("XDG_CACHE_HOME"); xdg.starts_with('/'))
    return (std::filesystem::path(xdg) / "pteryx").string();
  if (const std::string home = variable("HOME"); home.starts_with('/'))
    return (std::filesystem::path(home) / ".cache" / "pteryx").string();
  return {};
}

// Fills the fields left empty from PTERYX_ADAPTER, PTERYX_PROVIDER, PTERYX_WEBGPU_LIBRARY,
// PTERYX_DISABLE and PTERYX_BOUNDS_CHECKS, and the folder.
inline DeviceOptions options_from_environment(DeviceOptions options = {}) {
  if (options.adapter.empty()) options.adapter = variable("PTERYX_ADAPTER");
  if (options.provider.empty()) options.provider = variable("PTERYX_PROVIDER");
  if (options.library.empty()) options.library = variable("PTERYX_WEBGPU_LIBRARY");
  if (options.disable.empty()) options.disable = variable("PTERYX_DISABLE");
  if (options.folder.empty()) options.folder = cache_folder();
  const std::string checks = variable("PTERYX_BOUNDS_CHECKS");
  if (!checks.empty() && checks != "0") options.bounds_checks = true;
  return options;
}

// Tells the Vulkan loader, which can be told by variables only, of the software driver in
// `manifest`: alone where the adapter asked for is "software", else beside the system's drivers.
// A user who chose drivers, and a manifest that is not there, change nothing. Loaders older than
// 1.3.207 do not know VK_ADD_DRIVER_FILES and show the system's drivers alone. To be called before
// there is a second thread: setenv races with whoever reads a variable. On Windows, which has no
// setenv, this would be _putenv_s.
inline void show_software_driver(std::string_view adapter, const char* manifest) {
  const auto is_set = [](const char* name) { return !variable(name).empty(); };
  // Mesa's device-select layer asks the display server and complains on stderr where there is none.
  if (!is_set("XDG_RUNTIME_DIR") && !is_set("NODEVICE_SELECT")) setenv("NODEVICE_SELECT", "1", 1);
  if (is_set("VK_ICD_FILENAMES") || is_set("VK_DRIVER_FILES") || is_set("VK_ADD_DRIVER_FILES"))
    return;
  std::error_code error;
  if (!std::filesystem::exists(manifest, error)) return;
  // Alone, no driver of a GPU is started for nothing, and no other software driver is taken for it.
  setenv(adapter == "software" ? "VK_ICD_FILENAMES" : "VK_ADD_DRIVER_FILES", manifest, 1);
}

}  // namespace pteryx::gpu
