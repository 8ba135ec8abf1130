// A program whose weights are damaged. SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

namespace pteryx::program::testing {

// A copy of a delegated program with NaN for every constant; the file is gone with the object.
class DamagedProgram {
 public:
  explicit DamagedProgram(const std::string& original);
  ~DamagedProgram();
  DamagedProgram(const DamagedProgram&) = delete;
  DamagedProgram& operator=(const DamagedProgram&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace pteryx::program::testing
