// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/convert/matrix.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include <fmt/format.h>

#include "pteryx/base/dtype.h"

namespace pteryx::convert {
namespace {

constexpr uint64_t kChunkBytes = 1 << 20;
constexpr uint64_t kWindowBytes = 1 << 18;
constexpr float kLargestHalf = 65504;
constexpr int64_t kQ4_0Group = 32;

class TensorRows final : public RowSource {
 public:
  explicit TensorRows(SourceTensor t) : t_(std::move(t)) {}
  Status read(int64_t row, std::span<float> out) override {
    PTERYX_TRY(hold(row));
    t_.decode(held(row), out);
    return {};
  }
  bool has_codes(const Encoding& e) const override {
    return t_.type == SourceType::kQ4_0 && e.target == Target::kQ4 && e.group == kQ4_0Group;
  }
  Status codes(int64_t row, const Encoding& /*e*/, std::span<int8_t> codes,
               std::span<float> scales) override {
    PTERYX_TRY(hold(row));
    const SourceFormat& f = format(t_.type);
    const std::byte* block = held(row).data();
    for (size_t g = 0; g < scales.size(); ++g, block += f.block_bytes) {
      uint16_t scale = 0;
      std::memcpy(&scale, block, sizeof(scale));
      scales[g] = half_to_float(scale);
      for (size_t j = 0; j < 16; ++j) {
        const auto byte = std::to_integer<int>(block[2 + j]);
        codes[g * 32 + j] = static_cast<int8_t>((byte & 15) - 8);
        codes[g * 32 + j + 16] = static_cast<int8_t>((byte >> 4) - 8);
      }
    }
    return {};
  }
  void rest() override {
    std::vector<std::byte>().swap(window_);
    begin_ = end_ = 0;
  }

 private:
  // Brings a row into the window: with those behind it where rows are read in order, alone where
  // they are not.
  Status hold(int64_t row) {
    if (row >= begin_ && row < end_) return {};
    const uint64_t row_bytes = t_.row_bytes();
    const auto most = static_cast<int64_t>(std::max<uint64_t>(kWindowBytes / row_bytes, 1));
    const int64_t count = row == end_ ? std::min(most, t_.rows() - row) : 1;
    begin_ = end_ = 0;
    window_.resize(static_cast<uint64_t>(count) * row_bytes);
    PTERYX_TRY(t_.read_bytes(row, window_));
    begin_ = row;
    end_ = row + count;
    return {};
  }
  Bytes held(int64_t row) const {
    return Bytes(window_).subspan(static_cast<uint64_t>(row - begin_) * t_.row_bytes(),
                                  t_.row_bytes());
  }

  SourceTensor t_;
  std::vector<std::byte> window_;
  int64_t begin_ = 0, end_ = 0;  // the rows in it
};

bool all_finite(std::span<const float> row) {
  return std::all_of(row.begin(), row.end(), [](float v) { return std::isfinite(v); });
}

float to_half(float v) {
  return half_to_float(float_to_half(std::clamp(v, -kLargestHalf, kLargestHalf)));
}

// One row in its new format.
class RowEncoder {
 public:
  RowEncoder(const Matrix& m, const Encoding& e)
      : m_(m), e_(e), row(static_cast<size_t>(m.cols)), codes(row.size()) {
    const int64_t groups = e.target == Target::kQ4 ? m.cols / e.group : 1;
    scales.resize(static_cast<size_t>(groups));
  }

