// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/convert/output_file.h"

#include <cerrno>
#include <filesystem>
#include <random>
#include <system_error>

#include <fmt/format.h>

#include "pteryx/base/checked.h"

namespace pteryx::convert {

Result<OutputFile> OutputFile::create(const std::string& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) {
    return io_error(fmt::format("{}: Is a directory", path));
  }
  std::string temporary = fmt::format("{}.{:08x}.partial", path, std::random_device()());
  std::FILE* file = std::fopen(temporary.c_str(), "wb");
  if (file == nullptr) {
    return io_error(fmt::format("{}: {}", temporary, std::generic_category().message(errno)));
  }
  return OutputFile(path, std::move(temporary), file);
}

OutputFile::~OutputFile() {
  if (temporary_.empty()) return;  // also after a move
  file_.reset();
  std::error_code ignored;
  std::filesystem::remove(temporary_, ignored);
}

Status OutputFile::failed(std::string_view what) const {
  return io_error(
      fmt::format("{}: cannot {}: {}", path_, what, std::generic_category().message(errno)));
}

Status OutputFile::seek(uint64_t offset) {
  if (!fits<int64_t>(offset) || fseeko(file_.get(), static_cast<off_t>(offset), SEEK_SET) != 0) {
    return failed("seek");
  }
  return {};
}

Status OutputFile::write(Bytes bytes) {
  if (bytes.empty()) return {};
  if (std::fwrite(bytes.data(), 1, bytes.size(), file_.get()) != bytes.size()) {
    return failed("write");
  }
  return {};
}

Status OutputFile::commit() {
  std::FILE* file = file_.release();
  if (std::fclose(file) != 0) return failed("write");
  std::error_code error;
  std::filesystem::rename(temporary_, path_, error);
  if (error) return io_error(fmt::format("{}: {}", path_, error.message()));
  temporary_.clear();
  return {};
}

}  // namespace pteryx::convert
