// Linear layers with constant weights: those that read the same x become one with several results,
// and an addition that follows one goes into it, as its bias or as a residual.
// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>

#include "pteryx/fuse/calls.h"
#include "pteryx/fuse/constants.h"
#include "pteryx/fuse/passes.h"
#include "pteryx/fuse/products.h"
#include "pteryx/fuse/uses.h"

namespace pteryx::fuse {

using namespace graph;  // NOLINT(google-build-using-namespace): the graph is what passes are about
namespace {

constexpr std::string_view kAdd = "aten.add.Tensor";
constexpr std::string_view kView = "aten.view_copy.default";
constexpr std::string_view kNorm = "et_vk.rms_norm.default";
constexpr size_t kMostJoined = 3;

const Tensor* constant(const Graph& g, ValueId id, const Uses& uses) {
  const Tensor* t = id == kNoValue ? nullptr : g.tensor(id);
  return t != nullptr && t->is_constant() && uses.stable(id) ? t : nullptr;
}

bool plain_float(const Tensor* t) { return t != nullptr && is_plain_float(*t); }

// What takes results of a joined layer in.
constexpr std::string_view kTakers[] = {"et_vk.apply_rotary_emb.default",
                                        "et_vk.apply_rotary_emb_hf.default",
                                        "sdpa_with_kv_cache.default", "pteryx.silu_mul"};

// Whether a value goes to one of these alone, perhaps seen as another shape or normed before.
bool is_taken(const Graph& g, ValueId id, const Uses& uses) {
  for (uint32_t at = uses.reader(id); at != kNoNode; at = uses.reader(g.nodes[at].args.back())) {
    const Node& n = g.nodes[at];
    if (std::ranges::any_of(kTakers, [&](std::string_view op) { return is_call(n, op); }))
      return true;
    if ((!is_call(n, kView) && !is_call(n, kNorm)) || !uses.stable(n.args.back())) return false;
  }
  return false;
}

// Whether a layer's tensors are such that its rows can stand behind another's.
bool can_join(const Graph& g, const Layer& l, const Uses& uses) {
  const Tensor* x = g.tensor(l.x);
  const Tensor* w = constant(g, l.weight, uses);
  const Tensor* y = g.tensor(l.y);
  if (!plain_float(x) || !plain_float(y) || w == nullptr) return false;
  if (!uses.stable(l.x) || !uses.stable(l.y) || y->has_data()) return false;
  if (w->max.rank() != 2 || w->max[0] % 4 != 0 || numel(w->max) == 0) return false;
  if (y->max.rank() != x->max.rank() || y->max.empty() || y->max.back() != w->max[0]) return false;
  if (l.bias != kNoValue) {
    const Tensor* b = constant(g, l.bias, uses);
    if (!plain_float(b) || b->max.rank() != 1 || b->max[0] < w->max[0]) return false;
  }
  // Float weights are read once either way, and results that nothing takes in are copied apart.
  if (l.scales == kNoValue) return plain_float(w) && is_taken(g, l.y, uses);
  const Tensor* s = constant(g, l.scales, uses);
  if (l.minimums != kNoValue) {
    const Tensor* z = constant(g, l.minimums, uses);
    if (z == nullptr || s == nullptr || z->max != s->max || z->dtype != s->dtype) return false;
  }
  return plain_float(s) && s->max.rank() == (l.group == kNoValue ? 1 : 2) &&
         s->max.back() >= w->max[0];
}

bool same_literal(const Graph& g, ValueId a, ValueId b) {
  if (a == b) return true;
  const auto* x = a == kNoValue ? nullptr : std::get_if<int64_t>(&g[a]);
  const auto* y = b == kNoValue ? nullptr : std::get_if<int64_t>(&g[b]);
  return x != nullptr && y != nullptr && *x == *y;
}

bool alike(const Graph& g, const Layer& a, const Layer& b) {
  const auto same_type = [&](ValueId x, ValueId y) {
    if (x == kNoValue || y == kNoValue) return x == y;
    return g.tensor(x)->dtype == g.tensor(y)->dtype;
  };
  if (a.ops != b.ops || a.x != b.x || !same_literal(g, a.group, b.group) ||
      !same_type(a.weight, b.weight) || !same_type(a.scales, b.scales) ||
      !same_type(a.minimums, b.minimums) || !same_type(a.bias, b.bias) || !same_type(a.y, b.y))
    return false;
  return g.tensor(a.weight)->max[1] == g.tensor(b.weight)->max[1] &&
         (a.group == kNoValue || g.tensor(a.scales)->max[0] == g.tensor(b.scales)->max[0]);
}

class Joiner {
 public:
  Joiner(Graph& g, const OpLookup& ops, uint64_t most_bytes)
      : g_(g), ops_(ops), most_bytes_(most_bytes / 16 * 16) {}

