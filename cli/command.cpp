// Shared parts of the subcommands. SPDX-License-Identifier: BSD-3-Clause
#include "command.h"

#include "interrupt.h"

#include "pteryx/base/excerpt.h"
#include "pteryx/base/same_file.h"
#include "pteryx/convert/file_kind.h"
#include "pteryx/gpu/environment.h"

namespace pteryx::cli {

void add_run_options(CLI::App& app, RunOptions& o) {
  const std::string before = app.option_defaults()->get_group();
  app.option_defaults()->group("Device and precision");
  add_device_options(app, o);
  add_choice(app, "--precision", o.precision, {{"f32", Precision::kF32}, {"f16", Precision::kF16}},
             "precision of matrix products; f16 rounds their operands where that is faster (sums "
             "stay f32)");
  add_data_option(app, o.data_files);
  add_number<uint64_t>(app, "--memory-limit", o.memory_limit_mib, {0, uint64_t{1} << 30},
                       "refuse to load what needs more memory than this, of the GPU or on the CPU, "
                       "in MiB; 0: no limit");
  add_threads_option(app, o.threads);
  app.add_flag("--lock", o.lock,
               "on the CPU: read the weights into memory at once and keep them there");
  app.add_option("--route", o.routes, "kernel routes to force, for tests, e.g. matmul:naive")
      ->type_name("ROUTE,...");
  traits(app.get_option("--precision")).variable = "PTERYX_PRECISION";
  traits(app.get_option("--route")).variable = "PTERYX_ROUTE";
  read_environment(app, o);
  app.option_defaults()->group(before);
}

void read_environment(CLI::App& app, RunOptions& o) {
  // Of the chosen command only: CLI11 would look at the variables for all of them.
  app.parse_complete_callback([&app, &o] {
    choose_device(app, o);
    if (o.routes.empty()) o.routes = gpu::variable("PTERYX_ROUTE");
    const std::string precision = gpu::variable("PTERYX_PRECISION");
    if (!o.precision && !precision.empty()) {
      const auto parsed = parse_precision(precision);
      if (!parsed.ok()) {
        throw CLI::ValidationError(
            "PTERYX_PRECISION", fmt::format("expected f32 or f16, got '{}'", excerpt(precision)));
      }
      o.precision = *parsed;
    }
  });
}

void add_threads_option(CLI::App& app, uint32_t& threads) {
  add_number<uint32_t>(app, "--threads", threads, {0, LoadOptions::kMostThreads},
                       "threads to use on the CPU; 0: one for each core that this process may use");
}

void add_data_option(CLI::App& app, std::vector<std::string>& files) {
  add_words(
      app, "--data", files, [](std::string_view word) { return word.ends_with(".ptd"); },
      "external data file (.ptd); may be repeated")
      ->type_name("FILE");
}

LoadOptions load_options(const RunOptions& o, std::shared_ptr<gpu::Device> device,
                         Progress* progress) {
  LoadOptions options;
  options.data_files = o.data_files;
  options.device = std::move(device);
  options.testing.routes = o.routes;
  options.precision = o.precision.value_or(Precision::kF32);
  options.memory_limit = o.memory_limit_mib << 20;
  options.threads = o.threads;
  options.lock = o.lock;
  options.progress = [progress](std::string_view what, uint64_t done, uint64_t total) {
    if (progress != nullptr) {
      progress->begin(what);
      progress->set(done, total);
    }
    return !InterruptGuard::interrupted();
  };
  return options;
}

std::function<bool(uint64_t, uint64_t)> follow(Progress& progress) {
  return [&progress](uint64_t done, uint64_t total) {
    progress.set(done, total);
    return !InterruptGuard::interrupted();
  };
}

Status expect_program(const std::string& path) {
  using convert::FileKind;
  PTERYX_ASSIGN(const FileKind kind, convert::file_kind(path));
  if (convert::is_convertible(kind)) {
    return invalid_program(
        fmt::format("{} is {}: use `pteryx convert`, or give it to generate or chat as it is", path,
                    convert::describe(kind)));
  }
  if (kind == FileKind::kUnknown || kind == FileKind::kProgram || kind == FileKind::kEmpty)
    return {};  // the loader says what is wrong with it
  return invalid_program(
      fmt::format("{} is {}: expected a .pte program", path, convert::describe(kind)));
}

Status check_output(const std::string& output, const std::vector<std::string>& inputs) {
  for (const std::string& input : inputs) {
    if (!same_file(output, input)) continue;
    return invalid_argument(
        output == input
            ? fmt::format("the output {} is also an input", output)
            : fmt::format("the output {} is the same file as the input {}", output, input));
  }
  return {};
}

}  // namespace pteryx::cli
