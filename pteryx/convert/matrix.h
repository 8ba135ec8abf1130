// A weight matrix on its way into a program: where its rows come from, the format it gets, and the
// blobs that it becomes.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "pteryx/base/bytes.h"
#include "pteryx/base/status.h"
#include "pteryx/convert/checkpoint.h"
#include "pteryx/convert/quantize.h"

namespace pteryx::convert {

// f32 and f16 as they are; q8 with one scale per row; q4 with one per group of a row.
enum class Target : uint8_t { kF32, kF16, kQ8, kQ4 };
std::string_view name(Target target);

struct Encoding {
  Target target = Target::kF32;
  int64_t group = 0;  // of q4
};

class Sink {
 public:
  virtual ~Sink() = default;
  virtual Status write(Bytes bytes) = 0;
};

// Bytes of the program that are made when it is their turn. Blobs of one maker are written one
// after another, in their order; others may be at the same time.
struct Blob {
  uint64_t size = 0;
  std::function<Status(Sink&)> write;
  const void* maker = nullptr;  // null: none but itself
};
Blob blob_of(std::string bytes);
Blob zeros(uint64_t size);
Blob floats(std::vector<float> values);

// Rows of a matrix, best read in order. Errors: kIo.
class RowSource {
 public:
  virtual ~RowSource() = default;
  virtual Status read(int64_t row, std::span<float> out) = 0;
  // Whether the source has codes and scales of this encoding, which stand for exactly its rows.
  virtual bool has_codes(const Encoding& e) const = 0;
  virtual Status codes(int64_t row, const Encoding& e, std::span<int8_t> codes,
                       std::span<float> scales) = 0;
  // Nothing of the matrix is needed for a while.
  virtual void rest() {}
};
std::shared_ptr<RowSource> rows_of(SourceTensor tensor);

struct Matrix {
  std::string name;
  std::string source;  // "Q4_0", "F16", ...
  int64_t rows = 0;
  int64_t cols = 0;
  std::shared_ptr<RowSource> data;
};

// The error that an encoding makes over every `step`-th row. Errors: kInvalidProgram (a value that
// is not finite).
Result<Error> measure(const Matrix& m, const Encoding& e, int64_t step = 1);

// The blobs of a matrix, each asked for and written once. Scales are made while the weight is
// written, so they come after it.
class EncodedMatrix : public std::enable_shared_from_this<EncodedMatrix> {
 public:
  EncodedMatrix(Matrix m, Encoding e) : m_(std::move(m)), e_(e) {}

  const Matrix& matrix() const { return m_; }
  const Encoding& encoding() const { return e_; }
  void set_encoding(const Encoding& e) { e_ = e; }  // before its blobs are asked for
  const Error& error() const { return error_; }     // once the weight is written
  int64_t weight_cols() const;                      // elements of the tensor, bytes for q4
  int64_t groups() const;                           // scales of a row
  int64_t padded_rows() const { return (m_.rows + 3) / 4 * 4; }

  Blob weight();
  Blob row_scales();     // [rows, groups]
  Blob linear_scales();  // [groups, rows padded to 4], what linear_q4gsw reads

 private:
  Status write_weight(Sink& sink);
  Status write_row_scales(Sink& sink);
  Status write_linear_scales(Sink& sink);
  std::function<Status(Sink&)> part(Status (EncodedMatrix::*write)(Sink&));

  Matrix m_;
  Encoding e_;
  Error error_;
  std::vector<float> scales_;  // [rows, groups]
  size_t parts_ = 0;           // blobs that are not written yet
};

}  // namespace pteryx::convert
