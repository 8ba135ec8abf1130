// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/convert/choice.h"

#include <algorithm>

namespace pteryx::convert {
namespace {

constexpr int64_t kSourceGroup = 32;
constexpr int64_t kSampledRows = 32;

// What the operators can hold: whole groups; rows of whole words for the embedding, whose width
// they take from the bytes.
bool can_hold_q4(const Matrix& m, int64_t group, bool embedding) {
  return m.cols % group == 0 && m.cols % (embedding ? 8 : 4) == 0;
}

// The embedding's operator has no minimums; those of a layer are a matrix of exactly its rows,
// which its scales are where they need no padding.
bool can_hold_minimums(const Matrix& m, bool embedding) {
  return !embedding && m.rows % 4 == 0 && can_hold_q4(m, kSourceGroup, embedding);
}

Encoding q4_or_q8(const Matrix& m, const ConvertOptions& o, bool embedding) {
  if (can_hold_q4(m, o.group_size, embedding)) return {Target::kQ4, o.group_size};
  return {Target::kQ8};
}

}  // namespace

Choice::Choice(const Matrix& m, const ConvertOptions& o, bool embedding) : m_(m) {
  switch (o.quantize) {
    case Quantize::kNone: break;
    case Quantize::kF16: encoding_ = {Target::kF16}; break;
    case Quantize::kQ8: encoding_ = {Target::kQ8}; break;
    case Quantize::kQ4: encoding_ = q4_or_q8(m, o, embedding); break;
    case Quantize::kAuto: try_smallest(o, embedding); break;
  }
}

void Choice::try_smallest(const ConvertOptions& o, bool embedding) {
  const Encoding exact = {Target::kQ4, kSourceGroup};
  if (can_hold_q4(m_, kSourceGroup, embedding) && m_.data->has_codes(exact)) {
    encoding_ = exact;
    return;
  }
  const Encoding with_minimums = {Target::kQ4, kSourceGroup, true};
  if (can_hold_minimums(m_, embedding) && m_.data->has_codes(with_minimums)) {
    encoding_ = with_minimums;
    return;
  }
  if (can_hold_q4(m_, o.group_size, embedding)) {
    // Some rows say whether looking at all of them is worth it.
    const Encoding q4 = {Target::kQ4, o.group_size};
    trials_.push_back({q4, std::max<int64_t>(m_.rows / kSampledRows, 1), Trial::Kind::kSample});
    trials_.push_back({q4});
  }
  trials_.push_back({{Target::kQ8}});
  trials_.push_back({{Target::kF16}});
}

Result<bool> Choice::advance() {
  if (trials_.empty()) return true;
  const Trial trial = trials_.front();
  if (!measurement_) measurement_.emplace(m_, trial.encoding, trial.step);
  PTERYX_ASSIGN(const bool measured, measurement_->advance());
  if (!measured) return false;
  const double error = measurement_->error().relative();
  measurement_.reset();
  trials_.pop_front();
  if (trial.kind == Trial::Kind::kSample) {
    if (!(error < 2 * kErrorBound)) trials_.pop_front();
    return false;
  }
  if (error < kErrorBound) {
    encoding_ = trial.encoding;
    trials_.clear();
  }
  return trials_.empty();
}

}  // namespace pteryx::convert
