// Weights of 4 bits with a minimum for each group. Operators that other runtimes know have scales
// alone, so files write the rest as a product of its own: the sums of x over each group, times what
// code 0 of the group stands for, added to the layer's result. Both become one product with
// minimums.
// SPDX-License-Identifier: BSD-3-Clause
#include <optional>

#include "pteryx/fuse/calls.h"
#include "pteryx/fuse/chain.h"
#include "pteryx/fuse/match.h"
#include "pteryx/fuse/passes.h"
#include "pteryx/fuse/products.h"

namespace pteryx::fuse {

using namespace graph;  // NOLINT(google-build-using-namespace): the graph is what passes are about
namespace {

constexpr std::string_view kAdd = "aten.add.Tensor";
constexpr std::string_view kLayer = "et_vk.linear_q4gsw.default";
constexpr std::string_view kProduct = "aten.mm.default";
constexpr std::string_view kSum = "aten.sum.dim_IntList";
constexpr std::string_view kView = "aten.view_copy.default";

// The last of a list of numbers, where it is a literal.
std::optional<int64_t> last_number(const Graph& g, ValueId list) {
  if (list == kNoValue) return std::nullopt;
  if (const auto* ints = std::get_if<IntList>(&g[list]))
    return ints->items.empty() ? std::nullopt : std::optional(ints->items.back());
  const auto* values = std::get_if<ValueList>(&g[list]);
  if (values == nullptr || values->items.empty() || values->items.back() == kNoValue)
    return std::nullopt;
  const auto* number = std::get_if<int64_t>(&g[values->items.back()]);
  return number == nullptr ? std::nullopt : std::optional(*number);
}

size_t length(const Graph& g, ValueId list) {
  if (const auto* ints = std::get_if<IntList>(&g[list])) return ints->items.size();
  const auto* values = std::get_if<ValueList>(&g[list]);
  return values == nullptr ? 0 : values->items.size();
}

class Finder {
 public:
  Finder(const Graph& g, const Uses& uses) : g_(g), uses_(uses) {}

  // What the sum of a layer's result and `other` adds to it as minimums; kNoValue: anything else.
  ValueId minimums(const Layer& l, ValueId other) const {
    const Tensor* y = g_.tensor(l.y);
    const ValueId rows = product_seen_as(other, *y);
    const uint32_t maker = rows == kNoValue ? kNoNode : made_by(rows, kProduct, *y);
    if (maker == kNoNode) return kNoValue;
    const ValueId z = argument(g_.nodes[maker], "b");
    return fits(l, z) && sums_groups(l, argument(g_.nodes[maker], "a")) ? z : kNoValue;
  }

 private:
  // The node that makes a value of `like`'s type, if it is a call of `op`.
  uint32_t made_by(ValueId id, std::string_view op, const Tensor& like) const {
    const Tensor* t = g_.tensor(id);
    if (t == nullptr || t->dtype != like.dtype || !uses_.stable(id)) return kNoNode;
    return uses_.made_by(id, op);
  }

  // [S, n], where `id` is that or [1, S, n] of it, of the shape of y.
  ValueId product_seen_as(ValueId id, const Tensor& y) const {
    const Tensor* t = g_.tensor(id);
    if (t == nullptr || t->max != y.max) return kNoValue;
    if (y.max.rank() == 2) return id;
    const uint32_t view = made_by(id, kView, y);
    if (view == kNoNode || y.max.rank() != 3 || y.max[0] != 1) return kNoValue;
    const bool rows = last_number(g_, argument(g_.nodes[view], "size")) == y.max[2];
    return rows ? g_.nodes[view].args[0] : kNoValue;
  }

  // A constant like the scales, one number for each group and column.
  bool fits(const Layer& l, ValueId id) const {
    const Tensor* z = g_.tensor(id);
    const Tensor* scales = g_.tensor(l.scales);
    const Tensor* y = g_.tensor(l.y);
    return z != nullptr && z->is_constant() && uses_.stable(id) && scales->is_constant() &&
           z->dtype == scales->dtype && z->max == scales->max && z->max.rank() == 2 &&
           z->max[1] == y->max.back();
  }

  // [S, groups] of the sums of the layer's x over each group.
  bool sums_groups(const Layer& l, ValueId id) const {
    const Tensor* x = g_.tensor(l.x);
    const auto* group = l.group == kNoValue ? nullptr : std::get_if<int64_t>(&g_[l.group]);
    const Tensor* scales = g_.tensor(l.scales);
    if (group == nullptr || *group <= 0 || x->max.empty() || x->max.back() % *group != 0 ||
        x->max.back() / *group != scales->max[0])
      return false;
    // The product takes as many columns as there are groups, so rows are those of x.
    const uint32_t view = made_by(id, kView, *x);
    const uint32_t sum = made_by(view == kNoNode ? id : g_.nodes[view].args[0], kSum, *x);
    if (sum == kNoNode) return false;
    const Node& n = g_.nodes[sum];
    const ValueId grouped = argument(n, "x");
    const uint32_t split = made_by(grouped, kView, *x);
    if (split == kNoNode || g_.nodes[split].args[0] != l.x) return false;
    const auto rank = static_cast<int64_t>(g_.tensor(grouped)->max.rank());
    const auto dim = last_number(g_, argument(n, "dim"));
    return last_number(g_, argument(g_.nodes[split], "size")) == *group &&
           length(g_, argument(n, "dim")) == 1 && (dim == -1 || dim == rank - 1);
  }

  const Graph& g_;
  const Uses& uses_;
};

}  // namespace

void take_minimums(Graph& g, const OpLookup& ops, uint64_t most_bytes) {
  const Uses uses(g);
  const Finder finder(g, uses);
  std::vector<bool> gone(g.nodes.size());
  const auto take = [&](const Node& sum, ValueId y, ValueId other) {
    const uint32_t maker = uses.made_by(y, kLayer);
    const ValueId out = sum.args.back();
    const Tensor* to = g.tensor(out);
    if (maker == kNoNode || uses.reads(y) != 1 || !uses.stable(y) || to == nullptr ||
        !uses.stable(out))
      return false;
    const auto l = layer_of(g, g.nodes[maker]);
    if (!l || l->scales == kNoValue || !uses.stable(l->x) || to->max != g.tensor(y)->max ||
        to->dtype != g.tensor(y)->dtype || g.tensor(l->x)->dtype != to->dtype)
      return false;
    const ValueId minimums = finder.minimums(*l, other);
    if (minimums == kNoValue || !make_product(g, g.nodes[maker], ops, most_bytes)) return false;
    set_argument(g.nodes[maker], "minimums", minimums);
    set_argument(g.nodes[maker], "y", g.add(ValueList{{out}}, "results"));
    return true;
  };
  bool any = false;
  for (uint32_t i = 0; i < g.nodes.size(); ++i) {
    const Node sum = g.nodes[i];
    if (!is_call(sum, kAdd) || !is_number(g, sum.args[2], 1)) continue;
    gone[i] = take(sum, sum.args[0], sum.args[1]) || take(sum, sum.args[1], sum.args[0]);
    any = any || gone[i];
  }
  if (!any) return;
  erase_nodes(g, gone);
  for (const std::string_view op : {kView, kProduct, kView, kSum, kView}) drop_unread(g, op);
}

}  // namespace pteryx::fuse
