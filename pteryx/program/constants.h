// Where the data of tensors lies: constants and initial values of the program, blobs by name.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "pteryx/base/bytes.h"
#include "pteryx/base/status.h"
#include "pteryx/program/container.h"
#include "pteryx/program/program.h"
#include "pteryx/program/reader.h"

namespace pteryx::pte {
struct SubsegmentOffsets;
}

namespace pteryx::program {

// Looks up data by the index a tensor has for it. Borrows the container.
class Constants {
 public:
  // Errors: kInvalidProgram when an offset leaves its segment or the two forms of constants are
  // mixed.
  static Result<Constants> read(const Container& container, Budget& budget);

  // All of them are as long as the layout says. Errors: kInvalidProgram.
  Result<ByteRange> constant(uint32_t index, const TensorLayout& layout) const;
  // At any offset: initial values are packed, and are copied before use.
  Result<ByteRange> initial_value(uint32_t index, const TensorLayout& layout) const;

 private:
  struct Table {
    const flatbuffers::Vector<uint64_t>* offsets = nullptr;
    ByteRange segment;
  };
  static Result<Table> read_table(std::string_view what, const pte::SubsegmentOffsets& from,
                                  std::span<const ByteRange> segments, Budget& budget);
  static Result<ByteRange> find(std::string_view what, const Table& table, uint32_t index,
                                uint64_t size);
  Result<ByteRange> inline_constant(uint32_t index, uint64_t size) const;

  const Container* container_ = nullptr;
  Table constants_;
  Table initial_values_;
};

// Two places that must hold the same bytes.
struct SameBytes {
  std::string key;
  ByteRange program;
  ByteRange data_file;
};
// Adds the program's own blobs to those of data files. A key that both have must have the same
// bytes in both: `compare` says where they are.
Status add_named_data(const Container& container, Budget& budget, NamedData& into,
                      std::vector<SameBytes>& compare);
Status different_data(std::string_view key);

// Data of a tensor that lies outside the program. Errors: kInvalidProgram when absent or of another
// layout.
Result<ByteRange> external_data(const NamedData& named_data, std::string_view key,
                                const TensorLayout& layout);

}  // namespace pteryx::program
