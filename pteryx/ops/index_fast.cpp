// Picking rows on the CPU: what stays together as bytes. SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <array>
#include <cstring>

#include "pteryx/cpu/arena.h"
#include "pteryx/ops/float_rows.h"
#include "pteryx/ops/index.h"
#include "pteryx/ops/strided.h"

namespace pteryx::ops {

Result<bool> pick_fast(const Node& n, const Pick& pick, const Host& h, CpuContext& c) {
  if (pick.x.dtype != n.out().dtype || n.out().numel() == 0) return false;
  const Walk walk = merge_dims(pick.dims, std::array{pick.x_strides, pick.index_strides});
  if (walk.dims.empty() || walk.strides[0].back() != 1 || walk.strides[1].back() != 0) return false;
  const HostTensor index = h.host(pick.index.id);
  auto* const places = c.memory.take_array<int64_t>(size(index.numel()));
  if (c.dry_run()) return true;
  PTERYX_TRY(read_places(n, pick.at, index, pick.extent, places));
  Dims outer = walk.dims;
  std::array<Dims, 2> strides = {walk.strides[0], walk.strides[1]};
  const auto width = size(outer.back());
  outer.erase(outer.rank() - 1);
  for (Dims& s : strides) s.erase(s.rank() - 1);
  const size_t element = size_bytes(pick.x.dtype);
  const std::byte* const x = h.host(pick.x.id).data;
  std::byte* const y = h.host(n.out_id()).data;
  for_parts(c, size(numel(outer)), kPartElements / width, [&](size_t begin, size_t end) {
    for (size_t row = begin; row < end; ++row) {
      const auto at = offsets_at<2>(static_cast<int64_t>(row), outer, {&strides[0], &strides[1]});
      const size_t from = size(at[0] + places[at[1]] * pick.step);
      std::memcpy(y + row * width * element, x + from * element, width * element);
    }
  });
  return true;
}

}  // namespace pteryx::ops
