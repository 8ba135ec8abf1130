// A constant of a program: what it is known by, and its bytes in host memory.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <compare>
#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "pteryx/base/source.h"
#include "pteryx/graph/graph.h"

namespace pteryx {

// What makes two constants the same: the same bytes, meaning the same.
struct ConstantId {
  std::vector<ByteRange> data;
  DType dtype = DType::kF32;
  DType stored = DType::kF32;      // of the bytes
  std::vector<uint8_t> dim_order;  // of the bytes, with the dims it is of; empty: row-major
  std::vector<int64_t> dims;

  explicit ConstantId(const graph::Tensor& t);
  friend auto operator<=>(const ConstantId&, const ConstantId&) = default;
};

// The bytes of a constant in host memory, dense, row-major and of its type: where they lie if they
// are so, else a copy.
class ConstantBytes {
 public:
  ConstantBytes(const graph::Tensor& t, std::span<const SourcePtr> sources);

  // True once bytes() are there. Errors: kIo.
  Result<bool> advance();
  // What the bytes of a constant will take of memory: 0 where they are used where they lie.
  static uint64_t copied_bytes(const graph::Tensor& t, std::span<const SourcePtr> sources);
  // In one piece: of what lies in several places, a copy that the first call makes.
  Bytes bytes();
  // Where it lies in several places as it is: those, one behind the other. Else empty.
  std::span<const Bytes> parts() const { return apart_; }

 private:
  void join();
  void to_row_major();
  void convert();

  // A part of the constant, in what was fetched.
  struct Part {
    size_t fetched = 0;
    uint64_t offset = 0;
    uint64_t size = 0;
  };
  Bytes part(const Part& p) const { return fetched_[p.fetched].bytes().subspan(p.offset, p.size); }

  std::vector<FetchedBytes> fetched_;  // what lies side by side together: few and large reads
  std::vector<Part> parts_;
  Dims dims_;
  DType stored_;
  DType dtype_;
  std::vector<uint8_t> dim_order_;
  bool there_ = false;
  Bytes bytes_;
  std::vector<Bytes> apart_;
  std::vector<std::max_align_t> memory_;
};

// The bytes of an i64 tensor as the GPU has them: only indices are i64 there. Errors:
// kInvalidProgram for a value that does not fit i32, with `label`; elements count from `first`.
Result<std::vector<std::byte>> narrowed(const graph::Tensor& t, Bytes bytes, std::string_view label,
                                        int64_t first = 0);

bool is_zero(Bytes bytes);

// Bytes of the sources, each counted once however often it is added.
class ByteCount {
 public:
  void add(const ByteRange& range) { ranges_.push_back(range); }
  uint64_t total();

 private:
  std::vector<ByteRange> ranges_;
};

}  // namespace pteryx
