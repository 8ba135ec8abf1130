// The cache of conversions, and pteryx cache. SPDX-License-Identifier: BSD-3-Clause
#include "cache.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <memory>
#include <optional>
#include <thread>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "command.h"
#include "fingerprint.h"
#include "interrupt.h"

#include "pteryx/base/file.h"
#include "pteryx/base/json.h"
#include "pteryx/base/output_file.h"
#include "pteryx/convert/convert.h"

namespace pteryx::cli {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr uint64_t kUsualLimitMib = 32 << 10;
constexpr auto kPartialAge = std::chrono::hours(1);  // nobody writes to a file that long untouched

std::string environment(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

Result<std::string> folder_name() {
  if (std::string own = environment("PTERYX_CACHE"); !own.empty()) return own;
  if (const std::string xdg = environment("XDG_CACHE_HOME"); xdg.starts_with('/'))
    return (fs::path(xdg) / "pteryx").string();
  if (const std::string home = environment("HOME"); home.starts_with('/'))
    return (fs::path(home) / ".cache" / "pteryx").string();
  return io_error("neither XDG_CACHE_HOME nor HOME names a folder");
}

Status system_failed(const std::string& what, int error) {
  return io_error(fmt::format("{}: {}", what, std::generic_category().message(error)));
}

Descriptor open_folder(const std::string& folder) {
  return Descriptor(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
}

// There afterwards, and nobody else may look into it or put something there.
Status make_private(const std::string& folder) {
  std::error_code error;
  fs::create_directories(fs::path(folder).parent_path(), error);
  if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) return system_failed(folder, errno);
  const Descriptor opened = open_folder(folder);
  if (opened.get() < 0) return system_failed(folder, errno);
  struct stat info = {};
  if (::fstat(opened.get(), &info) != 0) return system_failed(folder, errno);
  if (info.st_uid != ::geteuid()) {
    return io_error(
        fmt::format("{}: belongs to user {}, not to user {}", folder, info.st_uid, ::geteuid()));
  }
  if ((info.st_mode & 0077U) != 0 && ::fchmod(opened.get(), 0700) != 0)
    return system_failed(folder, errno);
  if (::access(folder.c_str(), W_OK) != 0) return system_failed(folder, errno);
  return {};
}

std::string sidecar(const std::string& program) {
  return fs::path(program).replace_extension(".json").string();
}

// What a conversion of the source depends on, and nothing else: not its name, place or time.
Result<std::string> key_of(const std::string& source) {
  PTERYX_ASSIGN(const auto files, convert::source_files(source));
  Fingerprint key;
  key.add(fmt::format("converter {}", convert::kConverterVersion));
  for (const std::string& f : files) {
    if (files.size() > 1) key.add(fs::path(f).filename().string());
    PTERYX_TRY(key.add_file(f));
  }
  return key.text();
}

// What was written beside a program; an empty object where that cannot be read.
json read_sidecar(const std::string& program) {
  const auto file = MappedFile::open(sidecar(program));
  if (!file.ok()) return json::object();
  auto about = parse_json((*file)->bytes(), "the cache");
  return about.ok() && about->is_object() ? *about : json::object();
}

// Whether an entry is there and is what was written.
bool intact(const std::string& program) {
  const json about = read_sidecar(program);
  Fingerprint now;
  return about.contains("fingerprint") && now.add_file(program).ok() &&
         about["fingerprint"] == now.text();
}

Status write_sidecar(const std::string& program, const std::string& source) {
  Fingerprint made;
  PTERYX_TRY(made.add_file(program));
  std::error_code ignored;
  const json j = {{"source", fs::absolute(source, ignored).string()},
                  {"fingerprint", made.text()},
                  {"converter", convert::kConverterVersion}};
  return write_file(sidecar(program), j.dump(2, ' ', false, json::error_handler_t::replace) + "\n");
}

std::string source_of(const std::string& program) {
  const json about = read_sidecar(program);
  return about.contains("source") && about["source"].is_string()
             ? about["source"].get<std::string>()
             : "";
}

std::vector<fs::path> files_in(const std::string& folder) {
  std::vector<fs::path> files;
  std::error_code error;
  for (fs::directory_iterator at(folder, error); !error && at != fs::directory_iterator();
       at.increment(error))
    files.push_back(at->path());
  return files;
}

}  // namespace

Descriptor::~Descriptor() {
  if (fd_ >= 0) ::close(fd_);
}

Result<Cache> Cache::open() {
  PTERYX_ASSIGN(std::string folder, folder_name());
  PTERYX_TRY(make_private(folder));
  Cache cache(std::move(folder));
  uint64_t mib = kUsualLimitMib;
  if (const std::string limit = environment("PTERYX_CACHE_LIMIT"); !limit.empty()) {
    const auto number = parse_number<uint64_t>(limit);
    if (!number || *number > uint64_t{1} << 40) {
      return invalid_argument(
          fmt::format("PTERYX_CACHE_LIMIT: expected a number of MiB, got '{}'", printable(limit)));
    }
    mib = *number;
  }
  cache.limit_ = mib << 20;
  return cache;
}

std::vector<Cache::Entry> Cache::list() const {
  std::vector<Entry> entries;
  for (const fs::path& file : files_in(folder_)) {
    struct stat info = {};
    if (file.extension() != ".pte" || ::stat(file.c_str(), &info) != 0) continue;
    entries.push_back({.path = file.string(),
                       .source = source_of(file.string()),
                       .bytes = static_cast<uint64_t>(info.st_size),
                       .used = info.st_mtime});
  }
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return std::pair(-a.used, a.path) < std::pair(-b.used, b.path);
  });
  return entries;
}

