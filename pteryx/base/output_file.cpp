// What output files are made of on every system. SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/base/output_file.h"

#include <span>

namespace pteryx {

Status OutputFile::write(std::string_view text) { return write(std::as_bytes(std::span(text))); }

Status write_file(const std::string& path, std::string_view text) {
  PTERYX_ASSIGN(OutputFile file, OutputFile::create(path));
  PTERYX_TRY(file.write(text));
  return file.commit();
}

}  // namespace pteryx
