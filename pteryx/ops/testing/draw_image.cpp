// Random calls of convolution, pooling, resampling and distances, compared with the CPU kernels.
// SPDX-License-Identifier: BSD-3-Clause
#include <cmath>

#include "pteryx/ops/testing/draw.h"

namespace pteryx::ops::testing {
namespace {

DType float_type(Draw& d) { return d.chance(0.25) ? DType::kF16 : DType::kF32; }

Drawn draw_conv(std::string_view op, Draw& d) {
  const DType t = float_type(d);
  const bool transposed = d.chance(0.25);
  const int64_t groups = d.chance(0.3) ? d.integer(2, 4) : 1;
  const bool depthwise = groups > 1 && d.chance(0.5);
  const int64_t in = groups * (depthwise ? 1 : d.integer(1, 3));
  const int64_t out = groups * (depthwise ? 1 : d.integer(1, 3));
  const size_t axes = d.chance(0.3) ? 1 : 2;
  // The kernel's size is part of the text.
  const int64_t kernel = d.pick<int64_t>({1, 3});
  Dims x = {d.integer(1, 2), in};
  Dims w = transposed ? Dims{in, out / groups} : Dims{out, in / groups};
  Dims y = {x[0], out};
  std::vector<int64_t> stride, padding, dilation, extra;
  for (size_t i = 0; i < axes; ++i) {
    stride.push_back(d.integer(1, 2));
    padding.push_back(d.integer(0, kernel / 2));
    dilation.push_back(d.integer(1, 2));
    extra.push_back(transposed ? d.integer(0, stride.back() - 1) : 0);
    const int64_t reach = dilation.back() * (kernel - 1) + 1;
    const int64_t size = d.integer(std::max<int64_t>(1, reach - 2 * padding.back()), 11);
    x.push_back(size);
    w.push_back(kernel);
    y.push_back(transposed ? (size - 1) * stride.back() - 2 * padding.back() + reach + extra.back()
                           : (size + 2 * padding.back() - reach) / stride.back() + 1);
    if (y.back() < 1) return draw_conv(op, d);
  }
  Case call{std::string(op)};
  call.in(d.values(t, x, -1, 1)).in(d.values(t, w, -1, 1));
  const bool fused = op == "pteryx.conv";
  fused || d.chance(0.5) ? call.in(d.values(t, {out})) : call.none();
  call.ints(stride).ints(padding).ints(dilation).flag(transposed).ints(extra).integer(groups);
  if (is(op, "clamp")) {
    d.chance(0.7) ? call.number(-0.5) : call.none();
    d.chance(0.7) ? call.number(1) : call.none();
  }
  if (fused) {  // in few combinations: each is a pipeline
    const bool residual = d.chance(0.5);
    call.none().none().text(residual ? "hardswish" : "silu");
    residual ? call.in(d.values(t, y)) : call.none();
    residual ? call.none().none() : call.in(d.values(t, {4 * out}, 0.25, 1.5)).number(1e-5);
  }
  return {call.out(t, y), t == DType::kF16 ? Tolerance{1e-2, 1e-2} : Tolerance{1e-5, 1e-4}};
}

Drawn draw_pool(std::string_view op, Draw& d) {
  const DType t = float_type(d);
  const size_t axes = is(op, "1d") ? 1 : 2;
  const bool pairs = is(op, "with_indices") || is(op, "adaptive_max");
  const bool mean = is(op, "avg");
  Dims x = {d.integer(1, 2), d.integer(1, 3)};
  Dims y = x;
  std::vector<int64_t> kernel, stride, padding, dilation;
  for (size_t i = 0; i < axes; ++i) {
    kernel.push_back(d.integer(1, 3));
    stride.push_back(d.integer(1, 3));
    padding.push_back(d.integer(0, kernel.back() / 2));
    dilation.push_back(mean ? 1 : d.integer(1, 2));
    const int64_t reach = dilation.back() * (kernel.back() - 1) + 1;
    x.push_back(d.integer(std::max<int64_t>(1, reach), 12));
    y.push_back((x.back() + 2 * padding.back() - reach) / stride.back() + 1);
  }
  Case call{std::string(op)};
  // Distinct values: which of two equal ones is the largest is not at stake here.
  TestTensor v = d.values(t, x);
  call.in(v);
  if (is(op, "adaptive")) {
    std::vector<int64_t> size(axes);
    for (size_t i = 0; i < axes; ++i) size[i] = y[2 + i] = d.integer(1, 9);
    call.ints(size);
  } else {
    call.ints(kernel).ints(stride).ints(padding);
    if (!mean) call.ints(dilation);
    call.flag(false);
    if (mean) call.flag(d.chance(0.5));
    if (is(op, "avg_pool2d")) d.chance(0.3) ? call.integer(5) : call.none();
  }
  if (pairs) {
    call.outs({{t, y, {}}, {DType::kI64, y, {}}});
  } else {
    call.out(t, y);
  }
  return {call, mean ? close(t) : kExact};
}

Drawn draw_upsample(std::string_view op, Draw& d) {
  const DType t = float_type(d);
  const Dims x = {d.integer(1, 2), d.integer(1, 3), d.integer(1, 9), d.integer(1, 9)};
  const bool nearest = is(op, "nearest");
  const int64_t factor = d.integer(1, 3);
  const bool by_factor = is(op, ".vec") && d.chance(0.5);
  // Whole factors for nearest: no source place lies on an edge.
  const bool whole = nearest || by_factor;
  const Dims y = {x[0], x[1], whole ? x[2] * factor : d.integer(1, 20),
                  whole ? x[3] * factor : d.integer(1, 20)};
  Case call{std::string(op)};
  call.in(d.values(t, x));
  by_factor ? call.none() : call.ints({y[2], y[3]});
  if (!nearest) call.flag(!is(op, "_aa") && d.chance(0.5));
  if (is(op, ".vec")) {
    const auto f = static_cast<double>(factor);
    by_factor ? call.numbers({f, f}) : call.none();
  } else {
    call.none().none();
  }
  return {call.out(t, y), nearest ? kExact : close(t, {1e-5, 1e-5})};
}

Drawn draw_grid(std::string_view op, Draw& d) {
  const DType t = is(op, "sampler") ? DType::kF32 : float_type(d);
  Case call{std::string(op)};
  if (is(op, "priors")) {
    const Dims x = d.dims(2, 4, 400);
    const int64_t cells = x[x.rank() - 2] * x[x.rank() - 1];
    call.in(d.values(t, x)).integer(d.pick<int64_t>({4, 8})).number(0.5);
    return {call.out(t, {cells, 2})};
  }
  const Dims x = {d.integer(1, 2), d.integer(1, 3), d.integer(1, 8), d.integer(1, 8)};
  const Dims grid = {x[0], d.integer(1, 7), d.integer(1, 7), 2};
  const int64_t mode = d.pick<int64_t>({0, 2});  // nearest has steps
  call.in(d.values(t, x)).in(d.values(t, grid, -1.7, 1.7)).integer(mode).integer(d.integer(0, 2));
  call.flag(d.chance(0.5)).out(t, {x[0], x[1], grid[1], grid[2]});
  return {call, {2e-5, 2e-5}};
}

Drawn draw_distance(std::string_view op, Draw& d) {
  const DType t = float_type(d);
  const int64_t width = d.integer(1, 30);
  const Dims lead = d.full_dims(0, 3, 6);
  Dims a = d.narrowed(lead);
  Dims b = lead;
  Dims y = lead;
  a.push_back(d.integer(1, 7));
  b.push_back(d.integer(1, 7));
  y.push_back(a.back());
  y.push_back(b.back());
  a.push_back(width);
  b.push_back(width);
  Case call{std::string(op)};
  call.in(d.values(t, a)).in(d.values(t, b)).number(d.pick({0.0, 1.0, 2.0, 3.5, double{INFINITY}}));
  return {call.none().out(t, y), t == DType::kF16 ? Tolerance{4e-3, 3e-3} : Tolerance{3e-5, 3e-5}};
}

}  // namespace

std::vector<Generator> image_generators() {
  return {
      {"Conv",
       {"aten.convolution.default", "et_vk.conv_with_clamp.default", "pteryx.conv"},
       draw_conv},
      {"Pool",
       {"aten.avg_pool2d.default", "aten.avg_pool1d.default", "aten.max_pool2d.default",
        "aten.max_pool1d.default", "aten.max_pool2d_with_indices.default",
        "aten._adaptive_avg_pool2d.default", "aten.adaptive_avg_pool1d.default",
        "aten.adaptive_max_pool2d.default"},
       draw_pool},
      {"Upsample",
       {"aten.upsample_nearest2d.vec", "aten.upsample_nearest2d.default",
        "aten.upsample_bilinear2d.vec", "aten.upsample_bilinear2d.default",
        "aten._upsample_bilinear2d_aa.vec", "aten._upsample_bilinear2d_aa.default"},
       draw_upsample},
      {"Grid", {"aten.grid_sampler_2d.default", "et_vk.grid_priors.default"}, draw_grid},
      {"Distance", {"aten._cdist_forward.default"}, draw_distance},
  };
}

}  // namespace pteryx::ops::testing
