// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/base/web/host.h"

#include <utility>

#include "pteryx/base/checked.h"

extern "C" {
// The text of the last answer that was an error: how long it is, and the text itself.
PTERYX_IMPORT(message_size) size_t pteryx_message_size();
PTERYX_IMPORT(message_copy) void pteryx_message_copy(char* out);

// Reads a range of a source into memory; asked again with the same range until it is not kLater.
PTERYX_IMPORT(source_read)
pteryx::web::Answer pteryx_source_read(uint32_t source, double offset, void* out, size_t size);
PTERYX_IMPORT(source_release) void pteryx_source_release(uint32_t source);
}

namespace pteryx::web {

Result<bool> settle(Answer answer) {
  if (answer == Answer::kLater) return false;
  if (answer == Answer::kDone) return true;
  std::string message(pteryx_message_size(), '\0');
  pteryx_message_copy(message.data());
  return Status(static_cast<Code>(answer), std::move(message));
}

HostSource::~HostSource() { pteryx_source_release(id_); }

Result<bool> HostSource::read(uint64_t offset, MutableBytes out) const {
  if (!in_range(offset, out.size(), size_)) return ended(size_, offset, out.size());
  if (out.empty()) return true;
  return settle(pteryx_source_read(id_, static_cast<double>(offset), out.data(), out.size()));
}

std::optional<HostRange> HostSource::host_range(uint64_t offset, uint64_t size) const {
  if (!in_range(offset, size, size_)) return {};
  return HostRange{.source = id_, .offset = offset};
}

}  // namespace pteryx::web
