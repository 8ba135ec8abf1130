// Files by the standard library, one read at a time. SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/base/source.h"

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <system_error>

#include <fmt/format.h>

#include "pteryx/base/path.h"

namespace pteryx {
namespace {

class FileSource final : public Source {
 public:
  FileSource(const std::string& path, uint64_t size) : Source(path), size_(size) {}

  bool open() { return file_.open(name(), std::ios::in | std::ios::binary) != nullptr; }
  uint64_t size() const override { return size_; }

  Result<bool> read(uint64_t offset, MutableBytes out) const override {
    if (!in_range(offset, out.size(), size_)) return ended(size_, offset, out.size());
    const std::lock_guard lock(mutex_);
    const auto at = static_cast<std::streamoff>(offset);
    if (file_.pubseekpos(at, std::ios::in) != std::streampos(at)) {
      return io_error(fmt::format("{}: cannot seek to byte {}", name(), offset));
    }
    const std::streamsize n =
        file_.sgetn(reinterpret_cast<char*>(out.data()), static_cast<std::streamsize>(out.size()));
    const auto got = static_cast<uint64_t>(n);
    if (got == out.size()) return true;
    // Where the file ends by now.
    const auto end = static_cast<std::streamoff>(file_.pubseekoff(0, std::ios::end, std::ios::in));
    return ended(std::min(offset + got, static_cast<uint64_t>(end)), offset, out.size());
  }

 private:
  uint64_t size_;
  mutable std::mutex mutex_;
  mutable std::filebuf file_;
};

}  // namespace

Result<SourcePtr> open_source(const std::string& path) {
  PTERYX_TRY(check_path(path));
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (std::filesystem::is_directory(status)) {
    error = std::make_error_code(std::errc::is_a_directory);
  } else if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status)) {
    return io_error(fmt::format("{}: not a regular file", path));
  }
  const uint64_t size = error ? 0 : std::filesystem::file_size(path, error);
  if (error) return io_error(fmt::format("{}: {}", path, error.message()));
  auto source = std::make_shared<FileSource>(path, size);
  if (!source->open()) {
    return io_error(fmt::format("{}: {}", path, std::generic_category().message(errno)));
  }
  return SourcePtr(std::move(source));
}

}  // namespace pteryx
