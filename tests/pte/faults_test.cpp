// Inputs whose sizes disagree: a fault of the run where they may differ, of the file where they are
// written down.
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include "programs.h"

namespace pteryx::testing {
namespace {

using Size = DelegateProgram::Size;
using vk::VkDataType;
using Shape = std::vector<int32_t>;

// A call of two inputs with these bounds; `call` adds it and gives the result.
struct Pair {
  const char* name;
  Shape a, b, y;
  std::vector<int64_t> good_a, good_b;  // sizes of a run
  std::vector<int64_t> bad_b;           // do not go with good_a
  void (*call)(DelegateProgram& p, int32_t a, int32_t b, int32_t y);
};

const Pair kPairs[] = {
    {"add",
     {4, 8},
     {4, 8},
     {4, 8},
     {3, 8},
     {3, 8},
     {2, 8},
     [](DelegateProgram& p, int32_t a, int32_t b, int32_t y) {
       p.blob.add_call("aten.add.Tensor", {a, b, p.blob.add_int(1), y});
     }},
    {"mm",
     {4, 8},
     {8, 5},
     {4, 5},
     {3, 6},
     {6, 5},
     {7, 5},
     [](DelegateProgram& p, int32_t a, int32_t b, int32_t y) {
       p.blob.add_call("aten.mm.default", {a, b, y});
     }},
    {"cat",
     {4, 8},
     {4, 8},
     {8, 8},
     {3, 8},
     {4, 8},
     {4, 7},
     [](DelegateProgram& p, int32_t a, int32_t b, int32_t y) {
       p.blob.add_call("aten.cat.default", {p.blob.add_value_list({a, b}), p.blob.add_int(0), y});
     }},
    {"rms_norm",
     {4, 8},
     {8},
     {4, 8},
     {3, 6},
     {6},
     {7},
     [](DelegateProgram& p, int32_t a, int32_t b, int32_t y) {
       p.blob.add_call("et_vk.rms_norm.default", {a, b, p.blob.add_double(1e-5), y});
     }},
    {"rope",
     {1, 6, 2, 4},
     {1, 6, 1, 4},
     {1, 6, 2, 4},
     {1, 3, 2, 4},
     {1, 3, 1, 4},
     {1, 2, 1, 4},
     [](DelegateProgram& p, int32_t a, int32_t b, int32_t y) {
       const int32_t table = p.prepacked(p.weights({6, 2}, 1), {6, 2});
       const int32_t yk = p.floats({1, 6, 1, 4});
       p.blob.add_call("et_vk.apply_rotary_emb.default",
                       {a, b, table, table, p.blob.add_value_list({y, yk})});
     }},
    {"sdpa",
     {1, 2, 4, 8},
     {1, 2, 6, 8},
     {1, 2, 4, 8},
     {1, 2, 3, 8},
     {1, 2, 5, 8},
     {1, 1, 5, 8},
     [](DelegateProgram& p, int32_t a, int32_t b, int32_t y) {
       const int32_t none = p.blob.add_null();
       p.blob.add_call("et_vk.sdpa.default", {a, b, b, none, none, y});
     }},
    {"view",
     {4, 8},
     {4, 8},
     {4, 8},
     {3, 8},
     {3, 8},
     {2, 8},
     // a under the dims of b
     [](DelegateProgram& p, int32_t a, int32_t b, int32_t y) {
       const int32_t rows = p.blob.add_symint();
       p.blob.add_call("sym_size.int", {b, p.blob.add_int(0), rows});
       p.blob.add_call("aten.view_copy.default",
                       {a, p.blob.add_value_list({rows, p.blob.add_int(8)}), y});
     }},
};

std::string program(const Pair& pair, const Shape& b_bound) {
  DelegateProgram p;
  const int32_t a = p.input(VkDataType::FLOAT32, pair.a, Size::kDynamic);
  const int32_t b = p.input(VkDataType::FLOAT32, b_bound, Size::kDynamic);
  const int32_t y = p.floats(pair.y);
  pair.call(p, a, b, y);
  p.output(y);
  return p.finish();
}

Status run(Session& session, const std::vector<int64_t>& a, const std::vector<int64_t>& b) {
  static const std::vector<float> numbers(1000, 0.5F);
  const auto view = [&](const std::vector<int64_t>& dims) {
    const Dims d{std::span<const int64_t>(dims)};
    return tensor<float>(d, std::span<const float>(numbers).first(static_cast<size_t>(numel(d))));
  };
  const Value inputs[] = {view(a), view(b)};
  auto outputs = session.run("forward", inputs);
  return outputs.ok() ? Status() : std::move(outputs).status();
}

TEST(Faults, InputsThatDisagreeAreTheCallers) {
  for (const Pair& pair : kPairs) {
    SCOPED_TRACE(pair.name);
    auto session = load_bytes(program(pair, pair.b));
    ASSERT_TRUE(session.ok()) << session.status().message();
    ASSERT_TRUE(run(*session, pair.good_a, pair.good_b).ok());
    const Status bad = run(*session, pair.good_a, pair.bad_b);
    EXPECT_EQ(bad.code(), Code::kInvalidArgument) << bad.message();
    EXPECT_TRUE(run(*session, pair.good_a, pair.good_b).ok());
  }
}

TEST(Faults, BoundsThatDisagreeAreTheFiles) {
  for (const Pair& pair : kPairs) {
    if (std::string_view(pair.name) == "view") continue;  // any bound of b goes with a
    SCOPED_TRACE(pair.name);
    Shape bound(pair.b.size());
    for (size_t i = 0; i < bound.size(); ++i) {
      const bool other = pair.bad_b[i] != pair.good_b[i];
      bound[i] = pair.b[i] - (other ? 1 : 0);
    }
    const auto session = load_bytes(program(pair, bound));
    ASSERT_FALSE(session.ok()) << "was accepted";
    EXPECT_EQ(session.status().code(), Code::kInvalidProgram) << session.status().message();
  }
}

}  // namespace
}  // namespace pteryx::testing
