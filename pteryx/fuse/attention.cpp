// Attention, which exporters take apart into products, a softmax and what keeps rows without keys
// at 0, put together again, and read from where its heads are.
// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/ops/attention/attention.h"

#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "pteryx/fuse/calls.h"
#include "pteryx/fuse/chain.h"
#include "pteryx/fuse/movement.h"
#include "pteryx/fuse/passes.h"

namespace pteryx::fuse {

using namespace graph;  // NOLINT(google-build-using-namespace): the graph is what passes are about
namespace {

constexpr std::string_view kProduct = "aten.bmm.default";
constexpr std::string_view kSoftmax = "aten._softmax.default";
constexpr std::string_view kScale = "aten.mul.Scalar";
constexpr std::string_view kSelect = "aten.select_copy.int";
constexpr std::string_view kPermute = "aten.permute_copy.default";

std::optional<double> number(const Graph& g, ValueId id) {
  if (const auto* d = std::get_if<double>(&g[id])) return *d;
  if (const auto* i = std::get_if<int64_t>(&g[id])) return static_cast<double>(*i);
  return std::nullopt;
}

// [.., rows, columns] of `count` matrices.
struct Stack {
  int64_t count, rows, columns;
  friend bool operator==(const Stack&, const Stack&) = default;
};
std::optional<Stack> stack_of(const Tensor* t) {
  if (t == nullptr || t->max.rank() < 2 || !is_float(t->dtype)) return std::nullopt;
  const int64_t rows = t->max[t->max.rank() - 2];
  const int64_t columns = t->max.back();
  if (rows * columns == 0) return std::nullopt;
  return Stack{numel(t->max) / (rows * columns), rows, columns};
}

// Heads of a tensor [1, rows, total, size], from `first` on.
struct Heads {
  ValueId base = kNoValue;
  int64_t total = 0;
  int64_t first = 0;
};

// What a product of weights and values is part of.
struct Match {
  ValueId q, k, v;  // [.., rows, size]
  double scale = 1;
  Stack q_stack{}, k_stack{};
};

class Finder {
 public:
  Finder(Graph& g, const OpLookup& ops) : g_(g), ops_(ops), uses_(g) {}

  void run() {
    for (uint32_t i = 0; i < g_.nodes.size(); ++i) {
      if (!is_call(g_.nodes[i], kProduct)) continue;
      if (const auto m = match(g_.nodes[i])) replace(i, *m);
    }
    replace_nodes(g_, std::move(made_));
  }

 private:
  ValueId back(ValueId id) const { return behind_views(g_, uses_, id, Casts::kPass); }
  const Node* maker(ValueId id, std::string_view op) const {
    const uint32_t i = uses_.made_by(id, op);
    return i == kNoNode ? nullptr : &g_.nodes[i];
  }

  // Back through factors, which are collected.
  ValueId unscaled(ValueId id, double& scale) const {
    for (id = back(id);; id = back(id)) {
      const Node* n = maker(id, kScale);
      const auto factor = n == nullptr ? std::nullopt : number(g_, n->args[1]);
      if (!factor || !uses_.stable(n->args[0])) return id;
      scale *= *factor;
      id = n->args[0];
    }
  }

  // where(not any(not (scores == -inf)), 0, softmax(scores)): what the exporter guards rows with
  // that have no keys. Without a mask there are none, so it is the softmax.
  const Node* softmax_of(ValueId weights) const {
    const ValueId from = back(weights);
    if (const Node* direct = maker(from, kSoftmax)) return is_last(*direct) ? direct : nullptr;
    const Node* guard = maker(from, "aten.where.self");
    if (guard == nullptr) return nullptr;
    const Node* softmax = maker(back(guard->args[2]), kSoftmax);
    const Node* zeros = maker(back(guard->args[1]), "aten.full_like.default");
    const Node* none = maker(back(guard->args[0]), "aten.logical_not.default");
    const Node* any = none == nullptr ? nullptr : maker(back(none->args[0]), "aten.any.dim");
    const Node* seen =
        any == nullptr ? nullptr : maker(back(any->args[0]), "aten.logical_not.default");
    const Node* hidden = seen == nullptr ? nullptr : maker(back(seen->args[0]), "aten.eq.Scalar");
    if (softmax == nullptr || zeros == nullptr || hidden == nullptr || !is_last(*softmax))
      return nullptr;
    const bool same = back(hidden->args[0]) == back(softmax->args[0]);
    const bool zero = number(g_, zeros->args[1]) == 0.0;
    const bool infinite = number(g_, hidden->args[1]) == -std::numeric_limits<double>::infinity();
    return same && zero && infinite && is_last(*any) ? softmax : nullptr;
  }
  // Along the last dim.
  bool is_last(const Node& n) const {
    const auto dim = number(g_, n.args[1]);
    const Tensor* x = g_.tensor(n.args[0]);
    return dim && x != nullptr && (*dim == -1 || *dim == static_cast<double>(x->max.rank()) - 1);
  }

