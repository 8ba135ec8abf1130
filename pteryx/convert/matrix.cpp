// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/convert/matrix.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include <fmt/format.h>

#include "pteryx/base/dtype.h"

namespace pteryx::convert {
namespace {

constexpr uint64_t kChunkBytes = 1 << 18;
constexpr int64_t kMeasuredElems = 1 << 18;  // at a time
constexpr uint64_t kWindowBytes = 1 << 18;
constexpr float kLargestHalf = 65504;
constexpr int64_t kSourceGroup = 32;

class TensorRows final : public RowSource {
 public:
  explicit TensorRows(SourceTensor t) : t_(std::move(t)) {}
  Result<bool> read(int64_t row, std::span<float> out) override {
    PTERYX_ASSIGN(const bool there, hold(row));
    if (there) t_.decode(held(row), out);
    return there;
  }
  bool has_codes(const Encoding& e) const override {
    const SourceFormat& f = format(t_.type);
    return f.codes != nullptr && f.has_minimums == e.minimums && e.target == Target::kQ4 &&
           e.group == kSourceGroup;
  }
  Result<bool> codes(int64_t row, const Encoding& /*e*/, const RowCodes& to) override {
    PTERYX_ASSIGN(const bool there, hold(row));
    if (!there) return false;
    const SourceFormat& f = format(t_.type);
    const std::byte* block = held(row).data();
    for (size_t at = 0; at < to.codes.size(); at += f.block_elems, block += f.block_bytes) {
      const size_t group = at / kSourceGroup;
      f.codes(block, &to.codes[at], &to.scales[group],
              f.has_minimums ? &to.minimums[group] : nullptr);
    }
    return true;
  }
  void rest() override {
    std::vector<std::byte>().swap(window_);
    begin_ = end_ = 0;
    asked_ = -1;
  }

 private:
  // Brings a row into the window: with those behind it where rows are read in order, alone where
  // they are not.
  Result<bool> hold(int64_t row) {
    if (row >= begin_ && row < end_) return true;
    const uint64_t row_bytes = t_.row_bytes();
    if (row != asked_) {
      const auto most = static_cast<int64_t>(std::max<uint64_t>(kWindowBytes / row_bytes, 1));
      const int64_t count = row == end_ ? std::min(most, t_.rows() - row) : 1;
      window_.resize(static_cast<uint64_t>(count) * row_bytes);
      asked_ = row;
      begin_ = end_ = 0;
    }
    PTERYX_ASSIGN(const bool there, t_.read_bytes(row, window_));
    if (!there) return false;
    asked_ = -1;
    begin_ = row;
    end_ = row + static_cast<int64_t>(window_.size() / row_bytes);
    return true;
  }
  Bytes held(int64_t row) const {
    return Bytes(window_).subspan(static_cast<uint64_t>(row - begin_) * t_.row_bytes(),
                                  t_.row_bytes());
  }

  SourceTensor t_;
  std::vector<std::byte> window_;
  int64_t begin_ = 0, end_ = 0;  // the rows in it
  int64_t asked_ = -1;           // the first of the rows that are on their way into it
};

bool all_finite(std::span<const float> row) {
  return std::all_of(row.begin(), row.end(), [](float v) { return std::isfinite(v); });
}

float to_half(float v) {
  return half_to_float(float_to_half(std::clamp(v, -kLargestHalf, kLargestHalf)));
}

}  // namespace

// One row in its new format.
class RowEncoder {
 public:
  RowEncoder(const Matrix& m, const Encoding& e)
      : m_(m), e_(e), row(static_cast<size_t>(m.cols)), codes(row.size()) {
    const int64_t groups = e.target == Target::kQ4 ? m.cols / e.group : 1;
    scales.resize(static_cast<size_t>(groups));
    if (e.minimums) minimums.resize(scales.size());
  }

  // False: the row is not there yet.
  Result<bool> encode(int64_t r, Error& error) {
    const bool quantised = e_.target == Target::kQ8 || e_.target == Target::kQ4;
    if (quantised && m_.data->has_codes(e_)) {
      PTERYX_ASSIGN(const bool there, m_.data->codes(r, e_, {codes, scales, minimums}));
      if (there && !all_finite(scales)) return not_finite(r, "scale");
      if (there && !all_finite(minimums)) return not_finite(r, "minimum");
      return there;
    }
    PTERYX_ASSIGN(const bool there, m_.data->read(r, row));
    if (!there) return false;
    if (!all_finite(row)) return not_finite(r, "value");
    switch (e_.target) {
      case Target::kF32: break;
      case Target::kF16:
        for (const float v : row) error.add(v, to_half(v));
        break;
      case Target::kQ8:
        scales[0] = quantize_q8(row, codes);
        error.add(row, codes, scales[0]);
        break;
      case Target::kQ4: encode_groups(error); break;
    }
    return true;
  }

