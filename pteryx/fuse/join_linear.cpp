// Linear layers with quantised weights: those that read the same x become one with several results,
// an addition that follows one goes into it. SPDX-License-Identifier: BSD-3-Clause
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
constexpr size_t kMostJoined = 3;

// An operator and what passes make of it.
struct Kind {
  ProductOps ops;
  size_t args;  // with the result
  bool groups;  // [x, weight, scales, group_size, bias, y], else [x, weight, scales, y]
};
constexpr Kind kKinds[] = {{kProductOps[0], 6, true}, {kProductOps[1], 4, false}};
enum Argument { kX, kWeight, kScales, kGroup, kBias };

const Kind* kind_of(const Node& n) {
  for (const Kind& k : kKinds) {
    if (is_call(n, k.ops.layer) && n.args.size() == k.args) return &k;
  }
  return nullptr;
}

const Tensor* constant(const Graph& g, ValueId id, const Uses& uses) {
  const Tensor* t = g.tensor(id);
  const bool plain =
      t != nullptr && t->is_constant() && t->dim_order.empty() && t->data.size() == 1;
  return plain && uses.stable(id) ? t : nullptr;
}

bool plain_float(const Tensor* t) {
  return t != nullptr && (t->dtype == DType::kF32 || t->dtype == DType::kF16);
}

// Whether a layer's tensors are such that its rows can stand behind another's.
bool can_join(const Graph& g, const Node& n, const Kind& k, const Uses& uses) {
  const Tensor* x = g.tensor(n.args[kX]);
  const Tensor* w = constant(g, n.args[kWeight], uses);
  const Tensor* s = constant(g, n.args[kScales], uses);
  const Tensor* y = g.tensor(n.args.back());
  if (!plain_float(x) || !plain_float(s) || !plain_float(y) || w == nullptr) return false;
  if (!uses.stable(n.args[kX]) || !uses.stable(n.args.back()) || y->has_data()) return false;
  if (w->max.rank() != 2 || w->max[1] % 16 != 0 || w->max[0] % 4 != 0) return false;
  if (y->max.rank() != x->max.rank() || y->max.empty() || y->max.back() != w->max[0]) return false;
  if (!k.groups) return s->max == Dims{w->max[0]};
  const bool no_bias = std::holds_alternative<Null>(g[n.args[kBias]]);
  return no_bias && s->max.rank() == 2 && s->max[1] == w->max[0];
}

bool same_literal(const Graph& g, ValueId a, ValueId b) {
  if (a == b) return true;
  const auto* x = std::get_if<int64_t>(&g[a]);
  const auto* y = std::get_if<int64_t>(&g[b]);
  return x != nullptr && y != nullptr && *x == *y;
}

bool alike(const Graph& g, const Node& a, const Node& b, const Kind& k) {
  const auto same = [&](size_t arg) {
    const Tensor* x = g.tensor(a.args[arg]);
    const Tensor* y = g.tensor(b.args[arg]);
    return x->dtype == y->dtype && x->max.back() == y->max.back();
  };
  const Tensor* sa = g.tensor(a.args[kScales]);
  const Tensor* sb = g.tensor(b.args[kScales]);
  return a.args[kX] == b.args[kX] && same(kWeight) && sa->dtype == sb->dtype &&
         (!k.groups ||
          (sa->max[0] == sb->max[0] && same_literal(g, a.args[kGroup], b.args[kGroup]))) &&
         g.tensor(a.args.back())->dtype == g.tensor(b.args.back())->dtype;
}

class Joiner {
 public:
  Joiner(Graph& g, const OpLookup& ops, uint64_t most_bytes)
      : g_(g), ops_(ops), most_bytes_(most_bytes / 16 * 16) {}

  // Layers over one x become the first of them; the others go.
  void join() {
    const Uses uses(g_);
    std::vector<bool> gone(g_.nodes.size());
    for (uint32_t i = 0; i < g_.nodes.size(); ++i) {
      const Kind* k = gone[i] ? nullptr : kind_of(g_.nodes[i]);
      if (k == nullptr || ops_.find(k->ops.product) == nullptr ||
          !can_join(g_, g_.nodes[i], *k, uses))
        continue;
      std::vector<uint32_t> members = {i};
      for (uint32_t j = i + 1; j < g_.nodes.size() && members.size() < kMostJoined; ++j) {
        if (!gone[j] && kind_of(g_.nodes[j]) == k && can_join(g_, g_.nodes[j], *k, uses) &&
            alike(g_, g_.nodes[i], g_.nodes[j], *k) && fits(members, j))
          members.push_back(j);
      }
      if (members.size() < 2) continue;
      replace(members, *k);
      for (size_t m = 1; m < members.size(); ++m) gone[members[m]] = true;
    }
    erase_nodes(g_, gone);
  }

  // y = layer(x), perhaps seen as another shape, then y + r.
  void absorb_additions() {
    if (inputs_that_vary() > 1) return;  // r could have another live size than y
    const Uses uses(g_);
    std::vector<bool> gone(g_.nodes.size());
    for (uint32_t i = 0; i < g_.nodes.size(); ++i) absorb(i, uses, gone);
    erase_nodes(g_, gone);
  }

