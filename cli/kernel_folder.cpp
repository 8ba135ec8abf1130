// SPDX-License-Identifier: BSD-3-Clause
#include "kernel_folder.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>

#include "output.h"

#include "pteryx/base/output_file.h"
#include "pteryx/base/path.h"

namespace pteryx::cli {
namespace {

namespace fs = std::filesystem;

Status failed(std::string_view what, const std::string& path, const std::error_code& error) {
  return io_error(fmt::format("cannot {} {}: {}", what, path, error.message()));
}

bool is_ours(const fs::directory_entry& entry) {
  std::error_code error;
  if (entry.path().extension() != ".wgsl" || !entry.is_regular_file(error) || error) return false;
  std::ifstream file(entry.path());
  std::string line;
  return std::getline(file, line) && line == kKernelFileMark;
}

// The names in a folder, all of them ours.
Result<std::vector<std::string>> names_in(const std::string& folder) {
  PTERYX_TRY(check_path(folder));
  std::vector<std::string> names;
  std::error_code error;
  const fs::file_status status = fs::status(folder, error);
  if (status.type() == fs::file_type::not_found) return names;
  if (error) return failed("read", folder, error);
  if (status.type() != fs::file_type::directory)
    return io_error(fmt::format("cannot write to {}: it is not a folder", folder));
  fs::directory_iterator at(folder, error);
  for (; !error && at != fs::directory_iterator(); at.increment(error)) {
    const std::string name = at->path().filename().string();
    if (!is_ours(*at)) {
      return invalid_argument(
          fmt::format("--kernels: expected a folder that is empty or holds kernels written before, "
                      "got {} with '{}' in it",
                      folder, printable(name)));
    }
    names.push_back(name);
  }
  if (error) return failed("read", folder, error);
  return names;
}

}  // namespace

Status check_kernel_folder(const std::string& folder) {
  auto names = names_in(folder);
  return names.ok() ? Status() : std::move(names).status();
}

Result<std::vector<std::string>> write_kernels(const std::string& folder,
                                               const std::vector<KernelText>& kernels) {
  PTERYX_ASSIGN(const std::vector<std::string> before, names_in(folder));
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) return failed("create", folder, error);
  std::vector<std::string> names = kernel_file_names(kernels);
  for (size_t i = 0; i < kernels.size(); ++i)
    PTERYX_TRY(write_file(fmt::format("{}/{}", folder, names[i]), kernel_file(kernels[i])));
  for (const std::string& name : before) {
    if (std::ranges::find(names, name) != names.end()) continue;
    const std::string path = fmt::format("{}/{}", folder, name);
    fs::remove(path, error);
    if (error) return failed("remove", path, error);
  }
  return names;
}

}  // namespace pteryx::cli
