// What stands behind a convolution becomes part of it: a batch norm, an activation, what is added
// to the result, bounds.
// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/ops/conv/conv.h"

#include <array>
#include <utility>

#include "pteryx/fuse/calls.h"
#include "pteryx/fuse/chain.h"
#include "pteryx/fuse/constants.h"
#include "pteryx/fuse/movement.h"
#include "pteryx/fuse/passes.h"

namespace pteryx::fuse {

using namespace graph;  // NOLINT(google-build-using-namespace): the graph is what passes are about
namespace {

constexpr std::string_view kConv = "aten.convolution.default";
constexpr std::string_view kClamped = "et_vk.conv_with_clamp.default";
constexpr std::string_view kBatchNorm = "aten._native_batch_norm_legit_no_training.default";

// y = clamp(activation(norm(convolution)) + residual, min, max), as far as there is any of it.
struct Slots {
  ValueId norm = kNoValue;
  ValueId eps = kNoValue;
  std::string_view activation;
  ValueId residual = kNoValue;
  ValueId min = kNoValue;
  ValueId max = kNoValue;

  bool is_bounded() const { return min != kNoValue || max != kNoValue; }
};

struct ActivationOp {
  std::string_view op;
  std::string_view name;  // in kActivations
};
constexpr ActivationOp kActivationOps[] = {{"aten.silu.default", "silu"},
                                           {"aten.hardswish.default", "hardswish"}};

class Extender {
 public:
  Extender(Graph& g, const OpLookup& ops) : g_(g), ops_(ops), chains_(g) {
    one_size_ = varying_inputs(g) < 2;
  }

  void run() {
    for (uint32_t i = 0; i < g_.nodes.size(); ++i) {
      if (is_call(g_.nodes[i], kConv) || is_call(g_.nodes[i], kClamped)) extend(i);
    }
    replace_nodes(g_, std::move(made_));
  }

 private:
  ValueId bound(ValueId id) const {
    return id == kNoValue || std::holds_alternative<Null>(g_[id]) ? kNoValue : id;
  }
  bool is_literal(ValueId id) const {
    return id == kNoValue || std::holds_alternative<double>(g_[id]) ||
           std::holds_alternative<int64_t>(g_[id]);
  }

  // One element for each channel of y, which is [batch, channels, ..] if it has the weight's rank.
  bool is_of_channels(ValueId other, ValueId y, ValueId weight) const {
    const Tensor* a = g_.tensor(other);
    const Tensor* b = g_.tensor(y);
    if (a == nullptr || a->dtype != b->dtype || a->max.rank() != b->max.rank() ||
        b->max.rank() != g_.tensor(weight)->max.rank())
      return false;
    for (size_t i = 0; i < a->max.rank(); ++i) {
      if (a->max[i] != (i < 2 ? b->max[i] : 1)) return false;
    }
    return true;
  }

  // Who reads y alone; a batch norm has two results more, which nobody may read.
  uint32_t follower(ValueId y) const {
    const Uses& uses = chains_.uses();
    if (const uint32_t next = chains_.next(y); next != kNoNode) return next;
    const uint32_t reader = uses.stable(y) ? uses.reader(y) : kNoNode;
    if (reader == kNoNode || !is_call(g_.nodes[reader], kBatchNorm) ||
        g_.nodes[reader].args[0] != y)
      return kNoNode;
    const auto* results = std::get_if<ValueList>(&g_[g_.nodes[reader].args.back()]);
    if (results == nullptr || results->items.empty() || results->items[0] == kNoValue ||
        !uses.stable(results->items[0]))
      return kNoNode;
    for (size_t i = 1; i < results->items.size(); ++i) {
      if (results->items[i] != kNoValue && uses.reads(results->items[i]) > 0) return kNoNode;
    }
    return reader;
  }
  ValueId result_of(const Node& n) const {
    const auto* results = std::get_if<ValueList>(&g_[n.args.back()]);
    return results == nullptr ? n.args.back() : results->items[0];
  }

