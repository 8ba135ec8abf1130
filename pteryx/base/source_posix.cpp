// Files by pread, which needs no lock and no position. SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/base/source.h"

#include <algorithm>
#include <cerrno>
#include <system_error>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include "pteryx/base/path.h"

namespace pteryx {
namespace {

constexpr uint64_t kLargestRead = uint64_t{1} << 30;  // Linux takes no more than 2 GiB at once

Status failed(const std::string& path, int error) {
  return io_error(fmt::format("{}: {}", path, std::generic_category().message(error)));
}

class FileSource final : public Source {
 public:
  FileSource(const std::string& path, int fd) : Source(path), fd_(fd) {}
  ~FileSource() override { ::close(fd_); }

  Status stat() {
    struct stat info = {};
    if (::fstat(fd_, &info) != 0) return failed(name(), errno);
    if (S_ISDIR(info.st_mode)) return failed(name(), EISDIR);
    if (!S_ISREG(info.st_mode)) return io_error(fmt::format("{}: not a regular file", name()));
    size_ = static_cast<uint64_t>(info.st_size);
    return {};
  }

  uint64_t size() const override { return size_; }

  Result<bool> read(uint64_t offset, MutableBytes out) const override {
    if (!in_range(offset, out.size(), size_)) return ended(size_, offset, out.size());
    for (uint64_t done = 0; done < out.size();) {
      const uint64_t part = std::min(out.size() - done, kLargestRead);
      const ssize_t n = ::pread(fd_, out.data() + done, part, static_cast<off_t>(offset + done));
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return failed(name(), errno);
      if (n == 0) return ended(end(offset + done), offset, out.size());
      done += static_cast<uint64_t>(n);
    }
    return true;
  }

 private:
  // Where the file ends by now, which is not past `at`.
  uint64_t end(uint64_t at) const {
    struct stat info = {};
    return ::fstat(fd_, &info) == 0 ? std::min(at, static_cast<uint64_t>(info.st_size)) : at;
  }

  int fd_;
  uint64_t size_ = 0;
};

}  // namespace

Result<SourcePtr> open_source(const std::string& path) {
  PTERYX_TRY(check_path(path));
  // A pipe would otherwise wait for its other end.
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return failed(path, errno);
  auto source = std::make_shared<FileSource>(path, fd);
  PTERYX_TRY(source->stat());
  return SourcePtr(std::move(source));
}

}  // namespace pteryx
