// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/base/source.h"

#include <algorithm>
#include <span>

#include <fmt/format.h>

namespace pteryx {

Status Source::read_now(uint64_t offset, MutableBytes out) const {
  PTERYX_ASSIGN(const bool there, read(offset, out));
  if (there) return {};
  return io_error(fmt::format("{}: {} bytes at byte {} are not there yet, and cannot be waited for",
                              name_, out.size(), offset));
}

Status Source::ended(uint64_t end, uint64_t offset, uint64_t size) const {
  return io_error(
      fmt::format("{}: ended at byte {}, expected {} bytes at byte {}: it was truncated", name_,
                  end, size, offset));
}

Result<bool> MemorySource::read(uint64_t offset, MutableBytes out) const {
  const auto part = slice(bytes_, offset, out.size());
  if (!part) return ended(bytes_.size(), offset, out.size());
  std::copy(part->begin(), part->end(), out.begin());
  return true;
}

std::optional<Bytes> MemorySource::view(uint64_t offset, uint64_t size) const {
  return slice(bytes_, offset, size);
}

Result<bool> RangeSource::read(uint64_t offset, MutableBytes out) const {
  if (!in_range(offset, out.size(), size_)) return ended(size_, offset, out.size());
  return whole_->read(offset_ + offset, out);
}

std::optional<Bytes> RangeSource::view(uint64_t offset, uint64_t size) const {
  if (!in_range(offset, size, size_)) return std::nullopt;
  return whole_->view(offset_ + offset, size);
}

std::optional<HostRange> RangeSource::host_range(uint64_t offset, uint64_t size) const {
  if (!in_range(offset, size, size_)) return {};
  return whole_->host_range(offset_ + offset, size);
}

Result<std::string> read_all(const Source& source, uint64_t most_bytes) {
  if (source.size() > most_bytes) {
    return invalid_program(fmt::format("{}: expected at most {} bytes, got {}", source.name(),
                                       most_bytes, source.size()));
  }
  std::string out(source.size(), '\0');
  PTERYX_TRY(source.read_now(0, std::as_writable_bytes(std::span(out))));
  return out;
}

Result<std::string> read_all(const std::string& path, uint64_t most_bytes) {
  PTERYX_ASSIGN(const SourcePtr source, open_source(path));
  return read_all(*source, most_bytes);
}

FetchedBytes::FetchedBytes(SourcePtr source, uint64_t offset, uint64_t size, size_t alignment)
    : source_(std::move(source)), offset_(offset), size_(size), alignment_(alignment) {}

Result<bool> FetchedBytes::advance() {
  if (there_) return true;
  if (const auto lies = source_->view(offset_, size_);
      lies && reinterpret_cast<uintptr_t>(lies->data()) % alignment_ == 0) {
    bytes_ = *lies;
    there_ = true;
    return true;
  }
  copy_.resize(div_up(size_, sizeof(Block)));
  const MutableBytes out = std::as_writable_bytes(std::span(copy_)).first(size_);
  PTERYX_ASSIGN(there_, source_->read(offset_, out));
  if (there_) bytes_ = out;
  return there_;
}

}  // namespace pteryx
