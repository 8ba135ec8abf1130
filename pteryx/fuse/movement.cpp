// Exporters move data more often than a program needs it: dims of 1 are permuted, permutations undo
// each other, halves become floats and halves again, weights are transposed in every run.
// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/fuse/movement.h"

#include <algorithm>
#include <array>

#include "pteryx/fuse/calls.h"
#include "pteryx/fuse/passes.h"
#include "pteryx/ops/table.h"

namespace pteryx::fuse {

using namespace graph;  // NOLINT(google-build-using-namespace): the graph is what passes are about
namespace {

constexpr std::string_view kPermute = "aten.permute_copy.default";
constexpr std::string_view kTranspose = "aten.transpose_copy.int";
constexpr std::string_view kTransposeMatrix = "aten.t_copy.default";
constexpr std::string_view kExpand = "aten.expand_copy.default";
constexpr std::string_view kLinear = "aten.linear.default";

// What may go where its result is not read.
constexpr std::array<std::string_view, 16> kMoves = {kPermute,
                                                     kTranspose,
                                                     kTransposeMatrix,
                                                     kExpand,
                                                     kCopyOp,
                                                     "aten._to_copy.default",
                                                     "dim_order_ops._to_dim_order_copy.default",
                                                     "aten.select_copy.int",
                                                     "aten.mul.Scalar",
                                                     "aten.eq.Scalar",
                                                     "aten.logical_not.default",
                                                     "aten.any.dim",
                                                     "aten.full_like.default",
                                                     "aten.where.self",
                                                     "aten._softmax.default",
                                                     "aten.bmm.default"};

// The dims of a list that is written in the file.
std::optional<std::vector<size_t>> permutation(const std::vector<int64_t>& items, size_t rank) {
  if (items.size() != rank) return std::nullopt;
  std::vector<size_t> order;
  for (const int64_t i : items) {
    const auto d = normalize_dim(i, rank);
    if (!d.ok() || std::ranges::find(order, *d) != order.end()) return std::nullopt;
    order.push_back(*d);
  }
  return order;
}

std::optional<size_t> literal_dim(const Graph& g, ValueId id, size_t rank) {
  const auto* i = std::get_if<int64_t>(&g[id]);
  if (i == nullptr) return std::nullopt;
  const auto d = normalize_dim(*i, rank);
  return d.ok() ? std::optional(*d) : std::nullopt;
}

std::vector<size_t> identity(size_t rank) {
  std::vector<size_t> order(rank);
  for (size_t i = 0; i < rank; ++i) order[i] = i;
  return order;
}

// `then` after `first`, as one.
std::vector<size_t> composed(const std::vector<size_t>& first, const std::vector<size_t>& then) {
  std::vector<size_t> order;
  order.reserve(then.size());
  for (const size_t d : then) order.push_back(first[d]);
  return order;
}

class Simplifier {
 public:
  Simplifier(Graph& g, const OpLookup& ops) : g_(g), ops_(ops), uses_(g) {}

  void undo_casts() {
    for (Node& n : g_.nodes) undo_cast(n);
  }
  void run() {
    for (Node& n : g_.nodes) {
      if (order_of(g_, n)) {
        if (!undo_order(n)) join_orders(n);
      } else {
        take_weight(n);
      }
    }
  }

 private:
  const Node* maker(ValueId id) const {
    const uint32_t i = uses_.stable(id) ? uses_.producer(id) : kNoNode;
    return i == kNoNode ? nullptr : &g_.nodes[i];
  }
  void make_view(Node& n, ValueId of) { n = replacing(n, view_of(ops_, of, n.args.back())); }
  static Node replacing(const Node& old, Node n) {
    n.delegate = old.delegate;
    n.call = old.call;
    return n;
  }

  // Halves, as floats, as halves.
  void undo_cast(Node& n) {
    if (!is_float_cast(g_, n)) return;
    const Node* before = maker(n.args[0]);
    if (before == nullptr || !is_float_cast(g_, *before)) return;
    const ValueId from = before->args[0];
    if (g_.tensor(from)->dtype != g_.tensor(n.args.back())->dtype ||
        size_bytes(g_.tensor(n.args[0])->dtype) <= size_bytes(g_.tensor(from)->dtype) ||
        !uses_.stable(from) || !uses_.stable(n.args.back()))
      return;
    make_view(n, from);
  }

  // Back over other permutations and over dims of 1, as long as there is something; where all of
  // them together change nothing, the result is a view.
  bool undo_order(Node& n) {
    ValueId from = n.args[0];
    if (!uses_.stable(from) || !uses_.stable(n.args.back())) return false;
    std::vector<size_t> order = without_ones(g_.tensor(from)->max, *order_of(g_, n));
    ValueId same = kNoValue;
    for (;;) {
      if (order == identity(order.size())) same = from;
      from = behind_ones(g_, uses_, from);
      const Node* before = maker(from);
      const auto first = before == nullptr ? std::nullopt : order_of(g_, *before);
      if (!first || !uses_.stable(before->args[0])) break;
      from = before->args[0];
      order = composed(without_ones(g_.tensor(from)->max, *first), order);
    }
    if (same == kNoValue) return false;
    make_view(n, same);
    return true;
  }

