// Layers of language models, drawn at random: what passes make of them computes what they compute
// as they are.
// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "pteryx/fuse/passes.h"
#include "pteryx/gpu/cpu_device.h"
#include "pteryx/gpu/testing/compute.h"
#include "pteryx/session/testing/graphs.h"

namespace pteryx {
namespace {

using graph::Tensor;
using graph::ValueId;

constexpr int64_t kContext = 12;

enum class Weights : uint8_t { kFour, kEight, kF16, kF32 };
// What keeps a part of a layer from being what passes look for.
enum class Odd : uint8_t {
  kNothing,
  kKeysAreRead,   // by somebody else
  kNormIsRead,    // likewise
  kOneHeadNorm,   // queries have one, keys do not
  kEpsDiffer,     // of these norms
  kTablesApart,   // cos and sin of different positions
  kHeadsApart,    // keys are made from another x than queries
  kGateScaled,    // the gate is no SiLU times up
  kResidualTwice  // x + x + layer
};

struct Layer {
  Weights weights = Weights::kFour;
  int64_t width = 64, heads = 4, kv_heads = 2, size = 16, hidden = 64, group = 32, rows = 1;
  bool halves = false;
  bool normed = false;  // heads of queries and keys
  bool bias = false;    // of queries, keys and values
  DType cache = DType::kF32;
  Odd odd = Odd::kNothing;

  bool floats() const { return weights == Weights::kF16 || weights == Weights::kF32; }
  std::string describe() const {
    return fmt::format(
        "{} weights, width {}, {} heads, {} of keys, of {}, hidden {}, groups of {}, {} rows{}"
        "{}{}, {} cache, oddity {}",
        std::array{"4-bit", "8-bit", "f16", "f32"}[static_cast<size_t>(weights)], width, heads,
        kv_heads, size, hidden, group, rows, halves ? ", halves" : "",
        normed ? ", normed heads" : "", bias ? ", bias" : "", name(cache), static_cast<int>(odd));
  }
};

Layer draw(uint32_t seed) {
  std::mt19937 random(seed);
  const auto of = [&](std::vector<int64_t> v) { return v[random() % v.size()]; };
  const auto chance = [&](uint32_t n) { return random() % n == 0; };
  Layer l;
  l.weights = static_cast<Weights>(random() % 4);
  l.group = of({16, 32, 64});
  l.width = l.group * of({1, 2, 3});
  l.size = of({32, 40, 64, 128, 256});
  l.kv_heads = of({1, 2, 3, 8});
  l.heads = l.kv_heads * of(l.kv_heads == 8 && l.size < 64 ? std::vector<int64_t>{1, 8}
                                                           : std::vector<int64_t>{1, 2, 4});
  // Products over what attention gives and over the hidden ones have the same groups.
  while (l.heads * l.size % l.group != 0) l.size += 8;
  l.hidden = l.group * of({1, 2, 5});
  l.rows = of({1, 1, 2, 5});
  l.halves = chance(2);
  l.normed = chance(3);
  l.bias = chance(3);
  l.cache = chance(3) ? DType::kF16 : DType::kF32;
  if (chance(3)) l.odd = static_cast<Odd>(1 + random() % 8);
  return l;
}

// The graph of a layer; equal drafts hold equal numbers.
struct Draft : testing::GraphDraft {
  explicit Draft(const Layer& layer) : l(layer) { build(); }

  const Layer& l;
  std::vector<std::byte> data;
  std::mt19937 random{7};

