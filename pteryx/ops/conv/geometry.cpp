// Reading and checking the arguments of a convolution. SPDX-License-Identifier: BSD-3-Clause
#include <cmath>
#include <limits>

#include "pteryx/ops/conv/conv.h"

namespace pteryx::ops::conv {
namespace {

// Sizes stay below this, so that no product of two overflows.
constexpr int64_t kLimit = std::numeric_limits<int32_t>::max();

// One entry per spatial dim; a list of one counts for all of them. Missing entries and missing dims
// have the least value: a stride or dilation of 1, no padding.
Result<Sizes> read_list(const Node& n, size_t arg, size_t spatial, int64_t least) {
  PTERYX_ASSIGN(const Dims list, n.ints(arg));
  if (list.size() > 1 && list.size() != spatial) {
    return n.malformed(arg, "length", fmt::format("1 or {}", spatial), std::to_string(list.size()));
  }
  Sizes sizes{least, least, least};
  for (size_t i = 0; i < spatial && !list.empty(); ++i) {
    const int64_t v = list[list.size() == 1 ? 0 : i];
    if (v < least || v > kLimit) {
      return n.mismatch(arg, "entry", fmt::format("{} to {}", least, kLimit), std::to_string(v));
    }
    sizes[3 - spatial + i] = v;
  }
  return sizes;
}

Status read_channels(const Node& n, Conv& c) {
  const Tensor x = n.in(kX);
  const Tensor w = n.in(kWeight);
  PTERYX_ASSIGN(c.groups, n.integer(kGroups));
  if (c.groups < 1 || c.groups > kLimit) {
    return n.malformed(kGroups, "value", fmt::format("1 to {}", kLimit), std::to_string(c.groups));
  }
  if (w.dims[0] % c.groups != 0) {
    return n.fail(Code::kInvalidArgument,
                  fmt::format("groups {} does not divide the {} channels of weight {}", c.groups,
                              w.dims[0], to_string(w.dims)));
  }
  c.in_channels = c.transposed ? w.dims[0] / c.groups : w.dims[1];
  c.out_channels = c.transposed ? w.dims[1] : w.dims[0] / c.groups;
  const int64_t channels = x.dims[c.batched ? 1 : 0];
  if (channels != c.in_channels * c.groups) {
    return n.mismatch(kX, "channels", std::to_string(c.in_channels * c.groups),
                      std::to_string(channels));
  }
  if (n.has(kBias)) return n.expect(kBias, "shape", Dims{c.channels()}, n.in(kBias).dims);
  return {};
}

Status read_sizes(const Node& n, Conv& c) {
  PTERYX_ASSIGN(c.stride, read_list(n, kStride, c.spatial, 1));
  PTERYX_ASSIGN(c.padding, read_list(n, kPadding, c.spatial, 0));
  PTERYX_ASSIGN(c.dilation, read_list(n, kDilation, c.spatial, 1));
  PTERYX_ASSIGN(const Sizes extra, read_list(n, kOutputPadding, c.spatial, 0));
  const Tensor x = n.in(kX);
  const Tensor w = n.in(kWeight);
  for (size_t i = 3 - c.spatial; i < 3; ++i) {
    c.in[i] = x.dim(static_cast<int64_t>(i) - 3);
    c.kernel[i] = w.dim(static_cast<int64_t>(i) - 3);
    if (c.in[i] > kLimit || c.kernel[i] > kLimit) {
      return n.unsupported(fmt::format("sizes {} of x and {} of weight: at most {} are supported",
                                       c.in[i], c.kernel[i], kLimit));
    }
    if (c.kernel[i] < 1)
      return n.mismatch(kWeight, "kernel size", "at least 1", std::to_string(c.kernel[i]));
    const int64_t reach = c.dilation[i] * (c.kernel[i] - 1) + 1;
    if (c.transposed) {
      if (extra[i] >= c.stride[i] && extra[i] >= c.dilation[i]) {
        return n.malformed(
            kOutputPadding, "entry",
            fmt::format("less than stride {} or dilation {}", c.stride[i], c.dilation[i]),
            std::to_string(extra[i]));
      }
      c.out[i] = (c.in[i] - 1) * c.stride[i] - 2 * c.padding[i] + reach + extra[i];
      if (c.out[i] < 0) {
        return n.fail(Code::kInvalidArgument,
                      fmt::format("x {} gives a result of size {}", to_string(x.dims), c.out[i]));
      }
      continue;
    }
    const int64_t padded = c.in[i] + 2 * c.padding[i];
    if (reach > padded) {
      return n.fail(Code::kInvalidArgument,
                    fmt::format("a kernel of size {} (dilated) exceeds the padded input of size {}",
                                reach, padded));
    }
    c.out[i] = (padded - reach) / c.stride[i] + 1;
  }
  return {};
}

}  // namespace

Dims Conv::result_dims() const {
  Dims d;
  if (batched) d.push_back(batch);
  d.push_back(channels());
  for (size_t i = 3 - spatial; i < 3; ++i) d.push_back(out[i]);
  return d;
}

Dims Conv::channel_dims() const {
  Conv c = *this;
  c.out = {1, 1, 1};
  return c.result_dims();
}

bool Conv::is_pointwise() const {
  return !transposed && product(kernel) == 1 && product(stride) == 1 && padding == Sizes{0, 0, 0};
}

Conv Conv::flattened() const {
  Conv c = *this;
  if (is_pointwise()) c.in = c.out = {1, 1, product(in)};
  return c;
}

Result<Conv> read_conv(const Node& n) {
  const Tensor x = n.in(kX);
  const Tensor w = n.in(kWeight);
  Conv c;
  c.spatial = w.rank() - 2;
  c.transposed = n.flag(kTransposed);
  c.batched = x.rank() == w.rank();
  if (!c.batched && x.rank() + 1 != w.rank()) {
    return n.malformed(kX, "rank", fmt::format("{} or {}", w.rank() - 1, w.rank()),
                       std::to_string(x.rank()));
  }
  c.batch = c.batched ? x.dims[0] : 1;
  PTERYX_TRY(read_channels(n, c));
  PTERYX_TRY(read_sizes(n, c));
  return c;
}

Finish read_finish(const Node& n) {
  Finish f;
  if (n.def().args.size() <= kMax) return f;
  const auto bound = [&](size_t arg) -> std::optional<double> {
    if (!n.has(arg) || std::fabs(n.number(arg)) > std::numeric_limits<float>::max())
      return std::nullopt;
    return n.number(arg);
  };
  f.lo = bound(kMin);
  f.hi = bound(kMax);
  if (n.def().args.size() <= kResidual) return f;
  if (n.has(kResidual)) {
    const bool whole = n.in(kResidual).dims == n.out().dims;
    f.residual = whole ? Finish::Residual::kElements : Finish::Residual::kChannels;
  }
  f.norm = n.has(kNorm);
  f.eps = n.number_or(kEps, 0);
  for (size_t i = 0; i < kActivations.size(); ++i) {
    if (n.text(kActivation) == kActivations[i]) f.activation = static_cast<Activation>(i);
  }
  return f;
}

}  // namespace pteryx::ops::conv
