// Output files beside their name until they are complete, for systems without unnamed files.
// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/base/output_file.h"

#include <cerrno>
#include <filesystem>
#include <mutex>
#include <random>
#include <system_error>

#include <fmt/format.h>

#include "pteryx/base/checked.h"
#include "pteryx/base/path.h"

namespace pteryx {
namespace {

namespace fs = std::filesystem;

// std::fseek takes a long, which is shorter than a file may be on some systems.
constexpr long kFarthestSeek = 1L << 30;

}  // namespace

Result<OutputFile> OutputFile::create(const std::string& path) {
  PTERYX_TRY(check_path(path));
  std::error_code error;
  std::string target = path;
  const fs::file_status status = fs::status(path, error);
  if (fs::exists(status)) {
    if (!fs::is_regular_file(status)) {
      return io_error(
          fmt::format("cannot write {}: {}", path,
                      fs::is_directory(status) ? "Is a directory" : "not a regular file"));
    }
    if (const fs::path real = fs::canonical(path, error); !error) target = real.string();
  }
  std::string temporary = fmt::format("{}.{:08x}.partial", target, std::random_device()());
  std::FILE* const file = std::fopen(temporary.c_str(), "wb");
  if (file == nullptr) return cannot_write(path, errno);
  return OutputFile(std::move(target), std::move(temporary), file);
}

OutputFile::~OutputFile() {
  if (temporary_.empty()) return;  // also after a move
  file_.reset();
  std::error_code ignored;
  fs::remove(temporary_, ignored);
}

Status OutputFile::seek(uint64_t offset) {
  if (std::fseek(file_.get(), 0, SEEK_SET) != 0) return failed(errno);
  for (uint64_t left = offset; left > 0;) {
    const long step = left < kFarthestSeek ? static_cast<long>(left) : kFarthestSeek;
    if (std::fseek(file_.get(), step, SEEK_CUR) != 0) return failed(errno);
    left -= static_cast<uint64_t>(step);
  }
  return {};
}

Status OutputFile::write_at(uint64_t offset, Bytes bytes) {
  static std::mutex mutex;  // of all files: the standard library has one position in each
  const std::lock_guard lock(mutex);
  PTERYX_TRY(seek(offset));
  return write(bytes);
}

Status OutputFile::commit() {
  if (std::fclose(file_.release()) != 0) return failed(errno);
  std::error_code error;
  fs::rename(temporary_, path_, error);
  if (error) return io_error(fmt::format("cannot write {}: {}", path_, error.message()));
  temporary_.clear();
  return {};
}

}  // namespace pteryx
