// A list that is short as a rule: it allocates only where it is not.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <cstddef>
#include <vector>

namespace pteryx::ops {

template <typename T, size_t kInPlace>
class Few {
 public:
  void push_back(const T& item) {
    if (size_ < kInPlace) {
      in_place_[size_] = item;
    } else {
      if (size_ == kInPlace) all_.assign(in_place_.begin(), in_place_.end());
      all_.push_back(item);
    }
    ++size_;
  }
  size_t size() const { return size_; }
  const T* data() const { return size_ <= kInPlace ? in_place_.data() : all_.data(); }
  const T* begin() const { return data(); }
  const T* end() const { return data() + size_; }

 private:
  std::array<T, kInPlace> in_place_ = {};
  std::vector<T> all_;  // once there are more
  size_t size_ = 0;
};

}  // namespace pteryx::ops