  ValueId constant(DType t, const Dims& dims, double low, double high) {
    const uint64_t at = data.size();
    data.resize(at + static_cast<size_t>(numel(dims)) * size_bytes(t));
    const ops::HostTensor to{t, dims, data.data() + at};
    for (int64_t i = 0; i < numel(dims); ++i)
      to.put(i, std::uniform_real_distribution(low, high)(random));
    return value(Tensor{.dtype = t, .max = dims, .data = {{0, at, data.size() - at}}});
  }
  ValueId none() { return value(graph::Null{}); }
  ValueId result(std::string_view op, std::vector<ValueId> args, const Dims& dims) {
    args.push_back(tensor(dims));
    call(op, args);
    return args.back();
  }
  Dims rows(int64_t width) const { return {1, l.rows, width}; }
  ValueId view(ValueId x, const Dims& dims) {
    return result("aten.view_copy.default", {x, value(graph::IntList{{dims.begin(), dims.end()}})},
                  dims);
  }
  ValueId add(ValueId a, ValueId b, const Dims& dims) {
    return result("aten.add.Tensor", {a, b, value(int64_t{1})}, dims);
  }
  ValueId norm(ValueId x, double eps, const Dims& dims) {
    return result("et_vk.rms_norm.default",
                  {x, constant(DType::kF32, {dims.back()}, 0.5, 1.5), value(eps)}, dims);
  }
  // Exporters see rows as a matrix for it.
  ValueId float_linear(ValueId x, int64_t k, int64_t n, bool bias) {
    const double size = std::sqrt(3.0 / static_cast<double>(k));
    const DType t = l.weights == Weights::kF16 ? DType::kF16 : DType::kF32;
    const bool rank3 = g.tensor(x)->max.rank() == 3;
    const int64_t m = g.tensor(x)->max[rank3 ? 1 : 0];
    const ValueId w = constant(t, {n, k}, -size, size);
    const ValueId b = bias ? constant(DType::kF32, {n}, -1, 1) : none();
    const ValueId y = result("aten.linear.default", {rank3 ? view(x, {m, k}) : x, w, b}, {m, n});
    return rank3 ? view(y, rows(n)) : y;
  }
  ValueId linear(ValueId x, int64_t k, int64_t n, bool bias = false) {
    if (l.floats()) return float_linear(x, k, n, bias);
    const double size = 1 / std::sqrt(static_cast<double>(k));
    Dims y_dims = g.tensor(x)->max;
    y_dims[y_dims.rank() - 1] = n;
    if (l.weights == Weights::kFour) {
      const int64_t padded = (n + 7) / 8 * 8;
      const ValueId w = constant(DType::kU8, {n, k / 2}, 0, 256);
      const ValueId s = constant(DType::kF32, {k / l.group, padded}, -size / 4, size / 4);
      const ValueId b = bias ? constant(DType::kF32, {padded}, -1, 1) : none();
      return result("et_vk.linear_q4gsw.default", {x, w, s, value(l.group), b}, y_dims);
    }
    const ValueId w = constant(DType::kI8, {n, k}, -100, 100);
    const ValueId s = constant(DType::kF32, {n}, -size / 50, size / 50);
    const ValueId y = result("aten._weight_int8pack_mm.default", {x, w, s}, y_dims);
    return bias ? add(y, constant(DType::kF32, {n}, -1, 1), y_dims) : y;
  }
  ValueId cache() {
    return value(Tensor{.dtype = l.cache, .max = {1, kContext, l.kv_heads, l.size}, .state = true});
  }
  ValueId table(ValueId start, ValueId end) {
    const int64_t columns = l.halves ? l.size : l.size / 2;
    const ValueId whole = constant(DType::kF32, {kContext + 1, columns}, -1, 1);
    if (l.halves) return whole;
    return result("aten.slice_copy.Tensor",
                  {whole, value(int64_t{0}), start, end, value(int64_t{1})}, {l.rows, columns});
  }

