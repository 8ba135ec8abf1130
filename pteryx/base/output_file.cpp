// What output files are made of on every system. SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/base/output_file.h"

#include <cerrno>
#include <span>
#include <system_error>

#include <fmt/format.h>

namespace pteryx {

Status OutputFile::cannot_write(const std::string& path, int error) {
  return io_error(fmt::format("cannot write {}: {}", path, std::generic_category().message(error)));
}

Status OutputFile::write(Bytes bytes) {
  if (bytes.empty()) return {};
  if (std::fwrite(bytes.data(), 1, bytes.size(), file_.get()) != bytes.size()) return failed(errno);
  return {};
}

Status OutputFile::write(std::string_view text) { return write(std::as_bytes(std::span(text))); }

Status write_file(const std::string& path, std::string_view text) {
  PTERYX_ASSIGN(OutputFile file, OutputFile::create(path));
  PTERYX_TRY(file.write(text));
  return file.commit();
}

}  // namespace pteryx
