// A constant on its way to the GPU through host memory, a piece at a time: a page has little of it,
// and what changes on its way, such as the scales of joined layers, is large in a large model.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "pteryx/session/constant.h"

namespace pteryx {

// One piece is in memory at a time, or none. What is not row-major is a single piece.
class ConstantPieces {
 public:
  // The sources outlive it.
  ConstantPieces(const graph::Tensor& t, std::span<const SourcePtr> sources);

  bool done() const { return first_ == count_; }
  // Bytes of the file that the piece has.
  uint64_t piece_bytes() const { return static_cast<uint64_t>(piece_count()) * element_bytes_; }
  // Begins the piece where it was not begun; true once take() has it. Errors: kIo.
  Result<bool> advance();
  // The piece as the GPU has it, until next(). Errors: kInvalidProgram, with `label`.
  Result<Bytes> take(std::string_view label);
  void next();

 private:
  int64_t piece_count() const;

  std::vector<ByteRange> data_;
  std::span<const SourcePtr> sources_;
  uint64_t element_bytes_;  // in the file
  int64_t count_;           // of all elements
  int64_t first_ = 0;       // of the piece
  size_t part_ = 0;         // of data_: where the next piece begins
  uint64_t of_part_ = 0;
  graph::Tensor piece_;
  std::optional<ConstantBytes> fetched_;
  std::vector<std::byte> narrow_;
};

}  // namespace pteryx
