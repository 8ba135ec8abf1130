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

// f32 and f16 as they are; q8 with one scale per row; q4 with one per group of a row, and perhaps a
// number that is added to the group.
enum class Target : uint8_t { kF32, kF16, kQ8, kQ4 };
std::string_view name(Target target);

struct Encoding {
  Target target = Target::kF32;
  int64_t group = 0;      // of q4
  bool minimums = false;  // of q4: a group has what its code 0 stands for, beside its scale
};
std::string describe(const Encoding& e);  // as reports have it

// A row as codes: numbers for each group.
struct RowCodes {
  std::span<int8_t> codes;
  std::span<float> scales;
  std::span<float> minimums;  // of encodings that have some
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
  // Writes some of it; called until it says true. False also where a source keeps one waiting.
  std::function<Result<bool>(Sink&)> write;
  const void* maker = nullptr;  // null: none but itself
};
Blob blob_of(std::string bytes);
Blob zeros(uint64_t size);
Blob floats(std::vector<float> values);

// Rows of a matrix, best read in order. False: the row is on its way, ask for the same again.
// Errors: kIo.
class RowSource {
 public:
  virtual ~RowSource() = default;
  virtual Result<bool> read(int64_t row, std::span<float> out) = 0;
  // Whether the source has codes and scales of this encoding, which stand for exactly its rows.
  virtual bool has_codes(const Encoding& e) const = 0;
  virtual Result<bool> codes(int64_t row, const Encoding& e, const RowCodes& to) = 0;
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

class RowEncoder;

// The error that an encoding makes over every `step`-th row.
class Measurement {
 public:
  Measurement(const Matrix& m, const Encoding& e, int64_t step);
  Measurement(const Measurement&) = delete;
  Measurement& operator=(const Measurement&) = delete;
  ~Measurement();

  // Looks at some rows; true once error() is that of all. Errors: kIo, kInvalidProgram (a value
  // that is not finite).
  Result<bool> advance();
  const Error& error() const { return error_; }

 private:
  const Matrix& m_;
  Encoding e_;
  int64_t step_;
  int64_t row_ = 0;
  std::unique_ptr<RowEncoder> encoder_;  // null where the source has the codes themselves
  Error error_;
};

// The blobs of a matrix, each asked for and written once. Scales and minimums are made while the
// weight is written, so they come after it.
class EncodedMatrix : public std::enable_shared_from_this<EncodedMatrix> {
 public:
  EncodedMatrix(Matrix m, Encoding e);
  EncodedMatrix(const EncodedMatrix&) = delete;
  EncodedMatrix& operator=(const EncodedMatrix&) = delete;
  ~EncodedMatrix();

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
  Blob minimums();       // the same

 private:
  struct WeightInProgress;
  Result<bool> write_weight(Sink& sink);
  Result<bool> write_row_scales(Sink& sink);
  Result<bool> write_linear_scales(Sink& sink);
  Result<bool> write_minimums(Sink& sink);
  Result<bool> write_by_group(Sink& sink, const std::vector<float>& numbers) const;
  std::function<Result<bool>(Sink&)> part(Result<bool> (EncodedMatrix::*write)(Sink&));

  Matrix m_;
  Encoding e_;
  Error error_;
  std::unique_ptr<WeightInProgress> in_progress_;
  std::vector<float> scales_;    // [rows, groups]
  std::vector<float> minimums_;  // the same
  size_t parts_ = 0;             // blobs that are not written yet
};

}  // namespace pteryx::convert
