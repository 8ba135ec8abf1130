// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/ops/index_bound.h"

#include "pteryx/ops/advanced_index.h"

namespace pteryx::ops {
namespace {

const IndexBound& bound_of(const Node& n, size_t arg) { return *n.def().args[arg].bound; }

ValueId value_of(const Node& n, const IndexArg& at) {
  if (n.def().args[at.arg].kind != ArgKind::kTensorList) return n.node().args[at.arg];
  return n.list_item(at.arg, at.member)->id;
}

// The dim that an index counts along.
Result<size_t> dim_of(const Node& n, const IndexArg& at) {
  const IndexBound& b = bound_of(n, at.arg);
  switch (b.along) {
    case IndexBound::Along::kRows: return 0;
    case IndexBound::Along::kDim: return n.dim(b.dim, n.in(b.of).rank());
    case IndexBound::Along::kPosition: return indexed_dim(n, at.arg, at.member);
    case IndexBound::Along::kEnds: break;
  }
  return 0;
}

// Of a table that comes in parts.
int64_t rows_of_parts(const Node& n, size_t list) {
  int64_t rows = 0;
  for (size_t i = 0; i < n.list_size(list); ++i) {
    const auto part = n.list_item(list, i);
    if (part && !part->dims.empty()) rows += part->dims[0];
  }
  return rows;
}

Status outside(const Node& n, const IndexArg& at, int64_t element, int64_t value, int64_t extent) {
  return n.fail(Code::kInvalidArgument, fmt::format("{} ({}): {}", n.def().args[at.arg].name,
                                                    n.graph().label(value_of(n, at)),
                                                    outside_text(n, at, element, value, extent)));
}

}  // namespace

Result<int64_t> index_extent(const Node& n, const IndexArg& at) {
  const IndexBound& b = bound_of(n, at.arg);
  if (n.def().args[b.of].kind == ArgKind::kTensorList) return rows_of_parts(n, b.of);
  const Tensor of = n.in(b.of);
  if (b.along == IndexBound::Along::kEnds) return of.numel() + 1;
  PTERYX_ASSIGN(const size_t dim, dim_of(n, at));
  if (of.dims.empty()) return 1;
  if (dim >= of.rank()) {
    return n.fail(Code::kInvalidProgram,
                  fmt::format("{}: an index along dim {} of {}", n.def().args[at.arg].name, dim,
                              to_string(of.dims)));
  }
  return of.dims[dim];
}

std::string outside_text(const Node& n, const IndexArg& at, int64_t element, int64_t value,
                         int64_t extent) {
  const IndexBound& b = bound_of(n, at.arg);
  const auto dim = dim_of(n, at);
  const std::string along = b.along == IndexBound::Along::kEnds || !dim.ok()
                                ? std::string("places")
                                : fmt::format("dim {}", *dim);
  return fmt::format("element {} is {}, outside [{}, {}), {} of {} ({})", element, value,
                     b.from_end ? -extent : 0, extent, along, n.def().args[b.of].name,
                     n.graph().label(n.node().args[b.of]));
}

Result<int64_t> checked_index(const Node& n, const IndexArg& at, int64_t element, int64_t value,
                              int64_t extent) {
  if (is_outside(bound_of(n, at.arg), value, extent)) return outside(n, at, element, value, extent);
  return value < 0 ? value + extent : value;
}

Status read_places(const Node& n, const IndexArg& at, const HostTensor& index, int64_t extent,
                   int64_t* places) {
  for (int64_t i = 0; i < index.numel(); ++i) {
    PTERYX_ASSIGN(places[i], checked_index(n, at, i, index.integer(i), extent));
  }
  return {};
}

Options place_options(const Node& n, size_t arg) {
  const std::optional<IndexBound>& bound = n.def().args[arg].bound;
  return {{"arg", static_cast<int64_t>(arg)}, {"from_end", bound && bound->from_end ? 1 : 0}};
}

Status fault_status(const Node& n, std::span<const uint32_t> words) {
  const size_t arg = words[0] & ~kFaultRaised;
  const bool list = n.def().args[arg].kind == ArgKind::kTensorList;
  return outside(n, {arg, list ? index_list(n, arg).first : 0}, words[1],
                 static_cast<int32_t>(words[2]), static_cast<int32_t>(words[3]));
}

}  // namespace pteryx::ops
