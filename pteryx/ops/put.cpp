// Operators that write elements at indexed places of a copy of x: scatter, scatter_add, index_put,
// index_copy.
// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/ops/shaders/put.h"

#include "pteryx/ops/advanced_index.h"
#include "pteryx/ops/index_bound.h"
#include "pteryx/ops/op.h"
#include "pteryx/ops/raw.h"
#include "pteryx/ops/strided.h"
#include "pteryx/ops/table.h"

namespace pteryx::ops {
namespace {

constexpr size_t kX = 0;

// One index along one dim: y[.., index[c], ..] takes src[c]. Dims are those of x, or [1] where it
// has none.
struct Put {
  Tensor index;
  IndexArg at;
  std::optional<Tensor> src;  // else `value`
  double value = 0;
  bool add = false;
  size_t dim = 0;
  Dims dims;
  Dims limits;         // how far the index reaches into each dim other than `dim`
  Dims index_strides;  // over dims; along `dim` in steps
  Dims src_strides;
  int64_t count = 0;  // entries of the index along `dim`
};

struct Row {
  std::string_view name;
  std::array<std::string_view, 1> spellings;
  std::span<const Arg> args;
  Result<Put> (*put)(const Node&);
};

Dims at_least_1d(const Dims& dims) { return dims.empty() ? Dims{1} : dims; }

enum ScatterPosition { kDim = 1, kIndex, kSrc };

// index has the rank of x and may be smaller; src is at least as large as index.
Result<Put> scatter_at(const Node& n, std::optional<Tensor> src) {
  const Tensor index = n.in(kIndex);
  Put p{.index = index, .at = {kIndex}, .src = src, .dims = at_least_1d(n.in(kX).dims)};
  PTERYX_ASSIGN(p.dim, n.dim(kDim, p.dims.rank()));
  p.limits = at_least_1d(index.dims);
  const Dims from = src ? at_least_1d(src->dims) : p.limits;
  bool fits = p.limits.rank() == p.dims.rank() && from.rank() == p.dims.rank();
  for (size_t d = 0; fits && d < p.dims.rank(); ++d) {
    fits = p.limits[d] <= from[d] && (d == p.dim || p.limits[d] <= p.dims[d]);
  }
  if (!fits && index.numel() > 0) {
    return n.fail(
        Code::kInvalidArgument,
        fmt::format("index {} and src {} do not fit x {} along dim {}", to_string(index.dims),
                    src ? to_string(src->dims) : "None", to_string(n.in(kX).dims), p.dim));
  }
  if (!fits) p.limits = Dims::filled(p.dims.rank(), 0);
  p.count = p.limits[p.dim];
  p.index_strides = contiguous_strides(p.limits);
  p.src_strides = fits ? contiguous_strides(from) : p.index_strides;
  return p;
}

Result<Put> scatter_src(const Node& n) { return scatter_at(n, n.in(kSrc)); }

Result<Put> scatter_add(const Node& n) {
  PTERYX_ASSIGN(Put p, scatter_at(n, n.in(kSrc)));
  p.add = true;
  return p;
}

Result<Put> scatter_value(const Node& n) {
  PTERYX_ASSIGN(Put p, scatter_at(n, std::nullopt));
  p.value = n.number(kSrc);
  return p;
}

// A whole slice of x for each entry of a 1-D index.
Result<Put> put_slices(const Node& n, const Tensor& index, size_t dim, const Tensor& src) {
  Put p{.index = index, .src = src, .dim = dim, .dims = at_least_1d(n.in(kX).dims)};
  p.limits = p.dims;
  p.count = index.numel();
  p.limits[dim] = p.count;
  const auto both = broadcast(src.dims, p.limits);
  if (!both || *both != p.limits) {
    return n.fail(Code::kInvalidArgument, fmt::format("values {} do not broadcast to {}",
                                                      to_string(src.dims), to_string(p.limits)));
  }
  p.index_strides = Dims::filled(p.dims.rank(), 0);
  p.index_strides[dim] = 1;
  p.src_strides = broadcast_strides(src.dims, p.limits);
  return p;
}

Result<Put> index_copy(const Node& n) {
  PTERYX_ASSIGN(const size_t dim, n.dim(kDim, n.in(kX).rank()));
  PTERYX_ASSIGN(Put p, put_slices(n, n.in(kIndex), dim, n.in(kSrc)));
  p.at.arg = kIndex;
  return p;
}

enum IndexPutPosition { kIndices = 1, kValues, kAccumulate };

// The GPU's case: one index.
Result<Put> index_put(const Node& n) {
  const IndexList list = index_list(n, kIndices);
  if (list.first >= n.in(kX).rank()) {
    return n.fail(Code::kInvalidProgram,
                  fmt::format("indices: index {} of x {}", list.first, to_string(n.in(kX).dims)));
  }
  PTERYX_ASSIGN(Put p,
                put_slices(n, *n.list_item(kIndices, list.first), list.first, n.in(kValues)));
  p.at = {kIndices, list.first};
  p.add = n.flag(kAccumulate);
  return p;
}

const Row& row(const Node& n) { return *static_cast<const Row*>(n.def().row); }

Status shape(const Node& n, Shapes& s) {
  PTERYX_ASSIGN([[maybe_unused]] const Put p, row(n).put(n));
  return s.set(n.in(kX).dims);
}

Status index_put_shape(const Node& n, Shapes& s) {
  const Tensor x = n.in(kX);
  const IndexList list = index_list(n, kIndices);
  if (list.count == 0) return n.fail(Code::kInvalidProgram, "indices: all of them are None");
  if (!list.masked) {
    PTERYX_ASSIGN(const Dims dims, indexed_dims(n, kIndices, x.dims));
    const auto both = broadcast(n.in(kValues).dims, dims);
    if (!both || *both != dims) {
      return n.fail(Code::kInvalidArgument,
                    fmt::format("values {} do not broadcast to {}", to_string(n.in(kValues).dims),
                                to_string(dims)));
    }
  }
  return s.set(x.dims);
}

bool gpu(const Node& n) {
  const DType t = n.out().dtype;
  const auto& args = n.def().args;
  return n.in(kX).dtype == t && (args[kSrc].kind != ArgKind::kTensor || n.in(kSrc).dtype == t);
}

// One index of rank 1; sums that overwrite what they read are the CPU's.
bool index_put_gpu(const Node& n) {
  const DType t = n.out().dtype;
  const IndexList list = index_list(n, kIndices);
  if (list.count != 1 || list.masked || n.in(kX).dtype != t || n.in(kValues).dtype != t)
    return false;
  const Tensor index = *n.list_item(kIndices, list.first);
  if (index.rank() != 1 || !has(kIndexTypes, index.dtype)) return false;
  return !(n.flag(kAccumulate) && n.in(kX).id == n.out_id());
}

Status plan(const Node& n, Plan& p) {
  PTERYX_ASSIGN(Put put, row(n).put(n));
  const Tensor x = n.in(kX);
  const Tensor y = n.out();
  if (!put.add) PTERYX_TRY(plan_raw_copy(n, p, x, y));
  shaders::PutParams params{.n = u32(y.numel()),
                            .first = u32(static_cast<int64_t>(kMaxRank - put.dims.rank())),
                            .extent = static_cast<int32_t>(put.dims[put.dim]),
                            .count = u32(put.count),
                            .index_step = u32(put.index_strides[put.dim]),
                            .src_step = u32(put.src_strides[put.dim]),
                            .fill = element_bits(put.value, y.dtype),
                            .fault = p.fault()};
  params.dim = params.first + u32(static_cast<int64_t>(put.dim));
  put.index_strides[put.dim] = 0;
  put.src_strides[put.dim] = 0;
  put.limits[put.dim] = put.dims[put.dim];
  params.dims = packed_dims(put.dims);
  params.limits = packed_dims(put.limits);
  params.index_strides = packed_strides(put.index_strides);
  params.src_strides = packed_strides(put.src_strides);
  std::vector<Bind> bind = {{"index", put.index}};
  if (put.add) bind.push_back({"x", x});
  if (put.src) bind.push_back({"src", *put.src});
  bind.push_back({"y", y});
  const std::string_view what = put.add ? "add" : (put.src ? "src" : "value");
  return p.dispatch(n, {.shader = &shaders::put,
                        .options = place_options(n, put.at.arg).set("what", std::string(what)),
                        .variant = what,
                        .bind = std::move(bind),
                        .params = bytes_of(params),
                        .grid = per_element(words(y.numel(), y.dtype), p.caps())});
}

void add_element(const HostTensor& y, int64_t i, const HostTensor& src, int64_t j) {
  if (is_float(y.dtype)) {
    y.put(i, y.number(i) + src.number(j));
  } else {
    const uint64_t sum =
        static_cast<uint64_t>(y.integer(i)) + static_cast<uint64_t>(src.integer(j));
    y.put_integer(i, static_cast<int64_t>(sum));
  }
}

Status cpu(const Node& n, const Host& h) {
  PTERYX_ASSIGN(const Put p, row(n).put(n));
  const HostTensor y = h.host(n.out_id());
  const HostTensor index = h.host(p.index.id);
  const int64_t extent = p.dims[p.dim];
  for (int64_t j = 0; j < index.numel(); ++j) {
    PTERYX_ASSIGN([[maybe_unused]] const int64_t k,
                  checked_index(n, p.at, j, index.integer(j), extent));
  }
  cpu_raw_copy(h.host(n.in(kX).id), y);
  Dims places = contiguous_strides(p.dims);
  const int64_t step = places[p.dim];
  places[p.dim] = 0;
  const HostTensor src = p.src ? h.host(p.src->id) : HostTensor{};
  for_each_index<3>(p.limits, {places, p.index_strides, p.src_strides},
                    [&](int64_t, const std::array<int64_t, 3>& at) {
                      const int64_t k = index.integer(at[1]);
                      const int64_t i = at[0] + (k < 0 ? k + extent : k) * step;
                      if (p.add) return add_element(y, i, src, at[2]);
                      p.src ? y.copy(i, src, at[2]) : y.put(i, p.value);
                    });
  return {};
}

Status index_put_cpu(const Node& n, const Host& h) {
  const HostTensor x = h.host(n.in(kX).id);
  const HostTensor y = h.host(n.out_id());
  const HostTensor values = h.host(n.in(kValues).id);
  PTERYX_ASSIGN(const HostIndex index, read_index(n, kIndices, x.dims, h));
  const auto both = broadcast(values.dims, index.dims);
  if (!both || *both != index.dims) {
    return n.fail(Code::kInvalidArgument,
                  fmt::format("values {} do not broadcast to {}", to_string(values.dims),
                              to_string(index.dims)));
  }
  cpu_raw_copy(x, y);
  std::array<Dims, kMaxRank + 2> strides;
  std::copy(index.strides.begin(), index.strides.end(), strides.begin());
  strides.back() = broadcast_strides(values.dims, index.dims);
  const bool add = n.flag(kAccumulate);
  for_each_index<kMaxRank + 2>(
      index.dims, strides, [&](int64_t, const std::array<int64_t, kMaxRank + 2>& at) {
        std::array<int64_t, kMaxRank + 1> walk;
        std::copy(at.begin(), at.end() - 1, walk.begin());
        const int64_t i = index.offset(walk);
        add ? add_element(y, i, values, at.back()) : y.copy(i, values, at.back());
      });
  return {};
}

// masked_scatter: the elements of src, in order, where the mask is true.

enum MaskedPosition { kMask = 1, kSource };

Status masked_shape(const Node& n, Shapes& s) {
  const auto dims = broadcast(n.in(kX).dims, n.in(kMask).dims);
  if (!dims) {
    return n.fail(Code::kInvalidArgument,
                  fmt::format("x {} and mask {} do not broadcast", to_string(n.in(kX).dims),
                              to_string(n.in(kMask).dims)));
  }
  return s.set(*dims);
}

Status masked_cpu(const Node& n, const Host& h) {
  const HostTensor x = h.host(n.in(kX).id);
  const HostTensor mask = h.host(n.in(kMask).id);
  const HostTensor src = h.host(n.in(kSource).id);
  const HostTensor y = h.host(n.out_id());
  const std::array<Dims, 2> strides = {broadcast_strides(x.dims, y.dims),
                                       broadcast_strides(mask.dims, y.dims)};
  int64_t taken = 0;
  for_each_index<2>(y.dims, strides, [&](int64_t, const std::array<int64_t, 2>& at) {
    taken += mask.integer(at[1]) != 0 ? 1 : 0;
  });
  if (taken > src.numel()) {
    return n.fail(Code::kInvalidArgument,
                  fmt::format("the mask takes {} elements, source has {}", taken, src.numel()));
  }
  taken = 0;
  for_each_index<2>(y.dims, strides, [&](int64_t i, const std::array<int64_t, 2>& at) {
    mask.integer(at[1]) != 0 ? y.copy(i, src, taken++) : y.copy(i, x, at[0]);
  });
  return {};
}

constexpr Arg kScatterSrc[] = {in("x"), number("dim"), place_in("index", kX, kDim), in("src"),
                               out("y")};
constexpr Arg kScatterValue[] = {in("x"), number("dim"), place_in("index", kX, kDim),
                                 number("value"), out("y")};
constexpr Arg kIndexPut[] = {in("x", kAnyType, 1), index_list_in("indices", kX), in("values"),
                             number("accumulate"), out("y")};
constexpr Arg kIndexPutInPlace[] = {mutated("x"), index_list_in("indices", kX), in("values"),
                                    number("accumulate"), out("y")};
constexpr Arg kMasked[] = {in("x"), in("mask", kBools), in("source"), out("y")};
constexpr std::string_view kMaskedSpellings[] = {"aten::masked_scatter.out"};

constexpr Row kRows[] = {
    {"aten.scatter.src", {"aten::scatter.src_out"}, kScatterSrc, scatter_src},
    {"aten.scatter.value", {"aten::scatter.value_out"}, kScatterValue, scatter_value},
    {"aten.scatter_add.default", {"aten::scatter_add.out"}, kScatterSrc, scatter_add},
    {"aten.index_copy.default", {"aten::index_copy.out"}, kScatterSrc, index_copy},
};
constexpr Row kIndexPutRows[] = {
    {"aten.index_put.default", {"aten::index_put.out"}, kIndexPut, index_put},
    {"aten.index_put_.default", {"aten::index_put_"}, kIndexPutInPlace, index_put},
};

}  // namespace

void add_put(std::vector<OpDef>& table) {
  for (const Row& r : kRows) {
    table.push_back({.name = r.name,
                     .spellings = r.spellings,
                     .args = r.args,
                     .shape = shape,
                     .plan = plan,
                     .gpu = gpu,
                     .cpu = cpu,
                     .row = &r});
  }
  for (const Row& r : kIndexPutRows) {
    table.push_back({.name = r.name,
                     .spellings = r.spellings,
                     .args = r.args,
                     .shape = index_put_shape,
                     .plan = plan,
                     .gpu = index_put_gpu,
                     .cpu = index_put_cpu,
                     .row = &r});
  }
  table.push_back({.name = "aten.masked_scatter.default",
                   .spellings = kMaskedSpellings,
                   .args = kMasked,
                   .shape = masked_shape,
                   .cpu = masked_cpu});
}

}  // namespace pteryx::ops
