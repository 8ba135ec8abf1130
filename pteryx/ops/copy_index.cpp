// executorch_prim::et_copy_index: to[index] = from, growing `to` to index + 1 rows. Loops gather
// results with it.
// SPDX-License-Identifier: BSD-3-Clause
#include <cstring>

#include "pteryx/ops/op.h"
#include "pteryx/ops/table.h"

namespace pteryx::ops {
namespace {

enum Position { kTo, kFrom, kIndex };

Status shape(const Node& n, Shapes& s) {
  const Tensor from = n.in(kFrom);
  PTERYX_ASSIGN(const int64_t index, n.integer(kIndex));
  if (index < 0)
    return n.fail(Code::kInvalidArgument, fmt::format("index: expected 0 or more, got {}", index));
  if (from.rank() + 1 > kMaxRank)
    return n.unsupported(fmt::format("from has rank {}", from.rank()));
  Dims dims = from.dims;
  dims.insert(0, index + 1);
  return s.set(dims);
}

Status cpu(const Node& n, const Host& h) {
  const HostTensor from = h.host(n.in(kFrom).id);
  const HostTensor to = h.host(n.in(kTo).id);
  if (from.dtype != to.dtype) {
    return n.malformed(kFrom, "type", name(to.dtype), name(from.dtype));
  }
  PTERYX_ASSIGN(const int64_t index, n.integer(kIndex));
  const size_t bytes = static_cast<size_t>(from.numel()) * size_bytes(from.dtype);
  if (bytes > 0) std::memcpy(to.data + static_cast<size_t>(index) * bytes, from.data, bytes);
  return {};
}

constexpr Arg kArgs[] = {mutated("to"), in("from"), number("index"), out("y")};

}  // namespace

void add_copy_index(std::vector<OpDef>& table) {
  table.push_back(
      {.name = "executorch_prim::et_copy_index.tensor", .args = kArgs, .shape = shape, .cpu = cpu});
}

}  // namespace pteryx::ops
