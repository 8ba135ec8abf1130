// What the subcommands share: options of a run, and their list.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "arguments.h"
#include "device.h"
#include "output.h"
#include "progress.h"

#include "pteryx/gpu/device.h"
#include "pteryx/pteryx.h"

namespace pteryx::cli {

// Where and how to run, the same for every subcommand that runs something.
struct RunOptions {
  std::optional<DeviceChoice> choice;
  gpu::DeviceOptions device;  // of the GPU
  std::string routes;
  std::optional<Precision> precision;
  std::vector<std::string> data_files;
  uint64_t memory_limit_mib = 0;  // 0: none
  uint32_t threads = 0;           // 0: as many as this process may use cores
  bool lock = false;
};
void add_run_options(CLI::App& app, RunOptions& o);
// Lets the environment fill, once the command is chosen and parsed, what its options left empty.
void read_environment(CLI::App& app, RunOptions& o);
// --threads, of what runs on the CPU.
void add_threads_option(CLI::App& app, uint32_t& threads);
void add_data_option(CLI::App& app, std::vector<std::string>& files);
// `progress` (null: none) shows what takes long.
LoadOptions load_options(const RunOptions& o, std::shared_ptr<gpu::Device> device,
                         Progress* progress);

// For what says how far it is: shows it, and stops it when the user does.
std::function<bool(uint64_t done, uint64_t total)> follow(Progress& progress);

// That a file is a program, and else what it is and what to do with it. Errors: kIo,
// kInvalidProgram.
Status expect_program(const std::string& path);
// Refuses to write over something that is read. Errors: kInvalidArgument.
Status check_output(const std::string& output, const std::vector<std::string>& inputs);

// Each adds its subcommand and sets `action` when it was chosen.
using Action = std::function<int()>;
void add_run(CLI::App& app, Action& action);
void add_inspect(CLI::App& app, Action& action);
void add_verify(CLI::App& app, Action& action);
void add_convert(CLI::App& app, Action& action);
void add_synth(CLI::App& app, Action& action);
void add_generate(CLI::App& app, Action& action);
void add_chat(CLI::App& app, Action& action);
void add_bench(CLI::App& app, Action& action);
void add_profile(CLI::App& app, Action& action);
void add_eval(CLI::App& app, Action& action);
void add_cache(CLI::App& app, Action& action);
void add_tune(CLI::App& app, Action& action);
void add_doctor(CLI::App& app, Action& action);
void add_ops(CLI::App& app, Action& action);
void add_completion(CLI::App& app, Action& action);
void add_man(CLI::App& app, Action& action);

}  // namespace pteryx::cli