  void join_orders(Node& n) {
    const Node* before = maker(n.args[0]);
    const auto first = before == nullptr ? std::nullopt : order_of(g_, *before);
    if (!first || !uses_.stable(before->args[0])) return;
    IntList dims;
    for (const size_t d : composed(*first, *order_of(g_, n)))
      dims.items.push_back(static_cast<int64_t>(d));
    const ValueId x = before->args[0];
    set_call(g_, n, ops_, kPermute,
             {{"x", x}, {"dims", g_.add(std::move(dims), "dims")}, {"y", n.args.back()}});
  }

  // The constant [n, k] of which a product reads the transpose [.., k, n].
  ValueId weight_of(ValueId b) const {
    const Tensor* t = g_.tensor(b);
    for (const Node* n = maker(b); n != nullptr; n = maker(b)) {
      const auto order = order_of(g_, *n);
      const ValueId from = n->args[0];
      const Tensor* f = g_.tensor(from);
      if (f == nullptr || !uses_.stable(from)) return kNoValue;
      if (order) {
        const bool swaps = order->size() == 2 && (*order)[0] == 1;
        const bool fits = f->is_constant() && f->dtype == t->dtype && f->max.rank() == 2 &&
                          t->max.rank() >= 2 && f->max[0] == t->max.back() &&
                          f->max[1] == t->max[t->max.rank() - 2] && numel(f->max) == numel(t->max);
        return swaps && fits ? from : kNoValue;
      }
      const bool repeats = is_call(*n, kExpand) && numel(f->max) != numel(t->max);
      if (repeats || !(is_view(g_, *n) || is_call(*n, kExpand))) return kNoValue;
      b = from;
    }
    return kNoValue;
  }

  // A product with a transposed constant is a linear layer.
  void take_weight(Node& n) {
    struct Product {
      std::string_view op;
      std::string_view a, b, bias;
    };
    constexpr Product kProducts[] = {{"aten.mm.default", "a", "b", ""},
                                     {"aten.bmm.default", "a", "b", ""},
                                     {"aten.addmm.default", "mat1", "mat2", "self"}};
    const auto* p =
        std::ranges::find_if(kProducts, [&](const Product& q) { return is_call(n, q.op); });
    if (p == std::end(kProducts)) return;
    const ValueId x = argument(n, p->a);
    const ValueId y = argument(n, "y");
    const ValueId bias = p->bias.empty() ? kNoValue : argument(n, p->bias);
    const Tensor* t = g_.tensor(argument(n, p->b));
    if (t == nullptr || g_.tensor(x) == nullptr || g_.tensor(x)->dtype != t->dtype ||
        !is_float(t->dtype))
      return;
    if (bias != kNoValue) {
      const Tensor* b = g_.tensor(bias);
      const auto is_one = [&](std::string_view name) {
        const Value& v = g_[argument(n, name)];
        return (std::holds_alternative<int64_t>(v) && std::get<int64_t>(v) == 1) ||
               (std::holds_alternative<double>(v) && std::get<double>(v) == 1);
      };
      if (b == nullptr || b->max != Dims{t->max.back()} || !is_one("beta") || !is_one("alpha"))
        return;
    }
    const ValueId weight = weight_of(argument(n, p->b));
    if (weight == kNoValue) return;
    set_call(g_, n, ops_, kLinear, {{"x", x}, {"weight", weight}, {"bias", bias}, {"y", y}});
  }

