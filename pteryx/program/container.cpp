// The extended header, the verifier and the segment table of a .pte file. SPDX-License-Identifier:
// BSD-3-Clause
#include "pteryx/program/container.h"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>

#include "pteryx/base/checked.h"
#include "pteryx/base/order.h"
#include "pteryx/program/program_generated.h"
#include "pteryx/program/reader.h"

namespace pteryx::program {
namespace {

constexpr uint64_t kPrefix = 8;  // root offset and identifier, which the header follows
constexpr uint32_t kShortHeader = 24;
constexpr uint32_t kLongHeader = 32;

std::string_view characters(Bytes head, size_t offset) {
  return {reinterpret_cast<const char*>(head.data()) + offset, 4};
}

Status check_identifier(Bytes head) {
  if (head.size() < kProgramHead) {
    return invalid_program(
        fmt::format("file too small for an ExecuTorch program: {} bytes", head.size()));
  }
  const std::string_view id = characters(head, 4);
  if (id == "ET12") return {};
  if (id == "BP08") return unsupported("this is a bundled program; unwrap it first");
  if (id == "FT01") return invalid_program("this is a .ptd data file, not a program");
  if (id.starts_with("ET")) {
    return unsupported(
        fmt::format("program identifier {} is not supported (expected 'ET12')", quote(id)));
  }
  return invalid_program(fmt::format("not an ExecuTorch program: identifier {}", quote(id)));
}

// The fields of the header as they are; without a header the whole file is the FlatBuffer.
Result<Extent> read_header(Bytes head, uint64_t file_size) {
  Extent e = {.header_end = kPrefix, .program_size = file_size, .segment_end = file_size};
  if (characters(head, 8) != "eh00") return e;
  const uint32_t length = *read_at<uint32_t>(head, 12);
  if (length < kShortHeader) {
    return invalid_program(fmt::format("extended header length {} < {}", length, kShortHeader));
  }
  e.header_end = kPrefix + length;
  e.program_size = *read_at<uint64_t>(head, 16);
  e.segment_base = *read_at<uint64_t>(head, 24);
  // The oldest header, and any that leaves it 0, does not say where the segments end.
  const uint64_t data_size = length >= kLongHeader ? *read_at<uint64_t>(head, 32) : 0;
  if (data_size != 0) {
    const auto end = checked_add(e.segment_base, data_size);
    if (!end || *end > file_size) {
      return invalid_program(
          fmt::format("file is truncated: header promises {} bytes from byte {}, file has {}",
                      data_size, e.segment_base, file_size));
    }
    e.segment_end = *end;
  }
  return e;
}

Status check_extent(const Extent& e, Bytes head, uint64_t file_size) {
  if (e.program_size > file_size) {
    return invalid_program(
        fmt::format("program size {} exceeds file size {}", e.program_size, file_size));
  }
  if (e.program_size <= e.header_end) {
    return invalid_program(
        fmt::format("program size {} leaves nothing after its header of {} bytes", e.program_size,
                    e.header_end));
  }
  if (e.program_size > kMaxFlatBufferBytes) {
    return invalid_program(fmt::format("program size {} exceeds what a FlatBuffer can hold ({})",
                                       e.program_size, kMaxFlatBufferBytes));
  }
  if (e.segment_base != 0 && (e.segment_base < e.program_size || e.segment_base > file_size)) {
    return invalid_program(
        fmt::format("segment base {} lies inside the program ({}) or past the end ({})",
                    e.segment_base, e.program_size, file_size));
  }
  const uint32_t root = *read_at<uint32_t>(head, 0);
  if (root < e.header_end || root > e.program_size - 4 || root % 4 != 0) {
    return invalid_program(fmt::format("root table offset {} out of range", root));
  }
  return {};
}

Result<std::vector<ByteRange>> read_segments(const pte::Program& program, const Extent& e) {
  const auto* const table = program.segments();
  std::vector<ByteRange> segments;
  segments.reserve(count(table));
  for (uint32_t i = 0; i < count(table); ++i) {
    const uint64_t offset = table->Get(i)->offset();
    const uint64_t size = table->Get(i)->size();
    if (size == 0) {
      segments.emplace_back();
      continue;
    }
    if (e.segment_base == 0 || !in_range(offset, size, e.segment_end - e.segment_base)) {
      return invalid_program(
          fmt::format("segment {} [{}, +{}) exceeds the file: expected at most {} bytes", i, offset,
                      size, e.segment_base == 0 ? 0 : e.segment_end - e.segment_base));
    }
    segments.push_back({0, e.segment_base + offset, size});
  }
  return segments;
}

Status check_overlap(std::span<const ByteRange> segments) {
  std::vector<uint32_t> order = places_of(segments.size());
  std::erase_if(order, [&](uint32_t i) { return segments[i].size == 0; });
  sort_places(order,
              [&](uint32_t a, uint32_t b) { return segments[a].offset < segments[b].offset; });
  for (size_t k = 1; k < order.size(); ++k) {
    const ByteRange& before = segments[order[k - 1]];
    if (segments[order[k]].offset < before.offset + before.size) {
      return invalid_program(fmt::format("segments {} and {} overlap",
                                         std::min(order[k - 1], order[k]),
                                         std::max(order[k - 1], order[k])));
    }
  }
  return {};
}

}  // namespace

Result<Extent> read_extent(Bytes head, uint64_t file_size) {
  PTERYX_TRY(check_identifier(head));
  PTERYX_ASSIGN(const Extent e, read_header(head, file_size));
  PTERYX_TRY(check_extent(e, head, file_size));
  return e;
}

Result<Container> open_container(const Extent& extent, Bytes tables) {
  Container c;
  c.tables = tables;
  c.root = verified_root<pte::Program>(tables);
  if (c.root == nullptr) {
    return invalid_program("program data is corrupt (FlatBuffer verification failed)");
  }
  PTERYX_ASSIGN(c.segments, read_segments(*c.root, extent));
  PTERYX_TRY(check_overlap(c.segments));
  return c;
}

}  // namespace pteryx::program
