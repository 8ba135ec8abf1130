// Private folders for systems of whose owners and locks the standard library knows nothing. Whose a
// folder is goes unchecked, and everybody gets a lock: two may then do the same work at once, and
// each file appears whole all the same.
// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/base/private_folder.h"

#include <filesystem>
#include <random>
#include <system_error>

#include <fmt/format.h>

#include "pteryx/base/path.h"

namespace pteryx {
namespace {

namespace fs = std::filesystem;

Status failed(const std::string& path, const std::error_code& error) {
  return io_error(fmt::format("{}: {}", path, error.message()));
}

}  // namespace

Result<PrivateFolder> PrivateFolder::open(const std::string& path) {
  PTERYX_TRY(check_path(path));
  std::error_code error;
  fs::create_directories(path, error);
  if (!error) fs::permissions(path, fs::perms::owner_all, error);
  if (error) return failed(path, error);
  return PrivateFolder(path, -1);
}

PrivateFolder::~PrivateFolder() = default;

Result<bool> PrivateFolder::lock() { return true; }

Result<std::string> make_temporary_folder(const std::string& parent) {
  PTERYX_TRY(check_path(parent));
  const fs::path path =
      fs::path(parent) /
      fmt::format("pteryx-{:08x}{:08x}", std::random_device()(), std::random_device()());
  std::error_code error;
  if (!fs::create_directory(path, error) && !error)
    error = std::make_error_code(std::errc::file_exists);
  if (!error) fs::permissions(path, fs::perms::owner_all, error);
  if (error) return failed(parent, error);
  return path.string();
}

}  // namespace pteryx
