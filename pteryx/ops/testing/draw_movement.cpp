// Random calls of operators that move elements: views, slices, permutations, joins. Their results
// are exact copies; they are compared with the CPU kernels, and result dims are worked out here.
// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <numeric>

#include "pteryx/ops/testing/draw.h"

namespace pteryx::ops::testing {
namespace {

// One of each element size.
DType any_type(Draw& d) {
  return d.pick({DType::kF32, DType::kF16, DType::kI32, DType::kI8, DType::kBool});
}
TestTensor draw_x(Draw& d, DType t, const Dims& dims) {
  return d.values(t, dims, t == DType::kBool ? 0 : -50, t == DType::kBool ? 1 : 50);
}
size_t plain(int64_t dim, size_t rank) {
  return at(dim < 0 ? dim + static_cast<int64_t>(rank) : dim);
}
std::vector<int64_t> list(const Dims& dims) { return {dims.begin(), dims.end()}; }

// ---- views

Drawn draw_view(std::string_view op, Draw& d) {
  const DType t = any_type(d);
  Dims dims = d.full_dims(0, 7);
  Case call{std::string(op)};
  if (is(op, "squeeze_copy") && !is(op, "unsqueeze") && !dims.empty()) dims[0] = 1;
  call.in(draw_x(d, t, dims));
  Dims y = dims;
  if (is(op, "unsqueeze")) {
    const int64_t place = d.integer(0, static_cast<int64_t>(dims.rank()));
    call.integer(d.chance(0.5) ? place : place - static_cast<int64_t>(dims.rank()) - 1);
    y = {};
    for (size_t i = 0; i <= dims.rank(); ++i) {
      if (i == at(place)) y.push_back(1);
      if (i < dims.rank()) y.push_back(dims[i]);
    }
  } else if (is(op, "squeeze")) {
    const bool all = is(op, "default");
    y = {};
    std::vector<int64_t> named;
    for (size_t i = 0; i < dims.rank(); ++i) {
      const bool gone = dims[i] == 1 && (all || (is(op, ".dims") && d.chance(0.6)));
      if (gone) named.push_back(static_cast<int64_t>(i));
      if (!gone) y.push_back(dims[i]);
    }
    if (is(op, ".dims")) call.ints(named);
    if (is(op, ".dim") && !is(op, ".dims")) {
      const int64_t dim = d.dim_of(dims.rank());
      call.integer(dim);
      y = {};
      for (size_t i = 0; i < dims.rank(); ++i)
        if (i != plain(dim, dims.rank()) || dims[i] != 1) y.push_back(dims[i]);
    }
  } else if (is(op, "view_copy") || is(op, "_unsafe_view") || is(op, "et_view")) {
    // Neighbours are merged, 1s put in; one size may be left to be inferred.
    y = {};
    for (const int64_t size : dims) {
      if (!y.empty() && d.chance(0.4))
        y[y.rank() - 1] *= size;
      else
        y.push_back(size);
      if (y.rank() < 7 && d.chance(0.1)) y.push_back(1);
    }
    std::vector<int64_t> size = list(y);
    if (!size.empty() && d.chance(0.3)) size[at(d.integer(0, std::ssize(size) - 1))] = -1;
    d.chance(0.5) ? call.ints(size) : call.live_ints(size);
  } else if (is(op, "clone")) {
    if (is(op, "dim_order")) call.flag(false);
    call.none();
  }
  return {call.out(t, y)};
}

// ---- one tensor, its elements in other places

// start, end and step of a slice, as arguments drawn in every form.
int64_t draw_slice(Case& call, Draw& d, int64_t extent) {
  const int64_t begin = d.integer(0, extent);
  const int64_t end = d.integer(begin, extent);
  const int64_t step = d.integer(1, 3);
  const auto bound = [&](int64_t v, int64_t none) {
    if (v == none && d.chance(0.5)) {
      none == 0 ? call.none() : call.integer(INT64_MAX);
    } else if (v < extent && d.chance(0.3)) {
      call.integer(v - extent);
    } else {
      d.chance(0.5) ? call.live(v) : call.integer(v);
    }
  };
  bound(begin, 0);
  bound(end, extent);
  call.integer(step);
  return (end - begin + step - 1) / step;
}

Drawn draw_strided(std::string_view op, Draw& d) {
  const DType t = any_type(d);
  const Dims dims = d.dims(is(op, "diagonal") ? 2 : 1, 7);
  const size_t rank = dims.rank();
  const int64_t dim = d.dim_of(rank);
  const size_t along = plain(dim, rank);
  Case call{std::string(op)};
  const TestTensor x = draw_x(d, t, dims);
  call.in(x);
  Dims y = dims;
  if (is(op, "permute")) {
    std::vector<int64_t> order(rank);
    std::iota(order.begin(), order.end(), 0);
    for (size_t i = rank; i-- > 1;)
      std::swap(order[i], order[at(d.integer(0, static_cast<int64_t>(i)))]);
    for (size_t i = 0; i < rank; ++i) y[i] = dims[at(order[i])];
    for (int64_t& o : order) o -= d.chance(0.3) ? static_cast<int64_t>(rank) : 0;
    call.ints(order);
  } else if (is(op, "transpose")) {
    const int64_t other = d.dim_of(rank);
    std::swap(y[along], y[plain(other, rank)]);
    call.integer(dim).integer(other);
  } else if (is(op, "slice_copy")) {
    call.integer(dim);
    y[along] = draw_slice(call, d, dims[along]);
  } else if (is(op, "narrow")) {
    const int64_t start = d.integer(0, dims[along]);
    y[along] = d.integer(0, dims[along] - start);
    call.integer(dim).integer(start).integer(y[along]);
  } else if (is(op, "select")) {
    if (dims[along] == 0) return draw_strided(op, d);
    const int64_t index = d.integer(-dims[along], dims[along] - 1);
    call.integer(dim);
    d.chance(0.5) ? call.integer(index) : call.live(index);
    y = {};
    for (size_t i = 0; i < rank; ++i)
      if (i != along) y.push_back(dims[i]);
  } else if (is(op, "flip")) {
    call.ints({dim});
  } else if (is(op, "unfold")) {
    const int64_t size = d.integer(0, dims[along]);
    const int64_t step = d.integer(1, 3);
    call.integer(dim).integer(size).integer(step);
    y[along] = (dims[along] - size) / step + 1;
    y.push_back(size);
  } else if (is(op, "diagonal")) {
    const int64_t offset = d.integer(-3, 3);
    const auto other = static_cast<int64_t>((along + 1) % rank);
    const auto first = static_cast<int64_t>(along);
    call.integer(offset).integer(first).integer(other);
    y = {};
    for (size_t i = 0; i < rank; ++i)
      if (i != along && i != at(other)) y.push_back(dims[i]);
    const int64_t rows = dims[along] - std::max<int64_t>(-offset, 0);
    const int64_t columns = dims[at(other)] - std::max<int64_t>(offset, 0);
    y.push_back(std::max<int64_t>(0, std::min(rows, columns)));
  } else if (is(op, "roll")) {
    call.ints({d.integer(-9, 9)}).ints({dim});
  } else if (is(op, "tri")) {
    if (rank < 2) return draw_strided(op, d);
    call.integer(d.integer(-3, 3));
  }
  return {call.out(t, y)};
}

Drawn draw_matrix_copy(std::string_view op, Draw& d) {
  const DType t = any_type(d);
  if (is(op, "as_strided")) {
    const Dims x = {d.integer(40, 90)};
    const Dims y = {d.integer(0, 4), d.integer(1, 4), d.integer(1, 3)};
    Case call{std::string(op)};
    call.in(draw_x(d, t, x)).ints(list(y));
    call.ints({d.integer(0, 6), d.integer(0, 4), d.integer(0, 3)});
    d.chance(0.5) ? call.integer(d.integer(0, 3)) : call.none();
    return {call.out(t, y)};
  }
  if (is(op, "pixel")) {
    const int64_t f = d.integer(1, 3);
    const bool shuffle = !is(op, "unshuffle");
    Dims x = d.full_dims(0, 3, 30);
    Dims y = x;
    const int64_t c = d.integer(1, 4);
    const int64_t h = d.integer(1, 5);
    const int64_t w = d.integer(1, 5);
    for (const int64_t s : {c * f * f, h, w}) (shuffle ? x : y).push_back(s);
    for (const int64_t s : {c, h * f, w * f}) (shuffle ? y : x).push_back(s);
    return {Case(std::string(op)).in(draw_x(d, t, x)).integer(f).out(t, y)};
  }
  const Dims x = d.dims(0, 2);
  Dims y = x;
  if (x.rank() == 2) std::swap(y[0], y[1]);
  return {Case(std::string(op)).in(draw_x(d, t, x)).out(t, y)};
}

Drawn draw_grown(std::string_view op, Draw& d) {
  const DType t = is(op, "pad") ? d.pick({DType::kF32, DType::kF16}) : any_type(d);
  Dims dims = d.dims(0, 6, 300);
  Case call{std::string(op)};
  if (is(op, "expand")) {
    const Dims from = d.narrowed(dims);
    std::vector<int64_t> size = list(dims);
    const size_t lead = dims.rank() - from.rank();
    for (size_t i = lead; i < size.size(); ++i)
      if (from[i - lead] == dims[i] && d.chance(0.3)) size[i] = -1;
    call.in(draw_x(d, t, from));
    d.chance(0.5) ? call.ints(size) : call.live_ints(size);
    return {call.flag(false).out(t, dims)};
  }
  if (is(op, "repeat")) {
    std::vector<int64_t> repeats;
    Dims y;
    const size_t lead = d.chance(0.3) ? 1 : 0;
    for (size_t i = 0; i < dims.rank() + lead; ++i) {
      repeats.push_back(d.integer(d.chance(0.05) ? 0 : 1, 3));
      y.push_back(repeats.back() * (i < lead ? 1 : dims[i - lead]));
    }
    return {call.in(draw_x(d, t, dims)).ints(repeats).out(t, y)};
  }
  // Pads: pairs from the last dim backwards.
  const bool constant = is(op, "constant");
  const size_t axes = constant ? at(d.integer(0, static_cast<int64_t>(dims.rank())))
                               : (is(op, "1d") ? 1 : (is(op, "2d") ? 2 : 3));
  if (!constant) {
    dims = d.full_dims(1, 1, 3);
    for (size_t i = 0; i < axes; ++i) dims.push_back(d.integer(2, 6));
  }
  Dims y = dims;
  std::vector<int64_t> pad;
  for (size_t i = 0; i < axes; ++i) {
    const size_t axis = dims.rank() - 1 - i;
    const int64_t lowest = constant ? -std::min<int64_t>(1, dims[axis] / 2) : 0;
    const int64_t most = constant ? 3 : std::min<int64_t>(2, dims[axis] - 1);
    for (int side = 0; side < 2; ++side) {
      pad.push_back(d.integer(lowest, most));
      y[axis] += pad.back();
    }
  }
  call.in(draw_x(d, t, dims)).ints(pad);
  if (constant) d.chance(0.5) ? call.integer(2) : call.number(-1.5);
  return {call.out(t, y)};
}

Drawn draw_parts(std::string_view op, Draw& d) {
  const DType t = any_type(d);
  const Dims dims = d.full_dims(1, 5, 400);
  const int64_t dim = d.dim_of(dims.rank());
  const size_t along = plain(dim, dims.rank());
  Case call{std::string(op)};
  call.in(draw_x(d, t, dims));
  std::vector<TestTensor> parts;
  std::vector<int64_t> sizes;
  const bool unbind = is(op, "unbind");
  const int64_t step = unbind ? 1 : d.integer(1, 6);
  for (int64_t left = std::min<int64_t>(dims[along], 12 * step); left > 0;) {
    sizes.push_back(is(op, "with_sizes") ? d.integer(0, left) : std::min(step, left));
    left -= sizes.back();
    Dims part = dims;
    part[along] = sizes.back();
    parts.push_back({t, part, {}});
  }
  if (std::accumulate(sizes.begin(), sizes.end(), int64_t{0}) != dims[along])
    return draw_parts(op, d);
  if (unbind) {
    Dims rest;
    for (size_t i = 0; i < dims.rank(); ++i)
      if (i != along) rest.push_back(dims[i]);
    for (TestTensor& p : parts) p.dims = rest;
  }
  if (is(op, "with_sizes")) d.chance(0.5) ? call.ints(sizes) : call.live_ints(sizes);
  if (is(op, "split_copy.Tensor")) call.integer(step);
  return {call.integer(dim).outs(parts)};
}

Drawn draw_movement(std::string_view op, Draw& d) {
  if (is(op, "split") || is(op, "unbind")) return draw_parts(op, d);
  if (is(op, "pad") || is(op, "repeat") || is(op, "expand")) return draw_grown(op, d);
  if (is(op, ".t_copy") || is(op, "pixel") || is(op, "as_strided")) return draw_matrix_copy(op, d);
  return draw_strided(op, d);
}

// ---- several tensors into one

Drawn draw_join(std::string_view op, Draw& d) {
  const DType t = any_type(d);
  Dims dims = d.dims(is(op, "stack") ? 0 : 1, 6, 400);
  Case call{std::string(op)};
  if (is(op, "scatter")) {
    const int64_t dim = d.dim_of(dims.rank());
    const size_t along = plain(dim, dims.rank());
    if (dims[along] == 0) return draw_join(op, d);
    Dims part = dims;
    call.in(draw_x(d, t, dims));
    if (is(op, "select")) {
      part = {};
      for (size_t i = 0; i < dims.rank(); ++i)
        if (i != along) part.push_back(dims[i]);
      call.in(draw_x(d, t, part)).integer(dim).integer(d.integer(0, dims[along] - 1));
    } else {
      const int64_t start = d.integer(0, dims[along]);
      part[along] = d.integer(0, dims[along] - start);
      call.in(draw_x(d, t, part)).integer(dim).integer(start).integer(start + part[along]);
      call.integer(1);
    }
    return {call.out(t, dims)};
  }
  const int64_t count = d.chance(0.1) ? d.integer(9, 40) : d.integer(1, 5);
  std::vector<TestTensor> parts;
  const bool stack = is(op, "stack");
  const int64_t rank = static_cast<int64_t>(dims.rank()) + (stack ? 1 : 0);
  const int64_t dim = d.dim_of(static_cast<size_t>(rank));
  const size_t along = plain(dim, static_cast<size_t>(rank));
  Dims y = dims;
  if (stack) {
    y = {};
    for (size_t i = 0; i < static_cast<size_t>(rank); ++i)
      y.push_back(i == along ? count : dims[i - (i > along ? 1 : 0)]);
  } else {
    y[along] = 0;
  }
  for (int64_t i = 0; i < count; ++i) {
    Dims part = dims;
    if (!stack) {
      part[along] = d.integer(0, 4);
      y[along] += part[along];
    }
    parts.push_back(draw_x(d, t, part));
  }
  return {call.list(parts).integer(dim).out(t, y)};
}

}  // namespace

std::vector<Generator> movement_generators() {
  return {
      {"Views",
       {"et_vk.prepack.default", "aten.clone.default", "dim_order_ops._clone_dim_order.default",
        "aten.alias_copy.default", "aten.detach_copy.default", "aten.lift_fresh_copy.default",
        "et_copy._h2d_copy.default", "et_copy._d2h_copy.default", "aten.view_copy.default",
        "aten._unsafe_view.default", "executorch_prim.et_view.default", "aten.squeeze_copy.default",
        "aten.squeeze_copy.dim", "aten.squeeze_copy.dims", "aten.unsqueeze_copy.default"},
       draw_view},
      {"Movement",
       {"aten.permute_copy.default",
        "aten.transpose_copy.int",
        "aten.t_copy.default",
        "aten.slice_copy.Tensor",
        "aten.narrow_copy.default",
        "aten.select_copy.int",
        "aten.expand_copy.default",
        "aten.flip.default",
        "aten.unfold_copy.default",
        "aten.diagonal_copy.default",
        "aten.as_strided_copy.default",
        "aten.split_with_sizes_copy.default",
        "aten.split_copy.Tensor",
        "aten.unbind_copy.int",
        "aten.pixel_shuffle.default",
        "aten.pixel_unshuffle.default",
        "aten.repeat.default",
        "aten.roll.default",
        "aten.constant_pad_nd.default",
        "aten.reflection_pad1d.default",
        "aten.reflection_pad2d.default",
        "aten.reflection_pad3d.default",
        "aten.replication_pad1d.default",
        "aten.replication_pad2d.default",
        "aten.replication_pad3d.default",
        "aten.tril.default",
        "aten.triu.default"},
       draw_movement},
      {"Join",
       {"aten.cat.default", "aten.stack.default", "aten.slice_scatter.default",
        "aten.select_scatter.default"},
       draw_join},
  };
}

}  // namespace pteryx::ops::testing
