// The cache of conversions. SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/convert/cache.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <system_error>

#include <fmt/format.h>

#include "pteryx/base/file.h"
#include "pteryx/base/json.h"
#include "pteryx/base/output_file.h"
#include "pteryx/base/private_folder.h"
#include "pteryx/convert/convert.h"
#include "pteryx/convert/file_kind.h"
#include "pteryx/convert/fingerprint.h"

namespace pteryx::convert {
namespace {

namespace fs = std::filesystem;

constexpr auto kPartialAge = std::chrono::hours(1);  // nobody writes to a file that long untouched

constexpr size_t kKeyDigits = 32;

std::string sidecar(const std::string& program) {
  return fs::path(program).replace_extension(".json").string();
}

// Named after a key; other files of that kind belong to others, as what `pteryx tune` measured
// does.
bool is_sidecar(const fs::path& file) {
  const std::string stem = file.stem().string();
  return file.extension() == ".json" && stem.size() == kKeyDigits &&
         stem.find_first_not_of("0123456789abcdef") == std::string::npos;
}

// What a conversion of the source depends on, and nothing else: not its name, place or time.
Result<std::string> key_of(const std::string& source) {
  PTERYX_ASSIGN(const auto files, source_files(source));
  Fingerprint key;
  key.add(fmt::format("converter {}", kConverterVersion));
  for (const std::string& f : files) {
    if (files.size() > 1) key.add(fs::path(f).filename().string());
    PTERYX_TRY(key.add_file(f));
  }
  return key.text();
}

// What was written beside a program; null where that cannot be read.
Json read_sidecar(const std::string& program) {
  const auto file = MappedFile::open(sidecar(program));
  if (!file.ok()) return {};
  auto about = parse_json((*file)->bytes(), "the cache");
  return about.ok() ? std::move(about).value() : Json();
}

Status write_sidecar(const std::string& program, const std::string& source) {
  Fingerprint made;
  PTERYX_TRY(made.add_file(program));
  std::error_code ignored;
  Json j;
  j.set("source", fs::absolute(source, ignored).string());
  j.set("fingerprint", made.text());
  j.set("converter", kConverterVersion);
  return write_file(sidecar(program), j.dump(2) + "\n");
}

std::string source_of(const std::string& program) {
  const Json about = read_sidecar(program);
  const std::string* const source = about["source"].text();
  return source != nullptr ? *source : "";
}

std::vector<fs::path> files_in(const std::string& folder) {
  std::vector<fs::path> files;
  std::error_code error;
  for (fs::directory_iterator at(folder, error); !error && at != fs::directory_iterator();
       at.increment(error))
    files.push_back(at->path());
  return files;
}

void remove_entry(const std::string& program) {
  std::error_code ignored;
  fs::remove(program, ignored);
  fs::remove(sidecar(program), ignored);
}

// Parts of files that a killed process left, and sidecars whose programs are gone.
void remove_leftovers(const std::string& folder) {
  for (const fs::path& file : files_in(folder)) {
    std::error_code error;
    const auto age = fs::file_time_type::clock::now() - fs::last_write_time(file, error);
    if (error) continue;
    const bool partial = file.extension() == ".partial" && age > kPartialAge;
    const bool orphan =
        is_sidecar(file) && !fs::exists(fs::path(file).replace_extension(".pte"), error);
    if (partial || orphan) fs::remove(file, error);
  }
}

int64_t seconds_since_1970(fs::file_time_type time) {
  const auto system = std::chrono::file_clock::to_sys(time);
  return std::chrono::floor<std::chrono::seconds>(system).time_since_epoch().count();
}

}  // namespace

Result<Cache> Cache::open(const CacheOptions& options) {
  PTERYX_ASSIGN(const PrivateFolder usable, PrivateFolder::open(options.folder));
  return Cache(options.folder, options.limit);
}

std::vector<Cache::Entry> Cache::list() const {
  std::vector<Entry> entries;
  for (const fs::path& file : files_in(folder_)) {
    if (file.extension() != ".pte") continue;
    std::error_code error;
    const uint64_t bytes = fs::file_size(file, error);
    if (error) continue;
    const fs::file_time_type used = fs::last_write_time(file, error);
    if (error) continue;
    entries.push_back({.path = file.string(),
                       .source = source_of(file.string()),
                       .bytes = bytes,
                       .used = seconds_since_1970(used)});
  }
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return std::pair(-a.used, a.path) < std::pair(-b.used, b.path);
  });
  return entries;
}

Status Cache::clear() const {
  for (const fs::path& file : files_in(folder_)) {
    const fs::path kind = file.extension();
    if (kind != ".pte" && kind != ".partial" && !is_sidecar(file)) continue;
    std::error_code error;
    fs::remove(file, error);
    if (error) return io_error(fmt::format("cannot remove {}: {}", file.string(), error.message()));
  }
  return {};
}

Result<std::string> Cache::program_of(const std::string& source) const {
  PTERYX_ASSIGN(const std::string key, key_of(source));
  return (fs::path(folder_) / (key + ".pte")).string();
}

bool Cache::use(const std::string& program) const {
  const Json about = read_sidecar(program);
  Fingerprint now;
  const std::string* const made = about["fingerprint"].text();
  const bool intact = made != nullptr && now.add_file(program).ok() && *made == now.text();
  std::error_code ignored;  // should it fail, the entry ages
  if (intact) fs::last_write_time(program, fs::file_time_type::clock::now(), ignored);
  return intact;
}

void Cache::make_way(const std::string& program) const {
  remove_entry(program);
  remove_leftovers(folder_);
}

Status Cache::keep(const std::string& program, const std::string& source) const {
  if (Status s = write_sidecar(program, source); !s.ok()) {
    remove_entry(program);
    return s;
  }
  uint64_t sum = 0;
  for (const Entry& e : list()) {
    sum += e.bytes;
    if (sum > limit_ && e.path != program) remove_entry(e.path);
  }
  return {};
}

}  // namespace pteryx::convert
