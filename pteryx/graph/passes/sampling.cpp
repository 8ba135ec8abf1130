// A language model that draws its next token itself. SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>

#include "pteryx/graph/passes/passes.h"

namespace pteryx::graph {
namespace {

constexpr std::string_view kPosition = "et_vk.select_as_symint.default";
constexpr std::string_view kRemember = "pteryx.remember";
constexpr std::string_view kSample = "pteryx.sample";
constexpr int64_t kSettingsWords = 16;

bool is_index(const Tensor* t, size_t rank) {
  return t != nullptr && t->max.rank() == rank &&
         (t->dtype == DType::kI64 || t->dtype == DType::kI32);
}

// Positions that the caches hold: the smallest, or 0 where there are none.
int64_t capacity_of(const Graph& g) {
  int64_t capacity = 0;
  for (const Value& v : g.values) {
    const auto* t = std::get_if<Tensor>(&v);
    if (t == nullptr || !t->state || t->max.rank() != 4) continue;
    capacity = capacity == 0 ? t->max[1] : std::min(capacity, t->max[1]);
  }
  return capacity;
}

struct Writer {
  Graph& g;
  const OpLookup& ops;

  ValueId add(Value v, std::string_view label) {
    g.values.push_back(std::move(v));
    g.labels.emplace_back(label);
    return ValueId{static_cast<uint32_t>(g.values.size() - 1)};
  }
  Node node(std::string_view op, std::vector<ValueId> args) const {
    Node n;
    n.op = ops.find(op);
    n.spelling = n.op->name;
    n.args = std::move(args);
    return n;
  }
};

}  // namespace

bool append_sampling(Graph& g, const OpLookup& ops) {
  const int64_t capacity = capacity_of(g);
  if (g.has_jumps || g.inputs.size() != 2 || g.outputs.size() != 1 || capacity == 0) return false;
  const Tensor* logits = g.tensor(g.outputs[0]);
  if (!is_index(g.tensor(g.inputs[0]), 2) || !is_index(g.tensor(g.inputs[1]), 1) ||
      logits == nullptr || !is_float(logits->dtype) || logits->max.rank() < 2)
    return false;
  Writer w{g, ops};
  const ValueId settings =
      w.add(Tensor{.dtype = DType::kI32, .max = {kSettingsWords}}, "sampling settings");
  const ValueId history =
      w.add(Tensor{.dtype = DType::kI32, .max = {capacity}, .state = true}, "token history");
  const ValueId position = w.add(LiveScalar{}, "sampling position");
  const ValueId zero = w.add(int64_t{0}, "0");
  const ValueId formality = w.add(Tensor{.dtype = DType::kF32, .max = {1}}, "unused");
  const ValueId token = w.add(Tensor{.dtype = DType::kI32, .max = {1, 1}}, "token");
  const ValueId tokens = g.inputs[0];
  std::vector<Node> nodes;
  nodes.push_back(w.node(kPosition, {g.inputs[1], zero, zero, position}));
  nodes.push_back(w.node(kRemember, {tokens, history, position, formality}));
  nodes.insert(nodes.end(), std::make_move_iterator(g.nodes.begin()),
               std::make_move_iterator(g.nodes.end()));
  nodes.push_back(w.node(kSample, {g.outputs[0], settings, history, tokens, position, token}));
  g.nodes = std::move(nodes);
  g.inputs.push_back(settings);
  g.outputs.push_back(token);
  number_scalars(g);
  return true;
}

}  // namespace pteryx::graph
