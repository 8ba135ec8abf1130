// Weights as their files hold them: element formats, tensors, and a set of tensors by name.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "pteryx/base/bytes.h"
#include "pteryx/base/dims.h"
#include "pteryx/base/file.h"
#include "pteryx/base/status.h"

namespace pteryx::convert {

enum class SourceType : uint8_t {
  kF32,
  kF16,
  kBF16,
  kQ4_0,
  kQ4_1,
  kQ5_0,
  kQ5_1,
  kQ8_0,
  kQ4_K,
  kQ5_K,
  kQ6_K,
};

// A row is a number of blocks, each of a fixed number of elements and bytes.
struct SourceFormat {
  SourceType type;
  std::string_view name;
  uint32_t block_elems;
  uint32_t block_bytes;
  void (*decode)(const std::byte* block, float* out);  // block_elems values
};
const SourceFormat& format(SourceType type);
inline std::string_view name(SourceType type) { return format(type).name; }

struct SourceTensor {
  std::string name;
  SourceType type = SourceType::kF32;
  Dims dims;   // row-major, outermost first; the last is a multiple of block_elems
  Bytes data;  // exactly as long as dims and type say

  int64_t cols() const { return dims.empty() ? 1 : dims.back(); }
  int64_t rows() const { return cols() == 0 ? 0 : numel(dims) / cols(); }
  Bytes row(int64_t r) const;
  void read_row(int64_t r, std::span<float> out) const;  // out holds cols() values
};

// Bytes of a tensor from a file; nullopt where they overflow, a dim is negative or the last is not
// whole blocks.
std::optional<uint64_t> data_bytes(SourceType type, std::span<const int64_t> dims);

struct Checkpoint {
  std::vector<std::shared_ptr<const MappedFile>> files;  // what data points into
  std::map<std::string, SourceTensor, std::less<>> tensors;
  // Tensors that are there but in a format that is not read, and its name.
  std::map<std::string, std::string, std::less<>> unreadable;

  const SourceTensor* find(std::string_view tensor) const;
  // The tensor, with exactly these dims. Errors: kInvalidProgram (missing, other dims),
  // kUnsupported (its format).
  Result<const SourceTensor*> get(std::string_view tensor, const Dims& dims) const;
};

}  // namespace pteryx::convert
