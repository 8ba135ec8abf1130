// SPDX-License-Identifier: BSD-3-Clause
#include "device.h"

#include <algorithm>
#include <array>
#include <cstdio>

#include <unistd.h>

#include "cache.h"
#include "command.h"

#include "pteryx/base/excerpt.h"
#include "pteryx/gpu/cpu_device.h"
#include "pteryx/gpu/environment.h"

namespace pteryx::cli {
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

const Choices<std::optional<DeviceChoice>>& choices() {
  static const Choices<std::optional<DeviceChoice>> all = {
      {"auto", DeviceChoice::kAuto}, {"gpu", DeviceChoice::kGpu}, {"cpu", DeviceChoice::kCpu}};
  return all;
}

// An error of the libraries is not the caller's fault, and the variable not his option.
Status no_gpu(const RunOptions& o, const Status& s, std::string_view hint) {
  Status problem = device_error(std::string(s.message()) + std::string(hint));
  if (o.device.library.empty()) return problem;
  return std::move(problem).during("using the library that PTERYX_WEBGPU_LIBRARY names");
}

Result<std::shared_ptr<gpu::Device>> open(
    const RunOptions& o, Progress* progress, std::string_view hint,
    Result<std::shared_ptr<gpu::Device>> (*open_by)(const gpu::DeviceOptions&)) {
  if (progress != nullptr) progress->begin("opening the GPU");
  QuietStderr quiet;
  auto device = open_by(o.device);
  if (device.ok()) {
    if (progress != nullptr && !(*device)->caps().cpu) watch_compilation(*progress, *device);
    return device;
  }
  quiet.show();
  return no_gpu(o, device.status(), hint);
}

}  // namespace

void add_gpu_options(CLI::App& app, RunOptions& o) {
  app.add_option("--adapter", o.device.adapter,
                 "GPU to use: its number or part of its name in `pteryx doctor`, or 'software'")
      ->type_name("NAME");
  add_choice(app, "--provider", o.device.provider, {{"dawn", "dawn"}, {"wgpu", "wgpu"}},
             "WebGPU library to use");
}

void add_device_options(CLI::App& app, RunOptions& o) {
  auto* const option = add_choice(app, "--device", o.choice, choices(),
                                  "where to run; auto: on a GPU, or on the CPU if there is none");
  option->default_str("auto");
  traits(option).variable = "PTERYX_DEVICE";
  add_gpu_options(app, o);
}

std::optional<DeviceChoice> device_of_environment() {
  const std::string text = gpu::variable("PTERYX_DEVICE");
  if (text.empty()) return std::nullopt;
  std::vector<std::string> words;
  for (const auto& [word, meaning] : choices()) {
    if (word == text) return meaning;
    words.push_back(word);
  }
  throw CLI::ValidationError(
      "PTERYX_DEVICE", fmt::format("expected {}, got '{}'", alternatives(words), excerpt(text)));
}

void choose_device(const CLI::App& app, RunOptions& o) {
  const auto given = [&](const char* name) {
    const CLI::Option* const option = app.get_option_no_throw(name);
    return option != nullptr && option->count() > 0;
  };
  const std::optional<DeviceChoice> wanted = device_of_environment();
  const bool gpu = given("--adapter") || given("--provider");
  if (o.choice == DeviceChoice::kCpu && gpu) {
    throw CLI::ValidationError("--device cpu",
                               "expected neither --adapter nor --provider, which choose a GPU");
  }
  if (!o.choice && !gpu) o.choice = wanted;
  o.device = gpu::options_from_environment(std::move(o.device));
  o.device.pipeline_cache.folder = pipeline_folder();
  if (o.choice == DeviceChoice::kCpu) return;
  gpu::show_software_driver(o.device.adapter, PTERYX_SOFTWARE_ICD);  // no thread exists yet
}

Result<std::shared_ptr<gpu::Device>> open_gpu(const RunOptions& o, Progress* progress) {
  return open(o, progress, "", gpu::open_device);
}

Result<std::shared_ptr<gpu::Device>> open_device(const RunOptions& o, Progress* progress) {
  const DeviceChoice choice = o.choice.value_or(DeviceChoice::kAuto);
  if (choice == DeviceChoice::kCpu) return gpu::cpu_device();
  if (choice == DeviceChoice::kAuto) return open(o, progress, "", gpu::open_gpu_or_cpu);
  return open(o, progress, "\n  --device cpu runs on the CPU, --adapter software on a software GPU",
              gpu::open_device);
}

Status gpu_problem(const RunOptions& o) {
  const QuietStderr quiet;
  const auto device = gpu::open_device(o.device);
  return device.ok() ? Status() : no_gpu(o, device.status(), "");
}

void watch_compilation(Progress& progress, const std::shared_ptr<gpu::Device>& device) {
  const uint64_t before = device->counters().pipelines_created;
  progress.watch("compiling shaders", [device, before]() -> Progress::Share {
    const gpu::Counters now = device->counters();
    const uint64_t total = now.pipelines_created - before;
    return {.done = total - std::min(total, now.pipelines_compiling), .total = total};
  });
}

std::vector<gpu::ProviderReport> survey(const RunOptions& o) {
  const QuietStderr quiet;
  return gpu::survey(o.device);
}

std::string device_text(const gpu::Caps& caps) {
  return caps.cpu ? caps.adapter : fmt::format("{} through {}", caps.adapter, caps.provider);
}

std::string device_header(const gpu::Caps& caps) {
  return caps.cpu ? fmt::format("CPU: {}", caps.adapter)
                  : fmt::format("GPU: {} ({})", caps.adapter, caps.provider);
}

std::string load_header(const gpu::Caps& caps, uint64_t gpu_bytes, double load_ms) {
  const std::string memory = caps.cpu ? ""
                                      : fmt::format(", {:.1f} MiB of its memory in use",
                                                    static_cast<double>(gpu_bytes) / (1 << 20));
  return fmt::format("{}{}, loaded in {:.0f} ms", device_header(caps), memory, load_ms);
}

}  // namespace pteryx::cli