  // The bytes of the row as the tensor holds them.
  void append(std::string& out) const {
    const auto put = [&](const auto& v) {
      out.append(reinterpret_cast<const char*>(&v), sizeof(v));
    };
    switch (e_.target) {
      case Target::kF32:
        out.append(reinterpret_cast<const char*>(row.data()), row.size() * 4);
        break;
      case Target::kF16:
        for (const float v : row) put(float_to_half(std::clamp(v, -kLargestHalf, kLargestHalf)));
        break;
      case Target::kQ8:
        out.append(reinterpret_cast<const char*>(codes.data()), codes.size());
        break;
      case Target::kQ4: append_nibbles(out); break;
    }
  }

 private:
  Status not_finite(int64_t r, std::string_view what) const {
    return invalid_program(
        fmt::format("tensor '{}' row {} holds a {} that is not finite", m_.name, r, what));
  }
  void encode_groups(Error& error) {
    const auto n = static_cast<size_t>(e_.group);
    for (size_t g = 0; g < scales.size(); ++g) {
      const auto x = std::span(row).subspan(g * n, n);
      const auto c = std::span(codes).subspan(g * n, n);
      scales[g] = quantize_q4(x, c);
      error.add(x, c, scales[g]);
    }
  }
  // The even element in the low nibble; a row is padded to whole words with code 0, which is 8.
  void append_nibbles(std::string& out) const {
    const size_t bytes = (codes.size() + 7) / 8 * 4;
    const size_t start = out.size();
    out.resize(start + bytes, static_cast<char>(0x88));
    for (size_t i = 0; i + 1 < codes.size(); i += 2) {
      out[start + i / 2] = static_cast<char>((codes[i + 1] + 8) << 4 | (codes[i] + 8));
    }
  }

  const Matrix& m_;
  const Encoding& e_;