  // The constants of a batch norm as one.
  bool take_norm(const Node& n, ValueId y, Slots& s) {
    if (s.norm != kNoValue || !s.activation.empty() || s.residual != kNoValue || s.is_bounded())
      return false;
    std::array<JoinedPart, 4> parts;
    constexpr std::array<std::string_view, 4> kNames = {"weight", "bias", "mean", "variance"};
    for (size_t i = 0; i < parts.size(); ++i) {
      const Tensor* t = g_.tensor(argument(n, kNames[i]));
      if (t == nullptr || !t->is_constant() || t->max.rank() != 1 ||
          t->max[0] != g_.tensor(y)->max[1])
        return false;
      parts[i] = {t, t->max[0]};
    }
    auto joined = joined_constant(parts, 0);
    if (!joined || !is_literal(argument(n, "eps"))) return false;
    s.norm = g_.add(std::move(*joined), "norm");
    s.eps = argument(n, "eps");
    return true;
  }

  // Takes in node n, which reads y and nothing else does.
  bool take(const Node& n, ValueId y, ValueId weight, Slots& s) {
    if (is_call(n, kBatchNorm))
      return g_.tensor(y)->max.rank() == g_.tensor(weight)->max.rank() && take_norm(n, y, s);
    for (const ActivationOp& a : kActivationOps) {
      if (!is_call(n, a.op)) continue;
      if (!s.activation.empty() || s.residual != kNoValue || s.is_bounded()) return false;
      s.activation = a.name;
      return true;
    }
    if (s.is_bounded()) return false;
    if (const ValueId other = added_to(g_, n, y); other != kNoValue) {
      if (s.residual != kNoValue || !one_size_ || !chains_.stays(other) ||
          !(are_alike(g_, other, y) || is_of_channels(other, y, weight)))
        return false;
      s.residual = other;
      return true;
    }
    if (is_call(n, "aten.relu.default")) {
      s.min = g_.add(0.0, "0");
      return true;
    }
    if (!is_call(n, "aten.clamp.default") && !is_call(n, "aten.hardtanh.default")) return false;
    const ValueId min = bound(n.args[1]);
    const ValueId max = bound(n.args[2]);
    if (!is_literal(min) || !is_literal(max)) return false;
    s.min = min;
    s.max = max;
    return true;
  }

  // The call stands where the last of its parts did: all that it reads is there.
  void extend(uint32_t first) {
    const Node conv = g_.nodes[first];
    for (const std::string_view name : {"x", "weight", "bias"}) {
      if (!chains_.stays(argument(conv, name))) return;
    }
    Slots s{.min = bound(argument(conv, "min")), .max = bound(argument(conv, "max"))};
    std::vector<uint32_t> parts = {first};
    ValueId y = conv.args.back();
    bool took = false;
    for (uint32_t next = follower(y); next != kNoNode; next = follower(y)) {
      const Node n = g_.nodes[next];
      const bool same = is_view(g_, n);
      if (made_.contains(next) || !are_alike(g_, y, result_of(n)) ||
          !(same || take(n, y, argument(conv, "weight"), s)))
        break;
      parts.push_back(next);
      took = took || !same;
      y = result_of(n);
    }
    if (!took) return;
    Node call;
    call.delegate = conv.delegate;
    call.call = conv.call;
    set_call(g_, call, ops_, ops::conv::kFusedOp,
             {{"x", argument(conv, "x")},
              {"weight", argument(conv, "weight")},
              {"bias", argument(conv, "bias")},
              {"stride", argument(conv, "stride")},
              {"padding", argument(conv, "padding")},
              {"dilation", argument(conv, "dilation")},
              {"transposed", argument(conv, "transposed")},
              {"output_padding", argument(conv, "output_padding")},
              {"groups", argument(conv, "groups")},
              {"min", s.min},
              {"max", s.max},
              {"activation",
               s.activation.empty() ? kNoValue : g_.add(std::string(s.activation), "activation")},
              {"residual", s.residual},
              {"norm", s.norm},
              {"eps", s.eps},
              {"y", y}});
    for (const uint32_t part : parts) made_[part];
    made_[parts.back()].push_back(std::move(call));
  }

  Graph& g_;
  const OpLookup& ops_;
  const Chains chains_;
  Replacements made_;
  bool one_size_ = true;  // values of equal bounds have equal sizes
};

}  // namespace

void extend_conv(Graph& g, const OpLookup& ops) {
  if (ops.find(ops::conv::kFusedOp) != nullptr) Extender(g, ops).run();
}

}  // namespace pteryx::fuse
