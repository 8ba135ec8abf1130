// Random calls of elementwise operators, compared with the CPU kernels, which are plain double and
// int64 code.
// SPDX-License-Identifier: BSD-3-Clause
#include <cmath>

#include "pteryx/ops/testing/draw.h"

namespace pteryx::ops::testing {
namespace {

// ---- one operand

// Where a function is defined and does not grow past what the tolerance is for.
std::pair<double, double> domain(std::string_view op) {
  if (is(op, "acosh")) return {1.25, 4};
  if (is(op, "asinh") || is(op, "sinh") || is(op, "cosh")) return {-4, 4};
  if (is(op, "atanh") || is(op, "asin") || is(op, "acos")) return {-0.875, 0.875};
  if (is(op, "logit")) return {0.125, 0.875};
  if (is(op, "log1p")) return {-0.75, 4};
  if (is(op, "log.") || is(op, "log2") || is(op, "log10") || is(op, "sqrt")) return {0.125, 4};
  if (is(op, "reciprocal")) return {0.125, 4};
  if (is(op, "tan.")) return {-1.25, 1.25};
  return {-6, 6};
}

bool integer_rule(std::string_view op) {
  for (const std::string_view name :
       {"abs", "neg", "sign", "round", "floor", "ceil", "trunc", "relu.", "relu6", "clamp"}) {
    if (is(op, name)) return !is(op, "logical");
  }
  return false;
}

Drawn draw_unary(std::string_view op, Draw& d) {
  const bool logic = is(op, "logical_not");
  const bool bits = is(op, "bitwise_not");
  const bool test = is(op, ".isnan") || is(op, ".isinf") || is(op, ".isfinite");
  DType t = d.chance(0.1) ? DType::kF16 : DType::kF32;
  if (logic || bits) t = d.pick({DType::kBool, DType::kI32});
  if (integer_rule(op) && d.chance(0.3)) t = DType::kI32;
  const Dims dims = d.dims(0, 8);
  const auto [lo, hi] = domain(op);
  TestTensor x = d.eighths(t, dims, lo, hi);
  if (test) {
    for (double& v : x.data) v = d.chance(0.3) ? d.pick({INFINITY, -INFINITY, NAN}) : v;
  }
  Case call{std::string(op)};
  call.in(x);
  if (is(op, "gelu")) call.text(d.chance(0.5) ? "none" : "tanh");
  if (is(op, "hardshrink")) call.number(0.5);
  if (is(op, "leaky_relu")) call.number(d.pick({0.01, 0.25}));
  if (is(op, "logit")) d.chance(0.5) ? call.none() : call.number(0.2);
  if (is(op, "softplus")) call.number(d.pick({1.0, 2.0})).number(20);
  if (is(op, "hardtanh")) d.chance(0.5) ? call.integer(-1).integer(1) : call.number(-1).number(2);
  if (is(op, "clamp")) {
    d.chance(0.3) ? call.none() : call.integer(-1);
    d.chance(0.3) ? call.none() : call.number(2);
  }
  if (is(op, "elu.")) {
    if (is(op, "aten.elu.")) call.number(1.5).number(1).number(0.5);
  }
  call.out(logic || test ? DType::kBool : t, dims);
  return {call, close(t, is(op, "gelu") ? Tolerance{1e-5, 1e-4} : Tolerance{2e-6, 2e-5})};
}

// ---- two operands

void scalar_or_tensor(Case& call, Draw& d, std::string_view op, const TestTensor& b) {
  if (!is(op, "Scalar")) {
    call.in(b);
  } else if (!is_float(b.dtype)) {
    call.integer(static_cast<int64_t>(b.data.empty() ? 3 : b.data[0]));
  } else {
    call.number(b.data.empty() ? 1.5 : b.data[0]);
  }
  if (is(op, ".add.") || is(op, "sub.")) {
    is_float(b.dtype) && d.chance(0.5) ? call.number(d.pick({0.5, -2.0})) : call.integer(2);
  }
  if (is(op, "_mode")) call.text(d.chance(0.5) ? "floor" : "trunc");
}

Drawn draw_binary(std::string_view op, Draw& d) {
  const bool compares = is(op, ".eq.") || is(op, ".ne.") || is(op, ".lt.") || is(op, ".le.") ||
                        is(op, ".gt.") || is(op, ".ge.");
  const bool logic = is(op, "logical");
  const bool bits = is(op, "bitwise");
  const bool shifts = is(op, "shift");
  const bool power = is(op, "pow");
  const bool divides =
      is(op, "div") || is(op, "remainder") || is(op, "fmod") || is(op, "floor_divide");
  const bool angle = is(op, "atan2");
  const bool silu = is(op, "silu_mul");
  DType t = d.chance(0.1) ? DType::kF16 : DType::kF32;
  if (bits || (!angle && !silu && d.chance(0.3))) t = DType::kI32;
  if (bits && !shifts && d.chance(0.3)) t = DType::kBool;
  const Dims dims = d.dims(0, 8);
  const bool swap = d.chance(0.5);
  const bool scalar = is(op, "Scalar");
  const Dims a_dims = scalar || swap ? dims : d.narrowed(dims);
  const Dims b_dims = scalar || !swap ? dims : d.narrowed(dims);
  TestTensor a = d.eighths(t, a_dims);
  TestTensor b = d.eighths(t, b_dims);
  if (power) {
    a = is_float(t) ? d.eighths(t, a_dims, 0.25, 3) : d.ids(t, a_dims, -3, 3);
    b = is_float(t) ? d.eighths(t, b_dims, -2, 2) : d.ids(t, b_dims, 0, 4);
  }
  if (shifts) {
    a = d.ids(t, a_dims, 0, 1000);
    b = d.ids(t, b_dims, 0, 8);
  }
  if (divides || angle) {
    // Powers of two and their threes: quotients are exact or far from a step.
    for (double& v : b.data) {
      const double size = is_float(t) ? d.pick({0.25, 0.5, 1.0, 2.0}) : d.pick({1.0, 2.0, 3.0});
      v = d.chance(0.5) ? size : -size;
    }
  }
  Case call{std::string(op)};
  if (is(op, "pow.Scalar")) {
    is_float(t) ? call.number(d.pick({10000.0, 2.0, 0.5, 1.0})) : call.integer(d.integer(-3, 3));
    call.in(is_float(t) ? d.eighths(t, dims, -1, 1) : d.ids(t, dims, 0, 4));
  } else {
    call.in(a);
    scalar_or_tensor(call, d, op, b);
  }
  DType y = compares || logic ? DType::kBool : t;
  if (is(op, ".div.Tensor") || is(op, ".div.Scalar"))
    if (!is(op, "_mode") && t == DType::kI32) y = DType::kF32;
  call.out(y, scalar ? a_dims : dims);
  return {call, close(y, power || angle || silu ? Tolerance{2e-6, 2e-5} : Tolerance{1e-7, 3e-7})};
}

// ---- choices, copies, constants, quantisation

Drawn draw_where(std::string_view op, Draw& d) {
  const DType t = d.pick({DType::kF32, DType::kF16, DType::kI32, DType::kBool, DType::kI8});
  const Dims dims = d.dims(0, 8);
  Case call{std::string(op)};
  if (is(op, "where")) {
    call.in(d.values(DType::kBool, d.narrowed(dims))).in(d.eighths(t, dims));
    call.in(d.eighths(t, d.narrowed(dims)));
  } else if (is(op, "masked_fill")) {
    call.in(d.eighths(t, dims)).in(d.values(DType::kBool, d.narrowed(dims)));
    is(op, "Scalar") ? call.integer(1) : call.in(d.eighths(t, {}));
  } else {
    const DType number = t == DType::kBool ? DType::kF32 : t;
    call.in(d.eighths(number, dims));
    const bool low = d.chance(0.7);
    low ? call.in(d.eighths(number, d.narrowed(dims), -3, 0)) : call.none();
    !low || d.chance(0.7) ? call.in(d.eighths(number, d.narrowed(dims), 0, 3)) : call.none();
    return {call.out(number, dims)};
  }
  return {call.out(t, dims)};
}

Drawn draw_copy(std::string_view op, Draw& d) {
  const auto type = [&] {
    return d.pick({DType::kF32, DType::kF16, DType::kI32, DType::kBool, DType::kU8, DType::kI8});
  };
  const DType from = type();
  const DType to = d.chance(0.5) ? from : type();
  const Dims dims = d.dims(0, 8);
  Case call{std::string(op)};
  // Not below 0: what a negative number becomes in u8 is not defined.
  if (is(op, "fill")) {
    call.in(d.eighths(to, dims, 0, 4)).in(d.eighths(to, {}, 0, 4));
    return {call.out(to, dims)};
  }
  if (is(op, "aten.copy")) {
    call.in(d.eighths(to, dims, 0, 4)).in(d.eighths(from, d.narrowed(dims), 0, 4)).flag(false);
    is(op, "copy_.") ? call.in_place() : call.out(to, dims);
    return {call};
  }
  call.in(d.eighths(from, dims, 0, 4));
  if (is(op, "_copy")) call.none().none().none().none().flag(false).none();
  return {call.out(to, dims)};
}

Drawn draw_creation(std::string_view op, Draw& d) {
  const DType t = d.pick({DType::kF32, DType::kF16, DType::kI32, DType::kBool, DType::kI8});
  Dims dims = d.dims(0, 8);
  Case call{std::string(op)};
  const bool like = is(op, "_like") || is(op, "fill");
  const bool counts = is(op, "arange");
  const bool eye = is(op, "eye");
  DType y = t;
  if (counts) {
    y = d.pick({DType::kF32, DType::kI32});
    const int64_t start = is(op, "start") ? d.integer(-20, 20) : 0;
    const int64_t step = is(op, "step") ? d.integer(1, 4) : 1;
    const int64_t count = d.integer(0, 400);
    if (is(op, "start")) call.integer(start);
    d.chance(0.5) ? call.integer(start + count * step) : call.live(start + count * step);
    if (is(op, "step")) call.integer(step);
    dims = {count};
  } else if (eye) {
    dims = {d.integer(0, 20), d.integer(0, 20)};
    if (!is(op, ".m")) dims[1] = dims[0];
    call.integer(dims[0]);
    if (is(op, ".m")) call.integer(dims[1]);
  } else if (is(op, "scalar_tensor")) {
    dims = {};
    call.number(1.5);
  } else if (like) {
    call.in(d.eighths(DType::kF32, dims));
  } else {
    const std::vector<int64_t> size(dims.begin(), dims.end());
    d.chance(0.5) ? call.ints(size) : call.live_ints(size);
  }
  if (is(op, "full") || is(op, "fill")) d.chance(0.5) ? call.integer(3) : call.number(1.25);
  if (!is(op, "fill")) call.none().none().none().none();
  if (is(op, "_like") || is(op, "empty")) call.none();
  return {call.out(y, dims)};
}

// Scales are powers of two and x lies a quarter of a step off, so that no quotient is near a tie.
Drawn draw_affine(std::string_view op, Draw& d) {
  const bool back = is(op, "dequantize");
  const bool token = is(op, "per_token");
  const bool channel = is(op, "per_channel");
  const bool blocks = is(op, "affine");
  const bool literal = is(op, "per_tensor.default");
  Dims dims = d.full_dims(token || channel || blocks ? 1 : 0, 5);
  const DType code = d.pick({DType::kI8, DType::kU8, DType::kI32});
  const int64_t lowest = code == DType::kU8 ? 0 : -128;
  const int64_t highest = code == DType::kU8 ? 255 : 127;
  const int64_t axis = channel ? d.integer(0, static_cast<int64_t>(dims.rank()) - 1) : 0;
  Dims entries = {1};
  std::vector<int64_t> block;
  if (channel) entries = {dims[at(axis)]};
  if (token) entries[0] = numel(dims) / dims[dims.rank() - 1];
  if (token && d.chance(0.5)) {
    entries = dims;
    entries[dims.rank() - 1] = 1;
  }
  if (blocks) {
    entries = dims;
    for (int64_t& e : entries) {
      const bool whole = d.chance(0.5);
      block.push_back(whole ? e : 1);
      if (whole) e = 1;
    }
  }
  const TestTensor scale =
      make(DType::kF32, entries, [&](int64_t) { return d.pick({0.0625, 0.125, 0.03125}); });
  const TestTensor zero = d.ids(DType::kI32, entries, code == DType::kU8 ? 0 : -20, 20);
  const TestTensor steps = d.ids(DType::kI32, dims, -600, 600);
  const TestTensor x =
      back ? d.ids(code, dims, lowest, highest)
           : make(DType::kF32, dims, [&](int64_t i) { return (steps.data[at(i)] + 0.25) / 64; });
  Case call{std::string(op)};
  call.in(x);
  if (blocks) call.ints(block);
  if (literal) {
    call.number(scale.data[0]).integer(static_cast<int64_t>(zero.data[0]));
  } else {
    call.in(scale).in(zero);
  }
  if (channel) call.integer(axis);
  if (blocks) call.none();
  call.integer(lowest).integer(highest);
  if (!blocks) call.none();
  if (back) call.none();
  return {call.out(back ? DType::kF32 : code, dims), close(back ? DType::kF32 : code)};
}

}  // namespace

std::vector<Generator> elementwise_generators() {
  return {
      {"Unary",
       {"aten.abs.default",         "aten.neg.default",         "aten.sign.default",
        "aten.round.default",       "aten.floor.default",       "aten.ceil.default",
        "aten.trunc.default",       "aten.sqrt.default",        "aten.rsqrt.default",
        "aten.reciprocal.default",  "aten.exp.default",         "aten.exp2.default",
        "aten.expm1.default",       "aten.log.default",         "aten.log2.default",
        "aten.log10.default",       "aten.log1p.default",       "aten.sin.default",
        "aten.cos.default",         "aten.tan.default",         "aten.asin.default",
        "aten.acos.default",        "aten.atan.default",        "aten.sinh.default",
        "aten.cosh.default",        "aten.tanh.default",        "aten.asinh.default",
        "aten.acosh.default",       "aten.atanh.default",       "aten.erf.default",
        "aten.relu.default",        "aten.relu6.default",       "aten.sigmoid.default",
        "aten.silu.default",        "aten.hardsigmoid.default", "aten.hardswish.default",
        "aten.gelu.default",        "aten.hardshrink.default",  "aten.leaky_relu.default",
        "aten.logit.default",       "aten.softplus.default",    "aten.hardtanh.default",
        "aten.clamp.default",       "aten.elu.default",         "aten.logical_not.default",
        "aten.bitwise_not.default", "aten.isnan.default",       "aten.isinf.default",
        "aten.isfinite.default"},
       draw_unary},
      {"Binary",
       {"aten.add.Tensor",
        "aten.sub.Tensor",
        "aten.mul.Tensor",
        "aten.div.Tensor",
        "aten.div.Tensor_mode",
        "aten.floor_divide.default",
        "aten.remainder.Tensor",
        "aten.fmod.Tensor",
        "aten.pow.Tensor_Tensor",
        "aten.atan2.default",
        "pteryx.silu_mul",
        "aten.minimum.default",
        "aten.maximum.default",
        "aten.eq.Tensor",
        "aten.ne.Tensor",
        "aten.lt.Tensor",
        "aten.le.Tensor",
        "aten.gt.Tensor",
        "aten.ge.Tensor",
        "aten.logical_and.default",
        "aten.logical_or.default",
        "aten.logical_xor.default",
        "aten.bitwise_and.Tensor",
        "aten.bitwise_or.Tensor",
        "aten.bitwise_xor.Tensor",
        "aten.bitwise_left_shift.Tensor",
        "aten.bitwise_right_shift.Tensor",
        "aten.add.Scalar",
        "aten.sub.Scalar",
        "aten.rsub.Scalar",
        "aten.mul.Scalar",
        "aten.div.Scalar",
        "aten.div.Scalar_mode",
        "aten.remainder.Scalar",
        "aten.fmod.Scalar",
        "aten.pow.Tensor_Scalar",
        "aten.pow.Scalar",
        "aten.eq.Scalar",
        "aten.ne.Scalar",
        "aten.lt.Scalar",
        "aten.le.Scalar",
        "aten.gt.Scalar",
        "aten.ge.Scalar",
        "aten.bitwise_and.Scalar",
        "aten.bitwise_or.Scalar",
        "aten.bitwise_xor.Scalar"},
       draw_binary},
      {"Where",
       {"aten.where.self", "aten.masked_fill.Tensor", "aten.masked_fill.Scalar",
        "aten.clamp.Tensor"},
       draw_where},
      {"Copy",
       {"pteryx.copy", "aten._to_copy.default", "dim_order_ops._to_dim_order_copy.default",
        "aten.copy.default", "aten.copy_.default", "aten.fill.Tensor"},
       draw_copy},
      {"Creation",
       {"aten.full.default", "aten.full_like.default", "aten.fill.Scalar", "aten.zeros.default",
        "aten.zeros_like.default", "aten.ones.default", "aten.ones_like.default",
        "aten.empty.memory_format", "aten.empty_like.default", "aten.scalar_tensor.default",
        "aten.arange.default", "aten.arange.start", "aten.arange.start_step", "aten.eye.default",
        "aten.eye.m"},
       draw_creation},
      {"Affine",
       {"quantized_decomposed.quantize_per_tensor.default",
        "quantized_decomposed.dequantize_per_tensor.default",
        "quantized_decomposed.quantize_per_tensor.tensor",
        "quantized_decomposed.dequantize_per_tensor.tensor",
        "quantized_decomposed.quantize_per_token.default",
        "quantized_decomposed.dequantize_per_token.default",
        "quantized_decomposed.quantize_per_channel.default",
        "quantized_decomposed.dequantize_per_channel.default", "torchao.quantize_affine.default",
        "torchao.dequantize_affine.default"},
       draw_affine},
  };
}

}  // namespace pteryx::ops::testing
