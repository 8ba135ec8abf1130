// Parts of a program as bytes of their own, for tests and fuzzers.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <memory>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "pteryx/program/container.h"
#include "pteryx/program/delegate.h"
#include "pteryx/program/ptd.h"

namespace pteryx::program::testing {

// Bytes at an address aligned to 16; copies where they are not.
inline FetchedBytes aligned(Bytes bytes) {
  FetchedBytes fetched(std::make_shared<MemorySource>("", bytes), 0, bytes.size(), 16);
  if (!fetched.advance().ok()) std::abort();
  return fetched;
}

inline Result<Blob> parse_blob(Bytes blob, const NamedData& named_data) {
  const ByteRange whole{0, 0, blob.size()};
  DelegateRecord record{.id = std::string(kVulkanDelegate), .blob = whole, .specs = {}};
  record.head = blob.first(std::min<size_t>(blob.size(), kBlobHead));
  const auto regions = read_blob_header(record.head, whole);
  if (!regions.ok()) return program::parse_blob(record, named_data);
  const FetchedBytes tables =
      aligned(blob.subspan(regions->flatbuffer.offset, regions->flatbuffer.size));
  record.tables = tables.bytes();
  return program::parse_blob(record, named_data);
}

inline Status read_data_file(Bytes file, std::string_view what, NamedData& into) {
  const auto read = [&]() -> Status {
    const Bytes head = file.first(std::min<size_t>(file.size(), kDataFileHead));
    PTERYX_ASSIGN(const DataExtent extent, read_data_extent(head, {1, 0, file.size()}));
    return program::read_data_file(extent, aligned(file.first(extent.tables_size)).bytes(), into);
  };
  Status s = read();
  return s.ok() ? std::move(s) : std::move(s).during(fmt::format("reading {}", what));
}

// The container holds pointers into the file.
inline Result<Container> open_container(Bytes file) {
  const Bytes head = file.first(std::min<size_t>(file.size(), kProgramHead));
  PTERYX_ASSIGN(const Extent extent, read_extent(head, file.size()));
  return program::open_container(extent, file.first(extent.program_size));
}

}  // namespace pteryx::program::testing
