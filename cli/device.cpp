// SPDX-License-Identifier: BSD-3-Clause
#include "device.h"

#include <algorithm>
#include <array>
#include <cstdio>

#include <unistd.h>

#include <nlohmann/json.hpp>

#include "cache.h"
#include "command.h"

#include "pteryx/base/excerpt.h"
#include "pteryx/gpu/cpu_device.h"
#include "pteryx/gpu/environment.h"
#include "pteryx/gpu/native/broken_libraries.h"

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
  std::string broken;
  auto device = [&] {
    QuietStderr quiet;
    auto opened = open_by(o.device);
    if (!opened.ok()) {
      quiet.show();
    } else if ((*opened)->caps().cpu) {
      broken = gpu::broken_libraries(o.device);
    }
    return opened;
  }();
  if (!device.ok()) return no_gpu(o, device.status(), hint);
  if (!broken.empty()) {
    note("pteryx: running on the CPU: WebGPU libraries cannot be opened:\n  {}\n",
         printable(broken));
  }
  if (progress != nullptr && !(*device)->caps().cpu) watch_compilation(*progress, *device);
  return device;
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
  constexpr std::string_view kOthers =
      "\n  --device cpu runs on the CPU, --adapter software on a software GPU";
  PTERYX_ASSIGN(std::shared_ptr<gpu::Device> device,
                choice == DeviceChoice::kGpu ? open(o, progress, kOthers, gpu::open_device)
                                             : open(o, progress, "", gpu::open_gpu_or_cpu));
  if (o.lock && !device->caps().cpu)
    note("pteryx: --lock changes nothing: the weights are in the memory of the GPU\n");
  return device;
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

std::string load_header(const Session& session, uint64_t gpu_bytes, double load_ms) {
  const auto mib = [](uint64_t bytes) {
    return fmt::format("{:.1f} MiB", static_cast<double>(bytes) / (1 << 20));
  };
  const gpu::Caps& caps = session.device()->caps();
  const MemoryUse& use = session.memory();
  const size_t threads = session.threads();
  const std::string memory =
      caps.cpu ? fmt::format(", {} thread{}, {} of memory and {} of the file in use", threads,
                             threads == 1 ? "" : "s", mib(use.host + use.scratch + use.copied),
                             mib(use.in_place))
               : fmt::format(", {} of its memory in use", mib(gpu_bytes));
  return fmt::format("{}{}, loaded in {:.0f} ms", device_header(caps), memory, load_ms);
}

void add_use(nlohmann::json& report, const Session& session) {
  const MemoryUse& use = session.memory();
  report["threads"] = session.threads();
  report["memory"] = {{"gpu", use.gpu},
                      {"host", use.host},
                      {"temporaries", use.scratch},
                      {"weights_copied", use.copied},
                      {"weights_in_place", use.in_place}};
}

}  // namespace pteryx::cli
