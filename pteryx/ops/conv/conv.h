// One convolution as numbers: what its arguments say about a call, checked once for the shape rule,
// the routes and the CPU kernel.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "pteryx/ops/op.h"

namespace pteryx::ops::conv {

// conv_with_clamp has kMin and kMax before the result, pteryx.conv all that is behind as well;
// convolution has the result at kMin.
enum Position : uint8_t {
  kX,
  kWeight,
  kBias,
  kStride,
  kPadding,
  kDilation,
  kTransposed,
  kOutputPadding,
  kGroups,
  kMin,
  kMax,
  kActivation,
  kResidual,
  kNorm,
  kEps
};

// Depth, height, width. A 1-D convolution has depth and height 1, a 2-D one depth 1.
using Sizes = std::array<int64_t, 3>;
constexpr int64_t product(const Sizes& s) { return s[0] * s[1] * s[2]; }

struct Conv {
  bool transposed = false;
  bool batched = true;  // x has a batch dim
  size_t spatial = 2;   // number of spatial dims
  int64_t batch = 1;
  int64_t groups = 1;
  int64_t in_channels = 1;   // per group
  int64_t out_channels = 1;  // per group
  Sizes in{1, 1, 1};
  Sizes out{1, 1, 1};
  Sizes kernel{1, 1, 1};
  Sizes stride{1, 1, 1};
  Sizes padding{0, 0, 0};
  Sizes dilation{1, 1, 1};

  Dims result_dims() const;
  Dims channel_dims() const;                          // the same with 1 along the spatial dims
  int64_t positions() const { return product(out); }  // of one image
  int64_t terms() const { return in_channels * product(kernel); }  // of one sum
  int64_t images() const { return batch * groups; }                // independent products
  int64_t channels() const { return groups * out_channels; }
  bool is_pointwise() const;  // a product of matrices, with x as it is
  // The same along one axis where it is pointwise.
  Conv flattened() const;
};

// Reads and checks a call. Errors name the argument: channels, groups, lists, kernels larger than
// the padded input.
Result<Conv> read_conv(const Node& n);

// "pteryx.conv": x, weight, bias?, stride, padding, dilation, transposed, output_padding, groups,
// min?, max?, activation?, residual?, norm?, eps?, y, with
//   y = clamp(activation(norm(convolution(x, weight) + bias)) + residual, min, max).
// A residual has the shape of y, or one element for each channel: 1 along the spatial dims.
// `norm` is [4 * channels]: weight, bias, mean and variance of a batch norm, with its eps.
inline constexpr const char* kFusedOp = "pteryx.conv";
enum class Activation : uint8_t { kNone, kSilu, kHardswish };
// As the operator's argument and the kernels have them, by Activation; no text is none.
inline constexpr std::array<std::string_view, 3> kActivations = {"none", "silu", "hardswish"};

// What becomes of a sum. A bound that f32 cannot hold (relu is written with the largest double) is
// none.
struct Finish {
  enum class Residual : uint8_t { kNone, kElements, kChannels };  // as the kernels count them
  Activation activation = Activation::kNone;
  Residual residual = Residual::kNone;
  bool norm = false;
  double eps = 0;
  std::optional<double> lo;
  std::optional<double> hi;
};
Finish read_finish(const Node& n);

// With vectors and threads: of f32 or f16.
Result<bool> fast(const Node& n, const Host& h, CpuContext& context);

// The routes of the family, in order of preference.
std::span<const Route> routes();

}  // namespace pteryx::ops::conv