  ValueId attention(ValueId x) {
    const ValueId start = value(graph::LiveScalar{});
    call("et_vk.select_as_symint.default",
         {g.inputs[1], value(int64_t{0}), value(int64_t{0}), start});
    const ValueId end = value(graph::LiveScalar{});
    call("add", {start, value(l.rows), end});
    const ValueId cos = table(start, end);
    const ValueId sin =
        l.odd == Odd::kTablesApart ? table(value(int64_t{0}), value(l.rows)) : table(start, end);
    const ValueId h = norm(x, 1e-5, rows(l.width));
    const Dims q_dims = {1, l.rows, l.heads, l.size};
    const Dims k_dims = {1, l.rows, l.kv_heads, l.size};
    ValueId q = view(linear(h, l.width, l.heads * l.size, l.bias), q_dims);
    const ValueId other = l.odd == Odd::kHeadsApart ? x : h;
    ValueId k = view(linear(other, l.width, l.kv_heads * l.size, l.bias), k_dims);
    const ValueId v = view(linear(h, l.width, l.kv_heads * l.size, l.bias), k_dims);
    if (l.normed) q = norm(q, 1e-5, q_dims);
    if (l.normed && l.odd != Odd::kOneHeadNorm)
      k = norm(k, l.odd == Odd::kEpsDiffer ? 1e-2 : 1e-5, k_dims);
    const ValueId turned_q = tensor(q_dims);
    const ValueId turned_k = tensor(k_dims);
    const ValueId turned = value(graph::ValueList{{turned_q, turned_k}});
    if (l.halves) {
      call("et_vk.apply_rotary_emb_hf.default", {q, k, cos, sin, start, turned});
    } else {
      call("et_vk.apply_rotary_emb.default", {q, k, cos, sin, turned});
    }
    if (l.odd == Odd::kKeysAreRead) g.outputs.push_back(turned_k);
    if (l.odd == Odd::kNormIsRead) g.outputs.push_back(h);
    const ValueId y = result("sdpa_with_kv_cache.default",
                             {turned_q, turned_k, v, cache(), cache(), start,
                              value(int64_t{l.rows}), none(), value(0.0), value(true), none()},
                             q_dims);
    const ValueId o =
        linear(view(y, rows(l.heads * l.size)), l.heads * l.size, l.width, l.bias && l.normed);
    return add(x, o, rows(l.width));
  }

  ValueId feed_forward(ValueId x) {
    const Dims hidden = rows(l.hidden);
    const ValueId h = norm(x, 1e-5, rows(l.width));
    const ValueId gate = linear(h, l.width, l.hidden);
    const ValueId up = linear(h, l.width, l.hidden);
    const ValueId s = result("aten.sigmoid.default", {gate}, hidden);
    const ValueId other = l.odd == Odd::kGateScaled ? up : gate;
    const ValueId silu = result("aten.mul.Tensor", {other, s}, hidden);
    const ValueId both = result("aten.mul.Tensor", {silu, up}, hidden);
    const ValueId y = linear(both, l.hidden, l.width);
    return add(l.odd == Odd::kResidualTwice ? add(x, x, rows(l.width)) : x, y, rows(l.width));
  }

  // Over the last row.
  ValueId head(ValueId x) {
    const Dims last = {1, l.width};
    const ValueId row =
        result("aten.select_copy.int", {x, value(int64_t{1}), value(int64_t{-1})}, last);
    return linear(norm(row, 1e-5, last), l.width, 36);
  }

