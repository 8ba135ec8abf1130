// Weights in parts compute what they compute whole: every operator that is split, every type.
// SPDX-License-Identifier: BSD-3-Clause
#include <cmath>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "pteryx/fuse/passes.h"
#include "pteryx/session/limits.h"
#include "pteryx/session/testing/graphs.h"

namespace pteryx {
namespace {

using graph::Tensor;
using graph::ValueId;

constexpr int64_t kRows = 200;  // of weights
constexpr int64_t kWidth = 64;  // elements of a row

// Equal drafts hold equal numbers.
struct Draft : testing::GraphDraft {
  std::vector<std::byte> data;
  std::mt19937 random{7};
  Value input;
  std::vector<float> floats;
  std::vector<int32_t> ids;

  ValueId constant(DType t, const Dims& dims) {
    const uint64_t at = data.size();
    const auto count = static_cast<size_t>(numel(dims));
    for (size_t i = 0; i < count; ++i) {
      const float v = static_cast<float>(random() % 1000) / 1000.0F - 0.5F;
      const uint16_t half = to_half(v);
      const auto byte = static_cast<uint8_t>(random());
      if (t == DType::kF32) append(&v, 4);
      if (t == DType::kF16) append(&half, 2);
      if (t == DType::kU8 || t == DType::kI8) append(&byte, 1);
    }
    return value(Tensor{.dtype = t, .max = dims, .data = {{0, at, data.size() - at}}});
  }
  void append(const void* from, size_t size) {
    const auto* bytes = static_cast<const std::byte*>(from);
    data.insert(data.end(), bytes, bytes + size);
  }
  static uint16_t to_half(float v) {
    std::vector<std::byte> bits(2);
    ops::HostTensor{DType::kF16, {1}, bits.data()}.put(0, static_cast<double>(v));
    uint16_t half = 0;
    std::memcpy(&half, bits.data(), 2);
    return half;
  }
  ValueId number(int64_t v) { return value(v); }
  ValueId none() { return value(graph::Null{}); }
  ValueId typed(DType t, const Dims& dims) { return value(Tensor{.dtype = t, .max = dims}); }

