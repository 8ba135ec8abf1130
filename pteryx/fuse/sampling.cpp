// A language model that draws its next token itself. SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>

#include "pteryx/fuse/calls.h"
#include "pteryx/fuse/passes.h"
#include "pteryx/fuse/uses.h"
#include "pteryx/ops/table.h"

namespace pteryx::fuse {

using namespace graph;  // NOLINT(google-build-using-namespace): the graph is what passes are about
namespace {

constexpr std::string_view kPosition = "et_vk.select_as_symint.default";
constexpr std::string_view kRemember = "pteryx.remember";
constexpr std::string_view kSample = "pteryx.sample";
constexpr int64_t kSettingsWords = 16;

bool is_index(const Tensor* t, size_t rank) {
  return t != nullptr && t->max.rank() == rank &&
         (t->dtype == DType::kI64 || t->dtype == DType::kI32);
}

// Which dim of x an index_put writes rows of: that of the first index.
std::optional<size_t> indexed_dim(const Graph& g, const Node& n) {
  constexpr size_t kIndices = 1;
  const auto* list = std::get_if<ValueList>(&g[n.args[kIndices]]);
  if (list == nullptr) return {};
  for (size_t i = 0; i < list->items.size(); ++i) {
    const ValueId id = list->items[i];
    if (id != kNoValue && !std::holds_alternative<Null>(g[id])) return i;
  }
  return {};
}

// Positions that the caches hold: the smallest, or 0 where there are none. Attention has them in
// dim 1 of its caches, as does state of that rank that nothing here explains.
class Capacity {
 public:
  explicit Capacity(const Graph& g) : g_(g), is_cache_(g.values.size()) {
    for (size_t i = 0; i < g.values.size(); ++i) {
      const auto* t = std::get_if<Tensor>(&g.values[i]);
      is_cache_[i] = t != nullptr && t->state;
    }
  }

  int64_t find() && {
    for (const Node& n : g_.nodes) {
      if (n.kind != Node::Kind::kOp || n.op == nullptr || n.args.empty()) continue;
      // Caches keep their name through views and copies, which have as many elements.
      if (is_cache_[index(n.args[0])] && n.args.size() > 1) follow(n);
      for (size_t a = 0; a < n.args.size(); ++a) {
        if (n.op->takes_cache(a) && n.op->mutates(a)) add(n.args[a], 1);
      }
      if (!n.op->name.starts_with("aten.index_put") || !is_cache_[index(n.args[0])]) continue;
      if (const auto dim = indexed_dim(g_, n)) add(n.args[0], *dim);
    }
    for (size_t i = 0; i < g_.values.size(); ++i) {
      const auto* t = std::get_if<Tensor>(&g_.values[i]);
      if (t != nullptr && t->state && t->max.rank() == 4) smallest_ = smaller(smallest_, t->max[1]);
    }
    return capacity_ != 0 ? capacity_ : smallest_;
  }

 private:
  static int64_t smaller(int64_t known, int64_t n) { return known == 0 ? n : std::min(known, n); }
  void follow(const Node& n) {
    const Tensor* from = g_.tensor(n.args[0]);
    const Tensor* to = g_.tensor(n.args.back());
    if (from != nullptr && to != nullptr && numel(from->max) == numel(to->max))
      is_cache_[index(n.args.back())] = true;
  }
  void add(ValueId id, size_t dim) {
    const Tensor* t = g_.tensor(id);
    if (t != nullptr && dim < t->max.rank()) capacity_ = smaller(capacity_, t->max[dim]);
  }