 public:
  std::vector<float> row;
  std::vector<int8_t> codes;
  std::vector<float> scales;
  std::vector<float> minimums;
};

namespace {

Bytes bytes_of_text(const std::string& s) { return std::as_bytes(std::span(s)); }

// Writes everything at once.
Result<bool> write_all(Sink& sink, Bytes bytes) {
  PTERYX_TRY(sink.write(bytes));
  return true;
}

}  // namespace

std::string_view name(Target target) {
  switch (target) {
    case Target::kF32: return "f32";
    case Target::kF16: return "f16";
    case Target::kQ8: return "q8";
    case Target::kQ4: return "q4";
  }
  return "?";
}

std::string describe(const Encoding& e) {
  if (e.target != Target::kQ4) return std::string(name(e.target));
  return fmt::format("q4/{}{}", e.group, e.minimums ? "+min" : "");
}

Blob blob_of(std::string bytes) {
  const uint64_t size = bytes.size();
  return {size, [bytes = std::move(bytes)](Sink& s) { return write_all(s, bytes_of_text(bytes)); }};
}

Blob zeros(uint64_t size) {
  return {size, [left = size](Sink& s) mutable -> Result<bool> {
            const std::string chunk(std::min(left, kChunkBytes), '\0');
            PTERYX_TRY(s.write(bytes_of_text(chunk)));
            left -= chunk.size();
            return left == 0;
          }};
}

Blob floats(std::vector<float> values) {
  const uint64_t size = values.size() * sizeof(float);
  return {size, [values = std::move(values)](Sink& s) {
            return write_all(s, std::as_bytes(std::span(values)));
          }};
}

std::shared_ptr<RowSource> rows_of(SourceTensor tensor) {
  return std::make_shared<TensorRows>(std::move(tensor));
}

Measurement::Measurement(const Matrix& m, const Encoding& e, int64_t step)
    : m_(m), e_(e), step_(step) {
  if (!m.data->has_codes(e)) encoder_ = std::make_unique<RowEncoder>(m_, e_);
}

Measurement::~Measurement() = default;

Result<bool> Measurement::advance() {
  if (encoder_ == nullptr) return true;
  for (int64_t elems = 0; row_ < m_.rows; row_ += step_, elems += m_.cols) {
    if (elems >= kMeasuredElems) return false;
    PTERYX_ASSIGN(const bool there, encoder_->encode(row_, error_));
    if (!there) return false;
  }
  m_.data->rest();
  return true;
}

// What is between two calls of write_weight.
struct EncodedMatrix::WeightInProgress {
  RowEncoder encoder;
  int64_t row = 0;
  std::string chunk = {};
};

EncodedMatrix::EncodedMatrix(Matrix m, Encoding e) : m_(std::move(m)), e_(e) {}

EncodedMatrix::~EncodedMatrix() = default;

int64_t EncodedMatrix::weight_cols() const {
  return e_.target == Target::kQ4 ? (m_.cols + 7) / 8 * 4 : m_.cols;
}

int64_t EncodedMatrix::groups() const {
  return e_.target == Target::kQ4 ? m_.cols / e_.group : e_.target == Target::kQ8 ? 1 : 0;
}

// Scales are let go with the last part.
std::function<Result<bool>(Sink&)> EncodedMatrix::part(
    Result<bool> (EncodedMatrix::*write)(Sink&)) {
  ++parts_;
  return [self = shared_from_this(), write](Sink& s) -> Result<bool> {
    PTERYX_ASSIGN(const bool done, (self.get()->*write)(s));
    if (!done || --self->parts_ > 0) return done;
    std::vector<float>().swap(self->scales_);
    std::vector<float>().swap(self->minimums_);
    return true;
  };
}

Blob EncodedMatrix::weight() {
  const int64_t element = e_.target == Target::kF32 ? 4 : e_.target == Target::kF16 ? 2 : 1;
  return {static_cast<uint64_t>(m_.rows * weight_cols() * element),
          part(&EncodedMatrix::write_weight), this};
}

// A chunk at a time.
Result<bool> EncodedMatrix::write_weight(Sink& sink) {
  if (in_progress_ == nullptr) {
    in_progress_ = std::make_unique<WeightInProgress>(RowEncoder(m_, e_));
    scales_.clear();
    scales_.reserve(static_cast<size_t>(m_.rows * groups()));
    minimums_.clear();
    if (e_.minimums) minimums_.reserve(static_cast<size_t>(m_.rows * groups()));
  }
  auto& [encoder, row, chunk] = *in_progress_;
  for (; row < m_.rows && chunk.size() < kChunkBytes; ++row) {
    PTERYX_ASSIGN(const bool there, encoder.encode(row, error_));
    if (!there) return false;
    encoder.append(chunk);
    if (groups() > 0) scales_.insert(scales_.end(), encoder.scales.begin(), encoder.scales.end());
    minimums_.insert(minimums_.end(), encoder.minimums.begin(), encoder.minimums.end());
  }
  PTERYX_TRY(sink.write(bytes_of_text(chunk)));
  chunk.clear();
  if (row < m_.rows) return false;
  in_progress_.reset();
  m_.data->rest();
  return true;
}

Blob EncodedMatrix::row_scales() {
  return {static_cast<uint64_t>(m_.rows * groups()) * sizeof(float),
          part(&EncodedMatrix::write_row_scales), this};
}

Result<bool> EncodedMatrix::write_row_scales(Sink& sink) {
  return write_all(sink, std::as_bytes(std::span(scales_)));
}

Blob EncodedMatrix::linear_scales() {
  return {static_cast<uint64_t>(padded_rows() * groups()) * sizeof(float),
          part(&EncodedMatrix::write_linear_scales), this};
}

Blob EncodedMatrix::minimums() {
  return {static_cast<uint64_t>(padded_rows() * groups()) * sizeof(float),
          part(&EncodedMatrix::write_minimums), this};
}

Result<bool> EncodedMatrix::write_linear_scales(Sink& sink) {
  return write_by_group(sink, scales_);
}

Result<bool> EncodedMatrix::write_minimums(Sink& sink) { return write_by_group(sink, minimums_); }

Result<bool> EncodedMatrix::write_by_group(Sink& sink, const std::vector<float>& numbers) const {
  const auto n = static_cast<size_t>(groups());
  std::vector<float> row(static_cast<size_t>(padded_rows()));
  for (size_t g = 0; g < n; ++g) {
    for (size_t r = 0; r * n < numbers.size(); ++r) row[r] = numbers[r * n + g];
    PTERYX_TRY(sink.write(std::as_bytes(std::span(row))));
  }
  return true;
}

}  // namespace pteryx::convert
