// The outer layer of a .pte file: header, verified FlatBuffer, segments.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <vector>

#include "pteryx/base/bytes.h"
#include "pteryx/base/source.h"
#include "pteryx/base/status.h"

namespace pteryx::pte {
struct Program;
}

namespace pteryx::program {

// Where the parts of a file are.
struct Extent {
  uint64_t header_end = 0;  // the first byte the root table may start at
  uint64_t program_size = 0;
  uint64_t segment_base = 0;  // 0: no segments
  uint64_t segment_end = 0;
};
// How many bytes of a file read_extent looks at; a smaller file is no program.
inline constexpr uint64_t kProgramHead = 64;
// `head`: the first of these bytes, or all. Errors: kInvalidProgram, kUnsupported (another
// generation of the format).
Result<Extent> read_extent(Bytes head, uint64_t file_size);

struct Container {
  Bytes tables;                        // the program's FlatBuffer: the beginning of the file
  const pte::Program* root = nullptr;  // inside it
  std::vector<ByteRange> segments;     // of source 0
  // Where some of the tables' bytes are in the file.
  ByteRange range_of(Bytes part) const {
    return {0, part.empty() ? 0 : static_cast<uint64_t>(part.data() - tables.data()), part.size()};
  }
};

// `tables`: the first program_size bytes, at an address aligned to 16. Errors: kInvalidProgram.
Result<Container> open_container(const Extent& extent, Bytes tables);

}  // namespace pteryx::program