  Status encode(int64_t r, Error& error) {
    const bool quantised = e_.target == Target::kQ8 || e_.target == Target::kQ4;
    if (quantised && m_.data->has_codes(e_)) {
      PTERYX_TRY(m_.data->codes(r, e_, codes, scales));
      return all_finite(scales) ? Status() : not_finite(r, "scale");
    }
    PTERYX_TRY(m_.data->read(r, row));
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
    return {};
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
};

Bytes bytes_of_text(const std::string& s) { return std::as_bytes(std::span(s)); }

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

Blob blob_of(std::string bytes) {
  const uint64_t size = bytes.size();
  return {size, [bytes = std::move(bytes)](Sink& s) { return s.write(bytes_of_text(bytes)); }};
}

Blob zeros(uint64_t size) {
  return {size, [size](Sink& s) -> Status {
            const std::string chunk(std::min(size, kChunkBytes), '\0');
            for (uint64_t left = size; left > 0;) {
              const uint64_t n = std::min<uint64_t>(left, chunk.size());
              PTERYX_TRY(s.write(bytes_of_text(chunk).first(n)));
              left -= n;
            }
            return {};
          }};
}

Blob floats(std::vector<float> values) {
  const uint64_t size = values.size() * sizeof(float);
  return {size, [values = std::move(values)](Sink& s) {
            return s.write(std::as_bytes(std::span(values)));
          }};
}

std::shared_ptr<RowSource> rows_of(SourceTensor tensor) {
  return std::make_shared<TensorRows>(std::move(tensor));
}

Result<Error> measure(const Matrix& m, const Encoding& e, int64_t step) {
  Error error;
  if (m.data->has_codes(e)) return error;
  RowEncoder encoder(m, e);
  for (int64_t r = 0; r < m.rows; r += step) PTERYX_TRY(encoder.encode(r, error));
  m.data->rest();
  return error;
}

int64_t EncodedMatrix::weight_cols() const {
  return e_.target == Target::kQ4 ? (m_.cols + 7) / 8 * 4 : m_.cols;
}

int64_t EncodedMatrix::groups() const {
  return e_.target == Target::kQ4 ? m_.cols / e_.group : e_.target == Target::kQ8 ? 1 : 0;
}

// Scales are let go with the last part.
std::function<Status(Sink&)> EncodedMatrix::part(Status (EncodedMatrix::*write)(Sink&)) {
  ++parts_;
  return [self = shared_from_this(), write](Sink& s) -> Status {
    PTERYX_TRY((self.get()->*write)(s));
    if (--self->parts_ == 0) std::vector<float>().swap(self->scales_);
    return {};
  };
}

Blob EncodedMatrix::weight() {
  const int64_t element = e_.target == Target::kF32 ? 4 : e_.target == Target::kF16 ? 2 : 1;
  return {static_cast<uint64_t>(m_.rows * weight_cols() * element),
          part(&EncodedMatrix::write_weight), this};
}

Status EncodedMatrix::write_weight(Sink& sink) {
  RowEncoder encoder(m_, e_);
  std::string chunk;
  scales_.clear();
  scales_.reserve(static_cast<size_t>(m_.rows * groups()));
  for (int64_t r = 0; r < m_.rows; ++r) {
    PTERYX_TRY(encoder.encode(r, error_));
    encoder.append(chunk);
    if (groups() > 0) scales_.insert(scales_.end(), encoder.scales.begin(), encoder.scales.end());
    if (chunk.size() >= kChunkBytes || r + 1 == m_.rows) {
      PTERYX_TRY(sink.write(bytes_of_text(chunk)));
      chunk.clear();
    }
  }
  m_.data->rest();
  return {};
}

Blob EncodedMatrix::row_scales() {
  return {static_cast<uint64_t>(m_.rows * groups()) * sizeof(float),
          part(&EncodedMatrix::write_row_scales), this};
}

Status EncodedMatrix::write_row_scales(Sink& sink) {
  return sink.write(std::as_bytes(std::span(scales_)));
}

Blob EncodedMatrix::linear_scales() {
  return {static_cast<uint64_t>(padded_rows() * groups()) * sizeof(float),
          part(&EncodedMatrix::write_linear_scales), this};
}

Status EncodedMatrix::write_linear_scales(Sink& sink) {
  const auto n = static_cast<size_t>(groups());
  std::vector<float> row(static_cast<size_t>(padded_rows()));
  for (size_t g = 0; g < n; ++g) {
    for (size_t r = 0; r * n < scales_.size(); ++r) row[r] = scales_[r * n + g];
    PTERYX_TRY(sink.write(std::as_bytes(std::span(row))));
  }
  return {};
}

}  // namespace pteryx::convert
