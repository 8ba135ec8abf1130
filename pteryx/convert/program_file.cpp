// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/convert/program_file.h"

#include <chrono>
#include <filesystem>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "pteryx/convert/convert.h"
#include "pteryx/convert/file_kind.h"

namespace pteryx::convert {
namespace {

namespace fs = std::filesystem;

constexpr auto kAskAgain = std::chrono::milliseconds(100);

Status tell(const NamedProgress& progress, std::string_view what) {
  if (!progress || progress(what, 0, 0)) return {};
  return Status(Code::kCancelled, "interrupted");
}

}  // namespace

Result<ProgramFile> ProgramFile::find(const std::string& path, const CacheOptions& options) {
  PTERYX_ASSIGN(const FileKind kind, file_kind(path));
  if (kind == FileKind::kUnknown || kind == FileKind::kEmpty || kind == FileKind::kFolder ||
      kind == FileKind::kProgramData) {
    return invalid_program(
        fmt::format("{} is {}: expected a .pte program, a GGUF file, a Hugging Face folder or a "
                    "llama2.c checkpoint",
                    path, describe(kind)));
  }
  ProgramFile file;
  file.source_ = path;
  if (kind == FileKind::kProgram) {
    file.program_ = path;
    file.ready_ = true;
    return file;
  }
  file.scratch_ = options.temporary;
  file.threads_ = options.threads;
  if (options.folder.empty()) return file;
  auto cache = Cache::open(options);
  if (!cache.ok()) {
    file.notes_.push_back(
        fmt::format("no cache ({}): the conversion is not kept", cache.status().message()));
    return file;
  }
  PTERYX_ASSIGN(file.program_, cache->program_of(path));
  file.ready_ = file.was_kept_ = cache->use(file.program_);
  file.cache_ = std::move(cache).value();
  return file;
}

ProgramFile::ProgramFile(ProgramFile&& other) noexcept
    : source_(std::move(other.source_)),
      program_(std::move(other.program_)),
      cache_(std::move(other.cache_)),
      scratch_(std::move(other.scratch_)),
      temporary_(std::exchange(other.temporary_, "")),
      threads_(other.threads_),
      ready_(other.ready_),
      was_kept_(other.was_kept_),
      notes_(std::move(other.notes_)) {}

ProgramFile::~ProgramFile() {
  std::error_code ignored;
  if (!temporary_.empty()) fs::remove_all(temporary_, ignored);
}

Status ProgramFile::make(const NamedProgress& progress) {
  if (ready_) return {};
  if (!cache_) {
    if (scratch_.empty())
      return io_error(fmt::format("there is no folder for the conversion of {}", source_));
    if (temporary_.empty()) {
      auto made = make_temporary_folder(scratch_);
      if (!made.ok())
        return std::move(made).status().during("making a folder for the conversion of " + source_);
      temporary_ = std::move(made).value();
      program_ = (fs::path(temporary_) / "model.pte").string();
    }
    return write(progress);
  }
  PTERYX_ASSIGN(const PrivateFolder locked, lock(progress));
  ready_ = was_kept_ = cache_->use(program_);  // somebody else may have made it meanwhile
  if (ready_) return {};
  std::error_code ignored;
  if (fs::exists(program_, ignored)) {
    notes_.push_back(
        fmt::format("the kept conversion of {} is damaged: converting again", source_));
  }
  return write(progress);
}

Status ProgramFile::repeat(const NamedProgress& progress) {
  if (!was_kept_) {
    return invalid_argument(
        fmt::format("{}: expected a kept conversion, got one that was not", source_));
  }
  notes_.push_back(
      fmt::format("the kept conversion of {} cannot be used: converting again", source_));
  ready_ = was_kept_ = false;
  PTERYX_ASSIGN(const PrivateFolder locked, lock(progress));
  return write(progress);
}

Result<PrivateFolder> ProgramFile::lock(const NamedProgress& progress) const {
  PTERYX_ASSIGN(PrivateFolder folder, PrivateFolder::open(cache_->folder()));
  for (;;) {
    PTERYX_ASSIGN(const bool locked, folder.lock());
    if (locked) return folder;
    PTERYX_TRY(tell(progress, kWaiting));
    std::this_thread::sleep_for(kAskAgain);
  }
}

Status ProgramFile::write(const NamedProgress& progress) {
  if (cache_) cache_->make_way(program_);
  const std::string what = "converting " + source_;
  PTERYX_TRY(tell(progress, what));
  ConvertOptions options{.threads = threads_};
  if (progress) {
    options.progress = [&](uint64_t done, uint64_t total) { return progress(what, done, total); };
  }
  auto report = convert(source_, program_, options);
  if (!report.ok()) return std::move(report).status();
  for (std::string& warning : report->warnings) notes_.push_back(std::move(warning));
  if (cache_) PTERYX_TRY(cache_->keep(program_, source_));
  ready_ = true;
  return {};
}

}  // namespace pteryx::convert
