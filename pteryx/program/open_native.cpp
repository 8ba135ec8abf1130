// Programs in files. SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/program/native/files.h"
#include "pteryx/program/program.h"

namespace pteryx::program {

Result<std::vector<SourcePtr>> map_files(std::span<const std::string> paths) {
  std::vector<SourcePtr> files;
  for (const std::string& path : paths) {
    PTERYX_ASSIGN(SourcePtr file, map_source(path));
    files.push_back(std::move(file));
  }
  return files;
}

Result<Program> Program::open(const std::string& path, std::span<const std::string> data_paths) {
  PTERYX_ASSIGN(SourcePtr program, map_source(path));
  PTERYX_ASSIGN(std::vector<SourcePtr> data, map_files(data_paths));
  return read(std::move(program), std::move(data));
}

}  // namespace pteryx::program
