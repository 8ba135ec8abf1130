// Shapes, strides and broadcasting. SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/base/dims.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "pteryx/base/checked.h"

namespace pteryx {

void Dims::insert(size_t at, int64_t v) {
  push_back(0);
  for (size_t i = rank_ - 1U; i > at; --i) v_[i] = v_[i - 1];
  v_[at] = v;
}

void Dims::erase(size_t at) {
  for (size_t i = at; i + 1 < rank_; ++i) v_[i] = v_[i + 1];
  --rank_;
}

int64_t numel(const Dims& d) {
  int64_t n = 1;
  for (const int64_t v : d) n *= v;
  return n;
}

std::optional<int64_t> checked_numel(std::span<const int64_t> d, size_t element_bytes) {
  int64_t bytes = static_cast<int64_t>(element_bytes);
  int64_t n = 1;
  bool has_zero = false;
  for (const int64_t v : d) {
    if (v < 0) return std::nullopt;
    if (v == 0) {
      has_zero = true;
      continue;
    }
    const auto product = checked_mul(bytes, v);
    if (!product) return std::nullopt;
    bytes = *product;
    n *= v;
  }
  return has_zero ? 0 : n;
}

Dims contiguous_strides(const Dims& d) {
  Dims s = Dims::filled(d.rank(), 1);
  int64_t step = 1;
  for (size_t i = d.rank(); i-- > 0;) {
    s[i] = step;
    step *= std::max<int64_t>(d[i], 1);
  }
  return s;
}

Dims strides_for_order(const Dims& d, std::span<const uint8_t> dim_order) {
  Dims s = Dims::filled(d.rank(), 1);
  int64_t step = 1;
  for (size_t i = dim_order.size(); i-- > 0;) {
    const size_t dim = dim_order[i];
    s[dim] = step;
    step *= std::max<int64_t>(d[dim], 1);
  }
  return s;
}

Result<size_t> normalize_dim(int64_t dim, size_t rank) {
  const auto r = static_cast<int64_t>(std::max<size_t>(rank, 1));
  if (dim < -r || dim >= r) {
    return invalid_program(fmt::format("dim: expected {} to {}, got {}", -r, r - 1, dim));
  }
  return static_cast<size_t>(dim < 0 ? dim + r : dim);
}

std::optional<Dims> broadcast(const Dims& a, const Dims& b) {
  const size_t rank = std::max(a.rank(), b.rank());
  Dims out = Dims::filled(rank, 1);
  for (size_t i = 0; i < rank; ++i) {  // counted from the last dim
    const int64_t x = i < a.rank() ? a[a.rank() - 1 - i] : 1;
    const int64_t y = i < b.rank() ? b[b.rank() - 1 - i] : 1;
    if (x != y && x != 1 && y != 1) return std::nullopt;
    out[rank - 1 - i] = x == 1 ? y : x;
  }
  return out;
}

std::string to_string(std::span<const int64_t> list) {
  return fmt::format("[{}]", fmt::join(list, ", "));
}
std::string to_string(const Dims& d) { return to_string(d.span()); }

}  // namespace pteryx
