// Private folders by owner and mode, locked by flock, which ends with the process.
// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/base/private_folder.h"

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include "pteryx/base/path.h"

namespace pteryx {
namespace {

namespace fs = std::filesystem;

Status failed(const std::string& path, int error) {
  return io_error(fmt::format("{}: {}", path, std::generic_category().message(error)));
}

}  // namespace

Result<PrivateFolder> PrivateFolder::open(const std::string& path) {
  PTERYX_TRY(check_path(path));
  std::error_code ignored;
  fs::create_directories(fs::path(path).parent_path(), ignored);
  if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) return failed(path, errno);
  PrivateFolder folder(path, ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder.descriptor_ < 0) return failed(path, errno);
  struct stat info = {};
  if (::fstat(folder.descriptor_, &info) != 0) return failed(path, errno);
  if (info.st_uid != ::geteuid()) {
    return io_error(
        fmt::format("{}: belongs to user {}, not to user {}", path, info.st_uid, ::geteuid()));
  }
  if ((info.st_mode & 0077U) != 0 && ::fchmod(folder.descriptor_, 0700) != 0)
    return failed(path, errno);
  if (::access(path.c_str(), W_OK) != 0) return failed(path, errno);
  return folder;
}

PrivateFolder::~PrivateFolder() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

Result<bool> PrivateFolder::lock() {
  if (::flock(descriptor_, LOCK_EX | LOCK_NB) == 0) return true;
  if (errno == EWOULDBLOCK) return false;
  return failed(path_, errno);
}

Result<std::string> make_temporary_folder(const std::string& parent) {
  PTERYX_TRY(check_path(parent));
  std::string path = (fs::path(parent) / "pteryx-XXXXXX").string();
  if (::mkdtemp(path.data()) == nullptr) return failed(parent, errno);
  return path;
}

}  // namespace pteryx