 private:
  // Whether the constants of all of them are small enough to be one.
  bool fits(const std::vector<uint32_t>& members, uint32_t more) const {
    for (const size_t arg : {kWeight, kScales}) {
      uint64_t bytes = bytes_of(more, arg);
      for (const uint32_t m : members) bytes += bytes_of(m, arg);
      if (bytes > most_bytes_) return false;
    }
    return true;
  }
  uint64_t bytes_of(uint32_t node, size_t arg) const {
    const Tensor& t = *g_.tensor(g_.nodes[node].args[arg]);
    const auto elements = static_cast<uint64_t>(numel(t.max));
    if (arg != kWeight || elements == 0 || t.max.rank() != 2) return elements * size_bytes(t.dtype);
    const auto rows = static_cast<uint64_t>(t.max[0]);
    return rows * padded_row(elements / rows * size_bytes(t.dtype));
  }

  // Rows with others' in between would not be next to what is added to them.
  bool is_split(uint32_t node) const {
    const Node& n = g_.nodes[node];
    return g_.tensor(n.args[kWeight]) == nullptr || g_.tensor(n.args[kScales]) == nullptr ||
           !fits({}, node);
  }

  // The rows of the members' constants one behind the other; `columns`: of each row the columns.
  ValueId joined_constant(const std::vector<uint32_t>& members, size_t arg, bool columns) {
    const Tensor first = *g_.tensor(g_.nodes[members[0]].args[arg]);
    Tensor t{.dtype = first.dtype, .max = first.max};
    int64_t size = 0;
    for (const uint32_t m : members) size += extent(m, arg, columns);
    t.max[columns ? t.max.rank() - 1 : 0] = size;
    const int64_t rows = columns && first.max.rank() == 2 ? first.max[0] : 1;
    for (int64_t r = 0; r < rows; ++r) {
      for (const uint32_t m : members) {
        const ByteRange& whole = g_.tensor(g_.nodes[m].args[arg])->data.front();
        const uint64_t part = whole.size / static_cast<uint64_t>(rows);
        t.data.push_back(*slice(whole, static_cast<uint64_t>(r) * part, part));
      }
    }
    return g_.add(std::move(t), g_.labels[index(g_.nodes[members[0]].args[arg])] + " and others");
  }
  int64_t extent(uint32_t node, size_t arg, bool columns) const {
    const Dims& d = g_.tensor(g_.nodes[node].args[arg])->max;
    return columns ? d.back() : d[0];
  }

  void replace(const std::vector<uint32_t>& members, const Kind& k) {
    ValueList results;
    for (const uint32_t m : members) results.items.push_back(g_.nodes[m].args.back());
    const ValueId weight = joined_constant(members, kWeight, false);
    const ValueId scales = joined_constant(members, kScales, true);
    const ValueId x = g_.nodes[members[0]].args[kX];
    const ValueId group = k.groups ? g_.nodes[members[0]].args[kGroup] : kNoValue;
    IntList widths;
    for (const uint32_t m : members) widths.items.push_back(extent(m, kWeight, false));
    set_call(g_, g_.nodes[members[0]], ops_, k.ops.product,
             {{"x", x},
              {"weight", weight},
              {"scales", scales},
              {"group_size", group},
              {"widths", g_.add(std::move(widths), "widths")},
              {"y", g_.add(std::move(results), "results")}});
  }

  size_t inputs_that_vary() const {
    return static_cast<size_t>(std::count_if(g_.inputs.begin(), g_.inputs.end(), [&](ValueId id) {
      const Tensor* t = g_.tensor(id);
      return t != nullptr && t->dynamic && numel(t->max) > 1;
    }));
  }

  void absorb(uint32_t i, const Uses& uses, std::vector<bool>& gone) {
    const Node& sum = g_.nodes[i];
    if (!is_call(sum, kAdd) || sum.args.size() != 4) return;
    const auto* alpha = std::get_if<int64_t>(&g_[sum.args[2]]);
    const auto* alpha_f = std::get_if<double>(&g_[sum.args[2]]);
    if (!(alpha != nullptr && *alpha == 1) && !(alpha_f != nullptr && *alpha_f == 1)) return;
    for (const size_t a : {size_t{0}, size_t{1}}) {
      if (absorb_into(i, sum.args[a], sum.args[1 - a], uses)) {
        gone[i] = true;
        return;
      }
    }
  }

  bool absorb_into(uint32_t sum, ValueId y, ValueId r, const Uses& uses) {
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
    const Kind* k = kind_of(g_.nodes[maker]);
    const Tensor* layer = g_.tensor(from);
    const Tensor* x = g_.tensor(g_.nodes[maker].args[kX]);
    if (k == nullptr || ops_.find(k->ops.product) == nullptr || layer == nullptr || x == nullptr ||
        x->max.rank() != layer->max.rank() || layer->dtype != ty->dtype || is_split(maker))
      return false;
    const uint32_t ready = uses.producer(r);
    if (ready != kNoNode && ready >= maker) return false;
    const std::vector<ValueId> args = g_.nodes[maker].args;
    ValueList result;
    result.items.push_back(last_view == kNoNode ? out : from);
    set_call(g_, g_.nodes[maker], ops_, k->ops.product,
             {{"x", args[kX]},
              {"weight", args[kWeight]},
              {"scales", args[kScales]},
              {"group_size", k->groups ? args[kGroup] : kNoValue},
              {"bias", k->groups ? args[kBias] : kNoValue},
              {"residual", r},
              {"widths", g_.add(IntList{{layer->max.back()}}, "widths")},
              {"y", g_.add(std::move(result), "results")}});
    if (last_view != kNoNode) g_.nodes[last_view].args.back() = out;
    return true;
  }

  Graph& g_;
  const OpLookup& ops_;
  uint64_t most_bytes_;
};

}  // namespace

void join_linear(Graph& g, const OpLookup& ops, uint64_t most_bytes) {
  Joiner joiner(g, ops, most_bytes);
  joiner.join();
  joiner.absorb_additions();
}

}  // namespace pteryx::fuse