  const Graph& g_;
  std::vector<bool> is_cache_;
  int64_t capacity_ = 0;  // by the nodes that write rows
  int64_t smallest_ = 0;
};

// The history is shared where the caches are, in a memory that no file has.
std::optional<SharedPlace> place_of_history(const Graph& g) {
  constexpr uint32_t kNoMemory = 0;
  for (const Value& v : g.values) {
    if (const auto* t = std::get_if<Tensor>(&v); t != nullptr && t->shared)
      return SharedPlace{.memory = kNoMemory, .offset = 0};
  }
  return {};
}

// The 4-bit embedding of the tokens, if what it makes has no views: they would change under whoever
// reads them.
std::optional<Node> find_embedding(const Graph& g) {
  const auto embeds = [&](const Node& n) {
    return is_call(n, "et_vk.embedding_q4gsw.default") && argument(n, "indices") == g.inputs[0] &&
           g.tensor(n.args.back())->dtype == DType::kF32;
  };
  const auto found = std::ranges::find_if(g.nodes, embeds);
  if (found == g.nodes.end()) return {};
  const auto views = [&](const Node& n) {
    return n.op != nullptr && ops::op(*n.op).op_class == ops::OpClass::kView &&
           n.args[0] == found->args.back();
  };
  if (std::ranges::any_of(g.nodes, views)) return {};
  return *found;
}

struct Writer {
  Graph& g;
  const OpLookup& ops;

  Node node(std::string_view op, std::vector<ValueId> args) const {
    Node n;
    n.op = ops.find(op);
    n.spelling = n.op->name;
    n.args = std::move(args);
    return n;
  }
};

}  // namespace

bool is_language_model(const Graph& g) {
  if (g.has_jumps || g.inputs.size() != 2 || g.outputs.size() != 1) return false;
  const Tensor* logits = g.tensor(g.outputs[0]);
  return is_index(g.tensor(g.inputs[0]), 2) && is_index(g.tensor(g.inputs[1]), 1) &&
         logits != nullptr && is_float(logits->dtype) && logits->max.rank() >= 2 &&
         Capacity(g).find() != 0;
}

bool append_sampling(Graph& g, const OpLookup& ops) {
  if (!is_language_model(g)) return false;
  const int64_t capacity = Capacity(g).find();
  Writer w{g, ops};
  const ValueId settings =
      w.g.add(Tensor{.dtype = DType::kI32, .max = {kSettingsWords}}, "sampling settings");
  const ValueId history = w.g.add(
      Tensor{.dtype = DType::kI32, .max = {capacity}, .state = true, .shared = place_of_history(g)},
      "token history");
  const ValueId position = w.g.add(LiveScalar{}, "sampling position");
  const ValueId zero = w.g.add(int64_t{0}, "0");
  const ValueId formality = w.g.add(Tensor{.dtype = DType::kF32, .max = {1}}, "unused");
  const ValueId token = w.g.add(Tensor{.dtype = DType::kI32, .max = {1, 1}}, "token");
  const ValueId tokens = g.inputs[0];
  const std::optional<Node> embedding = find_embedding(g);
  std::vector<Node> nodes;
  nodes.push_back(w.node(kPosition, {g.inputs[1], zero, zero, position}));
  nodes.push_back(w.node(kRemember, {tokens, history, position, formality}));
  nodes.insert(nodes.end(), std::make_move_iterator(g.nodes.begin()),
               std::make_move_iterator(g.nodes.end()));
  nodes.push_back(Node{});
  set_call(g, nodes.back(), ops, kSample,
           {{"logits", g.outputs[0]},
            {"settings", settings},
            {"history", history},
            {"tokens", tokens},
            {"start_pos", position},
            {"y", token}});
  if (embedding) {
    for (const std::string_view name : {"weight", "scales", "group_size", "is_linear_weight"})
      set_argument(nodes.back(), name, argument(*embedding, name));
    set_argument(nodes.back(), "x", embedding->args.back());
  }
  g.nodes = std::move(nodes);
  g.inputs.push_back(settings);
  g.outputs.push_back(token);
  number_scalars(g);
  return true;
}

const Tensor* token_history(const Graph& g) {
  for (const Node& n : g.nodes) {
    if (n.op != nullptr && n.op->name == kRemember) return g.tensor(n.args[1]);
  }
  return nullptr;
}

}  // namespace pteryx::fuse
