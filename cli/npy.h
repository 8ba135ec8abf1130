// NumPy's .npy files: one dense tensor each.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <vector>

#include "pteryx/base/bytes.h"
#include "pteryx/pteryx.h"

namespace pteryx::cli {

// A tensor that owns its memory.
struct Array {
  DType dtype = DType::kF32;
  Dims dims;
  Dims strides;  // in elements; empty = row-major
  std::vector<std::byte> data;

  TensorView view() const { return {dtype, dims, data.data(), strides, data.size()}; }
};

// Parses the bytes of a .npy file. Errors: kInvalidArgument with what is wrong; never reads outside
// `file`.
Result<Array> parse_npy(Bytes file);
Result<Array> read_npy(const std::string& path);
// Writes a dense row-major tensor; the file appears whole or not at all.
Status write_npy(const std::string& path, const TensorView& tensor);

}  // namespace pteryx::cli
