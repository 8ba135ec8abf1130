// Dims: a tensor's shape, up to rank 8, without heap memory. Also the one numel, the one stride
// rule and the one rule for negative dims.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>

#include "pteryx/base/status.h"

namespace pteryx {

inline constexpr size_t kMaxRank = 8;

// A short list of integers with value semantics; used for shapes, strides and permutations.
class Dims {
 public:
  Dims() = default;
  Dims(std::initializer_list<int64_t> list) : Dims(std::span(list.begin(), list.size())) {}
  explicit Dims(std::span<const int64_t> list) {
    for (const int64_t v : list) push_back(v);
  }
  static Dims filled(size_t rank, int64_t value) {
    Dims d;
    for (size_t i = 0; i < rank; ++i) d.push_back(value);
    return d;
  }

  size_t rank() const { return rank_; }
  size_t size() const { return rank_; }
  bool empty() const { return rank_ == 0; }
  int64_t operator[](size_t i) const { return v_[i]; }
  int64_t& operator[](size_t i) { return v_[i]; }
  int64_t back() const { return v_[rank_ - 1]; }
  const int64_t* begin() const { return v_.data(); }
  const int64_t* end() const { return v_.data() + rank_; }
  int64_t* begin() { return v_.data(); }
  int64_t* end() { return v_.data() + rank_; }
  std::span<const int64_t> span() const { return {v_.data(), rank_}; }

  // Rank stays at most kMaxRank: callers that take a rank from a file check it first.
  void push_back(int64_t v) {
    PTERYX_DCHECK(rank_ < kMaxRank);
    if (rank_ < kMaxRank) v_[rank_++] = v;
  }
  void insert(size_t at, int64_t v);
  void erase(size_t at);

  friend bool operator==(const Dims& a, const Dims& b) {
    if (a.rank_ != b.rank_) return false;
    for (size_t i = 0; i < a.rank_; ++i) {
      if (a.v_[i] != b.v_[i]) return false;
    }
    return true;
  }

 private:
  std::array<int64_t, kMaxRank> v_{};
  uint8_t rank_ = 0;
};

// Number of elements; dims are known to be non-negative and their product to fit (checked at load).
int64_t numel(const Dims& d);
// The same for dims from a file: nullopt if negative or if the product times element_bytes
// overflows int64.
std::optional<int64_t> checked_numel(std::span<const int64_t> d, size_t element_bytes = 1);

// Dense row-major strides in elements; a size-0 dim counts as 1.
Dims contiguous_strides(const Dims& d);
// Strides of a dense tensor whose dims are laid out in dim_order, outermost first.
Dims strides_for_order(const Dims& d, std::span<const uint8_t> dim_order);

// dim in [-rank, rank) -> [0, rank); rank 0 is treated as rank 1, as PyTorch does.
Result<size_t> normalize_dim(int64_t dim, size_t rank);

// NumPy broadcasting of two shapes; nullopt if they do not go together.
std::optional<Dims> broadcast(const Dims& a, const Dims& b);

std::string to_string(const Dims& d);  // "[1, 3, 8]"
std::string to_string(std::span<const int64_t> list);

}  // namespace pteryx
