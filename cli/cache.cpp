// What the environment says about the cache of conversions, what is told while one is made, and
// pteryx cache.
// SPDX-License-Identifier: BSD-3-Clause
#include "cache.h"

#include <ctime>
#include <filesystem>
#include <memory>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "command.h"
#include "interrupt.h"

#include "pteryx/convert/cache.h"
#include "pteryx/gpu/environment.h"
#include "pteryx/gpu/native/blob_cache.h"

namespace pteryx::cli {
namespace {

namespace fs = std::filesystem;
using convert::Cache;
using convert::CacheOptions;
using convert::ProgramFile;
using gpu::native::BlobCache;
using nlohmann::json;

// Where programs go that are not kept; "" where there is no such folder.
std::string temporary_folder() {
  std::error_code error;
  const fs::path folder = fs::temp_directory_path(error);
  return error ? "" : folder.string();
}

// What the environment says. Errors: kIo where it names no folder, kInvalidArgument.
Result<CacheOptions> cache_options() {
  CacheOptions options = {.folder = gpu::cache_folder(), .temporary = temporary_folder()};
  if (options.folder.empty()) return io_error("neither XDG_CACHE_HOME nor HOME names a folder");
  if (const std::string limit = gpu::variable("PTERYX_CACHE_LIMIT"); !limit.empty()) {
    const auto mib = parse_number<uint64_t>(limit);
    if (!mib || *mib > uint64_t{1} << 40) {
      return invalid_argument(
          fmt::format("PTERYX_CACHE_LIMIT: expected a number of MiB, got '{}'", printable(limit)));
    }
    options.limit = *mib << 20;
  }
  return options;
}

void print_notes(ProgramFile& program) {
  for (const std::string& n : program.take_notes()) note("pteryx: {}\n", printable(n));
}

convert::NamedProgress show(ProgramFile& program, Progress& progress) {
  return [&program, &progress, before = std::string()](std::string_view what, uint64_t done,
                                                       uint64_t total) mutable {
    if (what != before) {
      before = what;
      print_notes(program);
      if (what == convert::kWaiting) {
        note("pteryx: {}\n", what);
      } else {
        note("{}{}\n", printable(what),
             program.keeps() ? "; the result is kept, see `pteryx cache`" : "");
      }
      progress.begin(what);
    }
    progress.set(done, total);
    return !InterruptGuard::interrupted();
  };
}

}  // namespace

std::string pipeline_folder() {
  std::string own = gpu::variable("PTERYX_PIPELINE_CACHE");
  if (own == "0") return {};
  if (!own.empty()) return own;
  const std::string folder = gpu::cache_folder();
  return folder.empty() ? "" : (fs::path(folder) / "pipelines").string();
}

Result<ProgramFile> open_program(const std::string& model, uint32_t threads, Progress& progress) {
  auto options = cache_options();
  const CacheOptions uncached = {.temporary = temporary_folder()};
  CacheOptions used = options.ok() ? *options : uncached;
  used.threads = threads;
  PTERYX_ASSIGN(ProgramFile program, ProgramFile::find(model, used));
  if (program.ready()) return program;
  if (!options.ok()) {
    if (options.status().code() != Code::kIo) return std::move(options).status();
    note("pteryx: no cache ({}): the conversion is not kept\n",
         printable(options.status().message()));
  }
  print_notes(program);
  if (!program.keeps() && uncached.temporary.empty()) {
    return io_error(
        fmt::format("there is no folder for the conversion of {}: set HOME, XDG_CACHE_HOME or "
                    "TMPDIR",
                    model));
  }
  Status s = program.make(show(program, progress));
  print_notes(program);
  if (!s.ok()) return s;
  return program;
}

Status repeat_conversion(ProgramFile& program, Progress& progress) {
  Status s = program.repeat(show(program, progress));
  print_notes(program);
  return s;
}

namespace {

std::string date_text(int64_t seconds) {
  const auto time = static_cast<std::time_t>(seconds);
  std::tm local = {};
  ::localtime_r(&time, &local);
  return fmt::format("{:04}-{:02}-{:02} {:02}:{:02}", local.tm_year + 1900, local.tm_mon + 1,
                     local.tm_mday, local.tm_hour, local.tm_min);
}

std::string mib(uint64_t bytes) {
  return fmt::format("{:.1f}", static_cast<double>(bytes) / (1 << 20));
}

std::string counted(uint64_t n, std::string_view what) {
  return fmt::format("{} {}{}", n, what, n == 1 ? "" : "s");
}

json shaders_json(const std::string& folder, std::string_view count, const BlobCache::Content& c) {
  if (folder.empty()) return nullptr;
  return {{"folder", folder}, {count, c.entries}, {"bytes", c.bytes}};
}

int list_cache(const Cache& cache, bool as_json) {
  const std::vector<Cache::Entry> entries = cache.list();
  const std::string shader_folder = pipeline_folder();
  const BlobCache::Content shaders = BlobCache::content_of(shader_folder);
  uint64_t sum = 0;
  json list = json::array();
  for (const Cache::Entry& e : entries) {
    sum += e.bytes;
    list.push_back(
        {{"path", e.path}, {"source", e.source}, {"bytes", e.bytes}, {"last_used", e.used}});
    if (!as_json) {
      print("{:>10} MiB  {}  {}\n", mib(e.bytes), date_text(e.used),
            e.source.empty() ? e.path : printable(e.source));
    }
  }
  if (as_json) {
    print_json({{"folder", cache.folder()},
                {"limit_bytes", cache.limit()},
                {"bytes", sum},
                {"entries", list},
                {"shaders", shaders_json(shader_folder, "entries", shaders)}});
    return kSuccess;
  }
  print("{}, {} of at most {} MiB, in {}\n", counted(entries.size(), "conversion"), mib(sum),
        cache.limit() >> 20, cache.folder());
  if (shader_folder.empty()) return kSuccess;
  print("{}, {} MiB, in {}\n", counted(shaders.entries, "compiled shader"), mib(shaders.bytes),
        shader_folder);
  return kSuccess;
}

int clear_cache(const Cache& cache, bool as_json) {
  const std::vector<Cache::Entry> entries = cache.list();
  const std::string shader_folder = pipeline_folder();
  const BlobCache::Content shaders = BlobCache::content_of(shader_folder);
  if (const Status s = cache.clear(); !s.ok()) return fail(s);
  if (const Status s = BlobCache::clear(shader_folder); !s.ok()) return fail(s);
  uint64_t sum = 0;
  for (const Cache::Entry& e : entries) sum += e.bytes;
  if (as_json) {
    print_json({{"folder", cache.folder()},
                {"removed", entries.size()},
                {"bytes", sum},
                {"shaders", shaders_json(shader_folder, "removed", shaders)}});
    return kSuccess;
  }
  print("removed {}, {} MiB, from {}\n", counted(entries.size(), "conversion"), mib(sum),
        cache.folder());
  if (shader_folder.empty()) return kSuccess;
  print("removed {}, {} MiB, from {}\n", counted(shaders.entries, "compiled shader"),
        mib(shaders.bytes), shader_folder);
  return kSuccess;
}

}  // namespace

void add_cache(CLI::App& app, Action& action) {
  struct Options {
    std::string verb = "list";
    bool as_json = false;
  };
  auto o = std::make_shared<Options>();
  CLI::App* sub = app.add_subcommand(
      "cache", "List or clear the kept conversions of models and compiled shaders");
  add_choice(*sub, "action", o->verb, {{"list", "list"}, {"clear", "clear"}},
             "list, or clear to remove them all");
  add_json(*sub, o->as_json, "print as JSON");
  sub->callback([o, &action] {
    action = [o] {
      const auto options = cache_options();
      if (!options.ok()) return fail(options.status());
      const auto cache = Cache::open(*options);
      if (!cache.ok()) return fail(cache.status());
      return o->verb == "list" ? list_cache(*cache, o->as_json) : clear_cache(*cache, o->as_json);
    };
  });
}

}  // namespace pteryx::cli
