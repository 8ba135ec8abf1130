// Index lists. SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/ops/advanced_index.h"

#include "pteryx/ops/index_bound.h"
#include "pteryx/ops/strided.h"

namespace pteryx::ops {
namespace {

Status too_many(const Node& n, size_t list, const Dims& x) {
  return n.fail(Code::kInvalidProgram, fmt::format("{}: more indices than the {} dims of x",
                                                   n.def().args[list].name, x.rank()));
}

// Where the dims of the indices go in the result: in place of the indexed dims if those are
// neighbours, else in front.
struct Layout {
  Dims dims;
  size_t first = 0;  // of the index dims in `dims`
};
Result<Layout> lay_out(const Node& n, const Dims& x, const std::array<bool, kMaxRank>& indexed,
                       const Dims& index) {
  Layout out;
  size_t runs = 0;
  for (size_t d = 0; d < x.rank(); ++d) {
    if (!indexed[d]) {
      out.dims.push_back(x[d]);
    } else if (d == 0 || !indexed[d - 1]) {
      if (runs++ == 0) out.first = out.dims.rank();
    }
  }
  if (runs > 1) out.first = 0;
  if (out.dims.rank() + index.rank() > kMaxRank) {
    return n.unsupported(fmt::format("a result of rank {}", out.dims.rank() + index.rank()));
  }
  for (size_t i = 0; i < index.rank(); ++i) out.dims.insert(out.first + i, index[i]);
  return out;
}

Result<Dims> broadcast_index(const Node& n, size_t list, const Dims& a, const Dims& b) {
  const auto both = broadcast(a, b);
  if (!both) {
    return n.fail(Code::kInvalidArgument,
                  fmt::format("{}: {} and {} do not broadcast", n.def().args[list].name,
                              to_string(a), to_string(b)));
  }
  return *both;
}

// The dims a mask covers, as one vector of positions for each.
struct Mask {
  size_t rank = 0;
  std::array<std::vector<int64_t>, kMaxRank> at;
};
Mask nonzero(const HostTensor& mask) {
  Mask m{.rank = mask.dims.rank()};
  for (int64_t i = 0; i < mask.numel(); ++i) {
    if (mask.integer(i) == 0) continue;
    int64_t rest = i;
    for (size_t d = m.rank; d-- > 0;) {
      m.at[d].push_back(rest % mask.dims[d]);
      rest /= mask.dims[d];
    }
  }
  return m;
}

}  // namespace

bool is_mask(DType t) { return t == DType::kBool || t == DType::kU8; }

size_t indexed_dim(const Node& n, size_t list, size_t member) {
  size_t dim = 0;
  for (size_t i = 0; i < member; ++i) {
    const auto t = n.list_item(list, i);
    dim += t && is_mask(t->dtype) ? t->rank() : 1;
  }
  return dim;
}

IndexList index_list(const Node& n, size_t list) {
  IndexList out;
  for (size_t i = 0; i < n.list_size(list); ++i) {
    const auto t = n.list_item(list, i);
    if (!t) continue;
    if (out.count++ == 0) out.first = i;
    out.masked = out.masked || is_mask(t->dtype);
  }
  return out;
}

Result<Dims> indexed_dims(const Node& n, size_t list, const Dims& x) {
  if (n.list_size(list) > x.rank()) return too_many(n, list, x);
  std::array<bool, kMaxRank> indexed{};
  Dims index;
  for (size_t i = 0; i < n.list_size(list); ++i) {
    const auto t = n.list_item(list, i);
    if (!t) continue;
    indexed[i] = true;
    PTERYX_ASSIGN(index, broadcast_index(n, list, index, t->dims));
  }
  PTERYX_ASSIGN(const Layout layout, lay_out(n, x, indexed, index));
  return layout.dims;
}

Result<HostIndex> read_index(const Node& n, size_t list, const Dims& x, const Host& h) {
  HostIndex out;
  const Dims own = contiguous_strides(x);
  std::array<bool, kMaxRank> indexed{};
  std::array<Dims, kMaxRank> shapes;
  Dims index;
  size_t d = 0;  // of x
  for (size_t i = 0; i < n.list_size(list); ++i) {
    const auto t = n.list_item(list, i);
    if (!t) {
      ++d;
      continue;
    }
    const HostTensor values = h.host(t->id);
    Mask mask;
    if (is_mask(t->dtype)) mask = nonzero(values);
    const size_t covered = is_mask(t->dtype) ? mask.rank : 1;
    if (covered == 0) return n.unsupported("a mask without dims");
    if (d + covered > x.rank()) return too_many(n, list, x);
    for (size_t k = 0; k < covered; ++k, ++d) {
      indexed[d] = true;
      if (is_mask(t->dtype)) {
        if (t->dims[k] != x[d]) {
          return n.fail(Code::kInvalidArgument,
                        fmt::format("{}: the mask {} does not fit x {}", n.def().args[list].name,
                                    to_string(t->dims), to_string(x)));
        }
        out.at[d] = std::move(mask.at[k]);
        shapes[d] = {static_cast<int64_t>(out.at[d].size())};
      } else {
        for (int64_t j = 0; j < values.numel(); ++j) {
          PTERYX_ASSIGN(const int64_t at, checked_index(n, {list, i}, j, values.integer(j), x[d]));
          out.at[d].push_back(at);
        }
        shapes[d] = t->dims;
      }
      for (int64_t& at : out.at[d]) at = at * own[d];
      PTERYX_ASSIGN(index, broadcast_index(n, list, index, shapes[d]));
    }
  }
  PTERYX_ASSIGN(const Layout layout, lay_out(n, x, indexed, index));
  out.dims = layout.dims;
  out.strides.fill(Dims::filled(out.dims.rank(), 0));
  size_t at = 0;
  for (size_t k = 0; k < x.rank(); ++k) {
    if (indexed[k]) {
      const Dims strides = broadcast_strides(shapes[k], index);
      for (size_t j = 0; j < index.rank(); ++j) out.strides[k + 1][layout.first + j] = strides[j];
      continue;
    }
    if (at == layout.first) at += index.rank();
    out.strides[0][at++] = own[k];
  }
  return out;
}

}  // namespace pteryx::ops
