// A source that keeps one waiting, ends early or fails, for tests.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <limits>
#include <map>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "pteryx/base/source.h"

namespace pteryx::testing {

// Every range must be asked for `late` times more before it is there.
class LateSource final : public Source {
 public:
  LateSource(std::string name, Bytes bytes, int late)
      : Source(std::move(name)), bytes_(bytes), late_(late) {}

  // It says that it has all bytes, but they end here.
  LateSource& end_at(uint64_t offset) {
    end_ = offset;
    return *this;
  }
  // Reading this byte fails.
  LateSource& fail_at(uint64_t offset) {
    bad_ = offset;
    return *this;
  }
  int asked() const { return asked_; }

  uint64_t size() const override { return bytes_.size(); }
  Result<bool> read(uint64_t offset, MutableBytes out) const override {
    ++asked_;
    if (!in_range(offset, out.size(), bytes_.size()))
      return ended(bytes_.size(), offset, out.size());
    int& waited = waited_[{offset, out.size()}];
    if (waited++ < late_) return false;
    waited = 0;
    if (offset + out.size() > end_) return ended(end_, offset, out.size());
    if (bad_ >= offset && bad_ - offset < out.size())
      return io_error(fmt::format("{}: byte {} cannot be read", name(), bad_));
    std::copy_n(bytes_.begin() + static_cast<ptrdiff_t>(offset), out.size(), out.begin());
    return true;
  }

 private:
  static constexpr uint64_t kNever = std::numeric_limits<uint64_t>::max();
  Bytes bytes_;
  int late_;
  uint64_t end_ = kNever;
  uint64_t bad_ = kNever;
  mutable int asked_ = 0;
  mutable std::map<std::pair<uint64_t, uint64_t>, int> waited_;
};

}  // namespace pteryx::testing