  // The input of the graph.
  ValueId x(const Dims& dims) {
    for (int64_t i = 0; i < numel(dims); ++i)
      floats.push_back(static_cast<float>(i * 37 % 101) / 50.0F - 1.0F);
    input = TensorView{
        .dtype = DType::kF32, .dims = dims, .data = floats.data(), .size_bytes = floats.size() * 4};
    g.inputs = {tensor(dims)};
    return g.inputs[0];
  }
  ValueId tokens(const Dims& dims) {
    for (int64_t i = 0; i < numel(dims); ++i)
      ids.push_back(static_cast<int32_t>((i * 61 + kRows - 1) % kRows));
    input = TensorView{
        .dtype = DType::kI32, .dims = dims, .data = ids.data(), .size_bytes = ids.size() * 4};
    g.inputs = {typed(DType::kI32, dims)};
    return g.inputs[0];
  }
  void result(std::string_view op, std::vector<ValueId> args, const Dims& dims,
              DType t = DType::kF32) {
    args.push_back(typed(t, dims));
    g.outputs = {args.back()};
    call(op, std::move(args));
  }
};
using Make = std::function<void(Draft&)>;

struct Got {
  std::vector<float> values;
  size_t parts = 0;
  size_t nodes = 0;
};
Got run(const Make& make, uint64_t most_bytes, const std::string& routes) {
  Draft d;
  make(d);
  const auto splits = fuse::run_passes(d.g, ops::lookup(), {.most_constant_bytes = most_bytes});
  Got got{.parts = splits.empty() ? 1 : splits[0].parts, .nodes = d.g.nodes.size()};
  const DType type = d.g.tensor(d.g.outputs[0])->dtype;
  const std::vector<SourcePtr> sources = {std::make_shared<MemorySource>("weights", d.data)};
  testing::LoadedGraph loaded(std::move(d.g), sources, routes);
  EXPECT_TRUE(loaded.status().ok()) << loaded.status().message();
  if (!loaded.status().ok()) return got;
  // What kernels see of any constant is within the limit.
  const Layout& layout = loaded.method().layout();
  for (const Root& r : layout.roots) EXPECT_LE(r.constant && r.gpu ? r.gpu_bytes : 0, most_bytes);
  for (const Layout::Relaid& r : layout.relaid) EXPECT_LE(r.bytes, most_bytes);
  const auto outputs = loaded.run(std::span(&d.input, 1));
  EXPECT_TRUE(outputs.ok()) << outputs.status().message();
  if (!outputs.ok()) return got;
  const TensorView& y = *outputs->front().tensor();
  const ops::HostTensor host{type, y.dims, static_cast<std::byte*>(const_cast<void*>(y.data))};
  for (int64_t i = 0; i < host.numel(); ++i)
    got.values.push_back(static_cast<float>(host.number(i)));
  return got;
}

constexpr uint64_t kAll = UINT64_MAX;

// With the same kernel for each result, results are the same to the bit.
void expect_same(std::string_view what, uint64_t most_bytes, size_t parts, const Make& make,
                 const std::string& routes = "matmul:naive,qlinear:naive") {
  SCOPED_TRACE(what);
  const Got whole = run(make, kAll, routes);
  const Got split = run(make, most_bytes, routes);
  EXPECT_EQ(whole.parts, 1U);
  EXPECT_EQ(split.parts, parts);
  EXPECT_FALSE(whole.values.empty());
  EXPECT_EQ(whole.values, split.values);
}

// And with the kernels that are chosen, as close as sums in another order are.
void expect_close(std::string_view what, uint64_t most_bytes, size_t parts, const Make& make) {
  expect_same(what, most_bytes, parts, make);
  SCOPED_TRACE(what);
  const Got whole = run(make, kAll, "");
  const Got split = run(make, most_bytes, "");
  ASSERT_EQ(whole.values.size(), split.values.size());
  for (size_t i = 0; i < whole.values.size(); ++i)
    EXPECT_NEAR(whole.values[i], split.values[i], 1e-4F * (std::fabs(whole.values[i]) + 1));
}

TEST(SplitRows, LinearOfFloats) {
  for (const DType t : {DType::kF32, DType::kF16}) {
    for (const int64_t m : {1, 20}) {
      const uint64_t row = kWidth * size_bytes(t);
      const Make linear = [&](Draft& d) {
        const ValueId x = d.x({1, m, kWidth});
        const ValueId w = d.constant(t, {kRows, kWidth});
        d.result("aten.linear.default", {x, w, d.constant(DType::kF32, {kRows})}, {1, m, kRows});
      };
      expect_close("linear", 64 * row, 4, linear);
      if (m == 1) expect_close("linear in tiny parts", 4 * row, 50, linear);
      for (const bool turned : {false, true}) {
        if (turned && t == DType::kF16) continue;
        const auto matrix = [&](Draft& d) {
          const ValueId w = d.constant(t, {kWidth, kRows});
          if (turned) std::get<Tensor>(d.g.values[graph::index(w)]).dim_order = {1, 0};
          return w;
        };
        expect_close("mm", 64 * row, 4, [&](Draft& d) {
          const ValueId x = d.x({m, kWidth});
          d.result("aten.mm.default", {x, matrix(d)}, {m, kRows});
        });
        expect_close("addmm", 64 * row, 4, [&](Draft& d) {
          const ValueId x = d.x({m, kWidth});
          const ValueId w = matrix(d);
          const ValueId self = d.constant(DType::kF32, {kRows});
          d.result("aten.addmm.default", {self, x, w, d.value(0.5), d.value(2.0)}, {m, kRows});
        });
      }
    }
  }
}

// What is added to the product is computed, and cut by a node.
TEST(SplitRows, AddmmOfAComputedSelf) {
  for (const auto& [rows, parts] : {std::pair(64U, 1U), {16U, 4U}}) {
    expect_close("addmm", rows * kWidth * 4, parts, [](Draft& d) {
      const ValueId x = d.x({64, 64});
      const ValueId self = d.tensor({64, 64});
      d.call("aten.relu.default", {x, self});
      const ValueId w = d.constant(DType::kF32, {64, 64});
      d.result("aten.addmm.default", {self, x, w, d.number(1), d.number(1)}, {64, 64});
    });
  }
}

TEST(SplitRows, LinearOfFourBitGroups) {
  for (const DType t : {DType::kF32, DType::kF16}) {
    for (const int64_t m : {1, 20}) {
      for (const bool bias : {false, true}) {
        const Make linear = [&](Draft& d) {
          const ValueId x = d.x({1, m, kWidth});
          const ValueId w = d.constant(DType::kU8, {kRows, kWidth / 2});
          const ValueId s = d.constant(t, {kWidth / 32, kRows + 4});
          const ValueId b = bias ? d.constant(t, {kRows + 4}) : d.none();
          d.result("et_vk.linear_q4gsw.default", {x, w, s, d.number(32), b}, {1, m, kRows});
        };
        expect_close("q4gsw", 64 * 32, 4, linear);
        if (m == 1) expect_close("q4gsw in tiny parts", 4 * 32, 50, linear);
      }
    }
  }
}

// One product with minimums where it fits; else the layer and the product of the minimums are cut.
TEST(SplitRows, LinearOfFourBitGroupsWithMinimums) {
  const Make linear = [](Draft& d) {
    const ValueId x = d.x({20, kWidth});
    const ValueId y = d.tensor({20, kRows});
    d.call("et_vk.linear_q4gsw.default",
           {x, d.constant(DType::kU8, {kRows, kWidth / 2}),
            d.constant(DType::kF32, {kWidth / 32, kRows}), d.number(32), d.none(), y});
    const auto computed = [&](std::string_view op, std::vector<ValueId> args, const Dims& dims) {
      d.result(op, std::move(args), dims);
      return d.g.outputs[0];
    };
    const ValueId shape = d.value(graph::IntList{{20, kWidth / 32, 32}});
    const ValueId groups = computed("aten.view_copy.default", {x, shape}, {20, kWidth / 32, 32});
    const ValueId last = d.value(graph::IntList{{2}});
    const ValueId sums = computed("aten.sum.dim_IntList", {groups, last, d.value(false), d.none()},
                                  {20, kWidth / 32});
    const ValueId z = d.constant(DType::kF32, {kWidth / 32, kRows});
    d.result("aten.add.Tensor",
             {y, computed("aten.mm.default", {sums, z}, {20, kRows}), d.number(1)}, {20, kRows});
  };
  const Got whole = run(linear, kAll, "");
  const Got split = run(linear, 64 * 16, "");
  EXPECT_TRUE(whole.nodes == 1 && split.parts > 1);
  ASSERT_EQ(whole.values.size(), split.values.size());
  for (size_t i = 0; i < whole.values.size(); ++i)
    EXPECT_NEAR(whole.values[i], split.values[i], 1e-4F * (std::fabs(whole.values[i]) + 1));
}

// Rows of 6 bytes are bound as 16.
TEST(SplitRows, RowsThatKernelsPad) {
  expect_close("q4gsw", 64 * 16, 4, [](Draft& d) {
    const ValueId x = d.x({1, 12});
    const ValueId w = d.constant(DType::kU8, {kRows, 6});
    const ValueId s = d.constant(DType::kF32, {3, kRows});
    d.result("et_vk.linear_q4gsw.default", {x, w, s, d.number(4), d.none()}, {1, kRows});
  });
}

// Scales of small groups are more than the codes.
TEST(SplitRows, ScalesThatAreLargerThanTheWeight) {
  expect_close("q4gsw", 64 * 64, 4, [](Draft& d) {
    const ValueId x = d.x({1, kWidth});
    const ValueId w = d.constant(DType::kU8, {kRows, kWidth / 2});
    const ValueId s = d.constant(DType::kF32, {kWidth / 4, kRows});
    d.result("et_vk.linear_q4gsw.default", {x, w, s, d.number(4), d.none()}, {1, kRows});
  });
}

TEST(SplitRows, LinearOfOneScaleForARow) {
  for (const int64_t m : {1, 20}) {
    expect_close("qcs4w", 64 * 32, 4, [&](Draft& d) {
      const ValueId x = d.x({1, m, kWidth});
      const ValueId w = d.constant(DType::kU8, {kRows, kWidth / 2});
      d.result("et_vk.linear_qcs4w.default", {x, w, d.constant(DType::kF32, {kRows})},
               {1, m, kRows});
    });
    expect_close("int8pack", 64 * 64, 4, [&](Draft& d) {
      const ValueId x = d.x({1, m, kWidth});
      const ValueId w = d.constant(DType::kI8, {kRows, kWidth});
      d.result("aten._weight_int8pack_mm.default", {x, w, d.constant(DType::kF16, {1, kRows})},
               {1, m, kRows});
    });
  }
}

TEST(SplitRows, LinearOfQuantisedActivations) {
  expect_close("q8ta_q8csw", 64 * 64, 4, [](Draft& d) {
    const ValueId codes = d.constant(DType::kI8, {3, kWidth});
    d.x({1});
    const ValueId w = d.constant(DType::kI8, {kRows, kWidth});
    const ValueId sums = d.constant(DType::kF32, {kRows});
    const ValueId s = d.constant(DType::kF32, {kRows});
    const ValueId b = d.constant(DType::kF32, {kRows});
    d.result("et_vk.linear_q8ta_q8csw.default", {codes, d.value(0.5), d.number(3), w, sums, s, b},
             {3, kRows});
  });
  expect_close("dq8ca_q4gsw", 64 * 32, 4, [](Draft& d) {
    const ValueId x = d.x({2, kWidth});
    const ValueId scale = d.constant(DType::kF32, {2});
    const ValueId zero = d.constant(DType::kI8, {2});
    for (size_t i = 0; i < 2; ++i) {  // positive, as such scales are
      const float v = 0.01F;
      std::memcpy(d.data.data() + i * 4, &v, 4);
    }
    const ValueId w = d.constant(DType::kU8, {kRows, kWidth / 2});
    const ValueId sums = d.constant(DType::kF32, {kRows});
    const ValueId s = d.constant(DType::kF32, {kWidth / 32, kRows});
    d.result("et_vk.linear_dq8ca_q4gsw.default",
             {x, scale, zero, w, sums, s, d.number(32), d.none()}, {2, kRows});
  });
}

TEST(SplitRows, EmbeddingOfElements) {
  for (const DType t : {DType::kF32, DType::kF16, DType::kI8}) {
    for (const int64_t width : {kWidth, int64_t{5}}) {
      const uint64_t row = align_up(static_cast<uint64_t>(width) * size_bytes(t), 16);
      expect_same("embedding", 64 * row, 4, [&](Draft& d) {
        const ValueId ids = d.tokens({1, 30});
        d.result("aten.embedding.default",
                 {d.constant(t, {kRows, width}), ids, d.none(), d.none(), d.none()}, {1, 30, width},
                 t);
      });
    }
  }
}

// Parts of a single row each, which begin at any byte of the file.
TEST(SplitRows, EmbeddingOfSingleRows) {
  expect_same("embedding", 16, kRows, [](Draft& d) {
    const ValueId ids = d.tokens({1, 30});
    d.result("aten.embedding.default",
             {d.constant(DType::kI8, {kRows, 5}), ids, d.none(), d.none(), d.none()}, {1, 30, 5},
             DType::kI8);
  });
}

TEST(SplitRows, EmbeddingOfCodes) {
  for (const bool low_first : {false, true}) {
    for (const bool by_group : {false, true}) {
      expect_same("embedding_q4gsw", 64 * 32, 4, [&](Draft& d) {
        const ValueId ids = d.tokens({1, 30});
        const ValueId w = d.constant(DType::kU8, {kRows, kWidth / 2});
        const ValueId s = d.constant(DType::kF32, by_group ? Dims{2, kRows + 4} : Dims{kRows, 2});
        d.result("et_vk.embedding_q4gsw.default",
                 {w, s, d.number(32), ids, d.number(low_first ? 1 : 0)}, {1, 30, kWidth});
      });
    }
  }
  for (const bool typed : {false, true}) {
    for (const bool zeros : {false, true}) {
      for (const bool bytes : {false, true}) {
        const std::string op = std::string("quantized_decomposed.embedding_") +
                               (bytes ? "byte." : "4bit.") + (typed ? "dtype" : "default");
        expect_same(op, 64 * kWidth, bytes ? 4 : 2, [&](Draft& d) {
          const ValueId ids = d.tokens({1, 30});
          const ValueId w =
              d.constant(bytes ? DType::kI8 : DType::kU8, {kRows, bytes ? kWidth : kWidth / 2});
          const ValueId s = d.constant(DType::kF32, bytes ? Dims{kRows} : Dims{kRows, 2});
          const ValueId z =
              zeros ? d.constant(DType::kI8, bytes ? Dims{kRows} : Dims{kRows, 2}) : d.none();
          std::vector<ValueId> args = {w, s, z, d.none(), d.none(), ids};
          if (typed) args.push_back(d.none());
          d.result(op, args, {1, 30, kWidth});
        });
      }
    }
  }
}

// An id behind the last part is an error before anything runs, as for one table.
TEST(SplitRows, IdsAreComparedWithAllRows) {
  Draft d;
  const ValueId ids = d.tokens({1, 3});
  d.result("aten.embedding.default",
           {d.constant(DType::kF32, {kRows, 8}), ids, d.none(), d.none(), d.none()}, {1, 3, 8});
  fuse::run_passes(d.g, ops::lookup(), {.most_constant_bytes = 64 * 32});
  testing::LoadedGraph loaded(std::move(d.g), {std::make_shared<MemorySource>("w", d.data)});
  ASSERT_TRUE(loaded.status().ok()) << loaded.status().message();
  d.ids[1] = kRows;
  const auto outputs = loaded.run(std::span(&d.input, 1));
  ASSERT_FALSE(outputs.ok());
  EXPECT_EQ(outputs.status().code(), Code::kInvalidArgument);
  EXPECT_NE(outputs.status().message().find("200"), std::string_view::npos)
      << outputs.status().message();
}

// Both uses of a tied weight read the same buffers.
TEST(SplitRows, TiedWeightsAreUploadedOnce) {
  const auto bytes_of = [](uint64_t most) {
    Draft d;
    const ValueId ids = d.tokens({1, 3});
    const ValueId w = d.constant(DType::kF32, {kRows, kWidth});
    const ValueId x = d.tensor({1, 3, kWidth});
    d.call("aten.embedding.default", {w, ids, d.none(), d.none(), d.none(), x});
    // Another value of the same bytes, as delegates of several methods have them.
    const ValueId again = d.value(Tensor(*d.g.tensor(w)));
    d.result("aten.linear.default", {x, again, d.none()}, {1, 3, kRows});
    fuse::run_passes(d.g, ops::lookup(), {.most_constant_bytes = most});
    const uint64_t before = gpu::shared_device()->counters().write_bytes;
    testing::LoadedGraph loaded(std::move(d.g), {std::make_shared<MemorySource>("w", d.data)});
    EXPECT_TRUE(loaded.status().ok()) << loaded.status().message();
    const uint64_t written = gpu::shared_device()->counters().write_bytes - before;
    EXPECT_GE(written, d.data.size());
    EXPECT_LT(written, d.data.size() + 8192) << "params and a weight twice";
    return loaded.method().layout().memory.constants;
  };
  EXPECT_LE(bytes_of(64 * kWidth * 4), bytes_of(kAll));
}

}  // namespace
}  // namespace pteryx