  Graph& g_;
  const OpLookup& ops_;
  const Uses uses_;
};

}  // namespace

bool has_fixed_sizes(const Graph& g) {
  if (varying_inputs(g) > 0) return false;
  const bool live = std::ranges::any_of(
      g.values, [](const Value& v) { return std::holds_alternative<LiveScalar>(v); });
  const auto counts = [](const Node& n) {
    return n.op == nullptr || n.op->name.find("nonzero") != std::string_view::npos ||
           n.op->name.find("masked_select") != std::string_view::npos;
  };
  return !live && std::ranges::none_of(g.nodes, counts);
}

bool is_view(const Graph& g, const Node& n) {
  if (n.op == nullptr || ops::op(*n.op).op_class != ops::OpClass::kView) return false;
  const Tensor* x = g.tensor(n.args.front());
  const Tensor* y = g.tensor(n.args.back());
  return x != nullptr && y != nullptr && x->dtype == y->dtype && numel(x->max) == numel(y->max);
}

bool is_float_cast(const Graph& g, const Node& n) {
  if (n.op == nullptr || !(is_call(n, kCopyOp) || is_call(n, "aten._to_copy.default") ||
                           is_call(n, "dim_order_ops._to_dim_order_copy.default")))
    return false;
  const Tensor* x = g.tensor(n.args.front());
  const Tensor* y = g.tensor(n.args.back());
  return x != nullptr && y != nullptr && is_float(x->dtype) && is_float(y->dtype) &&
         x->max == y->max;
}

std::optional<std::vector<size_t>> order_of(const Graph& g, const Node& n) {
  const bool permutes = is_call(n, kPermute);
  const bool transposes = is_call(n, kTranspose);
  if (!permutes && !transposes && !is_call(n, kTransposeMatrix)) return std::nullopt;
  const Tensor* x = g.tensor(n.args.front());
  if (x == nullptr || g.tensor(n.args.back()) == nullptr) return std::nullopt;
  const size_t rank = x->max.rank();
  if (permutes) {
    const auto* list = std::get_if<IntList>(&g[n.args[1]]);
    return list == nullptr ? std::nullopt : permutation(list->items, rank);
  }
  std::vector<size_t> order = identity(rank);
  if (transposes) {
    const auto a = literal_dim(g, n.args[1], rank);
    const auto b = literal_dim(g, n.args[2], rank);
    if (!a || !b) return std::nullopt;
    std::swap(order[*a], order[*b]);
  } else if (rank == 2) {
    std::swap(order[0], order[1]);
  }
  return order;
}

Dims without_ones(const Dims& dims) {
  Dims kept;
  for (const int64_t d : dims) {
    if (d != 1) kept.push_back(d);
  }
  return kept;
}

std::vector<size_t> without_ones(const Dims& dims, const std::vector<size_t>& order) {
  std::vector<size_t> place(dims.rank());
  size_t next = 0;
  for (size_t i = 0; i < dims.rank(); ++i) place[i] = dims[i] == 1 ? 0 : next++;
  std::vector<size_t> kept;
  for (const size_t d : order) {
    if (dims[d] != 1) kept.push_back(place[d]);
  }
  return kept;
}

ValueId behind_views(const Graph& g, const Uses& uses, ValueId id, Casts casts) {
  while (uses.stable(id) && uses.producer(id) != kNoNode) {
    const Node& n = g.nodes[uses.producer(id)];
    const bool passes = is_view(g, n) || (casts == Casts::kPass && is_float_cast(g, n));
    if (!passes || !uses.stable(n.args[0])) break;
    id = n.args[0];
  }
  return id;
}

ValueId behind_ones(const Graph& g, const Uses& uses, ValueId id) {
  while (uses.stable(id) && uses.producer(id) != kNoNode) {
    const Node& n = g.nodes[uses.producer(id)];
    if (!is_view(g, n) || !uses.stable(n.args[0]) ||
        without_ones(g.tensor(n.args[0])->max) != without_ones(g.tensor(id)->max))
      break;
    id = n.args[0];
  }
  return id;
}

Node view_of(const OpLookup& ops, ValueId x, ValueId y) {
  Node n;
  n.op = ops.find(kViewOp);
  n.spelling = n.op->name;
  n.args = {x, y};
  return n;
}

std::vector<uint32_t> all_reads(const Graph& g) {
  const Uses uses(g);
  std::vector<uint32_t> reads(g.values.size());
  for (uint32_t v = 0; v < g.values.size(); ++v) reads[v] = uses.reads(ValueId{v});
  return reads;
}

void drop_unread_moves(Graph& g, const std::vector<uint32_t>& before) {
  const Uses uses(g);
  std::vector<uint32_t> reads = all_reads(g);
  std::vector<bool> gone(g.nodes.size());
  for (size_t i = g.nodes.size(); i-- > 0;) {
    const Node& n = g.nodes[i];
    if (n.op == nullptr || n.args.empty()) continue;
    const bool moves = is_view(g, n) || std::ranges::find(kMoves, n.op->name) != kMoves.end();
    const ValueId y = n.args.back();
    if (!moves || g.tensor(y) == nullptr || !uses.stable(y) || reads[index(y)] != 0) continue;
    if (index(y) < before.size() && before[index(y)] == 0) continue;
    gone[i] = true;
    for (size_t a = 0; a + 1 < n.args.size(); ++a) {
      for_each_value(g, n.args[a], [&](ValueId id) { --reads[index(id)]; });
    }
  }
  erase_nodes(g, gone);
}

void undo_casts(Graph& g, const OpLookup& ops) {
  if (!has_fixed_sizes(g) || ops.find(kViewOp) == nullptr) return;
  const std::vector<uint32_t> before = all_reads(g);
  Simplifier(g, ops).undo_casts();
  drop_unread_moves(g, before);
}

void simplify_movement(Graph& g, const OpLookup& ops) {
  if (!has_fixed_sizes(g) || ops.find(kViewOp) == nullptr) return;
  const std::vector<uint32_t> before = all_reads(g);
  Simplifier(g, ops).run();
  drop_unread_moves(g, before);
}

}  // namespace pteryx::fuse
