// Folders that one user alone may look into. SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <utility>

#include "pteryx/base/status.h"

namespace pteryx {

class PrivateFolder {
 public:
  // It is there afterwards, and nobody else may look into it or put something there. Errors: kIo,
  // also where it belongs to somebody else.
  static Result<PrivateFolder> open(const std::string& path);
  PrivateFolder(PrivateFolder&& other) noexcept
      : path_(std::move(other.path_)), descriptor_(std::exchange(other.descriptor_, -1)) {}
  PrivateFolder& operator=(PrivateFolder&&) = delete;
  ~PrivateFolder();

  // For one object at a time, over all threads and processes, until it is destroyed; never waits.
  // False: another has it. Errors: kIo.
  Result<bool> lock();

 private:
  PrivateFolder(std::string path, int descriptor)
      : path_(std::move(path)), descriptor_(descriptor) {}

  std::string path_;
  int descriptor_;  // -1 where the system has none
};

// The path of a new folder in `parent`, as private. Errors: kIo.
Result<std::string> make_temporary_folder(const std::string& parent);

}  // namespace pteryx
