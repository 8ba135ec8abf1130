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

// Each channel by itself, without a product.
bool by_itself(const Conv& c) {
  return c.in_channels == 1 && c.out_channels == 1 && !c.is_pointwise();
}

// Padding of no use, with a stride to jump over it, would ask for memory without bounds.
bool fits_memory(const Conv& c) {
  const cpu::Window w = window_of(c);
  const auto of = [&](size_t axis) { return static_cast<double>(w.padded(axis)); };
  const double plane = of(0) * of(1) * (of(2) + static_cast<double>(w.stride[2]));
  const double planes = by_itself(c) ? 1 : static_cast<double>(c.groups * c.in_channels);
  const double given = planes * static_cast<double>(product(c.in)) +
                       static_cast<double>(c.channels() * product(c.out));
  return plane < 1e9 && plane * planes < 64.0 * given + 1e6;
}

// Products of a transposed convolution that are held at a time, for one channel at least.
constexpr int kMostSpread = 1 << 24;

// For each channel.
double products(const Conv& c) {
  return static_cast<double>(product(c.in)) * static_cast<double>(product(c.kernel));
}

bool fits(const Node& n, const Conv& c, const Finish& f) {
  if (c.batch == 0 || c.positions() == 0 || c.channels() == 0 || c.terms() == 0) return false;
  if (!c.transposed && !fits_memory(c)) return false;
  if (c.transposed && products(c) == 0) return false;
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
  if (!f.norm && bias.dtype == DType::kF32) {
    to.shift = {floats(bias), 1, 0};
    return;
  }
  auto* const shift = context.memory.take_array<float>(channels);
  to.shift = {shift, 1, 0};
  for (size_t i = 0; i < channels && !context.dry_run(); ++i)
    shift[i] = static_cast<float>(bias_of(i));
  if (!f.norm) return;
  auto* const factor = context.memory.take_array<float>(channels);
  to.factor = {factor, 1, 0};
  if (context.dry_run()) return;
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
  o.y = is_f32(n.out()) ? floats(y) : context.memory.take_array<float>(count_of(y));
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
  auto* const starts = context.memory.take_array<size_t>(channels, w.taps());
  if (context.dry_run()) return starts;
  for (size_t t = 0; t < w.taps(); ++t) starts[t] = w.start_of(t);
  for (size_t i = w.taps(); i < channels * w.taps(); ++i)
    starts[i] = starts[i - w.taps()] + w.plane();
  return starts;
}

