// Elementwise operators of two operands: arithmetic, comparison, logic; either may be a scalar.
// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/ops/shaders/binary.h"

#include "pteryx/ops/binary_rows.h"
#include "pteryx/ops/elementwise_fast.h"
#include "pteryx/ops/op.h"
#include "pteryx/ops/strided.h"
#include "pteryx/ops/table.h"

namespace pteryx::ops {
namespace {

using Form = BinaryForm;
using Row = BinaryRow;

const Row& row(const Node& n) { return *static_cast<const Row*>(n.def().row); }
bool scalar_form(Form f) {
  return f == Form::kScalar || f == Form::kScalarAlpha || f == Form::kScalarMode ||
         f == Form::kScalarFirst;
}
size_t arg_a(const Node& n) { return row(n).form == Form::kScalarFirst ? 1 : 0; }
size_t arg_b(const Node& n) { return 1 - arg_a(n); }
bool has_alpha(Form f) { return f == Form::kTensorAlpha || f == Form::kScalarAlpha; }

// The rule to apply; div.Tensor_mode picks it by its mode string.
Result<Row> rule(const Node& n) {
  const Row& r = row(n);
  if (r.form != Form::kTensorMode && r.form != Form::kScalarMode) return r;
  const std::string_view mode = n.text(2);
  if (const auto division = rounded_division(r, mode)) return *division;
  return n.unsupported(fmt::format("rounding_mode: expected floor, trunc or None, got '{}'", mode));
}

// Computed in floats if any operand or the result of arithmetic is one.
bool computes_float(const Node& n) {
  const Form f = row(n).form;
  if (is_float(n.in(arg_a(n)).dtype) || is_float(n.out().dtype)) return true;
  if (scalar_form(f) ? !n.number_is_int(arg_b(n)) : is_float(n.in(arg_b(n)).dtype)) return true;
  return has_alpha(f) && !n.number_is_int(2);
}

Status shape(const Node& n, Shapes& s) {
  if (scalar_form(row(n).form)) return s.set(n.in(arg_a(n)).dims);
  const auto dims = broadcast(n.in(arg_a(n)).dims, n.in(arg_b(n)).dims);
  if (!dims) {
    return n.fail(Code::kInvalidArgument,
                  fmt::format("a {} and b {} do not broadcast", to_string(n.in(arg_a(n)).dims),
                              to_string(n.in(arg_b(n)).dims)));
  }
  return s.set(*dims);
}

Status plan(const Node& n, Plan& p) {
  PTERYX_ASSIGN(const Row r, rule(n));
  const bool scalar = scalar_form(r.form);
  const bool floats = computes_float(n);
  const Tensor a = n.in(arg_a(n));
  const Tensor y = n.out();
  const Tensor b = scalar ? a : n.in(arg_b(n));
  const std::array<Dims, 2> strides = {broadcast_strides(a.dims, y.dims),
                                       broadcast_strides(b.dims, y.dims)};
  const Walk walk = merge_dims(y.dims, strides);
  const double alpha = has_alpha(r.form) ? n.number(2) : 1.0;
  const double value = scalar ? n.number(arg_b(n)) : 0.0;
  const shaders::BinaryParams params{
      .dims = packed_dims(walk.dims),
      .a_strides = packed_strides(walk.strides[0]),
      .b_strides = packed_strides(walk.strides[1]),
      .n = u32(y.numel()),
      .first = u32(static_cast<int64_t>(kMaxRank - walk.dims.rank())),
      .alpha = static_cast<float>(alpha),
      .alpha_int = floats ? 0 : static_cast<int32_t>(alpha),
      .scalar = static_cast<float>(value),
      .scalar_int = floats ? 0 : static_cast<int32_t>(value)};
  std::vector<Bind> bind = {{"a", a}};
  if (!scalar) bind.push_back({"b", b});
  bind.push_back({"y", y});
  return p.dispatch(n, {.shader = &shaders::binary,
                        .options = {{"compute", floats ? "f32" : "i32"},
                                    {"apply", std::string(floats ? r.f32 : r.i32)},
                                    {"scalar", scalar ? 1 : 0},
                                    {"alpha", has_alpha(r.form) ? 1 : 0}},
                        .variant = r.name,
                        .bind = std::move(bind),
                        .params = bytes_of(params),
                        .grid = per_word(words(y.numel(), y.dtype), p.caps())});
}

Status cpu(const Node& n, const Host& h) {
  PTERYX_ASSIGN(const Row r, rule(n));
  const bool scalar = scalar_form(r.form);
  const HostTensor a = h.host(n.in(arg_a(n)).id);
  const HostTensor y = h.host(n.out_id());
  const HostTensor b = scalar ? a : h.host(n.in(arg_b(n)).id);
  const std::array<Dims, 2> strides = {
      broadcast_strides(a.dims, y.dims),
      scalar ? Dims::filled(y.dims.rank(), 0) : broadcast_strides(b.dims, y.dims)};
  const bool floats = r.host_i == nullptr || (computes_float(n) && r.host_f != nullptr);
  if (floats) {
    const double alpha = has_alpha(r.form) ? n.number(2) : 1.0;
    const double value = scalar ? n.number(arg_b(n)) : 0.0;
    for_each_index<2>(y.dims, strides, [&](int64_t i, const std::array<int64_t, 2>& at) {
      y.put(i, r.host_f(a.number(at[0]), alpha * (scalar ? value : b.number(at[1]))));
    });
    return {};
  }
  PTERYX_ASSIGN(const int64_t alpha, has_alpha(r.form) ? n.integer(2) : Result<int64_t>(1));
  PTERYX_ASSIGN(const int64_t value, scalar ? n.integer(arg_b(n)) : Result<int64_t>(0));
  for_each_index<2>(y.dims, strides, [&](int64_t i, const std::array<int64_t, 2>& at) {
    y.put_integer(i,
                  r.host_i(a.integer(at[0]), wrap_mul(alpha, scalar ? value : b.integer(at[1]))));
  });
  return {};
}

constexpr Arg kTensorArgs[] = {in("a"), in("b"), out("y")};
constexpr Arg kTensorAlphaArgs[] = {in("a"), in("b"), number("alpha"), out("y")};
constexpr Arg kTensorModeArgs[] = {in("a"), in("b"), text("rounding_mode"), out("y")};
constexpr Arg kScalarArgs[] = {in("a"), number("b"), out("y")};
constexpr Arg kScalarFirstArgs[] = {number("a"), in("b"), out("y")};
constexpr Arg kScalarModeArgs[] = {in("a"), number("b"), text("rounding_mode"), out("y")};
constexpr Arg kScalarAlphaArgs[] = {in("a"), number("b"), number("alpha"), out("y")};

std::span<const Arg> args(Form f) {
  switch (f) {
    case Form::kTensor: return kTensorArgs;
    case Form::kTensorAlpha: return kTensorAlphaArgs;
    case Form::kTensorMode: return kTensorModeArgs;
    case Form::kScalar: return kScalarArgs;
    case Form::kScalarAlpha: return kScalarAlphaArgs;
    case Form::kScalarMode: return kScalarModeArgs;
    case Form::kScalarFirst: return kScalarFirstArgs;
  }
  return {};
}

}  // namespace

void add_binary(std::vector<OpDef>& table) {
  for (const Row& r : binary_rows()) {
    table.push_back({.name = r.name,
                     .spellings = std::span(r.spellings.data(), 1),
                     .args = args(r.form),
                     .shape = shape,
                     .plan = plan,
                     .cpu = cpu,
                     .fast = binary_fast,
                     .row = &r});
  }
}

}  // namespace pteryx::ops
