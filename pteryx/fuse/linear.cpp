// What stands behind a linear layer of floats becomes part of it: an activation, a factor for each
// column, what is added to the result, and the transposition to columns first.
// SPDX-License-Identifier: BSD-3-Clause
#include <utility>

#include "pteryx/fuse/calls.h"
#include "pteryx/fuse/chain.h"
#include "pteryx/fuse/movement.h"
#include "pteryx/fuse/passes.h"
#include "pteryx/ops/matmul/matmul.h"

namespace pteryx::fuse {

using namespace graph;  // NOLINT(google-build-using-namespace): the graph is what passes are about
namespace {

constexpr std::string_view kLinear = "aten.linear.default";
constexpr std::string_view kMul = "aten.mul.Tensor";

// y = activation(linear) * scale + residual, or the transpose.
struct Slots {
  std::string_view activation;
  ValueId scale = kNoValue;
  ValueId residual = kNoValue;
  bool transposed = false;

  bool is_weighed() const { return scale != kNoValue || residual != kNoValue; }
};

class Extender {
 public:
  Extender(Graph& g, const OpLookup& ops) : g_(g), ops_(ops), chains_(g) {}

  void run() {
    for (uint32_t i = 0; i < g_.nodes.size(); ++i) {
      if (is_call(g_.nodes[i], kLinear)) extend(i);
    }
    replace_nodes(g_, std::move(made_));
  }

 private:
  const Dims& dims(ValueId id) const { return g_.tensor(id)->max; }

  std::string_view activation(const Node& n) const {
    if (is_call(n, "aten.relu.default")) return "relu";
    if (is_call(n, "aten.silu.default")) return "silu";
    if (!is_call(n, "aten.gelu.default")) return {};
    const auto* kind = std::get_if<std::string>(&g_[n.args[1]]);
    if (kind == nullptr || *kind == "none") return "gelu";
    return *kind == "tanh" ? "gelu_tanh" : std::string_view();
  }

  // [.., columns] -> [columns, ..], dims of 1 aside.
  bool is_transposition(const Node& n, int64_t columns) const {
    const auto order = order_of(g_, n);
    if (!order) return false;
    const Dims from = dims(n.args[0]);
    const Dims kept = without_ones(from);
    if (from.empty() || from.back() != columns || columns == 1 || kept.rank() < 2) return false;
    const std::vector<size_t> moved = without_ones(from, *order);
    for (size_t i = 0; i < moved.size(); ++i) {
      if (moved[i] != (i == 0 ? moved.size() - 1 : i - 1)) return false;
    }
    return true;
  }

  // A constant with an entry for each column, which broadcasts along them.
  ValueId factor(const Node& n, ValueId y, int64_t columns, bool transposed) {
    if (!is_call(n, kMul) || n.args.size() != 3) return kNoValue;
    const ValueId other = n.args[0] == y ? n.args[1] : n.args[0];
    const Tensor* t = g_.tensor(other);
    if (t == nullptr || !t->is_constant() || t->dtype != g_.tensor(y)->dtype ||
        !t->dim_order.empty() || numel(t->max) != columns || columns == 1 || !chains_.stays(other))
      return kNoValue;
    const Dims to = dims(y);
    size_t at = to.rank() - 1;  // of the columns in y
    for (size_t i = 0; transposed && i < to.rank(); ++i) {
      if (to[i] != 1) {
        at = i;
        break;
      }
    }
    if (t->max.rank() > to.rank()) return kNoValue;
    for (size_t i = 0; i < t->max.rank(); ++i) {
      if (t->max[i] != (to.rank() - t->max.rank() + i == at ? columns : 1)) return kNoValue;
    }
    Tensor flat = *t;
    flat.max = {columns};
    return g_.add(std::move(flat), std::string(g_.label(other)));
  }