  // Exporters see rows [1, S, K] as [S, K] before a layer with float weights, and its result as
  // [1, S, ..] again: without the first view, those over the same rows have the same x.
  void see_through_views() {
    const Uses uses(g_);
    std::vector<bool> gone(g_.nodes.size());
    for (Node& n : g_.nodes) {
      const auto l = layer_of(g_, n);
      if (!l || l->scales != kNoValue || !is_call(n, l->ops->layer)) continue;
      const uint32_t view = uses.made_by(l->x, kView);
      const uint32_t after = uses.reader(l->y);
      if (view == kNoNode || after == kNoNode || !is_call(g_.nodes[after], kView)) continue;
      const ValueId rows = g_.nodes[view].args[0];
      const Tensor* from = g_.tensor(rows);
      Tensor* y = std::get_if<Tensor>(&g_.values[index(l->y)]);
      const Tensor* x = g_.tensor(l->x);
      if (from == nullptr || y == nullptr || from->max.rank() != 3 || from->max[0] != 1 ||
          x->max.rank() != 2 || y->max.rank() != 2 || from->max[2] != x->max[1] ||
          from->dtype != x->dtype || !uses.stable(rows) || !uses.stable(l->y))
        continue;
      set_argument(n, "x", rows);
      y->max = {1, from->max[1], y->max[1]};
      gone[view] = uses.reads(l->x) == 1;
    }
    erase_nodes(g_, gone);
  }

  // y = layer(x), then y + a constant for each column.
  void absorb_biases() {
    const Uses uses(g_);
    std::vector<bool> gone(g_.nodes.size());
    for (uint32_t i = 0; i < g_.nodes.size(); ++i) {
      for_each_sum(i, [&](ValueId y, ValueId b) { return absorb_bias(i, y, b, uses); }, gone);
    }
    erase_nodes(g_, gone);
  }

  // Layers over one x become the first of them; the others go.
  void join() {
    const Uses uses(g_);
    std::vector<bool> gone(g_.nodes.size());
    for (uint32_t i = 0; i < g_.nodes.size(); ++i) {
      const auto first = gone[i] ? std::nullopt : layer_of(g_, g_.nodes[i]);
      if (!first || !can_join(g_, *first, uses)) continue;
      std::vector<Layer> members = {*first};
      std::vector<uint32_t> others;
      for (uint32_t j = i + 1; j < g_.nodes.size() && members.size() < kMostJoined; ++j) {
        const auto other = gone[j] ? std::nullopt : layer_of(g_, g_.nodes[j]);
        if (!other || !can_join(g_, *other, uses) || !alike(g_, *first, *other)) continue;
        members.push_back(*other);
        if (fits(members)) {
          others.push_back(j);
        } else {
          members.pop_back();
        }
      }
      if (others.empty() || !replace(i, members)) continue;
      for (const uint32_t j : others) gone[j] = true;
    }
    erase_nodes(g_, gone);
  }

  // y = layer(x), perhaps seen as another shape, then y + r.
  void absorb_additions() {
    if (varying_inputs(g_) > 1) return;  // r could have another live size than y
    const Uses uses(g_);
    std::vector<bool> gone(g_.nodes.size());
    for (uint32_t i = 0; i < g_.nodes.size(); ++i) {
      for_each_sum(i, [&](ValueId y, ValueId r) { return absorb_residual(i, y, r, uses); }, gone);
    }
    erase_nodes(g_, gone);
  }

 private:
  // Whether the constants of all of them are small enough to be one.
  bool fits(const std::vector<Layer>& members) const {
    uint64_t weights = 0;
    uint64_t scales = 0;
    for (const Layer& l : members) {
      weights += padded_bytes(*g_.tensor(l.weight));
      if (l.scales != kNoValue) scales += padded_bytes(*g_.tensor(l.scales));
    }
    return std::max(weights, scales) <= most_bytes_;
  }

  // Constants of the members, one behind the other: of each as many as its weight has rows.
  std::optional<ValueId> joined(const std::vector<Layer>& members, ValueId Layer::* which) {
    if (members[0].*which == kNoValue) return kNoValue;
    std::vector<JoinedPart> parts;
    parts.reserve(members.size());
    for (const Layer& l : members)
      parts.push_back({g_.tensor(l.*which), g_.tensor(l.weight)->max[0]});
    const size_t rank = parts[0].tensor->max.rank();
    const bool by_column = which == &Layer::scales || which == &Layer::minimums;
    auto t = joined_constant(parts, by_column ? rank - 1 : 0);
    if (!t) return std::nullopt;
    return g_.add(*std::move(t), g_.labels[index(members[0].*which)] + " and others");
  }

