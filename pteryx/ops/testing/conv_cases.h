// Convolutions to test, and a plain reference of them.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <vector>

#include "pteryx/ops/testing/op_harness.h"

namespace pteryx::ops::testing::conv_cases {

// One case: dims of x and weight, then the arguments of the operator.
struct Form {
  Dims x;
  Dims w;
  std::vector<int64_t> stride = {1};
  std::vector<int64_t> padding = {0};
  std::vector<int64_t> dilation = {1};
  int64_t groups = 1;
  bool bias = true;
  bool transposed = false;
  std::vector<int64_t> output_padding = {0};
};

inline int64_t at(const std::vector<int64_t>& list, size_t i) {
  return list.size() == 1 ? list[0] : list[i];
}

// Every product of an input element and a kernel entry is added to the result it belongs to. Both
// kinds of convolution are the same walk with the roles of input and result exchanged.
inline TestTensor reference(const Form& f, const TestTensor& x, const TestTensor& w,
                            const TestTensor& bias) {
  const size_t spatial = f.w.rank() - 2;
  const bool batched = f.x.rank() == f.w.rank();
  const size_t lead = batched ? 2 : 1;
  Dims y_dims;
  if (batched) y_dims.push_back(f.x[0]);
  const int64_t channels = f.transposed ? f.w[1] * f.groups : f.w[0];
  y_dims.push_back(channels);
  for (size_t i = 0; i < spatial; ++i) {
    const int64_t reach = at(f.dilation, i) * (f.w[2 + i] - 1) + 1;
    y_dims.push_back(f.transposed
                         ? (f.x[lead + i] - 1) * at(f.stride, i) - 2 * at(f.padding, i) + reach +
                               at(f.output_padding, i)
                         : (f.x[lead + i] + 2 * at(f.padding, i) - reach) / at(f.stride, i) + 1);
  }
  TestTensor y{x.dtype, y_dims, std::vector<double>(static_cast<size_t>(numel(y_dims)))};
  Dims kernel;
  Dims x_size;
  Dims y_size;
  for (size_t i = 0; i < spatial; ++i) {
    kernel.push_back(f.w[2 + i]);
    x_size.push_back(f.x[lead + i]);
    y_size.push_back(y_dims[lead + i]);
  }
  const Dims& from =
      f.transposed ? x_size : y_size;  // p: p * stride - padding + k * dilation lies in `to`
  const Dims& to = f.transposed ? y_size : x_size;
  const auto split = [](int64_t i, const Dims& d) {
    Dims index = d;
    for (size_t a = d.rank(); a-- > 0; i /= d[a]) index[a] = i % d[a];
    return index;
  };
  const int64_t in_group = (batched ? f.x[1] : f.x[0]) / f.groups;
  const int64_t out_group = channels / f.groups;
  const int64_t batch = batched ? f.x[0] : 1;
  for (int64_t p = 0; p < numel(from); ++p) {
    for (int64_t k = 0; k < numel(kernel); ++k) {
      const Dims p_index = split(p, from);
      const Dims k_index = split(k, kernel);
      int64_t q = 0;
      bool inside = true;
      for (size_t i = 0; i < spatial; ++i) {
        const int64_t v =
            p_index[i] * at(f.stride, i) - at(f.padding, i) + k_index[i] * at(f.dilation, i);
        inside = inside && v >= 0 && v < to[i];
        q = q * to[i] + v;
      }
      if (!inside) continue;
      const int64_t x_at = f.transposed ? p : q;
      const int64_t y_at = f.transposed ? q : p;
      for (int64_t b = 0; b < batch; ++b) {
        for (int64_t oc = 0; oc < channels; ++oc) {
          double& sum = y.data[static_cast<size_t>((b * channels + oc) * numel(y_size) + y_at)];
          for (int64_t ic = 0; ic < in_group; ++ic) {
            const int64_t c = oc / out_group * in_group + ic;
            const int64_t row = f.transposed ? c * out_group + oc % out_group : oc * in_group + ic;
            sum +=
                x.data[static_cast<size_t>((b * in_group * f.groups + c) * numel(x_size) + x_at)] *
                w.data[static_cast<size_t>(row * numel(kernel) + k)];
          }
        }
      }
    }
  }
  for (size_t i = 0; i < y.data.size() && f.bias; ++i) {
    y.data[i] += bias.data[i / static_cast<size_t>(numel(y_size)) % static_cast<size_t>(channels)];
  }
  return y;
}

inline Case make_case(const std::string& op, const Form& f, const TestTensor& x,
                      const TestTensor& w, const TestTensor& bias) {
  Case c(op);
  c.in(x).constant(w);
  if (f.bias)
    c.in(bias);
  else
    c.none();
  return c.ints(f.stride)
      .ints(f.padding)
      .ints(f.dilation)
      .flag(f.transposed)
      .ints(f.output_padding)
      .integer(f.groups);
}

struct Operands {
  TestTensor x, w, bias;
};
inline Operands operands(const Form& f, DType t) {
  const int64_t channels = f.transposed ? f.w[1] * f.groups : f.w[0];
  return {random(t, f.x, 1, -1, 1), random(t, f.w, 2, -1, 1), random(t, {channels}, 3, -1, 1)};
}

// Winograd's transforms with 4 x 4 results lose some two digits.
inline constexpr Tolerance kFloat{1e-4, 1e-5};

inline void check(const Form& f, DType t) {
  SCOPED_TRACE(fmt::format("x {} weight {} groups {}", to_string(f.x), to_string(f.w), f.groups));
  const Operands o = operands(f, t);
  const TestTensor want = reference(f, o.x, o.w, o.bias);
  expect_op(make_case("aten.convolution.default", f, o.x, o.w, o.bias).out(t, want.dims), {want},
            t == DType::kF16 ? Tolerance{4e-3, 2e-3} : kFloat);
}

inline void check(const std::vector<Form>& forms, DType t = DType::kF32) {
  for (const Form& f : forms) check(f, t);
}

}  // namespace pteryx::ops::testing::conv_cases
