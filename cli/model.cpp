// Opening language models. SPDX-License-Identifier: BSD-3-Clause
#include "model.h"

#include <chrono>
#include <cstdlib>
#include <filesystem>

#include <unistd.h>

#include <fmt/format.h>

#include "pteryx/convert/convert.h"

namespace pteryx::cli {
namespace {

namespace fs = std::filesystem;

fs::path cache_folder() {
  if (const char* own = std::getenv("PTERYX_CACHE"); own != nullptr && *own != 0) return own;
  if (const char* xdg = std::getenv("XDG_CACHE_HOME"); xdg != nullptr && *xdg != 0)
    return fs::path(xdg) / "pteryx";
  if (const char* home = std::getenv("HOME"); home != nullptr && *home != 0)
    return fs::path(home) / ".cache" / "pteryx";
  return fs::temp_directory_path() / "pteryx";
}

uint64_t hash(std::string_view text) {
  uint64_t h = 0xCBF29CE484222325U;
  for (const char c : text) h = (h ^ static_cast<uint8_t>(c)) * 0x100000001B3U;
  return h;
}

// Size and time of every file of a source: another conversion when one of them changes.
std::string stamp(const fs::path& source) {
  std::error_code error;
  std::string text = fs::weakly_canonical(source, error).string();
  const auto add = [&](const fs::path& file) {
    const auto size = fs::file_size(file, error);
    const auto time = fs::last_write_time(file, error).time_since_epoch().count();
    text += fmt::format("|{}:{}:{}", file.filename().string(), size, time);
  };
  if (!fs::is_directory(source, error)) {
    add(source);
    return text;
  }
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(source, error)) {
    if (entry.is_regular_file(error)) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  for (const fs::path& f : files) add(f);
  return text;
}

// The program of a source that is not one.
Result<std::string> program_of(const ModelArguments& a) {
  const fs::path source = a.path;
  std::error_code error;
  const bool folder = fs::is_directory(source, error);
  if (!folder && source.extension() != ".gguf" && source.extension() != ".bin") return a.path;
  const fs::path name = folder ? fs::weakly_canonical(source, error).filename() : source.stem();
  const fs::path cached =
      cache_folder() / fmt::format("{}-{:016x}.pte", name.string(), hash(stamp(source)));
  if (fs::exists(cached, error)) return cached.string();
  fs::create_directories(cached.parent_path(), error);
  if (error) {
    return io_error(
        fmt::format("cannot make {}: {}", cached.parent_path().string(), error.message()));
  }
  fmt::print(stderr, "converting {} to {}\n", a.path, cached.string());
  auto report = convert::convert(a.path, cached.string(), {.tokenizer = {}});
  if (!report.ok()) return std::move(report).status();
  return cached.string();
}

}  // namespace

void add_model_arguments(CLI::App& app, ModelArguments& a) {
  app.add_option("model", a.path,
                 "program (.pte); a .gguf file or Hugging Face folder is converted")
      ->required()
      ->type_name("MODEL");
  app.add_option("--tokenizer", a.tokenizer, "tokenizer to use instead of the program's")
      ->type_name("FILE");
  app.add_option("--ahead", a.depth, "tokens the GPU may be ahead of what is shown")
      ->capture_default_str()
      ->check(CLI::Range(1, 64));
  a.run.precision = "f16";
  add_run_options(app, a.run);
}

std::unique_ptr<OpenedModel> open_model(const ModelArguments& a, int& exit) {
  const auto start = std::chrono::steady_clock::now();
  auto opened = std::make_unique<OpenedModel>();
  auto path = program_of(a);
  if (!path.ok()) {
    exit = fail(path.status(), load_exit(path.status()));
    return nullptr;
  }
  auto device = open(a.run);
  if (!device.ok()) {
    exit = fail(device.status(), kNoGpu);
    return nullptr;
  }
  opened->device = *device;
  generate::ModelOptions options;
  options.load = load_options(a.run, *device);
  options.load.all_logits = a.all_logits;
  options.tokenizer = a.tokenizer;
  options.depth = a.depth;
  auto model = generate::Model::load(*path, options);
  if (!model.ok()) {
    exit = fail(model.status(), load_exit(model.status()));
    return nullptr;
  }
  opened->model = std::move(model).value();
  opened->load_ms =
      std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  return opened;
}

void add_sampling_arguments(CLI::App& app, SamplingArguments& a) {
  ops::SampleSettings& s = a.settings;
  app.add_option("-n,--max-new-tokens", a.generate.max_new_tokens,
                 "tokens to make at most (-1: until the context is full)")
      ->capture_default_str();
  app.add_option("--temperature", s.temperature, "0: always the likeliest token")
      ->capture_default_str()
      ->check(CLI::Range(0.0F, 100.0F));
  app.add_option("--top-k", s.top_k, "draw from the k likeliest tokens; 0: all")
      ->capture_default_str();
  app.add_option("--top-p", s.top_p, "draw from the likeliest that hold this share; 1: all")
      ->capture_default_str()
      ->check(CLI::Range(0.0F, 1.0F));
  app.add_option("--min-p", s.min_p,
                 "draw from those with this fraction of the highest probability")
      ->capture_default_str()
      ->check(CLI::Range(0.0F, 1.0F));
  app.add_option("--repetition-penalty", s.repetition, "above 1: tokens that were there hold back")
      ->capture_default_str()
      ->check(CLI::Range(0.01F, 100.0F));
  app.add_option("--presence-penalty", s.presence, "taken off a token that was there")
      ->capture_default_str();
  app.add_option("--frequency-penalty", s.frequency, "taken off for each time it was there")
      ->capture_default_str();
  app.add_option("--seed", a.seed, "the same seed gives the same text");
  app.add_option("--stop", a.generate.stop, "end the text before this; may be repeated")
      ->type_name("TEXT");
  app.add_flag("--ignore-end", a.generate.ignore_end, "go on when the model ends its text");
  app.add_flag("--shift", a.generate.shift,
               "when the context is full, forget its older half and go on");
}

generate::GenerateOptions SamplingArguments::options() {
  if (!seed)
    seed = static_cast<uint64_t>(std::chrono::system_clock::now().time_since_epoch().count());
  generate::GenerateOptions o = generate;
  o.sampling = settings;
  o.sampling.seed = *seed;
  return o;
}

}  // namespace pteryx::cli
