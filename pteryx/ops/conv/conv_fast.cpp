// Convolution on the CPU, with vectors and threads: a product of the weight and the patches of x,
// which are gathered piece by piece; channels by themselves directly.
// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cmath>

#include "pteryx/cpu/arena.h"
#include "pteryx/cpu/depthwise.h"
#include "pteryx/cpu/gemm.h"
#include "pteryx/cpu/patches.h"
#include "pteryx/cpu/pool.h"
#include "pteryx/ops/conv/conv.h"
#include "pteryx/ops/float_rows.h"

namespace pteryx::ops::conv {
namespace {

cpu::Window::Sizes sizes(const Sizes& s) { return {size(s[0]), size(s[1]), size(s[2])}; }
cpu::Window window_of(const Conv& c) {
  return {.in = sizes(c.in),
          .out = sizes(c.out),
          .kernel = sizes(c.kernel),
          .stride = sizes(c.stride),
          .padding = sizes(c.padding),
          .dilation = sizes(c.dilation)};
}

// Padding of no use, with a stride to jump over it, would ask for memory without bounds.
bool fits_memory(const Conv& c) {
  const cpu::Window w = window_of(c);
  const auto of = [&](size_t axis) { return static_cast<double>(w.padded(axis)); };
  const double padded = of(0) * of(1) * (of(2) + static_cast<double>(w.stride[2]));
  return padded < 1e9 && padded < 64.0 * static_cast<double>(product(c.in) + product(c.out)) + 1e6;
}

bool fits(const Node& n, const Conv& c, const Finish& f) {
  if (c.transposed || c.batch == 0 || c.positions() == 0 || c.channels() == 0 || c.terms() == 0)
    return false;
  if (!fits_memory(c)) return false;
  if (!is_f32_or_f16(n.in(kX)) || !is_f32_or_f16(n.in(kWeight)) || !is_f32_or_f16(n.out()))
    return false;
  if (n.has(kBias) && !is_float(n.in(kBias).dtype)) return false;
  return f.residual == Finish::Residual::kNone || is_f32_or_f16(n.in(kResidual));
}

cpu::Activation activation_of(Activation a) {
  switch (a) {
    case Activation::kNone: break;
    case Activation::kSilu: return cpu::Activation::kSilu;
    case Activation::kHardswish: return cpu::Activation::kHardswish;
  }
  return cpu::Activation::kNone;
}

// All that a call reads and writes, as f32.
struct Operands {
  const float* x = nullptr;
  const float* weight = nullptr;
  const float* residual = nullptr;
  float* y = nullptr;
  cpu::Finish finish;  // of the first channel of the first image
};

// Bias and norm as a factor and a shift for each channel.
void set_channels(const Node& n, const Host& h, const Conv& c, const Finish& f, CpuContext& context,
                  cpu::Finish& to) {
  const auto channels = size(c.channels());
  const HostTensor bias = n.has(kBias) ? h.host(n.in(kBias).id) : HostTensor{};
  const auto bias_of = [&](size_t i) {
    return n.has(kBias) ? bias.number(static_cast<int64_t>(i)) : 0.0;
  };
  if (!f.norm && !n.has(kBias)) return;
  auto* const shift = context.memory.take_array<float>(channels);
  to.shift = {shift, 1, 0};
  for (size_t i = 0; i < channels; ++i) shift[i] = static_cast<float>(bias_of(i));
  if (!f.norm) return;
  auto* const factor = context.memory.take_array<float>(channels);
  to.factor = {factor, 1, 0};
  const HostTensor norm = h.host(n.in(kNorm).id);
  for (size_t i = 0; i < channels; ++i) {
    const auto of = [&](size_t row) {
      return norm.number(static_cast<int64_t>(row * channels + i));
    };
    const double scale = of(0) / std::sqrt(of(3) + f.eps);
    factor[i] = static_cast<float>(scale);
    shift[i] = static_cast<float>((bias_of(i) - of(2)) * scale + of(1));
  }
}

Operands find_operands(const Node& n, const Host& h, const Conv& c, const Finish& f,
                       CpuContext& context) {
  Operands o;
  o.x = widened(h.host(n.in(kX).id), context);
  o.weight = widened(h.host(n.in(kWeight).id), context);
  const HostTensor y = h.host(n.out_id());
  o.y = is_f32(n.out()) ? floats(y) : context.memory.take_array<float>(size(y.numel()));
  o.finish.activation = activation_of(f.activation);
  if (f.lo) o.finish.low = static_cast<float>(*f.lo);
  if (f.hi) o.finish.high = static_cast<float>(*f.hi);
  set_channels(n, h, c, f, context, o.finish);
  if (f.residual != Finish::Residual::kNone) {
    o.residual = widened(h.host(n.in(kResidual).id), context);
    if (f.residual == Finish::Residual::kElements) {
      o.finish.residual = {o.residual, size(c.positions()), 1};
    } else {
      o.finish.residual = {o.residual, 1, 0};
    }
  }
  return o;
}

// What becomes of channels from `channel` of an image on.
cpu::Finish finish_at(const Operands& o, const Conv& c, size_t image, size_t channel) {
  cpu::Finish f = o.finish;
  if (f.factor.data != nullptr) f.factor.data += channel;
  if (f.shift.data != nullptr) f.shift.data += channel;
  if (f.residual.data != nullptr)
    f.residual.data += (image * size(c.channels()) + channel) * f.residual.row;
  return f;
}

const size_t* find_starts(const Conv& c, const cpu::Window& w, CpuContext& context) {
  const auto channels = size(c.in_channels);
  auto* const starts = context.memory.take_array<size_t>(channels * w.taps());
  for (size_t t = 0; t < w.taps(); ++t) starts[t] = w.start_of(t);
  for (size_t i = w.taps(); i < channels * w.taps(); ++i)
    starts[i] = starts[i - w.taps()] + w.plane();
  return starts;
}

void by_channels(const Conv& c, const Operands& o, CpuContext& context) {
  const cpu::Window w = window_of(c);
  const size_t* const starts = find_starts(c, w, context);
  const size_t own = (w.plane() + cpu::kSpare + 15) / 16 * 16;
  auto* const padded = context.memory.take_array<float>(own * context.pool.threads());
  std::fill(padded, padded + own * context.pool.threads(), 0.0F);
  const auto channels = size(c.channels());
  context.pool.run(size(c.batch) * channels, [&](size_t i, size_t thread) {
    float* const plane = padded + thread * own;
    cpu::pad_plane(w, o.x + i * size(product(c.in)), plane);
    const size_t channel = i % channels;
    cpu::convolve_plane(w, starts, plane, o.weight + channel * w.taps(),
                        finish_at(o, c, i / channels, 0), channel, o.y + i * w.positions());
  });
}

void by_products(const Conv& given, const Operands& o, CpuContext& context) {
  const Conv c = given.flattened();
  const cpu::Window w = window_of(c);
  const auto channels = size(c.in_channels);
  const auto groups = size(c.groups);
  const size_t in = size(product(c.in));
  cpu::Gemm g{.m = size(c.out_channels),
              .n = w.positions(),
              .k = size(c.terms()),
              .a = nullptr,
              .a_row = size(c.terms()),
              .b = {},
              .finish = {},
              .y = nullptr,
              .y_row = w.positions()};
  float* padded = nullptr;
  if (c.is_pointwise()) {
    g.b = {.kind = cpu::RightKind::kRows, .data = nullptr, .stride = w.positions()};
  } else {
    const size_t all = groups * channels * w.plane();
    padded = context.memory.take_array<float>(all + cpu::kSpare);
    std::fill(padded + all, padded + all + cpu::kSpare, 0.0F);
    g.b = {.kind = cpu::RightKind::kPatches,
           .data = nullptr,
           .stride = 0,
           .starts = find_starts(c, w, context),
           .width = w.out[2],
           .height = w.out[1],
           .row = w.row_step(),
           .plane = w.plane_step()};
  }
  const cpu::GemmItems items = cpu::cut_gemm(g, context.pool.threads(), groups - 1);
  const PerThread scratch(context, cpu::gemm_scratch_bytes());
  for (size_t image = 0; image < size(c.batch); ++image) {
    const float* const x = o.x + image * groups * channels * in;
    if (padded != nullptr) {
      context.pool.run(groups * channels, [&](size_t i, size_t /*thread*/) {
        cpu::pad_plane(w, x + i * in, padded + i * w.plane());
      });
    }
    context.pool.run(groups * items.count(), [&](size_t i, size_t thread) {
      const size_t group = i / items.count();
      const size_t channel = group * g.m;
      cpu::Gemm own_g = g;
      own_g.a = o.weight + channel * g.k;
      own_g.b.data =
          padded != nullptr ? padded + group * channels * w.plane() : x + group * channels * in;
      own_g.finish = finish_at(o, c, image, channel);
      own_g.y = o.y + (image * groups * g.m + channel) * g.n;
      cpu::multiply(own_g, items, i % items.count(), scratch.of(thread));
    });
  }
}

}  // namespace

Result<bool> fast(const Node& n, const Host& h, CpuContext& context) {
  PTERYX_ASSIGN(const Conv c, read_conv(n));
  const Finish f = read_finish(n);
  if (!fits(n, c, f)) return false;
  const Operands o = find_operands(n, h, c, f, context);
  if (c.in_channels == 1 && c.out_channels == 1 && !c.is_pointwise()) {
    by_channels(c, o, context);
  } else {
    by_products(c, o, context);
  }
  if (!is_f32(n.out())) {
    const HostTensor y = h.host(n.out_id());
    store_floats(o.y, y, 0, size(y.numel()));
  }
  return true;
}

}  // namespace pteryx::ops::conv
