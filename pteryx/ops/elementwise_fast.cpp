// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/ops/elementwise_fast.h"

#include <algorithm>
#include <array>
#include <limits>

#include "pteryx/cpu/elementwise.h"
#include "pteryx/cpu/pool.h"
#include "pteryx/ops/binary_rows.h"
#include "pteryx/ops/float_rows.h"
#include "pteryx/ops/strided.h"

namespace pteryx::ops {
namespace {

enum class Bounds : uint8_t { kNone, kRelu, kRelu6, kOptional, kOne };
struct UnaryName {
  std::string_view name;
  cpu::Unary f;
  Bounds bounds = Bounds::kNone;
};
constexpr UnaryName kUnaries[] = {
    {"aten.neg.default", cpu::Unary::kNeg},
    {"aten.abs.default", cpu::Unary::kAbs},
    {"aten.sqrt.default", cpu::Unary::kSqrt},
    {"aten.rsqrt.default", cpu::Unary::kRsqrt},
    {"aten.reciprocal.default", cpu::Unary::kReciprocal},
    {"aten.exp.default", cpu::Unary::kExp},
    {"aten.erf.default", cpu::Unary::kErf},
    {"aten.tanh.default", cpu::Unary::kTanh},
    {"aten.sigmoid.default", cpu::Unary::kSigmoid},
    {"aten.silu.default", cpu::Unary::kSilu},
    {"aten.hardsigmoid.default", cpu::Unary::kHardsigmoid},
    {"aten.hardswish.default", cpu::Unary::kHardswish},
    {"aten.gelu.default", cpu::Unary::kGelu},
    {"aten.relu.default", cpu::Unary::kClamp, Bounds::kRelu},
    {"aten.relu6.default", cpu::Unary::kClamp, Bounds::kRelu6},
    {"aten.hardtanh.default", cpu::Unary::kClamp, Bounds::kOptional},
    {"aten.clamp.default", cpu::Unary::kClamp, Bounds::kOptional},
    {"aten.leaky_relu.default", cpu::Unary::kLeakyRelu, Bounds::kOne},
};

struct BinaryName {
  std::string_view name;
  cpu::Binary f;
  bool has_alpha;
};
constexpr BinaryName kBinaries[] = {
    {"aten.add.Tensor", cpu::Binary::kAdd, true},
    {"aten.add.Scalar", cpu::Binary::kAdd, true},
    {"aten.sub.Tensor", cpu::Binary::kSub, true},
    {"aten.sub.Scalar", cpu::Binary::kSub, true},
    {"aten.mul.Tensor", cpu::Binary::kMul, false},
    {"aten.mul.Scalar", cpu::Binary::kMul, false},
    {"aten.div.Tensor", cpu::Binary::kDiv, false},
    {"aten.div.Scalar", cpu::Binary::kDiv, false},
    {"aten.minimum.default", cpu::Binary::kMin, false},
    {"aten.maximum.default", cpu::Binary::kMax, false},
    {"pteryx.silu_mul", cpu::Binary::kSiluMul, false},
};

constexpr size_t kChunk = 256;  // elements that are widened at a time

void apply(cpu::Unary f, float a, float b, const HostTensor& x, const HostTensor& y, size_t begin,
           size_t end) {
  if (x.dtype == DType::kF32 && y.dtype == DType::kF32)
    return cpu::apply(f, a, b, floats(x) + begin, end - begin, floats(y) + begin);
  std::array<float, kChunk> some;
  for (; begin < end; begin += kChunk) {
    const size_t count = std::min(kChunk, end - begin);
    const auto at = static_cast<int64_t>(begin);
    load_floats(x, at, count, some.data());
    cpu::apply(f, a, b, some.data(), count, some.data());
    store_floats(some.data(), y, at, count);
  }
}

// Where the elements of both operands and of the result begin.
struct Places {
  int64_t a = 0;
  int64_t b = 0;
  int64_t y = 0;
};
struct Operands {
  HostTensor a, b, y;
};
void apply(const cpu::Binaries& f, const Operands& o, Places at, size_t count) {
  const auto all_f32 = [](const auto&... t) { return ((t.dtype == DType::kF32) && ...); };
  if (all_f32(o.a, o.b, o.y))
    return cpu::apply(f, floats(o.a) + at.a, floats(o.b) + at.b, count, floats(o.y) + at.y);
  std::array<float, kChunk> a;
  std::array<float, kChunk> b;
  std::array<float, kChunk> y;
  for (size_t done = 0; done < count; done += kChunk) {
    const size_t some = std::min(kChunk, count - done);
    load_floats(o.a, at.a + static_cast<int64_t>(done * f.a_step), f.a_step == 0 ? 1 : some,
                a.data());
    load_floats(o.b, at.b + static_cast<int64_t>(done * f.b_step), f.b_step == 0 ? 1 : some,
                b.data());
    cpu::apply(f, a.data(), b.data(), some, y.data());
    store_floats(y.data(), o.y, at.y + static_cast<int64_t>(done), some);
  }
}

// One row of the result after another: the last dim of both operands is dense or one element.
void apply_rows(const cpu::Binaries& f, const Walk& walk, const Operands& o, CpuContext& c) {
  Dims outer = walk.dims;
  std::array<Dims, 2> strides = {walk.strides[0], walk.strides[1]};
  const auto width = size(outer.back());
  outer.erase(outer.rank() - 1);
  for (Dims& s : strides) s.erase(s.rank() - 1);
  const auto rows = size(numel(outer));
  for_parts(c, rows, kPartElements / width, [&](size_t begin, size_t end) {
    for (size_t row = begin; row < end; ++row) {
      const auto at = offsets_at<2>(static_cast<int64_t>(row), outer, {&strides[0], &strides[1]});
      apply(f, o, {at[0], at[1], static_cast<int64_t>(row * width)}, width);
    }
  });
}

}  // namespace

Result<bool> unary_fast(const Node& n, const Host& h, CpuContext& c) {
  const auto* const name = std::ranges::find(kUnaries, n.def().name, &UnaryName::name);
  if (name == std::end(kUnaries) || !is_f32_or_f16(n.in(0)) || !is_f32_or_f16(n.out()))
    return false;
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  cpu::Unary f = name->f;
  if (f == cpu::Unary::kGelu && !n.text(1).empty() && n.text(1) != "none") {
    if (n.text(1) != "tanh") return false;
    f = cpu::Unary::kGeluTanh;
  }
  double a = 0;
  double b = 0;
  switch (name->bounds) {
    case Bounds::kNone: break;
    case Bounds::kRelu: b = kInfinity; break;
    case Bounds::kRelu6: b = 6; break;
    case Bounds::kOptional:
      a = n.number_or(1, -kInfinity);
      b = n.number_or(2, kInfinity);
      break;
    case Bounds::kOne: a = n.number(1); break;
  }
  const HostTensor x = h.host(n.in(0).id);
  const HostTensor y = h.host(n.out_id());
  for_parts(c, size(n.out().numel()), kPartElements, [&](size_t begin, size_t end) {
    apply(f, static_cast<float>(a), static_cast<float>(b), x, y, begin, end);
  });
  return true;
}

Result<bool> binary_fast(const Node& n, const Host& h, CpuContext& c) {
  const auto* const name = std::ranges::find(kBinaries, n.def().name, &BinaryName::name);
  if (name == std::end(kBinaries) || !is_f32_or_f16(n.in(0)) || !is_f32_or_f16(n.out()))
    return false;
  const auto form = static_cast<const BinaryRow*>(n.def().row)->form;
  const bool scalar = form == BinaryForm::kScalar || form == BinaryForm::kScalarAlpha;
  if (n.out().numel() == 0 || (!scalar && !is_f32_or_f16(n.in(1)))) return false;
  const double alpha = name->has_alpha ? n.number(2) : 1.0;
  cpu::Binaries f{.f = name->f, .alpha = static_cast<float>(alpha)};
  if (static_cast<double>(f.alpha) != alpha) return false;
  const Tensor y = n.out();
  float value = scalar ? static_cast<float>(n.number(1)) : 0.0F;
  const std::array<Dims, 2> strides = {
      broadcast_strides(n.in(0).dims, y.dims),
      scalar ? Dims::filled(y.dims.rank(), 0) : broadcast_strides(n.in(1).dims, y.dims)};
  Walk walk = merge_dims(y.dims, strides);
  if (walk.dims.empty()) {
    walk.dims.push_back(1);
    for (size_t k = 0; k < 2; ++k) walk.strides[k].push_back(0);
  }
  f.a_step = size(walk.strides[0].back());
  f.b_step = size(walk.strides[1].back());
  if (f.a_step > 1 || f.b_step > 1) return false;
  Operands o{.a = h.host(n.in(0).id), .b = {}, .y = h.host(n.out_id())};
  if (scalar) {
    o.b.data = reinterpret_cast<std::byte*>(&value);
  } else {
    o.b = h.host(n.in(1).id);
  }
  if (walk.dims.rank() > 1) {
    apply_rows(f, walk, o, c);
    return true;
  }
  for_parts(c, size(y.numel()), kPartElements, [&](size_t begin, size_t end) {
    const auto at = static_cast<int64_t>(begin);
    apply(f, o, {f.a_step == 0 ? 0 : at, f.b_step == 0 ? 0 : at, at}, end - begin);
  });
  return true;
}

}  // namespace pteryx::ops
