// Weights as their files hold them: element formats, tensors, and a set of tensors by name.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "pteryx/base/bytes.h"
#include "pteryx/base/dims.h"
#include "pteryx/base/source.h"
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
  // Where elements are codes of 4 bits, -8 to 7, times a scale for each 32, plus a number for each
  // 32 where these are not null: those. Null elsewhere.
  void (*codes)(const std::byte* block, int8_t* codes, float* scales, float* minimums) = nullptr;
  bool has_minimums = false;
};
const SourceFormat& format(SourceType type);
inline std::string_view name(SourceType type) { return format(type).name; }

struct SourceTensor {
  std::string name;
  SourceType type = SourceType::kF32;
  Dims dims;            // row-major, outermost first; the last is a multiple of block_elems
  SourcePtr file;       // holds all of it
  uint64_t offset = 0;  // in the file
  uint64_t size = 0;    // bytes: exactly what dims and type say

  int64_t cols() const { return dims.empty() ? 1 : dims.back(); }
  int64_t rows() const { return cols() == 0 ? 0 : numel(dims) / cols(); }
  uint64_t row_bytes() const;
  // As many rows as `out` holds, as they are in the file; false as Source::read. Errors: kIo.
  Result<bool> read_bytes(int64_t first_row, MutableBytes out) const;
  void decode(Bytes row, std::span<float> out) const;  // out holds cols() values
  // Errors: kIo, also where the row is not there yet.
  Status read_row(int64_t row, std::span<float> out) const;

 private:
  Status reading(Status status) const;
};

// Bytes of a tensor from a file; nullopt where they overflow, a dim is negative or the last is not
// whole blocks.
std::optional<uint64_t> data_bytes(SourceType type, std::span<const int64_t> dims);

class Checkpoint {
 public:
  // Errors: kInvalidProgram for a name that is there already.
  Status add(SourceTensor tensor);
  // A tensor of a type that is not read; only an error when somebody asks for it.
  Status add_unreadable(std::string tensor, std::string type, const Source& file);
  Status add_all(Checkpoint other);

  const SourceTensor* find(std::string_view tensor) const;
  bool has(std::string_view tensor) const;  // readable or not
  // The tensor, with exactly these dims. Errors: kInvalidProgram (missing, other dims),
  // kUnsupported (its format).
  Result<const SourceTensor*> get(std::string_view tensor, const Dims& dims) const;

  size_t size() const { return tensors_.size() + unreadable_.size(); }
  const std::map<std::string, SourceTensor, std::less<>>& tensors() const { return tensors_; }

 private:
  struct Unreadable {
    std::string type;
    std::string file;
  };
  Status check_new(const std::string& tensor, const std::string& file) const;

  std::map<std::string, SourceTensor, std::less<>> tensors_;
  std::map<std::string, Unreadable, std::less<>> unreadable_;
};

}  // namespace pteryx::convert
