// Programs that must be refused, and calls. Each row is one thing that is wrong; a refusal leaves
// nothing on the device and does not disturb a session that works.
// SPDX-License-Identifier: BSD-3-Clause
#include <functional>

#include <gtest/gtest.h>

#include "programs.h"

namespace pteryx::testing {
namespace {

using vk::VkDataType;

// y = x + w, w a constant, and beside it the parts that rows break.
struct Sum {
  DelegateProgram p;
  BlobBuilder& b = p.blob;
  int32_t x = p.input(VkDataType::FLOAT32, {2, 4});
  int32_t w = p.prepacked(p.weights({4}, 1), {4});
  int32_t one = b.add_int(1);
  int32_t y = p.floats({2, 4});

  void call(std::vector<int32_t> args) { b.add_call("aten.add.Tensor", args); }
  std::string done() {
    p.output(y);
    return p.finish();
  }
};
std::string whole() {
  Sum s;
  s.call({s.x, s.w, s.one, s.y});
  return s.done();
}

// q and k turned by tables; `outs` makes the last argument.
std::string rope(const std::function<int32_t(Sum&, int32_t, int32_t)>& outs) {
  Sum s;
  const int32_t q = s.p.input(VkDataType::FLOAT32, {1, 2, 3, 4});
  const int32_t k = s.p.input(VkDataType::FLOAT32, {1, 2, 1, 4});
  const int32_t table = s.p.prepacked(s.p.weights({2, 2}, 2), {2, 2});
  const int32_t yq = s.p.floats({1, 2, 3, 4});
  const int32_t yk = s.p.floats({1, 2, 1, 4});
  s.b.add_call("et_vk.apply_rotary_emb.default", {q, k, table, table, outs(s, yq, yk)});
  s.y = yq;
  return s.done();
}

// x plus a constant of four numbers that is found as `entry` says.
std::string with_constant(const std::function<int32_t(BlobBuilder&)>& entry) {
  Sum s;
  s.w = s.b.add_tensor({.dims = {4}, .constant = entry(s.b)});
  s.call({s.x, s.w, s.one, s.y});
  return s.done();
}

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

// y = -x, unless a flag is set: then y = x + w, where w does not go with x.
std::string branch() {
  program::testing::ProgramBuilder p;
  const int32_t flag = p.add_bool(true);
  const int32_t x = p.add_tensor({.sizes = {4}, .buffer = 1});
  const int32_t w = p.add_tensor({.sizes = {3}, .buffer = 1, .offset = 64});
  const int32_t y = p.add_tensor({.sizes = {4}, .buffer = 1, .offset = 128});
  const int32_t one = p.add_int(1);
  p.inputs = {flag, x, w};
  p.outputs = {y};
  p.add_kernel_call(p.add_operator("aten::neg", "out"), {x, y, y});
  p.add_jump_false(flag, 3);
  p.add_kernel_call(p.add_operator("aten::add", "out"), {x, w, one, y, y});
  p.add_free(x);
  return p.finish().text();
}

struct Row {
  const char* what;
  Code code;
  const char* text;
  std::string (*program)();
};

const Row kPrograms[] = {
    {"unknown operator", Code::kUnsupported, "unknown operator aten.teleport.default",
     [] {
       Sum s;
       s.b.add_call("aten.teleport.default", {s.x, s.w, s.one, s.y});
       return s.done();
     }},
    {"too few arguments", Code::kInvalidProgram,
     "aten.add.Tensor (delegate 0, node 1): expected 4 arguments, got 3",
     [] {
       Sum s;
       s.call({s.x, s.w, s.y});
       return s.done();
     }},
    {"an argument that is no value", Code::kInvalidProgram,
     "call 1 (aten.add.Tensor): argument 2 refers to value 999 of 5",
     [] {
       Sum s;
       s.call({s.x, s.w, 999, s.y});
       return s.done();
     }},
    {"an argument below 0", Code::kInvalidProgram,
     "call 1 (aten.add.Tensor): argument 2 refers to value -1 of 5",
     [] {
       Sum s;
       s.call({s.x, s.w, -1, s.y});
       return s.done();
     }},
    {"an argument of another kind", Code::kInvalidProgram, "kind: expected a tensor, got an int",
     [] {
       Sum s;
       s.call({s.x, s.one, s.one, s.y});
       return s.done();
     }},
    {"an output that is no value", Code::kInvalidProgram, "output 0 refers to value 77 of 5",
     [] {
       Sum s;
       s.call({s.x, s.w, s.one, s.y});
       s.b.outputs = {77};
       return s.done();
     }},
    {"results that are no list", Code::kInvalidProgram,
     "kind: expected a list of result tensors, got a tensor",
     [] { return rope([](Sum&, int32_t yq, int32_t) { return yq; }); }},
    {"one result too few", Code::kInvalidProgram, "length: expected 2, got 1",
     [] { return rope([](Sum& s, int32_t yq, int32_t) { return s.b.add_value_list({yq}); }); }},
    {"a result that is a number", Code::kInvalidProgram, "kind: expected a tensor, got a float",
     [] {
       return rope(
           [](Sum& s, int32_t yq, int32_t) { return s.b.add_value_list({yq, s.b.add_double(1)}); });
     }},
    {"a list member that is no value", Code::kInvalidProgram, "item 1 refers to 1000 of 12",
     [] {
       return rope([](Sum& s, int32_t yq, int32_t) { return s.b.add_value_list({yq, 1000}); });
     }},
    {"a constant beyond the table", Code::kInvalidProgram, "value 5: constant 9 of 1",
     [] { return with_constant([](BlobBuilder&) { return 9; }); }},
    {"a constant whose key nobody has", Code::kInvalidProgram, "no data named 'nowhere'",
     [] {
       return with_constant([](BlobBuilder& b) { return b.add_named_constant("nowhere", 16); });
     }},
    {"a constant that is too short", Code::kInvalidProgram, "constant 1: has length 12, need 16",
     [] { return with_constant([](BlobBuilder& b) { return b.add_inline_constant(0, 12); }); }},
    {"a constant behind the end", Code::kInvalidProgram,
     "constant 1: needs 16 bytes at 1048576, region has 16",
     [] {
       return with_constant([](BlobBuilder& b) { return b.add_inline_constant(1 << 20, 16); });
     }},
    {"a result of another shape", Code::kInvalidProgram,
     "shape: the file says [2, 5], the inputs give [2, 4]",
     [] {
       Sum s;
       s.y = s.p.floats({2, 5});
       s.call({s.x, s.w, s.one, s.y});
       return s.done();
     }},
    {"operands that do not broadcast", Code::kInvalidProgram, "a [2, 4] and b [3] do not broadcast",
     [] {
       Sum s;
       const int32_t v = s.p.prepacked(s.p.weights({3}, 1), {3});
       s.call({s.x, v, s.one, s.y});
       return s.done();
     }},
    {"operands of a branch that do not broadcast", Code::kInvalidProgram,
     "a [4] and b [3] do not broadcast", branch},
    {"an element type the operator has not", Code::kUnsupported,
     "indices (value 1) type: expected i32, i64, got f32",
     [] {
       Sum s;
       const int32_t ids = s.p.input(VkDataType::FLOAT32, {3});
       const int32_t rows = s.p.floats({3, 4});
       s.b.add_call("aten.embedding.default",
                    {s.p.weights({5, 4}, 1), ids, s.one, s.one, s.one, rows});
       s.y = rows;
       return s.done();
     }},
    {"a value read before it is written", Code::kInvalidProgram,
     "argument 1 (delegate 0 value 5) is used before it is written",
     [] {
       Sum s;
       const int32_t later = s.p.floats({2, 4});
       s.call({s.x, later, s.one, s.y});
       s.call({s.x, s.w, s.one, later});
       return s.done();
     }},
    {"a scalar result that is a tensor", Code::kInvalidProgram,
     "kind: expected a result scalar, got a tensor",
     [] {
       Sum s;
       const int32_t zero = s.b.add_int(0);
       const int32_t ids = s.p.input(VkDataType::INT32, {1});
       s.b.add_call("et_vk.select_as_symint.default", {ids, zero, zero, s.p.floats({1})});
       s.call({s.x, s.w, s.one, s.y});
       return s.done();
     }},
    {"more elements than can be counted", Code::kInvalidProgram,
     "shape [1073741824, 1073741824, 1073741824] overflows",
     [] {
       Sum s;
       const int32_t huge = s.p.input(VkDataType::FLOAT32, {1 << 30, 1 << 30, 1 << 30});
       const int32_t result = s.p.floats({1 << 30, 1 << 30, 1 << 30});
       s.b.add_call("aten.relu.default", {huge, result});
       s.y = result;
       return s.done();
     }},
    {"a header of something else", Code::kInvalidProgram,
     "delegate blob is not a Vulkan graph (magic 'VH99')",
     [] { return replaced(whole(), "VH00", "VH99"); }},
    {"a graph of something else", Code::kInvalidProgram,
     "delegate graph identifier 'VK99' != 'VK00'",
     [] { return replaced(whole(), "VK00", "VK99"); }},
    {"half a file", Code::kInvalidProgram, "file is truncated",
     [] { return whole().substr(0, whole().size() / 2); }},
    {"no file at all", Code::kInvalidProgram, "file too small for an ExecuTorch program: 0 bytes",
     [] { return std::string(); }},
};

TEST(Refusal, BrokenProgramsAreNamedAndLeaveNothing) {
  auto good = load_bytes(whole());
  ASSERT_TRUE(good.ok()) << good.status().message();
  const std::vector<float> x = {1, 2, 3, 4, 5, 6, 7, 8};
  const Value inputs[] = {tensor<float>({2, 4}, x)};
  const auto sum = [&] {
    const auto y = good->run("forward", inputs);
    EXPECT_TRUE(y.ok());
    const auto v = y->front().tensor()->as<float>();
    return std::vector<float>(v.begin(), v.end());
  };
  const std::vector<float> want = sum();
  EXPECT_NE(want, x);  // the constant got there
  for (const Row& row : kPrograms) {
    SCOPED_TRACE(row.what);
    const gpu::Counters before = device()->counters();
    const auto session = load_bytes(row.program());
    ASSERT_FALSE(session.ok()) << "was accepted";
    EXPECT_EQ(session.status().code(), row.code) << session.status().message();
    EXPECT_NE(session.status().message().find(row.text), std::string_view::npos)
        << session.status().message();
    const gpu::Counters after = device()->counters();
    EXPECT_EQ(after.buffers_created, before.buffers_created) << "made before all was checked";
    EXPECT_EQ(after.buffers_alive, before.buffers_alive);
    EXPECT_EQ(after.bind_groups_alive, before.bind_groups_alive);
    EXPECT_EQ(after.pipelines_created, before.pipelines_created);
    EXPECT_EQ(sum(), want);
  }
}

// What the device does not allow is found before anything is made, also behind a buffer that it
// does.
TEST(Refusal, ABufferLargerThanTheDeviceHasLeavesNothing) {
  Sum s;
  s.call({s.x, s.w, s.one, s.y});
  const int32_t huge = s.p.input(VkDataType::FLOAT32, {1 << 15, 1 << 16});
  const int32_t result = s.p.floats({1 << 15, 1 << 16});
  s.b.add_call("aten.relu.default", {huge, result});
  s.p.output(result);
  const std::string program = s.done();
  const gpu::Counters before = device()->counters();
  const auto session = load_bytes(program);
  ASSERT_FALSE(session.ok()) << "was accepted";
  EXPECT_EQ(session.status().code(), Code::kUnsupported);
  EXPECT_NE(
      session.status().message().find("f32 [32768, 65536]: 8589934592 bytes, max_buffer_bytes of "),
      std::string_view::npos)
      << session.status().message();
  const gpu::Counters after = device()->counters();
  EXPECT_EQ(after.buffers_created, before.buffers_created) << "made before all was checked";
  EXPECT_EQ(after.buffers_alive, before.buffers_alive);
  EXPECT_EQ(after.buffer_bytes_alive, before.buffer_bytes_alive);
  EXPECT_EQ(after.bind_groups_alive, before.bind_groups_alive);
  EXPECT_EQ(after.pipelines_created, before.pipelines_created);
}

// ---- calls

TEST(Refusal, WrongCallsAreNamedAndChangeNothing) {
  auto session = load_bytes(TinyModel{}.build());
  ASSERT_TRUE(session.ok()) << session.status().message();
  ASSERT_TRUE(run_step(*session, {6, 0}).ok());
  const auto want = run_step(*session, {1, 6});
  ASSERT_TRUE(want.ok());

  const std::vector<int64_t> ids = {1, 2, 3};
  const std::vector<int64_t> six = {6};
  const std::vector<int64_t> far = {int64_t{1} << 40};
  const std::vector<float> floats = {1, 2, 3};
  const std::vector<int64_t> many(301);
  const TensorView tokens = tensor<int64_t>({1, 3}, ids);
  const TensorView position = tensor<int64_t>({1}, six);
  struct Call {
    const char* what;
    const char* text;
    std::vector<Value> inputs;
  };
  const Call calls[] = {
      {"no inputs", "method 'forward' takes 2 inputs, got 0", {}},
      {"one input too many",
       "method 'forward' takes 2 inputs, got 3",
       {tokens, position, position}},
      {"an int for a tensor",
       "input 1 of 'forward': expected a tensor, got 6",
       {tokens, Value(int64_t{6})}},
      {"floats for ids",
       "input 0 of 'forward' type: expected i64, got f32",
       {tensor<float>({1, 3}, floats), position}},
      {"another rank",
       "input 0 of 'forward' rank: expected 2 ([1, 300]), got 1 ([3])",
       {tensor<int64_t>({3}, ids), position}},
      {"no tokens",
       "input 0 of 'forward' dim 1: expected 1 to 300, got 0 ([1, 0])",
       {tensor<int64_t>({1, 0}, ids), position}},
      {"more tokens than the bound",
       "input 0 of 'forward' dim 1: expected 1 to 300, got 301",
       {tensor<int64_t>({1, 301}, many), position}},
      {"a position beyond 32 bits", "does not fit 32 bits", {tokens, tensor<int64_t>({1}, far)}},
      {"less memory than the dims say",
       "size: expected 24 bytes, got 16 bytes",
       {TensorView{.dtype = DType::kI64, .dims = {1, 3}, .data = ids.data(), .size_bytes = 16},
        position}},
  };
  for (const Call& c : calls) {
    SCOPED_TRACE(c.what);
    const auto got = session->run("forward", c.inputs);
    ASSERT_FALSE(got.ok()) << "was accepted";
    EXPECT_EQ(got.status().code(), Code::kInvalidArgument) << got.status().message();
    EXPECT_NE(got.status().message().find(c.text), std::string_view::npos)
        << got.status().message();
    const auto again = run_step(*session, {1, 6});
    ASSERT_TRUE(again.ok()) << again.status().message();
    EXPECT_TRUE(*again == *want);
  }
}

// An element by its place along one dim, the other coordinates 0; counted in live dims.
TEST(LiveScalar, IsReadFromASourceOfAnyRank) {
  struct Read {
    int64_t dim, index, want;
  };
  for (const Read& r : {Read{0, 1, 4}, Read{1, 2, 3}, Read{-1, -1, 3}, Read{-2, 0, 1}}) {
    DelegateProgram p;
    const int32_t x = p.input(VkDataType::INT32, {5, 7}, DelegateProgram::Size::kDynamic);
    const int32_t n = p.blob.add_symint();
    p.blob.add_call("et_vk.select_as_symint.default",
                    {x, p.blob.add_int(r.dim), p.blob.add_int(r.index), n});
    const int32_t table = p.prepacked(p.weights({9}, 1), {9});
    const int32_t y = p.floats({9});
    const int32_t zero = p.blob.add_int(0);
    p.blob.add_call("aten.slice_copy.Tensor", {table, zero, zero, n, p.blob.add_int(1), y});
    p.output(y);
    auto session = load_bytes(p.finish());
    ASSERT_TRUE(session.ok()) << session.status().message();
    const std::vector<int64_t> values = {1, 2, 3, 4, 5, 6};
    const Value inputs[] = {tensor<int64_t>({2, 3}, values)};
    const auto out = session->run("forward", inputs);
    ASSERT_TRUE(out.ok()) << out.status().message();
    EXPECT_EQ(out->front().tensor()->dims, (Dims{r.want}));
  }
}

// What a scalar is read from must have the element.
TEST(LiveScalar, NothingToReadIsRefused) {
  const auto program = [](int64_t index) {
    DelegateProgram p;
    const int32_t x = p.input(VkDataType::INT32, {5}, DelegateProgram::Size::kDynamic);
    const int32_t n = p.blob.add_symint();
    const int32_t zero = p.blob.add_int(0);
    p.blob.add_call("et_vk.select_as_symint.default", {x, zero, p.blob.add_int(index), n});
    const int32_t table = p.prepacked(p.weights({9}, 1), {9});
    const int32_t y = p.floats({9});
    p.blob.add_call("aten.slice_copy.Tensor", {table, zero, zero, n, p.blob.add_int(1), y});
    p.output(y);
    return p.finish();
  };
  const std::vector<int64_t> values = {3, 4};
  const auto refused = [&](int64_t index, int64_t count, std::string_view text) {
    auto session = load_bytes(program(index));
    ASSERT_TRUE(session.ok()) << session.status().message();
    const Value inputs[] = {tensor<int64_t>({count}, values)};
    const auto got = session->run("forward", inputs);
    ASSERT_FALSE(got.ok()) << "was accepted";
    EXPECT_EQ(got.status().code(), Code::kInvalidArgument);
    EXPECT_NE(got.status().message().find(text), std::string_view::npos) << got.status().message();
  };
  refused(0, 0, "input 0 of 'forward' dim 0: expected 1 to 5, got 0");
  refused(2, 2, "index: expected -2 to 1, got 2");
  refused(-3, 2, "index: expected -2 to 1, got -3");
}

}  // namespace
}  // namespace pteryx::testing
