// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/session/constant_pieces.h"

#include <algorithm>

namespace pteryx {

ConstantPieces::ConstantPieces(const graph::Tensor& t, std::span<const SourcePtr> sources)
    : data_(t.data),
      sources_(sources),
      element_bytes_(size_bytes(t.stored.value_or(t.dtype))),
      count_(numel(t.max)),
      piece_(t) {}

int64_t ConstantPieces::piece_count() const {
  constexpr uint64_t kPieceBytes = uint64_t{1} << 20;
  if (!piece_.dim_order.empty()) return count_;
  return std::min(count_ - first_, static_cast<int64_t>(kPieceBytes / element_bytes_));
}

Result<bool> ConstantPieces::advance() {
  if (!fetched_) {
    if (piece_.dim_order.empty()) {
      piece_.max = {piece_count()};
      piece_.data.clear();
      for (uint64_t left = piece_bytes(); left > 0;) {
        const ByteRange& r = data_[part_];
        const uint64_t here = std::min(left, r.size - of_part_);
        if (here > 0) piece_.data.push_back({r.source, r.offset + of_part_, here});
        left -= here;
        of_part_ += here;
        if (of_part_ < r.size) continue;
        ++part_;
        of_part_ = 0;
      }
    }
    fetched_.emplace(piece_, sources_);
  }
  return fetched_->advance();
}

Result<Bytes> ConstantPieces::take(std::string_view label) {
  if (piece_.dtype != DType::kI64) return fetched_->bytes();
  PTERYX_ASSIGN(narrow_, narrowed(piece_, fetched_->bytes(), label, first_));
  return Bytes(narrow_);
}

void ConstantPieces::next() {
  first_ += piece_count();
  fetched_.reset();
  narrow_ = {};
}

}  // namespace pteryx
