// Movement of elements on the CPU: runs that stay together as bytes, transposed ones by blocks.
// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cstring>

#include "pteryx/cpu/pool.h"
#include "pteryx/ops/float_rows.h"
#include "pteryx/ops/movement.h"
#include "pteryx/ops/strided.h"

namespace pteryx::ops {
namespace {

constexpr size_t kBlock = 32;

// to[i, j] = from[i * row + j * column], of which one is 1, for rows `to_row` apart.
template <typename T>
void move_matrix(const T* from, int64_t row, int64_t column, size_t rows, size_t columns, T* to,
                 size_t to_row) {
  if (column == 1) {
    for (size_t i = 0; i < rows; ++i)
      std::memcpy(to + i * to_row, from + static_cast<int64_t>(i) * row, columns * sizeof(T));
    return;
  }
  for (size_t i0 = 0; i0 < rows; i0 += kBlock) {
    const size_t i1 = std::min(rows, i0 + kBlock);
    for (size_t j0 = 0; j0 < columns; j0 += kBlock) {
      const size_t j1 = std::min(columns, j0 + kBlock);
      for (size_t i = i0; i < i1; ++i) {
        const T* at = from + static_cast<int64_t>(i) * row + static_cast<int64_t>(j0) * column;
        T* const line = to + i * to_row;
        for (size_t j = j0; j < j1; ++j, at += column) line[j] = *at;
      }
    }
  }
}

// The result as matrices of its last dim and the dim along which x is contiguous, or the one
// before the last.
template <typename T>
void move(const Walk& walk, const T* x, T* y, CpuContext& c) {
  const size_t last = walk.dims.rank() - 1;
  const Dims& strides = walk.strides[0];
  const Dims own = contiguous_strides(walk.dims);
  size_t other = last;
  for (size_t d = 0; d < last; ++d) {
    if (strides[d] == 1 || other == last) other = d;
    if (strides[d] == 1) break;
  }
  const size_t rows = other == last ? 1 : size(walk.dims[other]);
  const auto columns = size(walk.dims[last]);
  const size_t bands = (rows + kBlock - 1) / kBlock;
  const size_t all = size(numel(walk.dims)) / (rows * columns) * bands;
  const size_t least = std::max<size_t>(kPartElements / (std::min(rows, kBlock) * columns), 1);
  for_parts(c, all, least, [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      const size_t first = i % bands * kBlock;
      size_t rest = i / bands;
      int64_t from = 0;
      int64_t to = 0;
      for (size_t d = last; d-- > 0;) {
        if (d == other) continue;
        const auto index = static_cast<int64_t>(rest % size(walk.dims[d]));
        rest /= size(walk.dims[d]);
        from += index * strides[d];
        to += index * own[d];
      }
      const int64_t row = other == last ? 0 : strides[other];
      const size_t to_row = other == last ? 0 : size(own[other]);
      move_matrix(x + from + static_cast<int64_t>(first) * row, row, strides[last],
                  std::min(kBlock, rows - first), columns, y + to + first * to_row, to_row);
    }
  });
}

}  // namespace

bool move_fast(const Source& s, const HostTensor& x, const HostTensor& y, CpuContext& c) {
  if (c.dry_run()) return true;  // takes no memory
  if (s.rule != Rule::kEvery || x.dtype != y.dtype || y.numel() == 0) return false;
  Walk walk = merge_dims(s.dims, std::span(&s.strides, 1));
  if (walk.dims.empty()) {
    walk.dims.push_back(1);
    walk.strides[0].push_back(1);
  }
  const size_t element = size_bytes(x.dtype);
  const auto with = [&]<typename T>(T) {
    move(walk, reinterpret_cast<const T*>(x.data) + s.base, reinterpret_cast<T*>(y.data), c);
    return true;
  };
  switch (element) {
    case 1: return with(uint8_t{});
    case 2: return with(uint16_t{});
    case 4: return with(uint32_t{});
    case 8: return with(uint64_t{});
    default: return false;
  }
}

}  // namespace pteryx::ops
