// What is wrong with a program is found when it is loaded, also behind the position of a language
// model, and `inspect` finds the same.
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include "programs.h"

#include "pteryx/session/inspect.h"

namespace pteryx::testing {
namespace {

using program::testing::ProgramBuilder;
using program::testing::TensorSpec;
using vk::VkDataType;

struct Row {
  const char* what;
  TinyModel model;
  const char* text;
};

const Row kModels[] = {
    {"an odd head size",
     {.width = 48, .heads = 16, .kv_heads = 8},
     "xq (delegate 0 value 25) width: expected an even number, got 3"},
    {"heads of q that those of k do not divide",
     {.kv_heads = 3},
     "k_cache (delegate 0 value 45) heads: expected a divisor of 4, got 3"},
    {"a group that does not divide the columns, in layer 2",
     {.layers = 2, .last_group = 24},
     "group_size 24 does not divide the 32 columns of x"},
};

TEST(Load, FindsWhatIsWrongBehindAPosition) {
  for (const Row& row : kModels) {
    SCOPED_TRACE(row.what);
    const SavedFile file(row.model.build());
    const auto session = Session::load(file.path(), {.device = device()});
    EXPECT_FALSE(session.ok()) << "was accepted";
    if (session.ok()) continue;
    EXPECT_EQ(session.status().code(), Code::kInvalidProgram);
    EXPECT_NE(session.status().message().find(row.text), std::string_view::npos)
        << session.status().message();
    const auto report = inspect(file.path(), {});
    ASSERT_TRUE(report.ok()) << report.status().message();
    EXPECT_NE(report->methods[0].problem.find(row.text), std::string::npos)
        << report->methods[0].problem;
  }
}

// q and k turned; `results` makes the list of what comes out, of whatever type.
std::string rope(VkDataType type,
                 std::vector<int32_t> (*results)(int32_t x, int32_t yq, int32_t yk)) {
  DelegateProgram p;
  const int32_t x = p.input(VkDataType::FLOAT32, {1, 2, 1, 4});
  const int32_t table = p.prepacked(p.weights({2, 2}, 2), {2, 2});
  const int32_t yq = p.floats({1, 2, 1, 4});
  const int32_t yk = p.tensor(type, {1, 2, 1, 4});
  p.blob.add_call("et_vk.apply_rotary_emb.default",
                  {x, x, table, table, p.blob.add_value_list(results(x, yq, yk))});
  p.output(yq);
  return p.finish();
}

// The largest of each row, and where it is.
std::string top(VkDataType values, VkDataType indices) {
  DelegateProgram p;
  const int32_t x = p.input(VkDataType::FLOAT32, {2, 4});
  const int32_t y = p.tensor(values, {2, 1});
  const int32_t at = p.tensor(indices, {2, 1});
  const int32_t one = p.blob.add_int(1);
  const int32_t yes = p.blob.add_bool(true);
  p.blob.add_call("aten.topk.default", {x, one, one, yes, yes, p.blob.add_value_list({y, at})});
  p.output(y);
  return p.finish();
}

std::string split(VkDataType second) {
  DelegateProgram p;
  const int32_t x = p.input(VkDataType::FLOAT32, {4});
  const int32_t a = p.floats({2});
  const int32_t b = p.tensor(second, {2});
  p.blob.add_call(
      "aten.split_with_sizes_copy.default",
      {x, p.blob.add_int_list({2, 2}), p.blob.add_int(0), p.blob.add_value_list({a, b})});
  p.output(a);
  return p.finish();
}

TEST(Load, ChecksEachOfSeveralResults) {
  const auto pair = [](int32_t, int32_t yq, int32_t yk) { return std::vector{yq, yk}; };
  const std::string right[] = {rope(VkDataType::FLOAT32, pair), rope(VkDataType::FLOAT16, pair),
                               top(VkDataType::FLOAT32, VkDataType::INT32),
                               split(VkDataType::FLOAT32)};
  for (const std::string& program : right) {
    const auto session = load_bytes(program);
    EXPECT_TRUE(session.ok()) << session.status().message();
  }
  const auto refused = [](const std::string& program, Code code, std::string_view text) {
    const auto session = load_bytes(program);
    EXPECT_FALSE(session.ok()) << "was accepted: " << text;
    if (session.ok()) return;
    EXPECT_EQ(session.status().code(), code);
    EXPECT_NE(session.status().message().find(text), std::string_view::npos)
        << session.status().message();
  };
  refused(rope(VkDataType::INT32, pair), Code::kUnsupported,
          "y (delegate 0 value 4) type: expected f16, bf16, f32, f64, got i32");
  refused(
      rope(VkDataType::FLOAT32, [](int32_t, int32_t yq, int32_t) { return std::vector{yq, yq}; }),
      Code::kInvalidProgram, "member: expected each result once, got one twice");
  refused(
      rope(VkDataType::FLOAT32, [](int32_t x, int32_t yq, int32_t) { return std::vector{yq, x}; }),
      Code::kInvalidProgram, "member: expected a result, got the argument xq");
  refused(top(VkDataType::INT32, VkDataType::INT32), Code::kInvalidProgram,
          "type: expected f32, got i32");
  refused(top(VkDataType::FLOAT32, VkDataType::FLOAT32), Code::kUnsupported,
          "type: expected i32, i64, got f32");
  refused(split(VkDataType::INT32), Code::kInvalidProgram, "type: expected f32, got i32");
}

// Rotary embeddings by complex numbers, and an operator that nobody knows: a type that Pteryx does
// not have is told with everything else.
TEST(Load, ListsEverythingThatCannotRun) {
  ProgramBuilder p;
  const TensorSpec complex{.dtype = static_cast<pte::ScalarType>(9), .sizes = {2}, .buffer = 1};
  const int32_t x = p.add_tensor({.sizes = {2, 2}});
  const int32_t turns = p.add_tensor(complex);
  const int32_t as_complex = p.add_tensor(complex);
  const int32_t once = p.add_tensor(complex);
  const int32_t twice = p.add_tensor(complex);
  const int32_t real = p.add_tensor({.sizes = {2, 2}, .buffer = 1});
  const int32_t y = p.add_tensor({.sizes = {2, 2}});
  const auto call = [&](const char* op, const std::vector<int32_t>& args) {
    p.add_kernel_call(p.add_operator(op, "out"), args);
  };
  call("aten::view_as_complex", {x, as_complex, as_complex});
  call("aten::mul", {as_complex, turns, once, once});
  call("aten::mul", {once, turns, twice, twice});
  call("aten::view_as_real_copy", {twice, real, real});
  call("aten::teleport", {real, y, y});
  p.inputs = {x, turns};
  p.outputs = {y};
  const SavedFile file(p.finish().text());
  const std::string want =
      "method 'forward' has 5 calls that Pteryx cannot run:\n"
      "  2 calls of aten::mul.out: aten.mul.Tensor (instruction 1): a (value 2): unsupported dtype "
      "complex64\n"
      "  1 call of aten::view_as_complex.out: unknown operator aten::view_as_complex.out "
      "(instruction 0)(f32[2, 2], unsupported dtype complex64)\n"
      "  1 call of aten::view_as_real_copy.out: unknown operator aten::view_as_real_copy.out "
      "(instruction 3)(unsupported dtype complex64, f32[2, 2])\n"
      "  1 call of aten::teleport.out: unknown operator aten::teleport.out (instruction 4)(f32[2, "
      "2], f32[2, 2])";
  const auto session = Session::load(file.path(), {.device = device()});
  ASSERT_FALSE(session.ok()) << "was accepted";
  EXPECT_EQ(session.status().code(), Code::kUnsupported);
  EXPECT_EQ(session.status().message().substr(0, want.size()), want);
  const auto report = inspect(file.path(), {});
  ASSERT_TRUE(report.ok()) << report.status().message();
  const MethodReport& method = report->methods[0];
  EXPECT_EQ(method.problem, want);
  EXPECT_EQ(method.info.inputs[1].kind, "unsupported dtype complex64");
  ASSERT_EQ(method.operators.size(), 4U);
  EXPECT_EQ(method.operators[0].name, "aten.mul.Tensor");
  EXPECT_EQ(method.operators[0].unsupported, 2U);
}

// No call reads it, so there is none to name.
TEST(Load, NamesAResultOfAnUnsupportedType) {
  ProgramBuilder p;
  const int32_t x = p.add_tensor({.dtype = static_cast<pte::ScalarType>(10)});
  p.inputs = p.outputs = {x};
  const auto session = load_bytes(p.finish().text());
  ASSERT_FALSE(session.ok()) << "was accepted";
  EXPECT_EQ(session.status().code(), Code::kUnsupported);
  EXPECT_NE(session.status().message().find(
                "input 0 of 'forward' (value 0): unsupported dtype complex128"),
            std::string_view::npos)
      << session.status().message();
}

// In a delegate, as an argument and as a constant.
TEST(Load, ListsUnsupportedTensorsOfDelegates) {
  DelegateProgram p;
  const int32_t x = p.input(VkDataType::FLOAT32, {2});
  const std::vector<uint32_t> nine(9, 1);
  const int32_t constant = p.blob.add_tensor({.dims = nine, .constant = 0});
  p.zeros({1});
  const int32_t packed = p.blob.add_tensor({.dims = nine});
  const int32_t unset = p.blob.add_tensor({.dtype = VkDataType::UNSET, .dims = {2}});
  const int32_t y = p.floats({2});
  p.blob.add_call("et_vk.prepack.default", {constant, packed});
  p.blob.add_call("aten.relu.default", {x, unset});
  p.blob.add_call("aten.relu.default", {unset, y});
  p.output(y);
  const auto session = load_bytes(p.finish());
  ASSERT_FALSE(session.ok()) << "was accepted";
  EXPECT_EQ(session.status().code(), Code::kUnsupported);
  for (const char* text :
       {"has 3 calls that Pteryx cannot run:",
        "\n  2 calls of aten.relu.default: aten.relu.default (delegate 0, node 1): y (delegate 0 "
        "value 4): unsupported dtype UNSET",
        "\n  1 call of et_vk.prepack.default: et_vk.prepack.default (delegate 0, node 0): x "
        "(delegate 0 value 1): rank: expected at most 8, got 9"}) {
    EXPECT_NE(session.status().message().find(text), std::string_view::npos)
        << text << "\n"
        << session.status().message();
  }
}

}  // namespace
}  // namespace pteryx::testing
