// Reading a program as its sources give their bytes.
//
//   ProgramLoad load(source, {});
//   // now and then, until it says true:
//   PTERYX_ASSIGN(const bool done, load.advance());
//   Program program = load.take();
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "pteryx/program/constants.h"
#include "pteryx/program/container.h"
#include "pteryx/program/program.h"
#include "pteryx/program/ptd.h"

namespace pteryx::program {

class ProgramLoad {
 public:
  ProgramLoad(SourcePtr program, std::vector<SourcePtr> data_files);

  // True once the program is read. Errors: kIo, kInvalidProgram, kUnsupported.
  Result<bool> advance();
  Program take() { return std::move(program_); }

 private:
  // In this order; each fetches what the one before found out.
  enum class Stage : uint8_t {
    kHeads,          // of the files
    kTables,         // of the files
    kDelegateHeads,  // of the Vulkan blobs
    kDelegateTables,
    kComparisons,  // data that stands in two places
    kDone,
  };

  FetchedBytes& fetch(const ByteRange& range, size_t alignment);
  Status next();
  Status read_data_heads();
  Status read_head();
  Status read_data_tables();
  Status read_tables();
  Status read_methods(const Container& container, Budget& budget);
  void find_delegate_heads();
  Status find_delegate_tables();
  void place_delegate_tables();
  Status in_program(Status s) const;
  Result<bool> compare();
  std::string data_file_name(size_t i) const;

  Program program_;
  Stage stage_ = Stage::kHeads;
  std::vector<FetchedBytes*> files_;  // what was fetched of each source
  Extent extent_;
  std::vector<DataExtent> data_extents_;
  std::map<ByteRange, FetchedBytes*> shared_;  // delegates may name the same blob
  uint64_t fetched_bytes_ = 0;
  std::vector<SameBytes> comparisons_;
  size_t compared_ = 0;
  std::vector<FetchedBytes> pair_;
};

}  // namespace pteryx::program