  bool replace(uint32_t node, const std::vector<Layer>& members) {
    const auto weight = joined(members, &Layer::weight);
    const auto scales = joined(members, &Layer::scales);
    const auto minimums = joined(members, &Layer::minimums);
    const auto bias = joined(members, &Layer::bias);
    Node& n = g_.nodes[node];
    if (!weight || !scales || !minimums || !bias || !make_product(g_, n, ops_, most_bytes_))
      return false;
    ValueList results;
    IntList widths;
    for (const Layer& l : members) {
      results.items.push_back(l.y);
      widths.items.push_back(g_.tensor(l.weight)->max[0]);
    }
    set_argument(n, "weight", *weight);
    if (*scales != kNoValue) set_argument(n, "scales", *scales);
    if (*minimums != kNoValue) set_argument(n, "minimums", *minimums);
    if (*bias != kNoValue) set_argument(n, "bias", *bias);
    set_argument(n, "widths", g_.add(std::move(widths), "widths"));
    set_argument(n, "y", g_.add(std::move(results), "results"));
    return true;
  }

  // Tries both orders of the summands of a node; it goes where one was taken.
  template <typename F>
  void for_each_sum(uint32_t i, F&& take, std::vector<bool>& gone) {
    const Node& sum = g_.nodes[i];
    if (!is_call(sum, kAdd) || sum.args.size() != 4) return;
    const auto* alpha = std::get_if<int64_t>(&g_[sum.args[2]]);
    const auto* alpha_f = std::get_if<double>(&g_[sum.args[2]]);
    if (!(alpha != nullptr && *alpha == 1) && !(alpha_f != nullptr && *alpha_f == 1)) return;
    gone[i] = take(sum.args[0], sum.args[1]) || take(sum.args[1], sum.args[0]);
  }

  bool absorb_bias(uint32_t sum, ValueId y, ValueId b, const Uses& uses) {
    const uint32_t maker = uses.producer(y);
    if (maker == kNoNode || uses.reads(y) != 1 || !uses.stable(y)) return false;
    const auto l = layer_of(g_, g_.nodes[maker]);
    const ValueId out = g_.nodes[sum].args.back();
    const Tensor* from = g_.tensor(y);
    const Tensor* to = g_.tensor(out);
    const Tensor* bias = constant(g_, b, uses);
    if (!l || l->y != y || l->bias != kNoValue || !plain_float(from) || to == nullptr ||
        bias == nullptr || bias->dtype != from->dtype || to->dtype != from->dtype ||
        to->max != from->max || bias->max != Dims{from->max.back()} || !uses.stable(out) ||
        !make_product(g_, g_.nodes[maker], ops_, most_bytes_))
      return false;
    set_argument(g_.nodes[maker], "bias", b);
    set_argument(g_.nodes[maker], "y", g_.add(ValueList{{out}}, "results"));
    return true;
  }

  bool absorb_residual(uint32_t sum, ValueId y, ValueId r, const Uses& uses) {
    const ValueId out = g_.nodes[sum].args.back();
    const Tensor* ty = g_.tensor(y);
    const Tensor* tr = g_.tensor(r);
    const Tensor* to = g_.tensor(out);
    if (!plain_float(ty) || tr == nullptr || to == nullptr || tr->dtype != ty->dtype ||
        to->dtype != ty->dtype || tr->max != ty->max || to->max != ty->max || y == r ||
        !uses.stable(r) || !uses.stable(out))
      return false;
    // Back through views to the layer.
    uint32_t last_view = kNoNode;
    ValueId from = y;
    uint32_t maker = uses.producer(from);
    while (maker != kNoNode && uses.reads(from) == 1 && uses.stable(from) &&
           is_call(g_.nodes[maker], kView)) {
      if (last_view == kNoNode) last_view = maker;
      from = g_.nodes[maker].args[0];
      maker = uses.producer(from);
    }
    if (maker == kNoNode || uses.reads(from) != 1 || !uses.stable(from)) return false;
    const auto l = layer_of(g_, g_.nodes[maker]);
    const Tensor* layer = g_.tensor(from);
    const uint32_t ready = uses.producer(r);
    // A product of floats adds one thing.
    if (!l || l->y != from || layer == nullptr || layer->dtype != ty->dtype ||
        (l->scales == kNoValue && l->bias != kNoValue) || (ready != kNoNode && ready >= maker) ||
        !make_product(g_, g_.nodes[maker], ops_, most_bytes_))
      return false;
    set_argument(g_.nodes[maker], "residual", r);
    if (last_view != kNoNode) {
      g_.nodes[last_view].args.back() = out;
    } else {
      set_argument(g_.nodes[maker], "y", g_.add(ValueList{{out}}, "results"));
    }
    return true;
  }

  Graph& g_;
  const OpLookup& ops_;
  uint64_t most_bytes_;
};

}  // namespace

void join_linear(Graph& g, const OpLookup& ops, uint64_t most_bytes) {
  Joiner joiner(g, ops, most_bytes);
  joiner.see_through_views();
  joiner.absorb_biases();
  joiner.join();
  joiner.absorb_additions();
}

}  // namespace pteryx::fuse
