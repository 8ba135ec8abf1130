// Random calls of reductions, softmax, norms, scans and sorts. Sums and softmax have references in
// double here; norms that are not RMS, scans and sorts are compared with the CPU kernels.
// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cmath>
#include <map>

#include "pteryx/ops/testing/coords.h"
#include "pteryx/ops/testing/draw.h"

namespace pteryx::ops::testing {
namespace {

// Which dims go, and what the result looks like.
struct Fold {
  std::vector<bool> folded;
  std::vector<int64_t> over;  // as arguments
  bool keep = false;

  Fold(Draw& d, const Dims& x, bool one, bool whole) : folded(x.rank(), whole) {
    keep = !whole && d.chance(0.5);
    if (whole) return;
    for (size_t i = 0; i < x.rank(); ++i) {
      if (one ? over.empty() && (d.chance(0.4) || i + 1 == x.rank()) : d.chance(0.4)) {
        folded[i] = true;
        over.push_back(static_cast<int64_t>(i) -
                       (d.chance(0.5) ? static_cast<int64_t>(x.rank()) : 0));
      }
    }
    if (over.empty()) folded.assign(x.rank(), true);
  }
  Dims result(const Dims& x) const {
    Dims y;
    for (size_t i = 0; i < x.rank(); ++i) {
      if (!folded[i]) y.push_back(x[i]);
      if (folded[i] && keep) y.push_back(1);
    }
    return y;
  }
  // Each result's elements and their places along the folded dims, in order.
  std::vector<std::vector<std::pair<double, int64_t>>> groups(const TestTensor& x) const {
    std::map<size_t, std::vector<std::pair<double, int64_t>>> found;
    for (int64_t i = 0; i < numel(x.dims); ++i) {
      const Coords c = coords(x.dims, i);
      size_t group = 0;
      int64_t place = 0;
      for (size_t k = 0; k < c.size(); ++k) {
        if (folded[k])
          place = place * x.dims[k] + c[k];
        else
          group = group * at(x.dims[k]) + at(c[k]);
      }
      found[group].emplace_back(x.data[at(i)], place);
    }
    std::vector<std::vector<std::pair<double, int64_t>>> all(at(numel(result(x.dims))));
    for (auto& [group, items] : found) all[group] = std::move(items);
    return all;
  }
};

struct Summary {
  double sum = 0, product = 1, magnitude = 0, least = INFINITY, most = -INFINITY, squares = 0;
  int64_t least_at = 0, most_at = 0;
  double count = 0;

