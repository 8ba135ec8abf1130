// The device of a command: what chooses it, how it is opened, and what it is called.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <nlohmann/json_fwd.hpp>

#include "progress.h"

#include "pteryx/base/status.h"
#include "pteryx/gpu/device.h"
#include "pteryx/pteryx.h"

namespace pteryx::cli {

struct RunOptions;

enum class DeviceChoice : uint8_t {
  kAuto,  // a GPU; where none can be used and no adapter was named, the CPU
  kGpu,
  kCpu,
};

void add_gpu_options(CLI::App& app, RunOptions& o);     // which GPU
void add_device_options(CLI::App& app, RunOptions& o);  // and whether one at all
// What PTERYX_DEVICE says. Throws CLI::ValidationError.
std::optional<DeviceChoice> device_of_environment();
// Lets the environment fill what the options of the chosen command left open. Throws
// CLI::ValidationError for options that contradict each other.
void choose_device(const CLI::App& app, RunOptions& o);

// `progress` (null: none) shows what takes long. Errors: kDevice with what was tried.
Result<std::shared_ptr<gpu::Device>> open_device(const RunOptions& o, Progress* progress);
// For what makes sense on a GPU only, whatever the choice.
Result<std::shared_ptr<gpu::Device>> open_gpu(const RunOptions& o, Progress* progress);
// Why no GPU can be used; ok: one can.
Status gpu_problem(const RunOptions& o);
// Lets the line tell how many of the shaders asked for from now on are compiled.
void watch_compilation(Progress& progress, const std::shared_ptr<gpu::Device>& device);
// gpu::survey() without the libraries' own output.
std::vector<gpu::ProviderReport> survey(const RunOptions& o);

// "NVIDIA H200 through dawn"; of a CPU its name.
std::string device_text(const gpu::Caps& caps);
// "GPU: NVIDIA H200 (dawn)", "CPU: AMD EPYC 9654".
std::string device_header(const gpu::Caps& caps);
// The same with what a loaded model takes.
std::string load_header(const Session& session, uint64_t gpu_bytes, double load_ms);
// Threads and memory of a session.
void add_use(nlohmann::json& report, const Session& session);
// What JSON has the name of the device under.
inline const char* device_key(const gpu::Caps& caps) { return caps.cpu ? "cpu" : "gpu"; }

}  // namespace pteryx::cli
