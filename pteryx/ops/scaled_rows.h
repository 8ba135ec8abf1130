// Rows of tables of codes on the CPU, with vectors and threads. SPDX-License-Identifier:
// BSD-3-Clause
#pragma once

#include <cstdint>

#include "pteryx/cpu/arena.h"
#include "pteryx/ops/float_rows.h"
#include "pteryx/ops/index_bound.h"
#include "pteryx/ops/op.h"
#include "pteryx/ops/scaled_table.h"

namespace pteryx::ops {

struct ScaledRows {
  ScaledTable table;
  bool bytes = false;  // a code each, else two
  HostTensor codes;
  HostTensor scales;
  HostTensor zeros;  // without data: there are none
};
// Whether read_row() can read them: groups begin with a byte.
bool can_read_rows(const ScaledTable& t, bool bytes, DType codes);
void read_row(const ScaledRows& r, int64_t token, float* to);

// Calls read(place, to) for every element of the index argument, which has to fill a row of the
// result. False: not for results of this type. Errors: as of checked_index().
template <typename Read>
Result<bool> read_rows(const Node& n, const Host& h, CpuContext& c, const IndexArg& index,
                       int64_t vocabulary, const Read& read) {
  if (!is_f32_or_f16(n.out()) || n.out().numel() == 0) return false;
  const HostTensor indices = h.host(n.in(index.arg).id);
  const HostTensor y = h.host(n.out_id());
  const auto width = size(n.out().dim(-1));
  auto* const places = c.memory.take_array<int64_t>(size(indices.numel()));
  float* const to = is_f32(n.out()) ? floats(y) : c.memory.take_array<float>(size(y.numel()));
  if (c.dry_run()) return true;
  PTERYX_TRY(read_places(n, index, indices, vocabulary, places));
  for_parts(c, size(indices.numel()), kPartElements / width, [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) read(places[i], to + i * width);
    if (to == floats(y)) return;
    store_floats(to + begin * width, y, static_cast<int64_t>(begin * width), (end - begin) * width);
  });
  return true;
}

}  // namespace pteryx::ops
