// Every operator that takes indices refuses those outside, on the GPU in the words of the CPU.
// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/ops/index_bound.h"

#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "pteryx/ops/table.h"
#include "pteryx/ops/testing/op_harness.h"

namespace pteryx::ops::testing {
namespace {

constexpr DType kF32 = DType::kF32;

TestTensor f32(const Dims& dims) { return random(kF32, dims); }

// An operator with one index of two elements and, where it is called with 8 and 2, the bound.
struct Row {
  const char* op;
  const char* index;  // its name and value
  bool from_end;
  int64_t extent;
  const char* of;
  Case (*call)(const char* op, const TestTensor& index);
};

Case rows_of_codes(const char* op, const TestTensor& weight, const TestTensor& index, bool typed) {
  Case c{op};
  c.in(weight).in(random(kF32, {5, 1}, 3, 0.1, 1)).none().integer(-8).integer(7).in(index);
  if (typed) c.none();
  return c.out(kF32, {2, 8});
}
Case nibbles(const char* op, const TestTensor& index) {
  return rows_of_codes(op, random(DType::kU8, {5, 4}, 1, 0, 255), index,
                       std::string_view(op).ends_with("dtype"));
}
Case bytes(const char* op, const TestTensor& index) {
  return rows_of_codes(op, random(DType::kI8, {5, 8}, 1, -9, 9), index,
                       std::string_view(op).ends_with("dtype"));
}
Case scatter(const char* op, const TestTensor& index) {
  TestTensor column = index;
  column.dims = {2, 1};
  return Case(op).in(f32({5, 3})).integer(-2).in(column).in(f32({2, 1})).out(kF32, {5, 3});
}
Case put(const char* op, const TestTensor& index) {
  return Case(op)
      .in(f32({3, 5}))
      .optional_list({std::nullopt, index})
      .in(f32({3, 2}))
      .flag(false)
      .out(kF32, {3, 5});
}
Case bag(const char* op, const TestTensor& indices, const TestTensor& offsets, int64_t padding) {
  const auto i = indices.dtype;
  return Case(op)
      .in(f32({5, 3}))
      .in(indices)
      .in(offsets)
      .flag(false)
      .integer(1)
      .flag(false)
      .none()
      .flag(false)
      .integer(padding)
      .outs({{kF32, {offsets.dims[0], 3}, {}},
             {i, indices.dims, {}},
             {i, offsets.dims, {}},
             {i, offsets.dims, {}}});
}

const Row kRows[] = {
    {"aten.embedding.default", "indices (value 1)", false, 5, "dim 0 of weight (value 0)",
     [](const char* op, const TestTensor& index) {
       return Case(op)
           .in(f32({5, 3}))
           .in(index)
           .integer(-1)
           .flag(false)
           .flag(false)
           .out(kF32, {2, 3});
     }},
    {"aten.index_select.default", "index (value 2)", false, 5, "dim 1 of x (value 0)",
     [](const char* op, const TestTensor& index) {
       return Case(op).in(f32({3, 5, 2})).integer(-2).in(index).out(kF32, {3, 2, 2});
     }},
    {"aten.gather.default", "index (value 2)", false, 5, "dim 0 of x (value 0)",
     [](const char* op, const TestTensor& index) {
       TestTensor column = index;
       column.dims = {2, 1};
       return Case(op).in(f32({5, 3})).integer(0).in(column).flag(false).out(kF32, {2, 1});
     }},
    {"aten.index.Tensor", "indices (value 1)", true, 5, "dim 1 of x (value 0)",
     [](const char* op, const TestTensor& index) {
       return Case(op).in(f32({3, 5})).optional_list({std::nullopt, index}).out(kF32, {3, 2});
     }},
    {"aten.scatter.src", "index (value 2)", false, 5, "dim 0 of x (value 0)", scatter},
    {"aten.scatter_add.default", "index (value 2)", false, 5, "dim 0 of x (value 0)", scatter},
    {"aten.scatter.value", "index (value 2)", false, 5, "dim 1 of x (value 0)",
     [](const char* op, const TestTensor& index) {
       TestTensor row = index;
       row.dims = {1, 2};
       return Case(op).in(f32({3, 5})).integer(1).in(row).number(1).out(kF32, {3, 5});
     }},
    {"aten.index_copy.default", "index (value 2)", false, 5, "dim 1 of x (value 0)",
     [](const char* op, const TestTensor& index) {
       return Case(op).in(f32({3, 5})).integer(1).in(index).in(f32({3, 2})).out(kF32, {3, 5});
     }},
    {"aten.index_put.default", "indices (value 1)", true, 5, "dim 1 of x (value 0)", put},
    {"aten.index_put_.default", "indices (value 1)", true, 5, "dim 1 of x (value 0)", put},
    {"et_vk.embedding_q4gsw.default", "indices (value 3)", false, 5, "dim 0 of weight (value 0)",
     [](const char* op, const TestTensor& index) {
       return Case(op)
           .in(random(DType::kU8, {5, 4}, 1, 0, 255))
           .in(random(kF32, {5, 1}, 3, 0.1, 1))
           .integer(8)
           .in(index)
           .flag(true)
           .out(kF32, {2, 8});
     }},
    {"quantized_decomposed.embedding_4bit.default", "indices (value 5)", false, 5,
     "dim 0 of weight (value 0)", nibbles},
    {"quantized_decomposed.embedding_4bit.dtype", "indices (value 5)", false, 5,
     "dim 0 of weight (value 0)", nibbles},
    {"quantized_decomposed.embedding_byte.default", "indices (value 5)", false, 5,
     "dim 0 of weight (value 0)", bytes},
    {"quantized_decomposed.embedding_byte.dtype", "indices (value 5)", false, 5,
     "dim 0 of weight (value 0)", bytes},
    {"pteryx.embedding_parts", "indices (value 8)", false, 5, "dim 0 of tables (value 2)",
     [](const char* op, const TestTensor& index) {
       return Case(op)
           .list({f32({2, 3}), f32({3, 3})})
           .list({})
           .list({})
           .integer(0)
           .integer(1)
           .integer(0)
           .in(index)
           .out(kF32, {2, 3});
     }},
    {"aten._embedding_bag_forward_only.default", "indices (value 1)", false, 5,
     "dim 0 of weight (value 0)",
     [](const char* op, const TestTensor& index) {
       return bag(op, index, {index.dtype, {1}, {0}}, -1);
     }},
    {"aten._embedding_bag_forward_only.default", "offsets (value 2)", false, 3,
     "places of indices (value 1)",
     [](const char* op, const TestTensor& index) {
       return bag(op, {index.dtype, {2}, {4, 0}}, index, 1);
     }},
};

// Of each: the last place and, where negative ones count, the first; what is one further, and far.
TEST(IndexBound, OutsideIsAnErrorInTheSameWordsOnBoth) {
  for (const Row& row : kRows) {
    SCOPED_TRACE(fmt::format("{}, {}", row.op, row.index));
    const int64_t low = row.from_end ? -row.extent : 0;
    const auto call = [&](int64_t v, DType t) {
      return row.call(row.op, {t, {2}, {0, static_cast<double>(v)}});
    };
    for (const DType t : {DType::kI32, DType::kI64}) {
      for (const int64_t good : {low, row.extent - 1}) {
        for (const Where where : {Where::kCpu, Where::kGpu}) {
          const auto got = run(call(good, t), where);
          EXPECT_TRUE(got.ok()) << good << ": " << got.status().message();
        }
      }
      for (const int64_t bad : {low - 1, row.extent, int64_t{2000000000}, int64_t{-2000000000}}) {
        const std::string text = fmt::format("{}: element 1 is {}, outside [{}, {}), {}", row.index,
                                             bad, low, row.extent, row.of);
        for (const Where where : {Where::kCpu, Where::kGpu}) {
          const auto got = run(call(bad, t), where);
          ASSERT_FALSE(got.ok()) << bad;
          EXPECT_EQ(got.status().code(), Code::kInvalidArgument);
          EXPECT_NE(got.status().message().find(row.op), std::string::npos);
          EXPECT_NE(got.status().message().find(text), std::string::npos) << got.status().message();
        }
      }
    }
  }
}

// An operator that takes an index says what bounds it, and is among the rows above.
TEST(IndexBound, EveryIndexHasOne) {
  constexpr std::string_view kValues[] = {"tokens", "zero_point"};  // ids and numbers, no places
  for (const OpDef& def : all_ops()) {
    for (const Arg& a : def.args) {
      const bool read = a.kind == ArgKind::kTensor || a.kind == ArgKind::kTensorList;
      if (!a.index || !read) continue;
      if (std::ranges::find(kValues, a.name) != std::end(kValues)) continue;
      EXPECT_TRUE(a.bound.has_value()) << def.name << ": " << a.name;
      EXPECT_TRUE(std::ranges::any_of(kRows,
                                      [&](const Row& r) {
                                        return r.op == def.name &&
                                               std::string_view(r.index).starts_with(a.name);
                                      }))
          << def.name << ": " << a.name;
    }
  }
}

// Several indices, and behind a mask: the CPU's. A mask takes as many dims as it has.
TEST(IndexBound, OfAListNamesTheDimOfEachMember) {
  const TestTensor x = f32({3, 4, 5});
  const TestTensor good{DType::kI64, {2}, {0, -1}};
  const TestTensor bad{DType::kI64, {2}, {0, 5}};
  const TestTensor mask = make(DType::kBool, {3, 4}, [](int64_t i) { return i < 2 ? 1 : 0; });
  const auto message = [&](const std::vector<std::optional<TestTensor>>& list, const Dims& y) {
    const auto got =
        run(Case("aten.index.Tensor").in(x).optional_list(list).out(kF32, y), Where::kCpu);
    return std::string(got.status().message());
  };
  EXPECT_NE(message({good, std::nullopt, bad}, {2, 4})
                .find("element 1 is 5, outside [-5, 5), dim 2 of x (value 0)"),
            std::string::npos);
  EXPECT_NE(
      message({good, bad}, {2, 5}).find("element 1 is 5, outside [-4, 4), dim 1 of x (value 0)"),
      std::string::npos);
  EXPECT_NE(message({mask, bad}, {2}).find("element 1 is 5, outside [-5, 5), dim 2 of x (value 0)"),
            std::string::npos);
}

}  // namespace
}  // namespace pteryx::ops::testing