  // k of [.., size, keys]: what it is the transpose of.
  ValueId untransposed(ValueId id, double& scale) const {
    const ValueId from = unscaled(id, scale);
    if (!uses_.stable(from) || uses_.producer(from) == kNoNode) return kNoValue;
    const Node& n = g_.nodes[uses_.producer(from)];
    const auto order = order_of(g_, n);
    if (!order || order->size() < 2) return kNoValue;
    const size_t rank = order->size();
    for (size_t i = 0; i < rank; ++i) {
      const size_t want = i + 2 < rank ? i : (i + 1 == rank ? rank - 2 : rank - 1);
      if ((*order)[i] != want) return kNoValue;
    }
    return unscaled(n.args[0], scale);
  }

  std::optional<Match> match(const Node& product) const {
    const Node* softmax = softmax_of(product.args[0]);
    if (softmax == nullptr) return std::nullopt;
    const Node* scores = maker(back(softmax->args[0]), kProduct);
    if (scores == nullptr) return std::nullopt;
    Match m{};
    m.q = unscaled(scores->args[0], m.scale);
    m.k = untransposed(scores->args[1], m.scale);
    if (m.k == kNoValue) return std::nullopt;
    m.v = back(product.args[1]);
    const auto q = stack_of(g_.tensor(m.q));
    const auto k = stack_of(g_.tensor(m.k));
    const auto v = stack_of(g_.tensor(m.v));
    const auto y = stack_of(g_.tensor(product.args.back()));
    // The views between keep rows as they are where the products see the same.
    const auto a = stack_of(g_.tensor(scores->args[0]));
    const auto b = stack_of(g_.tensor(scores->args[1]));
    const auto p = stack_of(g_.tensor(product.args[0]));
    if (!q || !k || !v || !y || q != a || !b || !p || k->count != b->count ||
        k->rows != b->columns || k->columns != b->rows || *p != Stack{q->count, q->rows, k->rows} ||
        v != k || q->count != k->count || q->columns != k->columns || y != q ||
        v != stack_of(g_.tensor(product.args[1])) || !std::isfinite(m.scale))
      return std::nullopt;
    m.q_stack = *q;
    m.k_stack = *k;
    return m;
  }

  // Where [heads, rows, size] was permuted from [rows, heads, size], and that perhaps chosen from
  // parts [rows, parts, heads * size].
  std::optional<Heads> heads_of(ValueId id, const Stack& s) const {
    const Dims own = Dims{s.count, s.rows, s.columns};
    if (without_ones(own) != own) return std::nullopt;
    const auto from = swapped(id, own);
    if (!from) return std::nullopt;
    Heads h{.base = *from, .total = s.count};
    const Node* choice = maker(behind_views(g_, uses_, *from), kSelect);
    const auto part = choice == nullptr ? std::nullopt : number(g_, choice->args[2]);
    const auto dim = choice == nullptr ? std::nullopt : number(g_, choice->args[1]);
    const Tensor* parts = choice == nullptr ? nullptr : g_.tensor(choice->args[0]);
    if (!part || *part < 0 || dim != 0.0 || parts == nullptr || parts->max.empty()) return h;
    const int64_t count = parts->max[0];
    const Dims want = {count, s.rows, s.count * s.columns};
    const auto packed = count == 1 ? std::nullopt : swapped(choice->args[0], want);
    if (packed) h = {*packed, count * s.count, static_cast<int64_t>(*part) * s.count};
    return h;
  }
  // `id` has these three dims, dims of 1 aside, and is a permutation of the first two.
  std::optional<ValueId> swapped(ValueId id, const Dims& dims) const {
    const ValueId at = behind_ones(g_, uses_, id);
    if (without_ones(g_.tensor(at)->max) != dims || !uses_.stable(at) ||
        uses_.producer(at) == kNoNode)
      return std::nullopt;
    const Node& n = g_.nodes[uses_.producer(at)];
    const auto order = order_of(g_, n);
    if (!order || !uses_.stable(n.args[0]) ||
        without_ones(g_.tensor(n.args[0])->max, *order) != std::vector<size_t>{1, 0, 2})
      return std::nullopt;
    return n.args[0];
  }

