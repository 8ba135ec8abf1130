// Output files, without a name until they are complete where the file system can do that.
// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/base/output_file.h"

#include <cerrno>
#include <cstdlib>
#include <random>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include "pteryx/base/checked.h"
#include "pteryx/base/path.h"

namespace pteryx {
namespace {

std::string folder_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

std::string partial_name(const std::string& path) {
  return fmt::format("{}.{:08x}.partial", path, std::random_device()());
}

// A descriptor of a file without a name in that folder, or -1 where there is no such thing. Giving
// it a name later goes through /proc.
int open_unnamed(const std::string& folder) {
#ifdef O_TMPFILE
  if (::access("/proc/self/fd", X_OK) == 0)
    return ::open(folder.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666);
#endif
  static_cast<void>(folder);
  return -1;
}

bool give_name(int fd, const std::string& path) {
#ifdef O_TMPFILE
  const std::string self = fmt::format("/proc/self/fd/{}", fd);
  return ::linkat(AT_FDCWD, self.c_str(), AT_FDCWD, path.c_str(), AT_SYMLINK_FOLLOW) == 0;
#else
  static_cast<void>(fd);
  static_cast<void>(path);
  return false;
#endif
}

}  // namespace

Result<OutputFile> OutputFile::create(const std::string& path) {
  PTERYX_TRY(check_path(path));
  std::string target = path;
  struct stat info = {};
  if (::stat(path.c_str(), &info) == 0) {
    if (S_ISDIR(info.st_mode)) return cannot_write(path, EISDIR);
    if (!S_ISREG(info.st_mode))
      return io_error(fmt::format("cannot write {}: not a regular file", path));
    const std::unique_ptr<char, decltype(&std::free)> real(::realpath(path.c_str(), nullptr),
                                                           &std::free);
    if (real != nullptr) target = real.get();
  }
  std::string temporary;
  int fd = open_unnamed(folder_of(target));
  if (fd < 0) {
    temporary = partial_name(target);
    fd = ::open(temporary.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0666);
  }
  if (fd < 0) return cannot_write(path, errno);
  std::FILE* const file = ::fdopen(fd, "wb");
  if (file == nullptr) {
    const int error = errno;
    ::close(fd);
    if (!temporary.empty()) ::unlink(temporary.c_str());
    return cannot_write(path, error);
  }
  return OutputFile(std::move(target), std::move(temporary), file);
}

OutputFile::~OutputFile() {
  file_.reset();
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

Status OutputFile::seek(uint64_t offset) {
  if (!fits<off_t>(offset)) return failed(EFBIG);
  if (::fseeko(file_.get(), static_cast<off_t>(offset), SEEK_SET) != 0) return failed(errno);
  return {};
}

Status OutputFile::write_at(uint64_t offset, Bytes bytes) {
  while (!bytes.empty()) {
    if (!fits<off_t>(offset)) return failed(EFBIG);
    const ssize_t n =
        ::pwrite(::fileno(file_.get()), bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return failed(errno);
    bytes = bytes.subspan(static_cast<size_t>(n));
    offset += static_cast<uint64_t>(n);
  }
  return {};
}

Status OutputFile::commit() {
  if (std::fflush(file_.get()) != 0) return failed(errno);
  if (temporary_.empty()) {
    std::string name = partial_name(path_);
    if (!give_name(::fileno(file_.get()), name)) return failed(errno);
    temporary_ = std::move(name);
  }
  if (std::fclose(file_.release()) != 0) return failed(errno);
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) return failed(errno);
  temporary_.clear();
  return {};
}

}  // namespace pteryx
