// Shared parts of the subcommands. SPDX-License-Identifier: BSD-3-Clause
#include "command.h"

#include <array>
#include <chrono>
#include <cstdio>

#include <unistd.h>

#include <fmt/format.h>

namespace pteryx::cli {

int fail(const Status& status, int exit) {
  fmt::print(stderr, "pteryx: {}\n", status.message());
  return exit;
}

int load_exit(const Status& status) {
  switch (status.code()) {
    case Code::kInvalidProgram:
    case Code::kUnsupported:
    case Code::kIo: return kBadFile;
    default: return kFailed;
  }
}

void add_run_options(CLI::App& app, RunOptions& o) {
  app.add_option("--adapter", o.adapter,
                 "GPU to use: its number or part of its name in `pteryx doctor`, or 'software'");
  app.add_option("--provider", o.provider, "WebGPU library: dawn or wgpu")
      ->check(CLI::IsMember({"dawn", "wgpu"}));
  app.add_option("--route", o.routes, "kernel routes to force, e.g. matmul:naive");
  app.add_option("--precision", o.precision,
                 "of matrix products: f32, or f16 to let operands be rounded to f16 where that is "
                 "faster (sums stay f32)")
      ->check(CLI::IsMember({"f32", "f16"}));
  app.add_option("--data", o.data_files, "external data file (.ptd); may be repeated")
      ->type_name("FILE");
  app.add_option("--memory-limit", o.memory_limit_mib,
                 "refuse programs that need more GPU memory (MiB)");
  app.add_flag("--cpu", o.cpu_only, "run on the CPU whatever has a CPU kernel");
}

namespace {

// Holds what WebGPU libraries and drivers write to stderr while they look for GPUs; shown only on
// failure.
class QuietStderr {
 public:
  QuietStderr() : kept_(dup(STDERR_FILENO)), file_(std::tmpfile()) {
    if (file_ != nullptr && kept_ >= 0) dup2(fileno(file_), STDERR_FILENO);
  }
  ~QuietStderr() {
    std::fflush(stderr);
    if (kept_ >= 0) {
      dup2(kept_, STDERR_FILENO);
      close(kept_);
    }
    if (file_ == nullptr) return;
    if (show_ && std::fseek(file_, 0, SEEK_SET) == 0) copy_to_stderr();
    std::fclose(file_);
  }
  QuietStderr(const QuietStderr&) = delete;
  QuietStderr& operator=(const QuietStderr&) = delete;
  void show() { show_ = true; }

 private:
  void copy_to_stderr() const {
    std::array<char, 4096> text{};
    for (size_t n = 1; n > 0;) {
      n = std::fread(text.data(), 1, text.size(), file_);
      std::fwrite(text.data(), 1, n, stderr);
    }
  }

  int kept_;
  std::FILE* file_;
  bool show_ = false;
};

}  // namespace

Result<std::shared_ptr<gpu::Device>> open(const RunOptions& o) {
  QuietStderr quiet;
  auto device = gpu::open_device({.adapter = o.adapter, .provider = o.provider});
  if (!device.ok()) quiet.show();
  return device;
}

std::vector<gpu::ProviderReport> survey() {
  const QuietStderr quiet;
  return gpu::survey();
}

LoadOptions load_options(const RunOptions& o, std::shared_ptr<gpu::Device> device) {
  LoadOptions options;
  options.data_files = o.data_files;
  options.device = std::move(device);
  options.routes = o.routes;
  if (auto p = parse_precision(o.precision); p.ok()) options.precision = *p;
  options.cpu_only = o.cpu_only;
  options.memory_limit = o.memory_limit_mib << 20;
  if (isatty(STDERR_FILENO) != 0) {
    const auto start = std::chrono::steady_clock::now();
    options.progress = [start, shown = false](std::string_view what, uint64_t done,
                                              uint64_t total) mutable {
      if (std::chrono::steady_clock::now() - start < std::chrono::seconds(1)) return true;
      if (total > 0)
        fmt::print(stderr, "\r\033[K{} {} %", what, done * 100 / total);
      else
        fmt::print(stderr, "\r\033[K{}", what);
      if (total > 0 && done >= total) fmt::print(stderr, "\r\033[K");
      std::fflush(stderr);
      return true;
    };
  }
  return options;
}

}  // namespace pteryx::cli
