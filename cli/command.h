// What the subcommands share: exit codes, opening the GPU, error output.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "pteryx/gpu/device.h"
#include "pteryx/pteryx.h"

namespace pteryx::cli {

enum Exit : int { kSuccess = 0, kFailed = 1, kUsage = 2, kBadFile = 3, kNoGpu = 4 };

// Prints "pteryx: MESSAGE" to stderr and returns `exit`.
int fail(const Status& status, int exit);
// The exit code of a failed load: whose fault it was.
int load_exit(const Status& status);

// Where and how to run, the same for every subcommand that runs something.
struct RunOptions {
  std::string adapter;
  std::string provider;
  std::string routes;
  std::string precision;
  std::vector<std::string> data_files;
  bool cpu_only = false;
  uint64_t memory_limit_mib = 0;
};
void add_run_options(CLI::App& app, RunOptions& o);
Result<std::shared_ptr<gpu::Device>> open(const RunOptions& o);
std::vector<gpu::ProviderReport> survey();  // gpu::survey() without the libraries' own output
LoadOptions load_options(const RunOptions& o, std::shared_ptr<gpu::Device> device);

// Each adds its subcommand and sets `run` when it was chosen.
using Action = std::function<int()>;
void add_run(CLI::App& app, Action& action);
void add_inspect(CLI::App& app, Action& action);
void add_verify(CLI::App& app, Action& action);
void add_convert(CLI::App& app, Action& action);
void add_synth(CLI::App& app, Action& action);
void add_generate(CLI::App& app, Action& action);
void add_bench(CLI::App& app, Action& action);
void add_eval(CLI::App& app, Action& action);
void add_doctor(CLI::App& app, Action& action);
void add_ops(CLI::App& app, Action& action);

}  // namespace pteryx::cli
