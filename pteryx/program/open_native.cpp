// Programs in files. SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/program/program.h"

namespace pteryx::program {

Result<Program> Program::open(const std::string& path, std::span<const std::string> data_paths) {
  PTERYX_ASSIGN(SourcePtr program, map_source(path));
  std::vector<SourcePtr> data;
  for (const std::string& data_path : data_paths) {
    PTERYX_ASSIGN(SourcePtr file, map_source(data_path));
    data.push_back(std::move(file));
  }
  return read(std::move(program), std::move(data));
}

}  // namespace pteryx::program
