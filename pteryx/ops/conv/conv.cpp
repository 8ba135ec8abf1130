// Convolution: 1-D, 2-D and 3-D, grouped, dilated, transposed, with an optional activation,
// residual and clamp of the result.
// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/ops/conv/conv.h"

#include <algorithm>
#include <cmath>

#include "pteryx/ops/table.h"

namespace pteryx::ops {
namespace conv {
namespace {

Status shape(const Node& n, Shapes& s) {
  PTERYX_ASSIGN(const Conv c, read_conv(n));
  if (n.def().args.size() > kResidual) {
    const std::string_view activation = n.text(kActivation);
    if (!activation.empty() && std::ranges::find(kActivations, activation) == kActivations.end())
      return n.malformed(kActivation, "value", "none, silu or hardswish", activation);
    if (n.has(kResidual) && n.in(kResidual).dims != c.channel_dims())
      PTERYX_TRY(n.expect(kResidual, "shape", c.result_dims(), n.in(kResidual).dims));
    if (n.has(kNorm))
      PTERYX_TRY(n.expect(kNorm, "shape", Dims{4 * c.channels()}, n.in(kNorm).dims));
  }
  return s.set(c.result_dims());
}

// The shaders count positions in 32 bits.
bool fits_shaders(const Conv& c) {
  constexpr int64_t kMost = 1 << 30;
  for (size_t i = 0; i < 3; ++i) {
    if (c.in[i] + 2 * c.padding[i] > kMost || c.out[i] * c.stride[i] + c.padding[i] > kMost)
      return false;
  }
  return true;
}

bool gpu(const Node& n) {
  const auto c = read_conv(n);
  return is_float(n.in(kX).dtype) && is_float(n.in(kWeight).dtype) && is_float(n.out().dtype) &&
         (!n.has(kBias) || is_float(n.in(kBias).dtype)) &&
         (n.def().args.size() <= kResidual || !n.has(kResidual) ||
          is_float(n.in(kResidual).dtype)) &&
         (!c.ok() || fits_shaders(*c));
}

// Where along one axis the input lies that result `o` takes through kernel entry `k`; -1: nowhere.
int64_t source(const Conv& c, size_t axis, int64_t o, int64_t k) {
  int64_t i = 0;
  if (c.transposed) {
    const int64_t at = o + c.padding[axis] - k * c.dilation[axis];
    if (at < 0 || at % c.stride[axis] != 0) return -1;
    i = at / c.stride[axis];
  } else {
    i = o * c.stride[axis] - c.padding[axis] + k * c.dilation[axis];
  }
  return i >= 0 && i < c.in[axis] ? i : -1;
}

// The sum over one channel: its input plane begins at x_first, its kernel at w_first.
double correlate(const Conv& c, const HostTensor& x, int64_t x_first, const HostTensor& w,
                 int64_t w_first, const Sizes& o) {
  double sum = 0;
  for (int64_t kd = 0; kd < c.kernel[0]; ++kd) {
    const int64_t d = source(c, 0, o[0], kd);
    if (d < 0) continue;
    for (int64_t kh = 0; kh < c.kernel[1]; ++kh) {
      const int64_t h = source(c, 1, o[1], kh);
      if (h < 0) continue;
      for (int64_t kw = 0; kw < c.kernel[2]; ++kw) {
        const int64_t v = source(c, 2, o[2], kw);
        if (v < 0) continue;
        sum += x.number(x_first + (d * c.in[1] + h) * c.in[2] + v) *
               w.number(w_first + (kd * c.kernel[1] + kh) * c.kernel[2] + kw);
      }
    }
  }
  return sum;
}

double activate(Activation a, double v) {
  if (a == Activation::kSilu) return v / (1.0 + std::exp(-v));
  if (a == Activation::kHardswish) return v * std::clamp(v / 6.0 + 0.5, 0.0, 1.0);
  return v;
}

Status cpu(const Node& n, const Host& h) {
  PTERYX_ASSIGN(const Conv c, read_conv(n));
  const Finish f = read_finish(n);
  const HostTensor x = h.host(n.in(kX).id);
  const HostTensor w = h.host(n.in(kWeight).id);
  const HostTensor bias = n.has(kBias) ? h.host(n.in(kBias).id) : HostTensor{};
  const HostTensor y = h.host(n.out_id());
  const int64_t plane = product(c.in);
  const int64_t taps = product(c.kernel);
  for (int64_t i = 0; i < y.numel(); ++i) {
    const int64_t oc = i / c.positions() % c.channels();
    const int64_t image = i / c.positions() / c.channels();
    const int64_t g = oc / c.out_channels;
    const int64_t at = i % c.positions();
    const Sizes o{at / c.out[2] / c.out[1], at / c.out[2] % c.out[1], at % c.out[2]};
    double sum = n.has(kBias) ? bias.number(oc) : 0.0;
    for (int64_t ic = 0; ic < c.in_channels; ++ic) {
      const int64_t from = (image * c.groups + g) * c.in_channels + ic;
      const int64_t kernel = c.transposed
                                 ? (g * c.in_channels + ic) * c.out_channels + oc % c.out_channels
                                 : oc * c.in_channels + ic;
      sum += correlate(c, x, from * plane, w, kernel * taps, o);
    }
    if (f.norm) {
      const HostTensor norm = h.host(n.in(kNorm).id);
      const auto of = [&](int64_t row) { return norm.number(row * c.channels() + oc); };
      sum = (sum - of(2)) / std::sqrt(of(3) + f.eps) * of(0) + of(1);
    }
    sum = activate(f.activation, sum);
    if (f.residual != Finish::Residual::kNone) {
      const bool whole = f.residual == Finish::Residual::kElements;
      sum += h.host(n.in(kResidual).id).number(whole ? i : i / c.positions());
    }
    if (f.lo && sum < *f.lo) sum = *f.lo;
    if (f.hi && sum > *f.hi) sum = *f.hi;
    y.put(i, sum);
  }
  return {};
}

constexpr DTypes kTypes = kFloats | kIntegers;
constexpr Arg kConvArgs[] = {in("x", kTypes, 2, 5),
                             in("weight", kTypes, 3, 5),
                             optional_in("bias", kTypes),
                             ints("stride"),
                             ints("padding"),
                             ints("dilation"),
                             number("transposed"),
                             ints("output_padding"),
                             number("groups"),
                             out("y", kTypes)};
constexpr Arg kClampArgs[] = {in("x", kTypes, 2, 5),
                              in("weight", kTypes, 3, 5),
                              optional_in("bias", kTypes),
                              ints("stride"),
                              ints("padding"),
                              ints("dilation"),
                              number("transposed"),
                              ints("output_padding"),
                              number("groups"),
                              optional_number("min"),
                              optional_number("max"),
                              out("y", kTypes)};
constexpr Arg kFusedArgs[] = {in("x", kTypes, 2, 5),
                              in("weight", kTypes, 3, 5),
                              optional_in("bias", kTypes),
                              ints("stride"),
                              ints("padding"),
                              ints("dilation"),
                              number("transposed"),
                              ints("output_padding"),
                              number("groups"),
                              optional_number("min"),
                              optional_number("max"),
                              text("activation"),
                              optional_in("residual", kTypes),
                              optional_in("norm", kFloats),
                              optional_number("eps"),
                              out("y", kTypes)};
constexpr std::string_view kConvSpellings[] = {"aten::convolution.out"};

}  // namespace
}  // namespace conv

void add_conv(std::vector<OpDef>& table) {
  const OpDef base = {.shape = conv::shape,
                      .plan = plan_by_route,
                      .gpu = conv::gpu,
                      .cpu = conv::cpu,
                      .fast = conv::fast,
                      .family = "conv",
                      .routes = conv::routes()};
  OpDef convolution = base;
  convolution.name = "aten.convolution.default";
  convolution.spellings = conv::kConvSpellings;
  convolution.args = conv::kConvArgs;
  OpDef with_clamp = base;
  with_clamp.name = "et_vk.conv_with_clamp.default";
  with_clamp.args = conv::kClampArgs;
  table.push_back(convolution);
  table.push_back(with_clamp);
  OpDef fused = base;
  fused.name = conv::kFusedOp;
  fused.args = conv::kFusedArgs;
  table.push_back(fused);
}

}  // namespace pteryx::ops