  explicit Summary(const std::vector<std::pair<double, int64_t>>& items) {
    count = static_cast<double>(items.size());
    for (const auto& [v, place] : items) {
      sum += v;
      product *= v;
      magnitude += std::fabs(v);
      if (v < least) least = v, least_at = place;
      if (v > most) most = v, most_at = place;
    }
    for (const auto& [v, place] : items) squares += (v - sum / count) * (v - sum / count);
  }
};

Drawn draw_reduce(std::string_view op, Draw& d) {
  const bool index = is(op, "argm");
  const bool pair = is(op, "max.dim") || is(op, "min.dim");
  const bool extreme = is(op, "max") || is(op, "min");
  const bool spread = is(op, "var") || is(op, "std");
  const bool whole = is(op, ".default") && !is(op, "amax") && !is(op, "amin") && !index;
  DType t = d.chance(0.25) ? DType::kF16 : DType::kF32;
  if (extreme && d.chance(0.25)) t = DType::kI32;
  const Dims dims = is(op, "sum") ? d.dims(0, 8) : d.full_dims(pair ? 1 : 0, 8);
  TestTensor x = is(op, "prod") ? d.values(t, dims, 0.9, 1.1) : d.eighths(t, dims);
  const bool flat = index && d.chance(0.3);
  const Fold fold(d, dims, pair || index || is(op, "dim_int"), whole || flat);
  const int64_t correction = d.integer(0, 1);
  const Dims y_dims = fold.result(dims);
  TestTensor y{t, y_dims, {}};
  TestTensor second{pair ? DType::kI64 : t, y_dims, {}};
  double largest = 0;
  for (const auto& items : fold.groups(x)) {
    const Summary s(items);
    largest = std::fmax(largest, s.magnitude);
    const double variance = s.squares / std::fmax(0, s.count - static_cast<double>(correction));
    const bool most = is(op, "max");
    if (index)
      y.data.push_back(static_cast<double>(most ? s.most_at : s.least_at));
    else if (extreme)
      y.data.push_back(most ? s.most : s.least);
    else if (spread)
      y.data.push_back(is(op, "std") ? std::sqrt(variance) : variance);
    else
      y.data.push_back(is(op, "prod") ? s.product : (is(op, "sum") ? s.sum : s.sum / s.count));
    second.data.push_back(pair ? static_cast<double>(most ? s.most_at : s.least_at)
                               : s.sum / s.count);
  }
  if (index) y.dtype = d.pick({DType::kI32, DType::kI64});
  Case call{std::string(op)};
  call.in(x);
  if (whole) {
    if (!extreme) call.none();
  } else {
    if (flat || (fold.over.empty() && d.chance(0.5)))
      call.none();
    else if (pair || index || is(op, "dim_int"))
      fold.over.empty() ? call.none() : call.integer(fold.over[0]);
    else
      call.ints(fold.over);
    if (is(op, "correction")) call.integer(correction);
    if (spread && is(op, ".dim")) call.flag(correction == 1);
    call.flag(fold.keep);
    if (!extreme && !spread) call.none();
  }
  Tolerance tol = extreme ? kExact : close(t, {1e-6 + 1e-6 * largest, 1e-5});
  if (t == DType::kF16 && !extreme) tol = {2e-3, 3e-3};
  std::vector<TestTensor> want = {y};
  if (pair || is(op, "var_mean")) {
    want.push_back(second);
    return {call.outs(want), tol, want};
  }
  return {call.out(y.dtype, y_dims), tol, want};
}

Drawn draw_softmax(std::string_view op, Draw& d) {
  const DType t = d.chance(0.25) ? DType::kF16 : DType::kF32;
  const Dims dims = d.full_dims(1, 8);
  const TestTensor x = d.values(t, dims, -5, d.chance(0.2) ? 80 : 5);
  const int64_t dim = d.dim_of(dims.rank());
  const size_t along = at(dim < 0 ? dim + static_cast<int64_t>(dims.rank()) : dim);
  const bool logarithm = is(op, "log");
  TestTensor y = x;
  for (int64_t i = 0; i < numel(dims); ++i) {
    Coords c = coords(dims, i);
    double top = -INFINITY;
    double sum = 0;
    for (c[along] = 0; c[along] < dims[along]; ++c[along])
      top = std::fmax(top, x.data[flat(dims, c)]);
    for (c[along] = 0; c[along] < dims[along]; ++c[along])
      sum += std::exp(x.data[flat(dims, c)] - top);
    const double v = x.data[at(i)] - top;
    y.data[at(i)] = logarithm ? v - std::log(sum) : std::exp(v) / sum;
  }
  const Tolerance f32 = logarithm ? Tolerance{1e-5, 1e-5} : Tolerance{1e-6, 1e-5};
  return {Case(std::string(op)).in(x).integer(dim).flag(false).out(t, dims),
          t == DType::kF16 ? Tolerance{2e-3, 2e-3} : f32, std::vector<TestTensor>{y}};
}

// ---- norms

Drawn draw_rms(std::string_view op, Draw& d) {
  const DType t = d.chance(0.25) ? DType::kF16 : DType::kF32;
  Dims dims = d.full_dims(0, 4, 60);
  const int64_t width =
      d.chance(0.5) ? d.pick<int64_t>({32, 48, 64, 100, 128, 130, 256, 288}) : d.integer(1, 90);
  dims.push_back(width);
  const double size = d.pick({1e-4, 1.0, 2.0, 100.0});
  const TestTensor x = d.values(t, dims, -size, size);
  const TestTensor w = d.values(t, {width}, 0.5, 1.5);
  const int64_t form = d.integer(0, t == DType::kF32 ? 2 : 1);
  const double eps = form == 0 ? 9.999999747378752e-06 : (form == 1 ? 1 : 1.1920929e-07);
  TestTensor y = x;
  for (int64_t i = 0; i < numel(dims); ++i) {
    double squares = 0;
    for (int64_t k = 0; k < width; ++k) {
      const double v = x.data[at(i / width * width + k)];
      squares += v * v;
    }
    y.data[at(i)] = x.data[at(i)] / std::sqrt(squares / static_cast<double>(width) + eps) *
                    w.data[at(i % width)];
  }
  Case call{std::string(op)};
  call.in(x);
  if (is(op, "aten.")) call.ints({width});
  call.in(w);
  if (form == 0) call.number(eps);
  if (form == 1) call.integer(1);
  if (form == 2) call.none();
  return {call.out(t, dims), t == DType::kF16 ? Tolerance{2e-3, 5e-3} : Tolerance{1e-5, 1e-5},
          std::vector<TestTensor>{y}};
}

Drawn draw_norm(std::string_view op, Draw& d) {
  const DType t = d.chance(0.25) ? DType::kF16 : DType::kF32;
  const Tolerance tol = t == DType::kF16 ? Tolerance{1e-2, 5e-3} : Tolerance{2e-5, 2e-5};
  Case call{std::string(op)};
  const auto maybe = [&](const Dims& dims) {
    d.chance(0.7) ? call.in(d.values(t, dims, 0.5, 1.5)) : call.none();
  };
  if (is(op, "layer_norm")) {
    const Dims dims = d.full_dims(1, 5);
    const auto trailing = static_cast<size_t>(d.integer(1, static_cast<int64_t>(dims.rank())));
    Dims tail;
    Dims lead = dims;
    for (size_t i = dims.rank() - trailing; i < dims.rank(); ++i)
      tail.push_back(dims[i]), lead[i] = 1;
    call.in(d.eighths(t, dims)).ints({tail.begin(), tail.end()});
    maybe(tail);
    maybe(tail);
    call.number(1e-2).outs({{t, dims, {}}, {t, lead, {}}, {t, lead, {}}});
    return {call, tol};
  }
  const int64_t groups = d.integer(1, 4);
  const int64_t channels = groups * d.integer(1, 4);
  Dims dims = {d.integer(1, 4), channels};
  for (const int64_t s : d.full_dims(0, 3, 100)) dims.push_back(s);
  call.in(d.eighths(t, dims));
  maybe({channels});
  maybe({channels});
  if (is(op, "group_norm")) {
    call.integer(1).integer(1).integer(1).integer(groups).number(1e-2);
    if (is(op, "pteryx")) return {call.text(d.chance(0.5) ? "silu" : "none").out(t, dims), tol};
    call.outs({{t, dims, {}}, {t, {dims[0], groups}, {}}, {t, {dims[0], groups}, {}}});
  } else if (is(op, "no_stats")) {
    call.flag(true).number(0.1).number(1e-2);
    call.outs({{t, dims, {}}, {t, {channels}, {}}, {t, {channels}, {}}});
  } else {
    call.in(d.values(t, {channels})).in(d.values(t, {channels}, 0.5, 2)).number(0.1).number(1e-3);
    call.outs({{t, dims, {}}, {t, {0}, {}}, {t, {0}, {}}});
  }
  return {call, tol};
}

// ---- compared with the CPU kernels

Drawn draw_any_all(std::string_view op, Draw& d) {
  const DType t = d.pick({DType::kBool, DType::kF32, DType::kI32});
  const Dims dims = d.dims(0, 8);
  TestTensor x = d.values(t, dims);
  const double zeros = d.pick({0.02, 0.5, 0.98});
  for (double& v : x.data) v = d.chance(zeros) ? 0 : 1;
  const bool whole = is(op, "default");
  const Fold fold(d, dims, !is(op, "dims"), whole);
  Case call{std::string(op)};
  call.in(x);
  if (!whole) {
    if (fold.over.empty())
      call.none();
    else
      is(op, "dims") ? call.ints(fold.over) : call.integer(fold.over[0]);
    call.flag(fold.keep);
  }
  return {call.out(DType::kBool, fold.result(dims))};
}

Drawn draw_scan(std::string_view op, Draw& d) {
  const DType t = d.pick({DType::kF32, DType::kF16, DType::kI32});
  const Dims dims = d.dims(0, 8);
  const bool product = is(op, "prod");
  const TestTensor x = product && is_float(t) ? d.values(t, dims, 0.9, 1.1) : d.eighths(t, dims);
  Case call{std::string(op)};
  call.in(x).integer(d.dim_of(dims.rank())).none().out(t, dims);
  return {call, t == DType::kF16 ? Tolerance{5e-2, 2e-2} : close(t, {1e-5, 1e-4})};
}

Drawn draw_sort(std::string_view op, Draw& d) {
  const DType t = d.pick({DType::kF32, DType::kF16, DType::kI32});
  const Dims dims = d.dims(1, 6, 600);
  const TestTensor x = d.eighths(t, dims);
  const int64_t dim = d.dim_of(dims.rank());
  const bool top = is(op, "topk");
  Dims y = dims;
  if (top) {
    int64_t& extent = y[at(dim < 0 ? dim + static_cast<int64_t>(dims.rank()) : dim)];
    extent = d.integer(0, extent);
  }
  Case call{std::string(op)};
  call.in(x);
  if (top) call.integer(y[at(dim < 0 ? dim + static_cast<int64_t>(dims.rank()) : dim)]);
  if (is(op, ".stable")) call.flag(true);
  call.integer(dim).flag(d.chance(0.5));
  if (top) call.flag(true);
  const DType index = d.pick({DType::kI32, DType::kI64});
  is(op, "argsort") ? call.out(index, y) : call.outs({{t, y, {}}, {index, y, {}}});
  return {call};
}

}  // namespace

std::vector<Generator> reduction_generators() {
  return {
      {"Reduce",
       {"aten.sum.dim_IntList", "aten.sum.default", "aten.mean.dim", "aten.mean.default",
        "aten.prod.dim_int", "aten.prod.default", "aten.amax.default", "aten.amin.default",
        "aten.max.default", "aten.min.default", "aten.argmax.default", "aten.argmin.default",
        "aten.max.dim", "aten.min.dim", "aten.var.dim", "aten.var.correction", "aten.std.dim",
        "aten.std.correction", "aten.var_mean.correction"},
       draw_reduce},
      {"Softmax", {"aten._softmax.default", "aten._log_softmax.default"}, draw_softmax},
      {"Norm",
       {"aten.native_layer_norm.default", "aten.native_group_norm.default", "pteryx.group_norm",
        "aten._native_batch_norm_legit.no_stats",
        "aten._native_batch_norm_legit_no_training.default"},
       draw_norm},
      {"RmsNorm", {"et_vk.rms_norm.default", "aten.rms_norm.default"}, draw_rms},
      {"AnyAll",
       {"aten.any.default", "aten.any.dim", "aten.any.dims", "aten.all.default", "aten.all.dim",
        "aten.all.dims"},
       draw_any_all},
      {"Scan", {"aten.cumsum.default", "aten.cumprod.default"}, draw_scan},
      {"Sort",
       {"aten.sort.default", "aten.sort.stable", "aten.argsort.default", "aten.argsort.stable",
        "aten.topk.default"},
       draw_sort},
  };
}

}  // namespace pteryx::ops::testing
