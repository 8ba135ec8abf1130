// Elementwise operators of three operands that broadcast: where, masked_fill, clamp by tensors.
// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/ops/shaders/where.h"

#include "pteryx/ops/op.h"
#include "pteryx/ops/raw.h"
#include "pteryx/ops/strided.h"
#include "pteryx/ops/table.h"

namespace pteryx::ops {
namespace {

// Roles: y = c ? a : b; for kClamp y = c between a and b.
enum Role { kC, kA, kB };
using Operands = std::array<std::optional<Tensor>, 3>;

struct Row {
  std::string_view name;
  std::string_view spelling;
  std::span<const Arg> args;
  std::array<uint8_t, 3> position;  // of c, a, b among the arguments
  bool clamp = false;
};

constexpr DTypes kMask = kBools | only(DType::kU8);
constexpr Arg kWhereArgs[] = {in("condition", kMask), in("a"), in("b"), out("y")};
constexpr Arg kFillTensorArgs[] = {in("x"), in("mask", kMask), in("value"), out("y")};
constexpr Arg kFillScalarArgs[] = {in("x"), in("mask", kMask), number("value"), out("y")};
constexpr Arg kClampArgs[] = {in("x"), optional_in("min"), optional_in("max"), out("y")};

constexpr Row kRows[] = {
    {"aten.where.self", "aten::where.self_out", kWhereArgs, {0, 1, 2}},
    {"aten.masked_fill.Tensor", "aten::masked_fill.Tensor_out", kFillTensorArgs, {1, 2, 0}},
    {"aten.masked_fill.Scalar", "aten::masked_fill.Scalar_out", kFillScalarArgs, {1, 2, 0}},
    {"aten.clamp.Tensor", "aten::clamp.Tensor_out", kClampArgs, {0, 1, 2}, true},
};

const Row& row(const Node& n) { return *static_cast<const Row*>(n.def().row); }
bool is_scalar(const Row& r) { return r.args[r.position[kA]].kind == ArgKind::kNumber; }

// A bound that is None and a value that is a scalar are absent.
Operands operands(const Node& n) {
  const Row& r = row(n);
  Operands t;
  for (size_t k = 0; k < 3; ++k) {
    if (n.has(r.position[k]) && !(k == kA && is_scalar(r))) t[k] = n.in(r.position[k]);
  }
  return t;
}

Status shape(const Node& n, Shapes& s) {
  const Row& r = row(n);
  const Operands t = operands(n);
  Dims dims = t[kC]->dims;
  for (const size_t k : {kA, kB}) {
    if (!t[k]) continue;
    const auto joined = broadcast(dims, t[k]->dims);
    if (!joined) {
      return n.fail(Code::kInvalidArgument,
                    fmt::format("{} {} does not broadcast with {}", r.args[r.position[k]].name,
                                to_string(t[k]->dims), to_string(dims)));
    }
    dims = *joined;
  }
  return s.set(dims);
}

// Whether the chosen element goes to y as it is.
bool keeps_bits(const Operands& t, const Tensor& y) {
  return (!t[kA] || t[kA]->dtype == y.dtype) && t[kB]->dtype == y.dtype;
}

// What a clamp compares elements as.
std::string compare_type(const Operands& t, const Tensor& y) {
  bool floats = is_float(y.dtype);
  for (const auto& operand : t) floats = floats || (operand && is_float(operand->dtype));
  return floats ? "f32" : "i32";
}

std::array<Dims, 3> strides(const Operands& t, const Dims& dims) {
  std::array<Dims, 3> s;
  for (size_t k = 0; k < 3; ++k) {
    s[k] = t[k] ? broadcast_strides(t[k]->dims, dims) : Dims::filled(dims.rank(), 0);
  }
  return s;
}

Status plan(const Node& n, Plan& p) {
  const Row& r = row(n);
  const Operands t = operands(n);
  const Tensor y = n.out();
  const bool raw = !r.clamp && keeps_bits(t, y);
  const Walk walk = merge_dims(y.dims, strides(t, y.dims));
  const shaders::WhereParams params{
      .dims = packed_dims(walk.dims),
      .c_strides = packed_strides(walk.strides[kC]),
      .a_strides = packed_strides(walk.strides[kA]),
      .b_strides = packed_strides(walk.strides[kB]),
      .n = u32(y.numel()),
      .first = u32(static_cast<int64_t>(kMaxRank - walk.dims.rank())),
      .fill = is_scalar(r) ? element_bits(n.number(r.position[kA]), y.dtype) : 0};
  std::vector<Bind> bind = {{"c", *t[kC]}};
  if (t[kA]) bind.push_back({"a", *t[kA]});
  if (t[kB]) bind.push_back({"b", *t[kB]});
  bind.push_back({"y", y});
  return p.dispatch(n, {.shader = &shaders::where,
                        .options = {{"rule", r.clamp ? "clamp" : "choose"},
                                    {"compute", compare_type(t, y)},
                                    {"raw", raw ? 1 : 0},
                                    {"has_a", t[kA] ? 1 : 0},
                                    {"has_b", t[kB] ? 1 : 0}},
                        .variant = r.name,
                        .bind = std::move(bind),
                        .params = bytes_of(params),
                        .grid = per_element(words(y.numel(), y.dtype), p.caps())});
}

// v limited by the element that is present; integers are compared as integers.
void limit(const HostTensor& y, int64_t i, const HostTensor& bound, int64_t at, bool upper) {
  const bool floats = is_float(y.dtype) || is_float(bound.dtype);
  const bool beyond =
      floats ? (upper ? y.number(i) > bound.number(at) : y.number(i) < bound.number(at))
             : (upper ? y.integer(i) > bound.integer(at) : y.integer(i) < bound.integer(at));
  if (beyond) y.copy(i, bound, at);
}

Status cpu(const Node& n, const Host& h) {
  const Row& r = row(n);
  const Operands t = operands(n);
  const HostTensor y = h.host(n.out_id());
  std::array<HostTensor, 3> x;
  for (size_t k = 0; k < 3; ++k) {
    if (t[k]) x[k] = h.host(t[k]->id);
  }
  const Scalar value = is_scalar(r) ? n.scalar(r.position[kA]) : Scalar{};
  for_each_index<3>(y.dims, strides(t, y.dims), [&](int64_t i, const std::array<int64_t, 3>& at) {
    if (r.clamp) {
      y.copy(i, x[kC], at[kC]);
      if (t[kA]) limit(y, i, x[kA], at[kA], false);
      if (t[kB]) limit(y, i, x[kB], at[kB], true);
    } else if (x[kC].integer(at[kC]) == 0) {
      y.copy(i, x[kB], at[kB]);
    } else if (t[kA]) {
      y.copy(i, x[kA], at[kA]);
    } else {
      y.put_scalar(i, value);
    }
  });
  return {};
}

}  // namespace

void add_where(std::vector<OpDef>& table) {
  for (const Row& r : kRows) {
    table.push_back({.name = r.name,
                     .spellings = std::span(&r.spelling, 1),
                     .args = r.args,
                     .shape = shape,
                     .plan = plan,
                     .cpu = cpu,
                     .row = &r});
  }
}

}  // namespace pteryx::ops
