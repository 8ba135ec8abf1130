// Numbers that programs compute: read from tensors, summed, handed from delegate to delegate and
// out of the program.
// SPDX-License-Identifier: BSD-3-Clause
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "programs.h"

namespace pteryx::testing {
namespace {

using program::testing::ProgramBuilder;
using vk::VkDataType;

constexpr auto kLong = pte::ScalarType::LONG;
constexpr auto kInt = pte::ScalarType::INT;
constexpr auto kDynamic = pte::TensorShapeDynamism::DYNAMIC_BOUND;

// A result that the exporter knew: the call is without effect, whatever it would read.
TEST(Scalars, AFoldedSelectIsIgnored) {
  struct Row {
    const char* what;
    VkDataType type;
    int64_t index;
  };
  const Row rows[] = {{"nothing wrong", VkDataType::INT32, 0},
                      {"no such element", VkDataType::INT32, 7},
                      {"no integers", VkDataType::FLOAT32, 0}};
  for (const Row& row : rows) {
    SCOPED_TRACE(row.what);
    DelegateProgram p;
    const int32_t x = p.input(row.type, {5});
    const int32_t zero = p.blob.add_int(0);
    const int32_t known = p.blob.add_int(3);
    // Read from a tensor that the GPU writes: no reason to wait for it.
    const int32_t made = p.tensor(row.type, {5});
    p.blob.add_call("aten.relu.default", {x, made});
    p.blob.add_call("et_vk.select_as_symint.default",
                    {made, zero, p.blob.add_int(row.index), known});
    const int32_t table = p.prepacked(p.weights({9}, 1), {9});
    const int32_t y = p.floats({3});
    p.blob.add_call("aten.slice_copy.Tensor", {table, zero, zero, known, p.blob.add_int(1), y});
    p.output(y);
    auto session = load_bytes(p.finish());
    ASSERT_TRUE(session.ok()) << session.status().message();
    const std::vector<int64_t> ints = {1, 2, 3, 4, 5};
    const std::vector<float> floats = {1, 2, 3, 4, 5};
    const Value inputs[] = {row.type == VkDataType::INT32 ? Value(tensor<int64_t>({5}, ints))
                                                          : Value(tensor<float>({5}, floats))};
    const uint64_t submits = device()->counters().submits;
    const auto got = session->run("forward", inputs);
    EXPECT_TRUE(got.ok()) << got.status().message();
    if (!got.ok()) continue;
    EXPECT_EQ(got->front().tensor()->dims, Dims{3});
    EXPECT_EQ(device()->counters().submits - submits, 1U);
  }
}

// x [up to 6, 2] to n, the rows of x, which leaves the delegate.
std::string count_rows() {
  BlobBuilder b;
  const int32_t x = b.add_tensor({.dims = {6, 2}});
  const int32_t n = b.add_symint();
  b.add_call("sym_size.int", {x, b.add_int(0), n});
  b.inputs = {static_cast<uint32_t>(x)};
  b.outputs = {static_cast<uint32_t>(n)};
  return b.finish();
}

Value rows(int64_t n, std::vector<float>& numbers) {
  numbers.assign(static_cast<size_t>(2 * n), 1.0F);
  return tensor<float>({n, 2}, numbers);
}

// What a delegate counted goes where the program has room for a number.
TEST(Scalars, ANumberLeavesADelegateInATensorOfOneElement) {
  struct Row {
    pte::ScalarType type;
    std::vector<int32_t> dims;
    const char* error;
  };
  const Row slots[] = {
      {kLong, {1}, nullptr},
      {kInt, {}, nullptr},
      {kLong, {1, 1}, nullptr},
      {kLong, {2}, "expected an int or a tensor of one i32 or i64, got i64 [2]"},
      {pte::ScalarType::FLOAT, {1}, "expected an int or a tensor of one i32 or i64, got f32 [1]"}};
  for (const Row& row : slots) {
    ProgramBuilder p;
    const int32_t x = p.add_tensor({.sizes = {6, 2}, .dynamism = kDynamic});
    const int32_t y = p.add_tensor({.dtype = row.type, .sizes = row.dims});
    p.inputs = {x};
    p.outputs = {y};
    p.add_delegate_call(p.add_delegate("VulkanBackend", count_rows()), {x, y});
    auto session = load_bytes(p.finish().text());
    if (row.error != nullptr) {
      ASSERT_FALSE(session.ok()) << "was accepted: " << row.error;
      EXPECT_EQ(session.status().code(), Code::kInvalidProgram);
      EXPECT_NE(session.status().message().find(row.error), std::string_view::npos)
          << session.status().message();
      continue;
    }
    ASSERT_TRUE(session.ok()) << session.status().message();
    for (const int64_t n : {6, 1, 5}) {
      std::vector<float> numbers;
      const Value inputs[] = {rows(n, numbers)};
      const auto got = session->run("forward", inputs);
      ASSERT_TRUE(got.ok()) << got.status().message();
      const TensorView& out = *got->front().tensor();
      EXPECT_EQ(out.dims.rank(), row.dims.size());
      EXPECT_EQ(row.type == kLong ? out.as<int64_t>()[0] : out.as<int32_t>()[0], n);
    }
  }
}

// a [up to 6, 2] and b [up to 6, 2]: each counted in a delegate, the counts summed in a third,
// which takes that many elements of a vector; the sum is a result as well.
TEST(Scalars, SumsCrossDelegates) {
  BlobBuilder b;
  const int32_t m = b.add_symint();
  const int32_t n = b.add_symint();
  const int32_t x = b.add_tensor({.dims = {20}});
  const int32_t sum = b.add_symint();
  const int32_t y = b.add_tensor({.dims = {12}});
  const int32_t zero = b.add_int(0);
  b.add_call("add", {m, n, sum});
  b.add_call("aten.slice_copy.Tensor", {x, zero, zero, sum, b.add_int(1), y});
  for (const int32_t id : {m, n, x}) b.inputs.push_back(static_cast<uint32_t>(id));
  for (const int32_t id : {sum, y}) b.outputs.push_back(static_cast<uint32_t>(id));

  ProgramBuilder p;
  const int32_t first = p.add_tensor({.sizes = {6, 2}, .dynamism = kDynamic});
  const int32_t second = p.add_tensor({.sizes = {6, 2}, .dynamism = kDynamic});
  const int32_t vector = p.add_tensor({.sizes = {20}});
  const int32_t rows_of_first = p.add_int(6);
  const int32_t rows_of_second = p.add_int(6);
  const int32_t total = p.add_int(12);
  const int32_t taken = p.add_tensor({.sizes = {12}, .dynamism = kDynamic});
  p.inputs = {first, second, vector};
  p.outputs = {total, taken};
  p.add_delegate_call(p.add_delegate("VulkanBackend", count_rows()), {first, rows_of_first});
  p.add_delegate_call(p.add_delegate("VulkanBackend", count_rows()), {second, rows_of_second});
  p.add_delegate_call(p.add_delegate("VulkanBackend", b.finish()),
                      {rows_of_first, rows_of_second, vector, total, taken});
  auto session = load_bytes(p.finish().text());
  ASSERT_TRUE(session.ok()) << session.status().message();
  std::vector<float> steps(20);
  for (size_t i = 0; i < steps.size(); ++i) steps[i] = static_cast<float>(i) / 4;
  using Counts = std::pair<int64_t, int64_t>;
  for (const auto& [i, j] : {Counts{6, 6}, {1, 1}, {2, 5}, {5, 2}, {6, 1}}) {
    std::vector<float> a;
    std::vector<float> c;
    const Value inputs[] = {rows(i, a), rows(j, c), tensor<float>({20}, steps)};
    const auto got = session->run("forward", inputs);
    ASSERT_TRUE(got.ok()) << got.status().message();
    EXPECT_EQ(*(*got)[0].integer(), i + j);
    const auto values = (*got)[1].tensor()->as<float>();
    EXPECT_EQ(std::vector<float>(values.begin(), values.end()),
              std::vector<float>(steps.begin(), steps.begin() + i + j));
  }
}

// Of a program without a delegate, from the rows n of x: n + 3, n / 4, n > 2, and the larger of n
// and 2.5 where that is so. All are results, and the first is a size.
TEST(Scalars, IntsBoolsAndFloatsAreComputed) {
  ProgramBuilder p;
  const int32_t x = p.add_tensor({.sizes = {6, 2}, .dynamism = kDynamic});
  const int32_t n = p.add_int(6);
  const int32_t more = p.add_int(9);
  const int32_t quarter = p.add_double(1.5);
  const int32_t large = p.add_bool(true);
  const int32_t larger = p.add_double(6);
  const int32_t chosen = p.add_double(6);
  const int32_t ones = p.add_tensor({.sizes = {9}, .dynamism = kDynamic});
  const auto call = [&](const char* op, const char* overload, const std::vector<int32_t>& args) {
    p.add_kernel_call(p.add_operator(op, overload), args);
  };
  call("aten::sym_size", "int", {x, p.add_int(0), n});
  call("executorch_prim::add", "Scalar", {n, p.add_int(3), more});
  call("executorch_prim::truediv", "Scalar", {n, p.add_int(4), quarter});
  call("executorch_prim::gt", "Scalar", {n, p.add_int(2), large});
  call("executorch_prim::sym_max", "Scalar", {n, p.add_double(2.5), larger});
  call("executorch_prim::sym_ite", "Scalar", {large, larger, quarter, chosen});
  call("aten::full", "out", {p.add_int_list({more}), quarter, ones, ones});
  p.inputs = {x};
  p.outputs = {more, quarter, large, chosen, ones};
  auto session = load_bytes(p.finish().text());
  ASSERT_TRUE(session.ok()) << session.status().message();
  for (const int64_t rows_of_x : {6, 2, 1, 3, 6}) {
    std::vector<float> numbers;
    const Value inputs[] = {rows(rows_of_x, numbers)};
    const auto got = session->run("forward", inputs);
    ASSERT_TRUE(got.ok()) << got.status().message();
    const double exact = static_cast<double>(rows_of_x) / 4;
    ASSERT_NE((*got)[0].integer(), nullptr);
    EXPECT_EQ(*(*got)[0].integer(), rows_of_x + 3);
    ASSERT_NE((*got)[1].number(), nullptr);
    EXPECT_EQ(*(*got)[1].number(), exact);
    ASSERT_NE((*got)[2].flag(), nullptr);
    EXPECT_EQ(*(*got)[2].flag(), rows_of_x > 2);
    ASSERT_NE((*got)[3].number(), nullptr);
    EXPECT_EQ(*(*got)[3].number(), rows_of_x > 2 ? static_cast<double>(rows_of_x) : exact);
    const auto filled = (*got)[4].tensor()->as<float>();
    EXPECT_EQ(std::vector<float>(filled.begin(), filled.end()),
              std::vector<float>(static_cast<size_t>(rows_of_x + 3), static_cast<float>(exact)));
  }
}

}  // namespace
}  // namespace pteryx::testing
