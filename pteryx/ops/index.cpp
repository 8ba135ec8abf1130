// Operators that pick elements of x by the values of another tensor: embedding, index,
// index_select, gather.
// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/ops/shaders/index.h"

#include "pteryx/ops/advanced_index.h"
#include "pteryx/ops/index.h"
#include "pteryx/ops/index_bound.h"
#include "pteryx/ops/op.h"
#include "pteryx/ops/strided.h"
#include "pteryx/ops/table.h"

namespace pteryx::ops {
namespace {

struct Row {
  std::string_view name;
  std::array<std::string_view, 1> spellings;
  std::span<const Arg> args;
  Result<Pick> (*pick)(const Node&);
};

// x with dim `dim` replaced by the dims of the index.
Result<Pick> pick_along(const Node& n, const Tensor& x, const Tensor& index, size_t dim) {
  if (x.rank() - 1 + index.rank() > kMaxRank) {
    return n.unsupported(fmt::format("a result of rank {}", x.rank() - 1 + index.rank()));
  }
  const Dims own = contiguous_strides(x.dims);
  const Dims index_own = contiguous_strides(index.dims);
  Pick p{.x = x, .index = index, .step = own[dim], .extent = x.dims[dim]};
  const auto push = [&](int64_t size, int64_t x_stride, int64_t index_stride) {
    p.dims.push_back(size);
    p.x_strides.push_back(x_stride);
    p.index_strides.push_back(index_stride);
  };
  for (size_t d = 0; d < x.rank(); ++d) {
    if (d != dim) {
      push(x.dims[d], own[d], 0);
      continue;
    }
    for (size_t k = 0; k < index.rank(); ++k) push(index.dims[k], 0, index_own[k]);
  }
  if (p.extent == 0 && numel(p.dims) > 0) {
    return n.fail(Code::kInvalidArgument,
                  fmt::format("dim {} of x {} has nothing to pick", dim, to_string(x.dims)));
  }
  return p;
}

Result<Pick> embedding(const Node& n) {
  PTERYX_ASSIGN(Pick p, pick_along(n, n.in(0), n.in(1), 0));
  p.at.arg = 1;
  return p;
}

Result<Pick> index_select(const Node& n) {
  const Tensor x = n.in(0);
  Tensor index = n.in(2);
  PTERYX_ASSIGN(const size_t dim, n.dim(1, x.rank()));
  if (x.dims.empty()) return n.unsupported("x without dims");
  if (index.dims.empty()) index.dims = {1};
  PTERYX_ASSIGN(Pick p, pick_along(n, x, index, dim));
  p.at.arg = 2;
  return p;
}

Result<Pick> gather(const Node& n) {
  const Tensor x = n.in(0);
  const Tensor index = n.in(2);
  PTERYX_ASSIGN(const size_t dim, n.dim(1, x.rank()));
  bool fits = index.rank() == x.rank() || (index.rank() <= 1 && x.rank() <= 1);
  for (size_t d = 0; fits && d < x.rank() && d < index.rank(); ++d) {
    fits = d == dim || index.dims[d] <= x.dims[d];
  }
  if (!fits) {
    return n.fail(Code::kInvalidArgument,
                  fmt::format("index {} does not fit x {} along dim {}", to_string(index.dims),
                              to_string(x.dims), dim));
  }
  Pick p{.x = x, .index = index, .at = {2}, .dims = index.dims};
  p.index_strides = contiguous_strides(index.dims);
  p.x_strides = contiguous_strides(x.dims);
  p.step = x.dims.empty() ? 1 : p.x_strides[dim];
  p.extent = x.dim(static_cast<int64_t>(dim));
  if (x.dims.empty()) {
    p.x_strides = Dims::filled(index.rank(), 0);
  } else if (index.dims.empty()) {
    p.x_strides = {};
  } else {
    p.x_strides[dim] = 0;
  }
  if (p.extent == 0 && numel(p.dims) > 0)
    return n.fail(Code::kInvalidArgument, "x has nothing to pick");
  return p;
}

constexpr size_t kIndices = 1;

// One index tensor; several are the CPU's (see index_cpu).
Result<Pick> index_one(const Node& n) {
  const Tensor x = n.in(0);
  const IndexList list = index_list(n, kIndices);
  if (list.first >= x.rank()) {
    return n.fail(Code::kInvalidProgram,
                  fmt::format("indices: index {} of x {}", list.first, to_string(x.dims)));
  }
  PTERYX_ASSIGN(Pick p, pick_along(n, x, *n.list_item(kIndices, list.first), list.first));
  p.at = {kIndices, list.first};
  return p;
}

const Row& row(const Node& n) { return *static_cast<const Row*>(n.def().row); }

Status shape(const Node& n, Shapes& s) {
  PTERYX_ASSIGN(const Pick p, row(n).pick(n));
  return s.set(p.dims);
}

// The result of a mask keeps the file's dims: how many elements it has is known only when it runs.
Status index_shape(const Node& n, Shapes& s) {
  const IndexList list = index_list(n, kIndices);
  if (list.count == 0) return n.fail(Code::kInvalidProgram, "indices: all of them are None");
  if (list.masked) return {};
  PTERYX_ASSIGN(const Dims dims, indexed_dims(n, kIndices, n.in(0).dims));
  return s.set(dims);
}

bool one_type(const Node& n) { return n.in(0).dtype == n.out().dtype; }

bool index_gpu(const Node& n) {
  const IndexList list = index_list(n, kIndices);
  return one_type(n) && list.count == 1 && !list.masked &&
         has(kIndexTypes, n.list_item(kIndices, list.first)->dtype);
}

Status plan(const Node& n, Plan& p) {
  PTERYX_ASSIGN(const Pick pick, row(n).pick(n));
  const Tensor y = n.out();
  const std::array<Dims, 2> strides = {pick.x_strides, pick.index_strides};
  const Walk walk = merge_dims(pick.dims, strides);
  const shaders::IndexParams params{.dims = packed_dims(walk.dims),
                                    .x_strides = packed_strides(walk.strides[0]),
                                    .index_strides = packed_strides(walk.strides[1]),
                                    .n = u32(y.numel()),
                                    .first = u32(static_cast<int64_t>(kMaxRank - walk.dims.rank())),
                                    .step = u32(pick.step),
                                    .extent = static_cast<int32_t>(pick.extent),
                                    .fault = p.fault()};
  return p.dispatch(n, {.shader = &shaders::index,
                        .options = place_options(n, pick.at.arg),
                        .bind = {{"x", pick.x}, {"index", pick.index}, {"y", y}},
                        .params = bytes_of(params),
                        .grid = per_element(words(y.numel(), y.dtype), p.caps())});
}

Status cpu(const Node& n, const Host& h) {
  PTERYX_ASSIGN(const Pick pick, row(n).pick(n));
  const HostTensor x = h.host(pick.x.id);
  const HostTensor index = h.host(pick.index.id);
  const HostTensor y = h.host(n.out_id());
  for (int64_t j = 0; y.numel() > 0 && j < index.numel(); ++j) {
    PTERYX_ASSIGN([[maybe_unused]] const int64_t k,
                  checked_index(n, pick.at, j, index.integer(j), pick.extent));
  }
  for_each_index<2>(pick.dims, {pick.x_strides, pick.index_strides},
                    [&](int64_t i, const std::array<int64_t, 2>& at) {
                      const int64_t k = index.integer(at[1]);
                      y.copy(i, x, at[0] + (k < 0 ? k + pick.extent : k) * pick.step);
                    });
  return {};
}

Result<bool> fast(const Node& n, const Host& h, CpuContext& c) {
  PTERYX_ASSIGN(const Pick pick, row(n).pick(n));
  return pick_fast(n, pick, h, c);
}

Status index_cpu(const Node& n, const Host& h) {
  const HostTensor x = h.host(n.in(0).id);
  const HostTensor y = h.host(n.out_id());
  PTERYX_ASSIGN(const HostIndex index, read_index(n, kIndices, x.dims, h));
  if (index.dims != y.dims) {
    return n.unsupported(fmt::format("the mask picks {}, the file has {}", to_string(index.dims),
                                     to_string(y.dims)));
  }
  for_each_index<kMaxRank + 1>(index.dims, index.strides, [&](int64_t i, const auto& walk) {
    y.copy(i, x, index.offset(walk));
  });
  return {};
}

constexpr Arg kEmbedding[] = {in("weight", kAnyType, 1), row_in("indices", 0), any("padding_idx"),
                              any("scale_grad_by_freq"), any("sparse"),        out("y")};
constexpr Arg kSelect[] = {in("x"), number("dim"), place_in("index", 0, 1), out("y")};
constexpr Arg kGather[] = {in("x"), number("dim"), place_in("index", 0, 1), any("sparse_grad"),
                           out("y")};
constexpr Arg kIndex[] = {in("x", kAnyType, 1), index_list_in("indices", 0), out("y")};

constexpr Row kRows[] = {
    {"aten.embedding.default", {"aten::embedding.out"}, kEmbedding, embedding},
    {"aten.index_select.default", {"aten::index_select.out"}, kSelect, index_select},
    {"aten.gather.default", {"aten::gather.out"}, kGather, gather},
};
constexpr Row kIndexRow = {"aten.index.Tensor", {"aten::index.Tensor_out"}, kIndex, index_one};

OpDef def(const Row& r) {
  return {.name = r.name,
          .spellings = r.spellings,
          .args = r.args,
          .shape = shape,
          .plan = plan,
          .gpu = one_type,
          .cpu = cpu,
          .fast = fast,
          .row = &r};
}

}  // namespace

void add_index(std::vector<OpDef>& table) {
  for (const Row& r : kRows) table.push_back(def(r));
  OpDef index = def(kIndexRow);
  index.shape = index_shape;
  index.gpu = index_gpu;
  index.cpu = index_cpu;
  index.fast = nullptr;
  table.push_back(index);
}

}  // namespace pteryx::ops
