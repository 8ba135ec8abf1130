// The graph blob inside a VulkanBackend delegate (VH00 header, VK00 FlatBuffer) as plain records.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "pteryx/program/program.h"

namespace pteryx::program {

struct BlobTensor {
  DType dtype = DType::kF32;
  Dims dims;                          // upper bound
  std::optional<ByteRange> constant;  // exactly nbytes long, row-major
  std::string constant_key;           // "" for inline constants
  int32_t memory_object = -1;         // equal non-negative ids have disjoint lifetimes
  std::string unsupported = {};  // why there can be no such tensor; nothing is known of it then
};
struct BlobSymInt {};
struct BlobIntList {
  std::vector<int64_t> items;
};
struct BlobValueList {
  std::vector<uint32_t> items;  // value ids, checked; no list inside a list
};
using BlobValue =
    std::variant<NullRecord, int64_t, double, bool, std::string, BlobTensor, BlobSymInt,
                 BlobIntList, DoubleListRecord, BoolListRecord, BlobValueList>;

struct BlobCall {
  uint32_t node_id = 0;
  std::string name;
  std::vector<uint32_t> args;  // value ids, checked; the result is last
};

struct Blob {
  std::vector<BlobValue> values;
  std::vector<BlobCall> chain;
  std::vector<uint32_t> inputs;
  std::vector<uint32_t> outputs;
};

// Where the parts of a blob are.
struct BlobRegions {
  ByteRange flatbuffer;
  ByteRange constants;
};
// How many bytes of a blob read_blob_header looks at; a smaller one is none.
inline constexpr uint64_t kBlobHead = 30;
// `head`: the first of these bytes, or all. Errors: kInvalidProgram.
Result<BlobRegions> read_blob_header(Bytes head, const ByteRange& blob);

// Errors: kInvalidProgram (malformed, or constant data missing).
Result<Blob> parse_blob(const DelegateRecord& delegate, const NamedData& named_data);

}  // namespace pteryx::program
