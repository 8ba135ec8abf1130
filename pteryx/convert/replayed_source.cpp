// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/convert/replayed_source.h"

#include <algorithm>
#include <span>

namespace pteryx::convert {
namespace {

constexpr uint64_t kFirstFetch = 1 << 20;

}  // namespace

Result<bool> ReplayedSource::read(uint64_t offset, MutableBytes out) const {
  if (passes_) return source_->read(offset, out);
  if (!in_range(offset, out.size(), size())) return ended(size(), offset, out.size());
  if (const auto part = slice(Bytes(head_).first(held_), offset, out.size())) {
    std::copy(part->begin(), part->end(), out.begin());
    return true;
  }
  const auto at = others_.find(offset);
  if (at != others_.end() && at->second.size() >= out.size()) {
    std::copy_n(at->second.begin(), out.size(), out.begin());
    return true;
  }
  missing_ = Range{offset, out.size()};
  return false;
}

Result<bool> ReplayedSource::fetch() {
  if (!missing_) return true;
  if (missing_->offset > held_) {
    std::vector<std::byte>& bytes = others_[missing_->offset];
    bytes.resize(missing_->size);
    PTERYX_ASSIGN(const bool there, source_->read(missing_->offset, bytes));
    if (there) missing_.reset();
    return there;
  }
  if (head_.size() == held_) {
    const uint64_t end = std::max({missing_->offset + missing_->size, kFirstFetch, 2 * held_});
    head_.reserve(std::min(end, size()));  // no more than that
    head_.resize(std::min(end, size()));
  }
  PTERYX_ASSIGN(const bool there, source_->read(held_, std::span(head_).subspan(held_)));
  if (!there) return false;
  held_ = head_.size();
  missing_.reset();
  return true;
}

void ReplayedSource::forget() {
  std::vector<std::byte>().swap(head_);
  held_ = 0;
  others_.clear();
}

void ReplayedSource::pass_through() {
  forget();
  passes_ = true;
}

}  // namespace pteryx::convert