  ValueId like(ValueId of, const Dims& dims) {
    return g_.add(Tensor{.dtype = g_.tensor(of)->dtype, .max = dims},
                  g_.labels[index(of)] + " as heads");
  }
  // A value seen with other dims: a node before the call.
  ValueId seen_as(ValueId id, const Dims& dims, std::vector<Node>& nodes) {
    if (g_.tensor(id)->max == dims) return id;
    const ValueId v = like(id, dims);
    nodes.push_back(view_of(ops_, id, v));
    return v;
  }

  void replace(uint32_t i, const Match& m) {
    const Node old = g_.nodes[i];
    const ValueId y = old.args.back();
    std::vector<Node> nodes;
    Node call;
    call.delegate = old.delegate;
    call.call = old.call;
    const ValueId scale = g_.add(m.scale, "scale");
    const auto q = heads_of(m.q, m.q_stack);
    const auto k = heads_of(m.k, m.k_stack);
    const auto v = heads_of(m.v, m.k_stack);
    if (q && k && v && k->total == v->total) {
      const auto packed = [&](const Heads& h, const Stack& s) {
        return seen_as(h.base, {1, s.rows, h.total, s.columns}, nodes);
      };
      const auto integer = [&](int64_t n) { return g_.add(n, std::to_string(n)); };
      const Stack& s = m.q_stack;
      const ValueId rows = like(y, {1, s.rows, s.count, s.columns});
      const ValueId q4 = packed(*q, m.q_stack);
      const ValueId k4 = packed(*k, m.k_stack);
      const ValueId v4 = packed(*v, m.k_stack);
      set_call(g_, call, ops_, ops::attention::kPackedOp,
               {{"q", q4},
                {"k", k4},
                {"v", v4},
                {"heads", integer(s.count)},
                {"q_head", integer(q->first)},
                {"k_head", integer(k->first)},
                {"v_head", integer(v->first)},
                {"scale", scale},
                {"y", rows}});
      nodes.push_back(std::move(call));
      // As the product left it; who wants rows first undoes this.
      const ValueId heads = like(y, {1, s.count, s.rows, s.columns});
      Node order;
      set_call(g_, order, ops_, kPermute,
               {{"x", rows}, {"dims", g_.add(IntList{{0, 2, 1, 3}}, "dims")}, {"y", heads}});
      nodes.push_back(std::move(order));
      nodes.push_back(view_of(ops_, heads, y));
    } else {
      const auto whole = [&](ValueId id, const Stack& s) {
        return seen_as(id, {s.count, s.rows, s.columns}, nodes);
      };
      const ValueId q3 = whole(m.q, m.q_stack);
      const ValueId k3 = whole(m.k, m.k_stack);
      const ValueId v3 = whole(m.v, m.k_stack);
      set_call(g_, call, ops_, "et_vk.sdpa.default",
               {{"q", q3}, {"k", k3}, {"v", v3}, {"scale", scale}, {"y", y}});
      nodes.push_back(std::move(call));
    }
    made_.emplace(i, std::move(nodes));
  }

  Graph& g_;
  const OpLookup& ops_;
  const Uses uses_;
  Replacements made_;
};

}  // namespace

void fuse_attention(Graph& g, const OpLookup& ops) {
  if (!has_fixed_sizes(g) || ops.find(ops::attention::kPackedOp) == nullptr) return;
  const std::vector<uint32_t> before = all_reads(g);
  Finder(g, ops).run();
  drop_unread_moves(g, before);
}

}  // namespace pteryx::fuse
