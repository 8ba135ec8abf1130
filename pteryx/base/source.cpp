// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/base/source.h"

#include <algorithm>
#include <span>

#include <fmt/format.h>

namespace pteryx {

Status Source::ended(uint64_t end, uint64_t offset, uint64_t size) const {
  return io_error(
      fmt::format("{}: ended at byte {}, expected {} bytes at byte {}: it was truncated", name_,
                  end, size, offset));
}

Status MemorySource::read(uint64_t offset, MutableBytes out) const {
  const auto part = slice(bytes_, offset, out.size());
  if (!part) return ended(bytes_.size(), offset, out.size());
  std::copy(part->begin(), part->end(), out.begin());
  return {};
}

Result<std::string> read_all(const Source& source, uint64_t most_bytes) {
  if (source.size() > most_bytes) {
    return invalid_program(fmt::format("{}: expected at most {} bytes, got {}", source.name(),
                                       most_bytes, source.size()));
  }
  std::string out(source.size(), '\0');
  PTERYX_TRY(source.read(0, std::as_writable_bytes(std::span(out))));
  return out;
}

Result<std::string> read_all(const std::string& path, uint64_t most_bytes) {
  PTERYX_ASSIGN(const SourcePtr source, open_source(path));
  return read_all(*source, most_bytes);
}

}  // namespace pteryx