  bool take(const Node& n, ValueId y, int64_t columns, Slots& s) {
    if (is_view(g_, n)) return true;
    if (is_transposition(n, columns)) {
      if (s.transposed || s.is_weighed()) return false;
      return s.transposed = true;
    }
    if (!are_alike(g_, y, n.args.back())) return false;
    if (const std::string_view name = activation(n); !name.empty()) {
      if (!s.activation.empty() || s.is_weighed()) return false;
      s.activation = name;
      return true;
    }
    if (const ValueId other = added_to(g_, n, y); other != kNoValue) {
      if (s.residual != kNoValue || !are_alike(g_, other, y) || !chains_.stays(other)) return false;
      s.residual = other;
      return true;
    }
    if (s.is_weighed()) return false;
    s.scale = factor(n, y, columns, s.transposed);
    return s.scale != kNoValue;
  }

  // A value seen with other dims.
  ValueId seen_as(ValueId id, const Dims& to, std::vector<Node>& nodes) {
    if (dims(id) == to) return id;
    const ValueId v =
        g_.add(Tensor{.dtype = g_.tensor(id)->dtype, .max = to}, g_.labels[index(id)]);
    nodes.push_back(view_of(ops_, id, v));
    return v;
  }

  void extend(uint32_t first) {
    const Node linear = g_.nodes[first];
    ValueId y = argument(linear, "y");
    for (const std::string_view name : {"x", "weight", "bias"}) {
      const ValueId id = argument(linear, name);
      const Tensor* t = g_.tensor(id);
      if (!chains_.stays(id) || (t != nullptr && !is_float(t->dtype))) return;
    }
    if (g_.tensor(y) == nullptr || dims(y).empty() || numel(dims(y)) == 0) return;
    const int64_t columns = dims(y).back();
    const Dims own = dims(y);
    Slots s;
    Slots taken;  // without what leads nowhere
    std::vector<uint32_t> parts = {first};
    size_t useful = 1;
    for (uint32_t next = chains_.next(y); next != kNoNode; next = chains_.next(y)) {
      const Node& n = g_.nodes[next];
      if (made_.contains(next) || g_.tensor(n.args.back())->dtype != g_.tensor(y)->dtype ||
          !take(n, y, columns, s))
        break;
      parts.push_back(next);
      y = n.args.back();
      if (is_view(g_, n)) continue;
      useful = parts.size();
      taken = s;
    }
    parts.resize(useful);
    if (useful == 1) return;
    y = g_.nodes[parts.back()].args.back();
    const Dims to = taken.transposed ? Dims{columns, numel(own) / columns} : own;
    std::vector<Node> nodes;
    const ValueId residual =
        taken.residual == kNoValue ? kNoValue : seen_as(taken.residual, to, nodes);
    const ValueId result = dims(y) == to ? y
                                         : g_.add(Tensor{.dtype = g_.tensor(y)->dtype, .max = to},
                                                  g_.labels[index(y)]);
    Node call;
    call.delegate = linear.delegate;
    call.call = linear.call;
    set_call(g_, call, ops_, ops::kFusedLinear,
             {{"x", argument(linear, "x")},
              {"weight", argument(linear, "weight")},
              {"bias", argument(linear, "bias")},
              {"activation", taken.activation.empty()
                                 ? kNoValue
                                 : g_.add(std::string(taken.activation), "activation")},
              {"scale", taken.scale},
              {"residual", residual},
              {"transposed", taken.transposed ? g_.add(true, "transposed") : kNoValue},
              {"y", result}});
    nodes.push_back(std::move(call));
    if (result != y) nodes.push_back(view_of(ops_, result, y));
    for (const uint32_t part : parts) made_[part];
    made_[parts.back()] = std::move(nodes);
  }

  Graph& g_;
  const OpLookup& ops_;
  const Chains chains_;
  Replacements made_;
};

}  // namespace

void extend_linear(Graph& g, const OpLookup& ops) {
  if (has_fixed_sizes(g) && ops.find(ops::kFusedLinear) != nullptr) Extender(g, ops).run();
}

}  // namespace pteryx::fuse
