// Files as memory maps, so that weights are read from disk when they are touched and never copied
// to the heap.
// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/base/file.h"

#include <cerrno>
#include <cstdint>
#include <system_error>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include "pteryx/base/checked.h"
#include "pteryx/base/path.h"

namespace pteryx {
namespace {

Status failed(const std::string& path, int error) {
  return io_error(fmt::format("{}: {}", path, std::generic_category().message(error)));
}

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const { return fd_; }

 private:
  int fd_;
};

}  // namespace

Result<std::shared_ptr<const MappedFile>> MappedFile::open(const std::string& path) {
  PTERYX_TRY(check_path(path));
  // A pipe would otherwise wait for its other end.
  const Descriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (fd.get() < 0) return failed(path, errno);
  struct stat info = {};
  if (::fstat(fd.get(), &info) != 0) return failed(path, errno);
  if (S_ISDIR(info.st_mode)) return failed(path, EISDIR);
  if (!S_ISREG(info.st_mode)) return io_error(fmt::format("{}: not a regular file", path));
  if (!fits<size_t>(info.st_size)) return failed(path, EFBIG);

  std::shared_ptr<MappedFile> file(new MappedFile());
  const auto size = static_cast<size_t>(info.st_size);
  if (size != 0) {
    void* const start = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd.get(), 0);
    if (start == MAP_FAILED) return failed(path, errno);
    file->bytes_ = Bytes(static_cast<const std::byte*>(start), size);
  }
  return std::shared_ptr<const MappedFile>(std::move(file));
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

}  // namespace pteryx
