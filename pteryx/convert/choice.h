// Which format a matrix gets. SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <deque>
#include <optional>

#include "pteryx/base/status.h"
#include "pteryx/convert/convert.h"
#include "pteryx/convert/matrix.h"

namespace pteryx::convert {

// Looks at the rows of a matrix, which outlives it, where the options leave the format open.
class Choice {
 public:
  // `embedding`: it is (also) the table of token embeddings.
  Choice(const Matrix& m, const ConvertOptions& options, bool embedding);

  // Looks at some rows; true once encoding() is decided. Errors: those of Measurement.
  Result<bool> advance();
  const Encoding& encoding() const { return encoding_; }

 private:
  struct Trial {
    enum class Kind : uint8_t { kSample, kAll };
    Encoding encoding;
    int64_t step = 1;  // every so many rows
    Kind kind = Kind::kAll;
  };
  void try_smallest(const ConvertOptions& options, bool embedding);

  const Matrix& m_;
  Encoding encoding_;         // f32 where no trial is good enough
  std::deque<Trial> trials_;  // from the smallest on; a sample is followed by the same of all
  std::optional<Measurement> measurement_;
};

}  // namespace pteryx::convert
