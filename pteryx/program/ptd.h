// External data files (.ptd): blobs by name.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

#include "pteryx/base/bytes.h"
#include "pteryx/base/source.h"
#include "pteryx/base/status.h"
#include "pteryx/program/program.h"

namespace pteryx::program {

// Where the parts of a file are.
struct DataExtent {
  uint64_t tables_size = 0;  // of the FlatBuffer, the beginning of the file
  ByteRange segments;
};
// How many bytes of a file read_data_extent looks at; a smaller file is none.
inline constexpr uint64_t kDataFileHead = 64;
// `head`: the first of these bytes, or all. Errors: kInvalidProgram.
Result<DataExtent> read_data_extent(Bytes head, const ByteRange& file);

// Adds a file's entries to `into`. `tables`: its first tables_size bytes, at an address aligned to
// 16. Errors: kInvalidProgram, kUnsupported.
Status read_data_file(const DataExtent& extent, Bytes tables, NamedData& into);

}  // namespace pteryx::program