  void build() {
    g.inputs = {tensor(rows(l.width)), value(Tensor{.dtype = DType::kI32, .max = {1}})};
    const ValueId y = feed_forward(attention(g.inputs[0]));
    g.outputs.push_back(y);
    g.outputs.push_back(head(y));
    graph::number_scalars(g);
  }
};

struct Got {
  std::vector<float> values;
  std::string nodes;
};

// Two calls, of which the second finds in the caches what the first left.
Got run(const Layer& l, bool fuse, const std::shared_ptr<gpu::Device>& on) {
  Draft d(l);
  fuse::run_passes(d.g, ops::lookup(), {.fuse = fuse});
  Got got;
  for (const graph::Node& n : d.g.nodes) got.nodes += std::string(n.op->name) + " ";
  const std::vector<SourcePtr> sources = {std::make_shared<MemorySource>("weights", d.data)};
  testing::LoadedGraph loaded(std::move(d.g), sources, "", on);
  EXPECT_TRUE(loaded.status().ok()) << loaded.status().message();
  if (!loaded.status().ok()) return got;
  std::mt19937 random(3);
  for (int32_t call = 0; call < 2; ++call) {
    std::vector<float> x(static_cast<size_t>(l.rows * l.width));
    for (float& v : x) v = std::uniform_real_distribution(-1.0F, 1.0F)(random);
    const std::vector<int32_t> position = {1 + call * static_cast<int32_t>(l.rows)};
    const Value inputs[] = {tensor<float>({1, l.rows, l.width}, x), tensor<int32_t>({1}, position)};
    const auto outputs = loaded.run(inputs);
    EXPECT_TRUE(outputs.ok()) << outputs.status().message();
    if (!outputs.ok()) return got;
    for (const Value& output : *outputs) {
      const TensorView& y = *output.tensor();
      const auto* values = static_cast<const float*>(y.data);
      got.values.insert(got.values.end(), values, values + numel(y.dims));
    }
  }
  // Where scales and all else stay as they are, joined weights are all that is copied.
  if (on->caps().cpu) {
    EXPECT_EQ(loaded.copied_bytes(), loaded.method().memory().joined_bytes());
  }
  return got;
}

void expect_close(const Got& got, const Got& want, double tolerance) {
  ASSERT_EQ(got.values.size(), want.values.size());
  double largest = 0;
  double error = 0;
  for (size_t i = 0; i < want.values.size(); ++i) {
    ASSERT_TRUE(std::isfinite(got.values[i]));
    largest = std::max(largest, std::fabs(double{want.values[i]}));
    error = std::max(error, std::fabs(double{got.values[i]} - double{want.values[i]}));
  }
  EXPECT_GT(largest, 0);
  EXPECT_LE(error, tolerance * largest) << got.nodes;
}

// f16 caches round keys that differ in their last bit to neighbours.
double tolerance(const Layer& l) { return l.cache == DType::kF16 ? 2e-3 : 1e-4; }

bool has(const Got& g, std::string_view op) { return g.nodes.find(op) != std::string::npos; }

TEST(FusedLayers, ComputeTheSameOnTheCpu) {
  uint32_t whole = 0;
  for (uint32_t seed = 0; seed < 120; ++seed) {
    const Layer l = draw(seed);
    SCOPED_TRACE(fmt::format("seed {}: {}", seed, l.describe()));
    const Got want = run(l, false, gpu::cpu_device());
    const Got got = run(l, true, gpu::cpu_device());
    expect_close(got, want, tolerance(l));
    EXPECT_LT(std::ranges::count(got.nodes, ' '), std::ranges::count(want.nodes, ' '));
    if (l.odd != Odd::kNothing) continue;
    ++whole;
    // A product of floats adds a bias or a residual.
    const bool adds = l.floats() && l.bias && l.normed;
    for (const std::string_view op :
         {"rotary", "rms_norm", "select_copy", "aten.add", "sigmoid", "silu", "mul", "sdpa_with"})
      EXPECT_EQ(has(got, op), adds && op == "aten.add") << op << ": " << got.nodes;
  }
  EXPECT_GT(whole, 50U);
}

TEST(FusedLayers, ComputeTheSameOnTheGpu) {
  const Layer layers[] = {
      {.halves = true, .normed = true, .bias = true},
      {.weights = Weights::kF16, .halves = true, .bias = true},
      {.weights = Weights::kEight, .rows = 2, .halves = true, .normed = true, .cache = DType::kF16},
  };
  for (const Layer& l : layers) {
    SCOPED_TRACE(l.describe());
    expect_close(run(l, true, gpu::shared_device()), run(l, false, gpu::cpu_device()),
                 tolerance(l));
  }
}

}  // namespace
}  // namespace pteryx
