// pteryx tune: measures how large a GPU is, and keeps it for later runs.
// SPDX-License-Identifier: BSD-3-Clause
#include <memory>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "command.h"
#include "interrupt.h"

#include "pteryx/gpu/native/sizes.h"

namespace pteryx::cli {
namespace {

struct Options {
  RunOptions run;
  bool reset = false;
  bool as_json = false;
};

// Of other GPUs nothing changes.
int reset(const Options& o, const gpu::Caps& caps) {
  const auto had = gpu::forget_sizes(o.run.device.folder, caps.adapter);
  if (!had.ok()) return fail(had.status());
  if (o.as_json) {
    print_json({{"adapter", caps.adapter}, {"forgotten", *had}});
  } else {
    print("{}: {}\n", caps.adapter, *had ? "what was measured is forgotten" : "nothing was kept");
  }
  return kSuccess;
}

int measure(const Options& o, gpu::Device& device, Progress& progress) {
  progress.begin("measuring");
  const auto sizes = gpu::measure_sizes(device);
  progress.end();
  if (!sizes.ok()) return fail(sizes.status());
  const gpu::Caps& caps = device.caps();
  const auto kept = gpu::keep_sizes(o.run.device.folder, caps.adapter, *sizes);
  if (!kept.ok()) return fail(kept.status());
  if (o.as_json) {
    print_json({{"adapter", caps.adapter},
                {"processors", sizes->processors},
                {"invocations", sizes->invocations},
                {"file", *kept}});
    return kSuccess;
  }
  print("{} through {}\n", caps.adapter, caps.provider);
  print("processors   {:>6}  that run workgroups at the same time\n", sizes->processors);
  print("invocations  {:>6}  that each of them holds\n", sizes->invocations);
  print("kept in {}: kernels are chosen by it from now on\n", *kept);
  return kSuccess;
}

int run(const Options& o) {
  if (o.run.device.folder.empty())
    return fail(
        io_error("there is no folder to keep it in: set PTERYX_CACHE, XDG_CACHE_HOME or HOME"));
  const InterruptGuard guard;
  Progress progress("opening the GPU");
  const auto device = open_gpu(o.run, &progress);
  if (!device.ok()) return fail(device.status());
  return o.reset ? reset(o, (*device)->caps()) : measure(o, **device, progress);
}

}  // namespace

void add_tune(CLI::App& app, Action& action) {
  auto o = std::make_shared<Options>();
  CLI::App* sub = app.add_subcommand(
      "tune", "Measure how large the GPU is, in seconds, and choose kernels by it from now on");
  sub->add_flag("--reset", o->reset, "forget what was measured of this GPU");
  add_gpu_options(*sub, o->run);
  add_json(*sub, o->as_json, "print as JSON");
  read_environment(*sub, o->run);
  sub->callback([o, &action] { action = [o] { return run(*o); }; });
}

}  // namespace pteryx::cli