void by_channels(const Conv& c, const Operands& o, CpuContext& context) {
  const cpu::Window w = window_of(c);
  const bool direct = !context.dry_run() && cpu::convolves_directly(w);  // smaller ones may not
  const size_t* const starts = direct ? nullptr : find_starts(c, w, context);
  const size_t plane = direct ? 0 : w.plane() + cpu::kSpare;
  const PerThread padded(context, uint64_t{plane} * sizeof(float));
  if (context.dry_run()) return;
  for (size_t t = 0; t < context.pool.threads(); ++t) {
    auto* const to = reinterpret_cast<float*>(padded.of(t));
    std::fill(to, to + plane, 0.0F);
  }
  const auto channels = size(c.channels());
  const size_t in = size(product(c.in));
  const size_t planes = size(c.batch) * channels;
  // Small planes go together, as far as threads have enough of them.
  const size_t threads = std::max<size_t>(context.pool.threads(), 1);
  const size_t most = std::max<size_t>(planes / (4 * threads), 1);
  const size_t each = std::clamp<size_t>(kPartElements / std::max<size_t>(in, 1), 1, most);
  context.pool.run((planes + each - 1) / each, [&](size_t item, size_t thread) {
    auto* const own = reinterpret_cast<float*>(padded.of(thread));
    for (size_t i = item * each; i < std::min((item + 1) * each, planes); ++i) {
      const size_t channel = i % channels;
      const float* const x = o.x + i * in;
      const float* const kernel = o.weight + channel * w.taps();
      float* const y = o.y + i * w.positions();
      const cpu::Finish finish = finish_at(o, c, i / channels, 0);
      if (direct) {
        cpu::convolve_directly(w, x, kernel, finish, channel, y);
      } else {
        cpu::fill_plane(w, x, own);
        cpu::convolve_plane(w, starts, own, kernel, finish, channel, y);
      }
    }
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
    padded = context.memory.take_array<float>(groups * channels, w.plane() + cpu::kSpare);
    if (!context.dry_run()) std::fill(padded + all, padded + all + cpu::kSpare, 0.0F);
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
  const cpu::Panels panels = groups == 1 ? cpu::panels_of(g, items) : cpu::Panels{};
  if (context.dry_run()) {
    context.memory.take(cpu::most_panel_bytes(g, context.pool.threads()));
    return;
  }
  if (panels.count > 0) g.panels = context.memory.take(panels.bytes);
  for (size_t image = 0; image < size(c.batch); ++image) {
    const float* const x = o.x + image * groups * channels * in;
    if (padded != nullptr) {
      context.pool.run(groups * channels, [&](size_t i, size_t /*thread*/) {
        cpu::pad_plane(w, x + i * in, padded + i * w.plane());
      });
    }
    if (panels.count > 0) {
      g.b.data = padded != nullptr ? padded : x;
      context.pool.run(panels.count, [&](size_t i, size_t thread) {
        cpu::gather_panel(g, items, i, scratch.of(thread));
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

// [rows, columns] of weights as [columns, rows].
void transpose(const float* from, size_t rows, size_t columns, CpuContext& context, float* to) {
  for_parts(context, columns, kPartElements / rows, [&](size_t begin, size_t end) {
    for (size_t r = 0; r < rows; ++r) {
      for (size_t i = begin; i < end; ++i) to[i * rows + r] = from[r * columns + i];
    }
  });
}

// Where entry `tap` of the kernel takes entry i of an axis to; below 0 or from out on: nowhere.
int64_t target(const Conv& c, size_t axis, int64_t i, int64_t tap) {
  return i * c.stride[axis] + tap * c.dilation[axis] - c.padding[axis];
}

// Adds products [taps, positions of the input] of one channel to the results they belong to.
void spread(const Conv& c, const float* from, float* y) {
  std::fill(y, y + c.positions(), 0.0F);
  for (int64_t tap = 0; tap < product(c.kernel); ++tap) {
    const Sizes k{tap / c.kernel[2] / c.kernel[1], tap / c.kernel[2] % c.kernel[1],
                  tap % c.kernel[2]};
    for (int64_t row = 0; row < c.in[0] * c.in[1]; ++row, from += c.in[2]) {
      const int64_t d = target(c, 0, row / c.in[1], k[0]);
      const int64_t h = target(c, 1, row % c.in[1], k[1]);
      if (d < 0 || d >= c.out[0] || h < 0 || h >= c.out[1]) continue;
      float* const to = y + (d * c.out[1] + h) * c.out[2];
      for (int64_t i = 0; i < c.in[2]; ++i) {
        const int64_t w = target(c, 2, i, k[2]);
        if (w >= 0 && w < c.out[2]) to[w] += from[i];
      }
    }
  }
}

// A transposed convolution: the product of the weight, [channels * taps, channels of the input],
// and x is spread over the results, some channels at a time.
void by_spreading(const Conv& c, const Operands& o, CpuContext& context) {
  const size_t taps = size(product(c.kernel));
  const auto in = size(product(c.in));
  const auto terms = size(c.in_channels);
  const auto channels = size(c.out_channels);
  const auto of_channel = saturating_mul<uint64_t>(taps, in);
  const size_t most = std::clamp<uint64_t>(kMostSpread / of_channel, 1, channels);
  auto* const weight = context.memory.take_array<float>(channels * taps, terms);
  // Of a smaller input, more channels may be held at a time.
  const uint64_t all = saturating_mul<uint64_t>(channels * taps, in);
  auto* const products = context.memory.take_array<float>(
      context.dry_run() ? std::min<uint64_t>(all, kMostSpread) : most * taps * in);
  const PerThread scratch(context, cpu::gemm_scratch_bytes());
  if (context.dry_run()) return;
  cpu::Gemm g{.m = most * taps,
              .n = in,
              .k = terms,
              .a_row = terms,
              .b = {.kind = cpu::RightKind::kRows, .data = nullptr, .stride = in},
              .finish = {},
              .y = products,
              .y_row = in};
  for (size_t i = 0; i < size(c.images()); ++i) {
    const size_t group = i % size(c.groups);
    transpose(o.weight + group * terms * channels * taps, terms, channels * taps, context, weight);
    g.b.data = o.x + i * terms * in;
    for (size_t first = 0; first < channels; first += most) {
      const size_t count = std::min(most, channels - first);
      g.m = count * taps;
      g.a = weight + first * taps * terms;
      const cpu::GemmItems items = cpu::cut_gemm(g, context.pool.threads());
      context.pool.run(items.count(), [&](size_t item, size_t thread) {
        cpu::multiply(g, items, item, scratch.of(thread));
      });
      context.pool.run(count, [&](size_t own, size_t /*thread*/) {
        const size_t channel = group * channels + first + own;
        float* const y =
            o.y + (i / size(c.groups) * size(c.channels()) + channel) * size(c.positions());
        spread(c, products + own * taps * in, y);
        cpu::finish(finish_at(o, c, i / size(c.groups), channel), 1, size(c.positions()), y);
      });
    }
  }
}

// Whether other sizes of x may come.
bool may_be_smaller(const Node& n) {
  return std::ranges::any_of(n.graph().inputs, [&](ValueId id) {
    const graph::Tensor* const t = n.graph().tensor(id);
    return t != nullptr && t->dynamic;
  });
}

// Here padding is multiplied, too, and 0 times a weight that is not finite is NaN, where the
// reference leaves padding out. Each entry of the kernel of a product that meets padding anywhere
// does so at a corner of the result; channels by themselves have few weights.
bool pads_infinities(const Conv& c, const Operands& o) {
  if (c.transposed || c.padding == Sizes{}) return false;
  const auto is_odd = [](float v) { return !std::isfinite(v); };
  bool odd = by_itself(c);
  for (int64_t i = 0; !odd && i < 8 * c.channels(); ++i) {
    int64_t at = i / 8;
    for (size_t axis = 0; axis < 3; ++axis)
      at = at * c.out[axis] + ((i >> axis) % 2 == 0 ? 0 : c.out[axis] - 1);
    odd = std::isnan(o.y[at]);
  }
  const auto weights = c.channels() * c.in_channels * product(c.kernel);
  return odd && std::any_of(o.weight, o.weight + weights, is_odd);
}

}  // namespace

Result<bool> fast(const Node& n, const Host& h, CpuContext& context) {
  PTERYX_ASSIGN(const Conv c, read_conv(n));
  const Finish f = read_finish(n);
  if (!fits(n, c, f)) return false;
  const bool too_many = c.transposed && products(c) > kMostSpread;
  if (too_many && !(context.dry_run() && may_be_smaller(n))) return false;
  const Operands o = find_operands(n, h, c, f, context);
  if (c.transposed) {
    by_spreading(c, o, context);
  } else if (by_itself(c)) {
    by_channels(c, o, context);
  } else {
    by_products(c, o, context);
  }
  if (!context.dry_run() && pads_infinities(c, o)) {
    PTERYX_TRY(n.def().cpu(n, h));
    return true;
  }
  if (!is_f32(n.out()) && !context.dry_run()) {
    const HostTensor y = h.host(n.out_id());
    store_floats(o.y, y, 0, size(y.numel()));
  }
  return !too_many;
}

}  // namespace pteryx::ops::conv
