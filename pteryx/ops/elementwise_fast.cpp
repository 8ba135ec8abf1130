// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/ops/elementwise_fast.h"

#include <algorithm>
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
    {"pteryx.silu_mul", cpu::Binary::kSiluMul, false},
};

// One row of the result after another: the last dim of both operands is dense or one element.
void apply_rows(const cpu::Binaries& f, const Walk& walk, const float* a, const float* b, float* y,
                CpuContext& c) {
  Dims outer = walk.dims;
  std::array<Dims, 2> strides = {walk.strides[0], walk.strides[1]};
  const auto width = size(outer.back());
  outer.erase(outer.rank() - 1);
  for (Dims& s : strides) s.erase(s.rank() - 1);
  const auto rows = size(numel(outer));
  for_parts(c, rows, kPartElements / width, [&](size_t begin, size_t end) {
    for (size_t row = begin; row < end; ++row) {
      const auto at = offsets_at<2>(static_cast<int64_t>(row), outer, {&strides[0], &strides[1]});
      cpu::apply(f, a + at[0], b + at[1], width, y + row * width);
    }
  });
}

}  // namespace

Result<bool> unary_fast(const Node& n, const Host& h, CpuContext& c) {
  const auto* const name = std::ranges::find(kUnaries, n.def().name, &UnaryName::name);
  if (name == std::end(kUnaries) || !is_f32(n.in(0)) || !is_f32(n.out())) return false;
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
  const float* const x = floats(h.host(n.in(0).id));
  float* const y = floats(h.host(n.out_id()));
  for_parts(c, size(n.out().numel()), kPartElements, [&](size_t begin, size_t end) {
    cpu::apply(f, static_cast<float>(a), static_cast<float>(b), x + begin, end - begin, y + begin);
  });
  return true;
}

Result<bool> binary_fast(const Node& n, const Host& h, CpuContext& c) {
  const auto* const name = std::ranges::find(kBinaries, n.def().name, &BinaryName::name);
  if (name == std::end(kBinaries) || !is_f32(n.in(0)) || !is_f32(n.out())) return false;
  const auto form = static_cast<const BinaryRow*>(n.def().row)->form;
  const bool scalar = form == BinaryForm::kScalar || form == BinaryForm::kScalarAlpha;
  if (n.out().numel() == 0 || (!scalar && !is_f32(n.in(1)))) return false;
  const double alpha = name->has_alpha ? n.number(2) : 1.0;
  cpu::Binaries f{.f = name->f, .alpha = static_cast<float>(alpha)};
  if (static_cast<double>(f.alpha) != alpha) return false;
  const Tensor y = n.out();
  const float value = scalar ? static_cast<float>(n.number(1)) : 0.0F;
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
  const float* const a = floats(h.host(n.in(0).id));
  const float* const b = scalar ? &value : floats(h.host(n.in(1).id));
  float* const to = floats(h.host(n.out_id()));
  if (walk.dims.rank() > 1) {
    apply_rows(f, walk, a, b, to, c);
    return true;
  }
  for_parts(c, size(y.numel()), kPartElements, [&](size_t begin, size_t end) {
    cpu::apply(f, a + begin * f.a_step, b + begin * f.b_step, end - begin, to + begin);
  });
  return true;
}

}  // namespace pteryx::ops
