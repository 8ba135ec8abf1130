// Operators on scalars: symbolic sizes and the arithmetic on them. Computed by the shape pass, on
// the host.
// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cmath>

#include "pteryx/base/checked.h"
#include "pteryx/ops/op.h"
#include "pteryx/ops/table.h"

namespace pteryx::ops {
namespace {

using graph::ScalarKind;

Scalar of_int(int64_t v) { return {ScalarKind::kInt, v, static_cast<double>(v)}; }
Scalar of_bool(bool v) { return {ScalarKind::kBool, v ? 1 : 0, v ? 1.0 : 0.0}; }
Scalar of_double(double v) { return {ScalarKind::kDouble, 0, v}; }
bool is_int(const Scalar& s) { return s.kind != ScalarKind::kDouble; }

// Arguments of a call; absent ones are 0.
using Operands = std::array<Scalar, 3>;
using Rule = Result<Scalar> (*)(const Operands&);

Result<Scalar> overflow() { return invalid_argument("the result does not fit 64 bits"); }
Result<Scalar> by_zero() { return invalid_argument("division by zero"); }

Result<Scalar> checked(std::optional<int64_t> v) {
  if (!v) return overflow();
  return of_int(*v);
}
// A double that is a whole number, as an int.
Result<Scalar> whole(double v) {
  if (!(std::fabs(v) < 0x1p63)) return overflow();
  return of_int(static_cast<int64_t>(v));
}

Result<Scalar> add(const Operands& x) {
  if (!is_int(x[0]) || !is_int(x[1])) return of_double(x[0].d + x[1].d);
  return checked(checked_add(x[0].i, x[1].i));
}
Result<Scalar> sub(const Operands& x) {
  if (!is_int(x[0]) || !is_int(x[1])) return of_double(x[0].d - x[1].d);
  int64_t v = 0;
  if (__builtin_sub_overflow(x[0].i, x[1].i, &v)) return overflow();
  return of_int(v);
}
Result<Scalar> mul(const Operands& x) {
  if (!is_int(x[0]) || !is_int(x[1])) return of_double(x[0].d * x[1].d);
  return checked(checked_mul(x[0].i, x[1].i));
}
// Toward minus infinity, as Python does.
Result<Scalar> floordiv(const Operands& x) {
  if (x[1].d == 0.0) return by_zero();
  if (!is_int(x[0]) || !is_int(x[1])) return of_double(std::floor(x[0].d / x[1].d));
  if (x[1].i == -1) return sub({of_int(0), x[0]});
  const int64_t q = x[0].i / x[1].i;
  return of_int(x[0].i % x[1].i != 0 && (x[0].i < 0) != (x[1].i < 0) ? q - 1 : q);
}
Result<Scalar> truediv(const Operands& x) {
  if (x[1].d == 0.0) return by_zero();
  return of_double(x[0].d / x[1].d);
}
// The sign of the divisor, as in Python.
Result<Scalar> mod(const Operands& x) {
  if (x[1].d == 0.0) return by_zero();
  if (!is_int(x[0]) || !is_int(x[1]))
    return of_double(x[0].d - x[1].d * std::floor(x[0].d / x[1].d));
  if (x[1].i == -1) return of_int(0);
  const int64_t r = x[0].i % x[1].i;
  return of_int(r != 0 && (r < 0) != (x[1].i < 0) ? r + x[1].i : r);
}

// -1, 0 or 1; ints are compared as ints. NaN compares as unordered, 2.
int compare(const Operands& x) {
  if (is_int(x[0]) && is_int(x[1])) return x[0].i < x[1].i ? -1 : (x[0].i > x[1].i ? 1 : 0);
  if (std::isnan(x[0].d) || std::isnan(x[1].d)) return 2;
  return x[0].d < x[1].d ? -1 : (x[0].d > x[1].d ? 1 : 0);
}
// One kind for both answers of a choice.
Scalar chosen(const Scalar& v, const Scalar& other) {
  return is_int(v) && !is_int(other) ? of_double(v.d) : v;
}

struct Row {
  std::string_view name;
  std::array<std::string_view, 2> spellings;
  uint8_t operands;
  Rule rule;
  bool symbolic =
      false;  // operands and result are 32-bit ints, whatever kind the file gave a literal
};

constexpr Row kRows[] = {
    {"add", {}, 2, add, true},
    {"sub", {}, 2, sub, true},
    {"mul", {}, 2, mul, true},
    {"floordiv", {}, 2, floordiv, true},
    {"executorch_prim.add.Scalar", {"executorch_prim::add.Scalar"}, 2, add},
    {"executorch_prim.sub.Scalar", {"executorch_prim::sub.Scalar"}, 2, sub},
    {"executorch_prim.mul.Scalar", {"executorch_prim::mul.Scalar"}, 2, mul},
    {"executorch_prim.floordiv.Scalar", {"executorch_prim::floordiv.Scalar"}, 2, floordiv},
    {"executorch_prim.truediv.Scalar", {"executorch_prim::truediv.Scalar"}, 2, truediv},
    {"executorch_prim.mod.Scalar",
     {"executorch_prim::mod.Scalar", "executorch_prim::mod.int"},
     2,
     mod},
    {"executorch_prim.neg.Scalar",
     {"executorch_prim::neg.Scalar"},
     1,
     [](const Operands& x) { return sub({is_int(x[0]) ? of_int(0) : of_double(-0.0), x[0]}); }},
    {"executorch_prim.eq.Scalar",
     {"executorch_prim::eq.Scalar"},
     2,
     [](const Operands& x) -> Result<Scalar> { return of_bool(compare(x) == 0); }},
    {"executorch_prim.ne.Scalar",
     {"executorch_prim::ne.Scalar"},
     2,
     [](const Operands& x) -> Result<Scalar> { return of_bool(compare(x) != 0); }},
    {"executorch_prim.gt.Scalar",
     {"executorch_prim::gt.Scalar"},
     2,
     [](const Operands& x) -> Result<Scalar> { return of_bool(compare(x) == 1); }},
    {"executorch_prim.lt.Scalar",
     {"executorch_prim::lt.Scalar"},
     2,
     [](const Operands& x) -> Result<Scalar> { return of_bool(compare(x) == -1); }},
    {"executorch_prim.ge.Scalar",
     {"executorch_prim::ge.Scalar"},
     2,
     [](const Operands& x) -> Result<Scalar> {
       return of_bool(compare(x) == 0 || compare(x) == 1);
     }},
    {"executorch_prim.le.Scalar",
     {"executorch_prim::le.Scalar"},
     2,
     [](const Operands& x) -> Result<Scalar> {
       return of_bool(compare(x) == 0 || compare(x) == -1);
     }},
    {"executorch_prim.ceil.Scalar",
     {"executorch_prim::ceil.Scalar"},
     1,
     [](const Operands& x) { return is_int(x[0]) ? x[0] : whole(std::ceil(x[0].d)); }},
    {"executorch_prim.round.Scalar",
     {"executorch_prim::round.Scalar"},
     1,
     [](const Operands& x) { return is_int(x[0]) ? x[0] : whole(std::nearbyint(x[0].d)); }},
    {"executorch_prim.trunc.Scalar",
     {"executorch_prim::trunc.Scalar"},
     1,
     [](const Operands& x) { return is_int(x[0]) ? x[0] : whole(std::trunc(x[0].d)); }},
    {"executorch_prim.sym_float.Scalar",
     {"executorch_prim::sym_float.Scalar"},
     1,
     [](const Operands& x) -> Result<Scalar> { return of_double(x[0].d); }},
    {"executorch_prim.sym_int.Scalar",
     {"executorch_prim::sym_int.Scalar"},
     1,
     [](const Operands& x) {
       return is_int(x[0]) ? Result<Scalar>(of_int(x[0].i)) : whole(std::trunc(x[0].d));
     }},
    {"executorch_prim.sym_max.Scalar",
     {"executorch_prim::sym_max.Scalar"},
     2,
     [](const Operands& x) -> Result<Scalar> {
       return compare(x) == -1 ? chosen(x[1], x[0]) : chosen(x[0], x[1]);
     }},
    {"executorch_prim.sym_min.Scalar",
     {"executorch_prim::sym_min.Scalar"},
     2,
     [](const Operands& x) -> Result<Scalar> {
       return compare(x) == 1 ? chosen(x[1], x[0]) : chosen(x[0], x[1]);
     }},
    {"executorch_prim.sym_not.Scalar",
     {"executorch_prim::sym_not.Scalar"},
     1,
     [](const Operands& x) -> Result<Scalar> { return of_bool(x[0].d == 0.0); }},
    {"executorch_prim.sym_ite.Scalar",
     {"executorch_prim::sym_ite.Scalar"},
     3,
     [](const Operands& x) -> Result<Scalar> {
       return x[0].d != 0.0 ? chosen(x[1], x[2]) : chosen(x[2], x[1]);
     }},
    {graph::kScalarMoveOp, {}, 1, [](const Operands& x) -> Result<Scalar> { return x[0]; }},
};

// The exporter may have folded the result to a literal: the call is then without effect.
bool folded(const Node& n) {
  return !std::holds_alternative<graph::LiveScalar>(n.graph()[n.out_id()]);
}

Status fits_i32(const Node& n, int64_t v) {
  if (fits<int32_t>(v)) return {};
  return n.fail(Code::kInvalidArgument, fmt::format("the result {} does not fit 32 bits", v));
}

Status compute(const Node& n, Shapes& s) {
  if (folded(n)) return {};
  const Row& r = *static_cast<const Row*>(n.def().row);
  Operands x;
  for (size_t k = 0; k < r.operands; ++k) {
    x[k] = n.scalar(k);
    if (!r.symbolic) continue;
    PTERYX_ASSIGN(const int64_t v, n.integer(k));
    x[k] = of_int(v);
  }
  const Result<Scalar> result = r.rule(x);
  if (!result.ok()) return n.fail(result.status().code(), result.status().message());
  if (r.symbolic) PTERYX_TRY(fits_i32(n, result->i));
  s.set_scalar(result.value());
  return {};
}

Status sym_size(const Node& n, Shapes& s) {
  if (folded(n)) return {};
  const Tensor x = n.in(0);
  if (x.rank() == 0) return n.fail(Code::kInvalidProgram, "x has no dims");
  PTERYX_ASSIGN(const size_t dim, n.dim(1, x.rank()));
  s.set_int(x.dims[dim]);
  return {};
}

Status sym_numel(const Node& n, Shapes& s) {
  if (!folded(n)) s.set_int(n.in(0).numel());
  return {};
}

constexpr Arg kOneArgs[] = {number("a"), out_scalar("y")};
constexpr Arg kTwoArgs[] = {number("a"), number("b"), out_scalar("y")};
constexpr Arg kThreeArgs[] = {number("a"), number("b"), number("c"), out_scalar("y")};
constexpr std::span<const Arg> kArgs[] = {kOneArgs, kTwoArgs, kThreeArgs};
constexpr Arg kSizeArgs[] = {in("x"), number("dim"), out_scalar("y")};
constexpr Arg kNumelArgs[] = {in("x"), out_scalar("y")};
constexpr std::string_view kSizeSpellings[] = {"aten::sym_size.int", "aten.sym_size.int"};
constexpr std::string_view kNumelSpellings[] = {"aten::sym_numel", "sym_numel",
                                                "aten.sym_numel.default"};

}  // namespace

void add_scalars(std::vector<OpDef>& table) {
  table.push_back({.name = "sym_size.int",
                   .spellings = kSizeSpellings,
                   .args = kSizeArgs,
                   .shape = sym_size,
                   .op_class = OpClass::kScalar});
  table.push_back({.name = "sym_numel.default",
                   .spellings = kNumelSpellings,
                   .args = kNumelArgs,
                   .shape = sym_numel,
                   .op_class = OpClass::kScalar});
  for (const Row& r : kRows) {
    table.push_back({.name = r.name,
                     .spellings = r.spellings,
                     .args = kArgs[r.operands - 1],
                     .shape = compute,
                     .op_class = OpClass::kScalar,
                     .row = &r});
  }
}

}  // namespace pteryx::ops