Status Cache::clear() const {
  for (const fs::path& file : files_in(folder_)) {
    const fs::path kind = file.extension();
    if (kind != ".pte" && kind != ".json" && kind != ".partial") continue;
    std::error_code error;
    fs::remove(file, error);
    if (error) return io_error(fmt::format("cannot remove {}: {}", file.string(), error.message()));
  }
  return {};
}

Result<Descriptor> Cache::lock() const {
  Descriptor folder = open_folder(folder_);
  if (folder.get() < 0) return system_failed(folder_, errno);
  bool told = false;
  while (::flock(folder.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return system_failed(folder_, errno);
    PTERYX_TRY(InterruptGuard::check());
    if (!told) note("pteryx: waiting for another conversion to finish\n");
    told = true;
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  return folder;
}

void Cache::remove(const std::string& program) const {
  std::error_code ignored;
  fs::remove(program, ignored);
  fs::remove(sidecar(program), ignored);
}

void Cache::make_room(const std::string& newest) const {
  const std::vector<Entry> entries = list();
  uint64_t sum = 0;
  for (const Entry& e : entries) {
    sum += e.bytes;
    if (sum > limit_ && e.path != newest) remove(e.path);
  }
}

// Parts of files that a killed process left, and reports whose programs are gone.
void Cache::remove_leftovers() const {
  for (const fs::path& file : files_in(folder_)) {
    std::error_code error;
    const auto age = fs::file_time_type::clock::now() - fs::last_write_time(file, error);
    if (error) continue;
    const bool partial = file.extension() == ".partial" && age > kPartialAge;
    const bool orphan =
        file.extension() == ".json" && !fs::exists(fs::path(file).replace_extension(".pte"), error);
    if (partial || orphan) fs::remove(file, error);
  }
}

Result<Conversion> Conversion::of(const std::string& source, Progress& progress) {
  Conversion c;
  c.source_ = source;
  auto cache = Cache::open();
  if (!cache.ok() && cache.status().code() != Code::kIo) return std::move(cache).status();
  if (!cache.ok()) {
    note("pteryx: no cache ({}): the conversion is not kept\n",
         printable(cache.status().message()));
    std::error_code error;
    const fs::path parent = fs::temp_directory_path(error);
    std::string pattern = (parent / "pteryx-XXXXXX").string();
    if (error || ::mkdtemp(pattern.data()) == nullptr) {
      return io_error(fmt::format(
          "there is no folder for the conversion of {}: set HOME, XDG_CACHE_HOME or TMPDIR",
          source));
    }
    c.temporary_ = pattern;
    c.program_ = (fs::path(pattern) / "model.pte").string();
    PTERYX_TRY(c.make(progress));
    return c;
  }
  PTERYX_ASSIGN(const std::string key, key_of(source));
  c.program_ = (fs::path(cache->folder()) / (key + ".pte")).string();
  c.cache_.push_back(std::move(cache).value());
  if (intact(c.program_)) {
    c.was_kept_ = true;
  } else {
    std::error_code ignored;
    const bool damaged = fs::exists(c.program_, ignored);
    PTERYX_ASSIGN(const Descriptor locked, c.cache_[0].lock());
    if (!damaged && intact(c.program_)) {  // the other one made it
      c.was_kept_ = true;
    } else {
      if (damaged)
        note("pteryx: the kept conversion of {} is damaged: converting again\n", printable(source));
      PTERYX_TRY(c.make(progress));
    }
  }
  ::utimensat(AT_FDCWD, c.program_.c_str(), nullptr, 0);  // used now; should it fail, it ages
  return c;
}

Conversion::Conversion(Conversion&& other) noexcept
    : source_(std::move(other.source_)),
      program_(std::move(other.program_)),
      temporary_(std::exchange(other.temporary_, "")),
      cache_(std::move(other.cache_)),
      was_kept_(other.was_kept_) {}

Conversion::~Conversion() {
  std::error_code ignored;
  if (!temporary_.empty()) fs::remove_all(temporary_, ignored);
}

Status Conversion::repeat(Progress& progress) {
  note("pteryx: the kept conversion of {} cannot be used: converting again\n", printable(source_));
  was_kept_ = false;
  PTERYX_ASSIGN(const Descriptor locked, cache_[0].lock());
  return make(progress);
}

Status Conversion::make(Progress& progress) {
  if (!cache_.empty()) {
    cache_[0].remove(program_);
    cache_[0].remove_leftovers();
  }
  note("converting {}{}\n", printable(source_),
       cache_.empty() ? "" : "; the result is kept, see `pteryx cache`");
  progress.begin("converting " + source_);
  const auto report = convert::convert(source_, program_, {.progress = follow(progress)});
  if (!report.ok()) return Status(report.status().code(), std::string(report.status().message()));
  for (const std::string& w : report->warnings) note("pteryx: {}\n", printable(w));
  if (cache_.empty()) return {};
  PTERYX_TRY(write_sidecar(program_, source_));
  cache_[0].make_room(program_);
  return {};
}

namespace {

std::string date_text(int64_t seconds) {
  const auto time = static_cast<std::time_t>(seconds);
  std::tm local = {};
  ::localtime_r(&time, &local);
  return fmt::format("{:04}-{:02}-{:02} {:02}:{:02}", local.tm_year + 1900, local.tm_mon + 1,
                     local.tm_mday, local.tm_hour, local.tm_min);
}

int list_cache(const Cache& cache, bool as_json) {
  const std::vector<Cache::Entry> entries = cache.list();
  uint64_t sum = 0;
  json list = json::array();
  for (const Cache::Entry& e : entries) {
    sum += e.bytes;
    list.push_back(
        {{"path", e.path}, {"source", e.source}, {"bytes", e.bytes}, {"last_used", e.used}});
    if (!as_json) {
      print("{:>10.1f} MiB  {}  {}\n", static_cast<double>(e.bytes) / (1 << 20), date_text(e.used),
            e.source.empty() ? e.path : printable(e.source));
    }
  }
  if (as_json) {
    print_json({{"folder", cache.folder()},
                {"limit_bytes", cache.limit()},
                {"bytes", sum},
                {"entries", list}});
  } else {
    print("{} conversion{}, {:.1f} of at most {} MiB, in {}\n", entries.size(),
          entries.size() == 1 ? "" : "s", static_cast<double>(sum) / (1 << 20), cache.limit() >> 20,
          cache.folder());
  }
  return kSuccess;
}

int clear_cache(const Cache& cache, bool as_json) {
  const std::vector<Cache::Entry> entries = cache.list();
  if (const Status s = cache.clear(); !s.ok()) return fail(s);
  uint64_t sum = 0;
  for (const Cache::Entry& e : entries) sum += e.bytes;
  if (as_json) {
    print_json({{"folder", cache.folder()}, {"removed", entries.size()}, {"bytes", sum}});
  } else {
    print("removed {} conversion{}, {:.1f} MiB, from {}\n", entries.size(),
          entries.size() == 1 ? "" : "s", static_cast<double>(sum) / (1 << 20), cache.folder());
  }
  return kSuccess;
}

}  // namespace

void add_cache(CLI::App& app, Action& action) {
  struct Options {
    std::string verb = "list";
    bool as_json = false;
  };
  auto o = std::make_shared<Options>();
  CLI::App* sub = app.add_subcommand("cache", "List or clear the kept conversions of models");
  add_choice(*sub, "action", o->verb, {{"list", "list"}, {"clear", "clear"}},
             "list, or clear to remove them all");
  add_json(*sub, o->as_json, "print as JSON");
  sub->callback([o, &action] {
    action = [o] {
      const auto cache = Cache::open();
      if (!cache.ok()) return fail(cache.status());
      return o->verb == "list" ? list_cache(*cache, o->as_json) : clear_cache(*cache, o->as_json);
    };
  });
}

}  // namespace pteryx::cli
