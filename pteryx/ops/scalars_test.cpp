// SPDX-License-Identifier: BSD-3-Clause
#include <limits>

#include <gtest/gtest.h>

#include "pteryx/ops/table.h"
#include "pteryx/ops/testing/op_harness.h"

namespace pteryx::ops::testing {
namespace {

using graph::ScalarKind;

void expect_scalar(Case& c, ScalarKind kind, double want) {
  const auto got = run_scalar(c.scalar_out());
  ASSERT_TRUE(got.ok()) << c.op() << ": " << got.status().message();
  EXPECT_EQ(got->kind, kind) << c.op();
  EXPECT_EQ(got->d, want) << c.op();
  if (kind != ScalarKind::kDouble) {
    EXPECT_EQ(static_cast<double>(got->i), want) << c.op();
  }
}

TEST(Scalars, SizesAreLive) {
  const TestTensor x = random(DType::kF32, {2, 3, 5});
  expect_scalar(Case("sym_size.int").in(x).integer(1), ScalarKind::kInt, 3);
  expect_scalar(Case("aten::sym_size.int").in(x).integer(-1), ScalarKind::kInt, 5);
  expect_scalar(Case("aten::sym_numel").in(x), ScalarKind::kInt, 30);
  expect_error(Case("sym_size.int").in(x).integer(3).scalar_out(), "dim: expected -3 to 2, got 3");
}

TEST(Scalars, SymbolicArithmetic) {
  struct Row {
    std::string op;
    int64_t a, b;
    double want;
  };
  for (const Row& r :
       {Row{"add", 3, 4, 7}, Row{"sub", 3, 4, -1}, Row{"mul", -3, 4, -12}, Row{"floordiv", 7, 2, 3},
        Row{"floordiv", -7, 2, -4}, Row{"floordiv", 7, -2, -4}, Row{"floordiv", -8, 2, -4}}) {
    expect_scalar(Case(r.op).live(r.a).integer(r.b), ScalarKind::kInt, r.want);
    // The exporter may have merged the literal with an equal float.
    expect_scalar(Case(r.op).live(r.a).number(static_cast<double>(r.b)), ScalarKind::kInt, r.want);
  }
  expect_error(Case("add").live(2147483647).integer(1).scalar_out(),
               "the result 2147483648 does not fit 32 bits");
  expect_error(Case("mul").live(65536).live(65536).scalar_out(),
               "the result 4294967296 does not fit 32 bits");
  expect_error(Case("floordiv").live(-2147483648).integer(-1).scalar_out(),
               "the result 2147483648 does not fit 32 bits");
  expect_error(Case("floordiv").live(1).integer(0).scalar_out(), "division by zero");
  expect_error(Case("add").live(1).number(0.5).scalar_out(), "expected an integer, got 0.5");
}

TEST(Scalars, PrimitivesKeepOrPromoteKinds) {
  struct Row {
    std::string op;
    std::vector<double> operands;
    ScalarKind kind;  // of the operands and of the result
    double want;
    ScalarKind result;
  };
  constexpr auto kInt = ScalarKind::kInt;
  constexpr auto kDouble = ScalarKind::kDouble;
  constexpr auto kBool = ScalarKind::kBool;
  const std::vector<Row> rows = {
      {"add", {3, 4}, kInt, 7, kInt},
      {"add", {0.5, 4}, kDouble, 4.5, kDouble},
      {"sub", {3, 4}, kInt, -1, kInt},
      {"mul", {2.5, 2}, kDouble, 5, kDouble},
      {"floordiv", {-7, 2}, kInt, -4, kInt},
      {"floordiv", {-7, 2}, kDouble, -4, kDouble},
      {"truediv", {7, 2}, kInt, 3.5, kDouble},
      {"mod", {-7, 3}, kInt, 2, kInt},
      {"mod", {7, -3}, kInt, -2, kInt},
      {"neg", {5}, kInt, -5, kInt},
      {"neg", {0.5}, kDouble, -0.5, kDouble},
      {"eq", {3, 3}, kInt, 1, kBool},
      {"ne", {3, 3}, kInt, 0, kBool},
      {"gt", {3, 2}, kInt, 1, kBool},
      {"lt", {3, 2}, kInt, 0, kBool},
      {"ge", {2, 2}, kDouble, 1, kBool},
      {"le", {3, 2}, kDouble, 0, kBool},
      {"ceil", {1.2}, kDouble, 2, kInt},
      {"round", {2.5}, kDouble, 2, kInt},
      {"trunc", {-1.8}, kDouble, -1, kInt},
      {"sym_float", {3}, kInt, 3, kDouble},
      {"sym_int", {-3.7}, kDouble, -3, kInt},
      {"sym_max", {3, 4}, kInt, 4, kInt},
      {"sym_min", {3, 4}, kInt, 3, kInt},
      {"sym_max", {3.5, 4}, kDouble, 4, kDouble},
      {"sym_not", {0}, kInt, 1, kBool},
      {"sym_ite", {1, 5, 6}, kInt, 5, kInt},
      {"sym_ite", {0, 5, 6}, kInt, 6, kInt},
  };
  for (const Row& r : rows) {
    Case c("executorch_prim::" + r.op + ".Scalar");
    for (const double v : r.operands) {
      if (r.kind == kInt) {
        c.integer(static_cast<int64_t>(v));
      } else {
        c.number(v);
      }
    }
    expect_scalar(c, r.result, r.want);
  }
}

TEST(Scalars, MixedKindsAndMoves) {
  expect_scalar(Case("executorch_prim::sym_max.Scalar").live(7).number(0.5), ScalarKind::kDouble,
                7);
  expect_scalar(Case("executorch_prim::sym_not.Scalar").flag(true), ScalarKind::kBool, 0);
  expect_scalar(Case("pteryx.move").flag(true), ScalarKind::kBool, 1);
  expect_scalar(Case("pteryx.move").live(9), ScalarKind::kInt, 9);
  expect_scalar(Case("pteryx.move").number(0.25), ScalarKind::kDouble, 0.25);
}

TEST(Scalars, PrimitivesRefuse) {
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  expect_error(Case("executorch_prim::add.Scalar").integer(kMax).integer(1).scalar_out(),
               "the result does not fit 64 bits");
  expect_error(Case("executorch_prim::sub.Scalar").integer(-2).integer(kMax).scalar_out(),
               "the result does not fit 64 bits");
  expect_error(Case("executorch_prim::mul.Scalar").integer(kMax).integer(2).scalar_out(),
               "the result does not fit 64 bits");
  expect_error(Case("executorch_prim::trunc.Scalar").number(1e300).scalar_out(),
               "the result does not fit 64 bits");
  for (const std::string op : {"floordiv", "truediv", "mod"}) {
    expect_error(Case("executorch_prim::" + op + ".Scalar").integer(1).integer(0).scalar_out(),
                 "division by zero");
  }
}

TEST(Scalars, FoldedResultIsLeftAlone) {
  graph::Graph g;
  g.values = {int64_t{1}, int64_t{0}, int64_t{42}};
  g.labels = {"value 0", "value 1", "value 2"};
  graph::Node call;
  call.op = lookup().find("floordiv");
  call.args = {ValueId{0}, ValueId{1}, ValueId{2}};
  const Live live{.dims = std::vector<Dims>(3), .scalars = std::vector<Scalar>(3)};
  Live next = live;
  const OpDef& def = op(*call.op);
  const Node n(g, call, def, live);
  Shapes shapes(n, next);
  EXPECT_TRUE(def.shape(n, shapes).ok());  // though it divides by zero
  EXPECT_EQ(next.scalars, live.scalars);
}

}  // namespace
}  // namespace pteryx::ops::testing
