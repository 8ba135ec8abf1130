// Random calls of gathers and scatters, compared with the CPU kernels. Places that are written
// twice are avoided where the order would decide.
// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <numeric>

#include "pteryx/ops/testing/coords.h"
#include "pteryx/ops/testing/draw.h"

namespace pteryx::ops::testing {
namespace {

DType id_type(Draw& d) { return d.pick({DType::kI32, DType::kI64}); }
size_t plain(int64_t dim, size_t rank) {
  return at(dim < 0 ? dim + static_cast<int64_t>(rank) : dim);
}

// Bags of rows; the results' sizes are PyTorch's.
Drawn draw_bags(std::string_view op, Draw& d) {
  const DType t = d.pick({DType::kF32, DType::kF32, DType::kF16});
  const DType index = id_type(d);
  const int64_t rows = d.integer(1, 40);
  const int64_t width = d.integer(1, 70);
  const int64_t count = d.integer(0, 60);
  const int64_t bags = d.integer(1, 12);
  const int64_t mode = d.integer(0, 2);
  const bool last = d.chance(0.3);
  const int64_t padding = d.chance(0.3) ? d.integer(0, rows - 1) : -1;
  TestTensor offsets = d.ids(index, {bags + (last ? 1 : 0)}, 0, count);
  std::sort(offsets.data.begin(), offsets.data.end());
  offsets.data[0] = 0;
  Case call{std::string(op)};
  call.in(d.values(t, {rows, width})).in(d.ids(index, {count}, 0, rows - 1)).in(offsets);
  call.flag(false).integer(mode).flag(false);
  mode == 0 && d.chance(0.5) ? call.in(d.values(t, {count})) : call.none();
  call.flag(last).integer(padding);
  const bool plain_sum = mode == 0 && padding < 0;
  call.outs({{t, {bags, width}, {}},
             {index, {plain_sum ? 0 : count}, {}},
             {index, mode == 0 ? offsets.dims : Dims{bags}, {}},
             {index, mode == 2 ? Dims{bags, width} : Dims{bags}, {}}});
  return {call, t == DType::kF16 ? Tolerance{5e-3, 3e-3} : Tolerance{1e-5, 1e-5}};
}

Drawn draw_index(std::string_view op, Draw& d) {
  const DType t = d.pick({DType::kF32, DType::kF16, DType::kI32, DType::kI8, DType::kBool});
  Case call{std::string(op)};
  if (is(op, "embedding")) {
    const int64_t rows = d.integer(1, 40);
    const int64_t width = d.integer(1, 70);
    const DType f = d.pick({DType::kF32, DType::kF16});
    const TestTensor ids = d.ids(id_type(d), d.dims(0, 4, 60), 0, rows - 1);
    Dims y = ids.dims;
    y.push_back(width);
    call.in(d.values(f, {rows, width})).in(ids).integer(-1).flag(false).flag(false);
    return {call.out(f, y)};
  }
  const Dims dims = d.full_dims(1, 5, 400);
  const TestTensor x = d.values(t, dims, t == DType::kBool ? 0 : -50, t == DType::kBool ? 1 : 50);
  const int64_t dim = d.dim_of(dims.rank());
  const size_t along = plain(dim, dims.rank());
  call.in(x);
  if (is(op, "index_select")) {
    Dims y = dims;
    y[along] = d.integer(0, 9);
    call.integer(dim).in(d.ids(id_type(d), {y[along]}, 0, dims[along] - 1));
    return {call.out(t, y)};
  }
  if (is(op, "gather")) {
    Dims y = dims;
    for (int64_t& size : y) size = d.integer(1, size);
    y[along] = d.integer(0, 9);
    call.integer(dim).in(d.ids(id_type(d), y, 0, dims[along] - 1)).flag(false);
    return {call.out(t, y)};
  }
  // One index tensor of any rank at any place; negative indices count from the end.
  const TestTensor ids = d.ids(id_type(d), d.full_dims(0, 3, 20), -dims[along], dims[along] - 1);
  std::vector<std::optional<TestTensor>> indices(along);
  indices.emplace_back(ids);
  Dims y;
  for (size_t i = 0; i < dims.rank(); ++i) {
    if (i != along) y.push_back(dims[i]);
    if (i != along) continue;
    for (const int64_t size : ids.dims) y.push_back(size);
  }
  return {call.optional_list(indices).out(t, y)};
}

// A permutation of places along `along`, the same everywhere else: nothing is written twice.
TestTensor distinct(Draw& d, const Dims& dims, size_t along, int64_t extent) {
  std::vector<int64_t> order(at(extent));
  std::iota(order.begin(), order.end(), 0);
  for (size_t i = order.size(); i-- > 1;)
    std::swap(order[i], order[at(d.integer(0, static_cast<int64_t>(i)))]);
  return tabulate(DType::kI64, dims, [&](const Coords& c) { return order[at(c[along])]; });
}

Drawn draw_put(std::string_view op, Draw& d) {
  const DType t = d.pick({DType::kF32, DType::kF16, DType::kI32});
  const Dims dims = d.full_dims(1, 4, 400);
  const int64_t dim = d.dim_of(dims.rank());
  const size_t along = plain(dim, dims.rank());
  const TestTensor x = d.eighths(t, dims);
  Case call{std::string(op)};
  call.in(x);
  if (is(op, "scatter")) {
    const bool adds = is(op, "add");
    Dims places = dims;
    for (int64_t& size : places) size = d.integer(1, size);
    const TestTensor index = adds ? d.ids(DType::kI64, places, 0, dims[along] - 1)
                                  : distinct(d, places, along, dims[along]);
    call.integer(dim).in(index);
    is(op, "value") ? call.integer(2) : call.in(d.eighths(t, places));
    return {call.out(t, dims), adds ? close(t, {1e-6, 1e-6}) : kExact};
  }
  const int64_t count = d.integer(1, dims[along]);
  const TestTensor index = distinct(d, {count}, 0, dims[along]);
  Dims values = dims;
  values[along] = count;
  if (is(op, "index_copy")) {
    call.integer(dim).in(index).in(d.eighths(t, values));
    return {call.out(t, dims)};
  }
  const bool in_place = is(op, "put_.");  // sums in place are the CPU's
  std::vector<std::optional<TestTensor>> indices(along);
  indices.emplace_back(index);
  call.optional_list(indices).in(d.eighths(t, values)).flag(!in_place && d.chance(0.5));
  in_place ? call.in_place() : call.out(t, dims);
  return {call, close(t, {1e-6, 1e-6})};
}

}  // namespace

std::vector<Generator> indexing_generators() {
  return {
      {"Index",
       {"aten.embedding.default", "aten.index_select.default", "aten.gather.default",
        "aten.index.Tensor"},
       draw_index},
      {"EmbeddingBag", {"aten._embedding_bag_forward_only.default"}, draw_bags},
      {"Put",
       {"aten.scatter.src", "aten.scatter.value", "aten.scatter_add.default",
        "aten.index_copy.default", "aten.index_put.default", "aten.index_put_.default"},
       draw_put},
  };
}

}  // namespace pteryx::ops::testing
