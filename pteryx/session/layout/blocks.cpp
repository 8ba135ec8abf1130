// Blocks, what decides their shapes, and what roots are used for. SPDX-License-Identifier:
// BSD-3-Clause
#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "pteryx/session/layout/stages.h"

namespace pteryx::layout {
namespace {

using graph::index;
using graph::kNoValue;
using graph::ValueId;
using ops::OpClass;

class Blocks : Stage {
 public:
  using Stage::Stage;

  void split_blocks() {
    producer_.assign(g_.values.size(), kNone);
    for (uint32_t i = 0; i < g_.nodes.size(); ++i) {
      each_write(i, [&](ValueId id) {
        producer_[index(id)] = i;
        if (l_.place[i] != Place::kNothing) l_.roots[root(id)].written = true;
      });
    }
    l_.item_source.assign(g_.nodes.size(), kNone);
    std::set<uint32_t> starts = {0};
    for (uint32_t i = 0; i < g_.nodes.size(); ++i) {
      if (g_.nodes[i].kind == graph::Node::Kind::kJumpFalse) {
        starts.insert(i + 1);
        starts.insert(g_.nodes[i].target);
      }
      if (l_.place[i] != Place::kItem) continue;
      const ValueId x = g_.nodes[i].args[0];
      const ValueId input = g_.has_jumps ? kNoValue : trace_to_input(x, i, Through::kCopies);
      const bool known = g_.tensor(x)->is_constant();
      l_.item_source[i] = input != kNoValue ? root(input) : root(x);
      if ((input == kNoValue && !known) || has_live_scalar_args(i)) starts.insert(i);
      l_.roots[l_.item_source[i]].host = true;
    }
    split_at_rewrites(starts);
    const auto count = static_cast<uint32_t>(g_.nodes.size());
    starts.insert(count);
    for (auto it = starts.begin(); *it != count; ++it) {
      Block b;
      b.begin = *it;
      b.end = *std::next(it);
      for (uint32_t i = b.begin; i < b.end; ++i) {
        if (l_.place[i] == Place::kItem) b.items.push_back(i);
        if (g_.nodes[i].kind == graph::Node::Kind::kJumpFalse) b.jump = i;
      }
      l_.blocks.push_back(std::move(b));
    }
    if (l_.blocks.empty())
      l_.blocks.emplace_back();  // a method without instructions still has outputs
  }

  void mark_roots() {
    for (const ValueId id : g_.inputs) {
      if (g_.tensor(id) == nullptr) continue;
      Root& r = l_.roots[root(id)];
      r.input = r.host = true;
    }
    for (const ValueId id : g_.outputs) {
      if (g_.tensor(id) != nullptr) l_.roots[root(id)].host = true;
    }
    l_.changes_state.resize(g_.nodes.size());
    std::vector<uint32_t> seen(l_.roots.size(), kNone);
    for (uint32_t b = 0; b < l_.blocks.size(); ++b) {
      for (uint32_t i = l_.blocks[b].begin; i < l_.blocks[b].end; ++i) {
        const auto touch = [&](ValueId id) {
          Root& r = l_.roots[root(id)];
          if (l_.place[i] == Place::kGpu) r.gpu = true;
          if (l_.place[i] == Place::kCpu) r.host = true;
          if (seen[root(id)] != kNone && seen[root(id)] != b) r.cross_block = true;
          seen[root(id)] = b;
        };
        each_read(i, touch);
        each_write(i, touch);
        if (l_.place[i] == Place::kGpu) {
          each_write(i, [&](ValueId id) { l_.roots[root(id)].gpu_written = true; });
        }
        each_write(i, [&](ValueId id) {
          if (l_.roots[root(id)].state) l_.changes_state[i] = true;
        });
        if (l_.item_source[i] != kNone && l_.item_source[i] != root(g_.nodes[i].args[0])) continue;
      }
    }
    if (l_.blocks.size() > 1) {
      for (const ValueId id : g_.inputs) {
        if (g_.tensor(id) != nullptr) l_.roots[root(id)].cross_block = true;
      }
      for (const ValueId id : g_.outputs) {
        if (g_.tensor(id) != nullptr) l_.roots[root(id)].cross_block = true;
      }
    }
  }

  // Indices that come from an input are checked on the host, before the GPU sees them. Others are
  // reported by the node, as are all of a method with jumps, where a node may not run at all.
  void find_index_limits() {
    l_.fault_slot.assign(g_.nodes.size(), kNone);
    for (uint32_t i = 0; i < g_.nodes.size(); ++i) {
      if (l_.defs[i] == nullptr) continue;
      bool computed = false;
      each_index(i, [&](const ops::IndexArg& at, ValueId id) {
        const ValueId input = g_.has_jumps ? kNoValue : trace_to_input(id, i, Through::kCasts);
        if (input == kNoValue) {
          computed = true;
        } else {
          add_limit(i, at, input);
        }
      });
      if (computed && l_.place[i] == Place::kGpu) l_.fault_slot[i] = l_.fault_slots++;
    }
  }

  // What decides the shapes of a block: tensors made elsewhere, scalars made elsewhere or read from
  // tensors.
  void find_keys(Block& b) const {
    std::vector<bool> inside(g_.values.size());
    std::vector<bool> taken(g_.values.size());
    std::vector<bool> loose(g_.values.size());  // scalars that other input sizes do not decide
    bool reads_loose = false;
    const auto use = [&](ValueId id) {
      reads_loose = reads_loose || loose[index(id)];
      if (inside[index(id)] || taken[index(id)]) return;
      const auto* t = g_.tensor(id);
      if (t != nullptr && !t->is_constant()) {
        b.key_tensors.push_back(id);
        taken[index(id)] = true;
      } else if (std::holds_alternative<graph::LiveScalar>(g_[id])) {
        b.key_scalars.push_back(id);
        taken[index(id)] = loose[index(id)] = reads_loose = true;
      }
    };
    for (uint32_t i = b.begin; i < b.end; ++i) {
      const graph::Node& n = g_.nodes[i];
      if (l_.defs[i] == nullptr) continue;
      reads_loose = false;
      for (size_t a = 0; a + 1 < n.args.size(); ++a) {
        if (const auto* list = std::get_if<graph::ValueList>(&g_[n.args[a]])) {
          for (const ValueId id : list->items) {
            if (id != kNoValue) use(id);
          }
        } else {
          use(n.args[a]);
        }
      }
      if (l_.place[i] == Place::kItem) {
        use(n.args.back());
        continue;
      }
      if (reads_loose) {
        b.scalar_nodes.push_back(i);
        loose[index(n.args.back())] = std::holds_alternative<graph::LiveScalar>(g_[n.args.back()]);
      }
      inside[index(n.args.back())] = true;
      for_each_tensor(g_, n.args.back(), [&](ValueId id) { inside[index(id)] = true; });
    }
    // Values of a whole method are also decided by inputs that no node reads.
    for (const ValueId id : g_.inputs) {
      if (&b == &l_.blocks.front()) use(id);
    }
  }

 private:
  enum class Through : uint8_t {
    kCopies,  // and views
    kCasts,   // and casts between integers, which keep every value that can be an index
  };

  // The tensors of integers among the arguments of a node that a bound is stated for.
  void each_index(uint32_t i, const auto& visit) const {
    const graph::Node& n = g_.nodes[i];
    const auto member = [&](size_t arg, size_t at, ValueId id) {
      const graph::Tensor* t = id == kNoValue ? nullptr : g_.tensor(id);
      if (t != nullptr && ops::has(ops::kIndexTypes, t->dtype)) visit(ops::IndexArg{arg, at}, id);
    };
    for (size_t a = 0; a < l_.defs[i]->args.size(); ++a) {
      if (!l_.defs[i]->args[a].bound) continue;
      if (const auto* list = std::get_if<graph::ValueList>(&g_[n.args[a]])) {
        for (size_t k = 0; k < list->items.size(); ++k) member(a, k, list->items[k]);
      } else {
        member(a, 0, n.args[a]);
      }
    }
  }

  // What bounds it may have another size in each run, or be known only in the middle of one.
  void add_limit(uint32_t i, const ops::IndexArg& at, ValueId input) {
    const graph::Node& n = g_.nodes[i];
    const ops::IndexBound& bound = *l_.defs[i]->args[at.arg].bound;
    const bool live_dim = bound.along == ops::IndexBound::Along::kDim &&
                          std::holds_alternative<graph::LiveScalar>(g_[n.args[bound.dim]]);
    bool fixed = true;  // the sizes of what bounds it, which may be a table in parts
    for_each_tensor(g_, n.args[bound.of], [&](ValueId id) {
      const graph::Tensor& of = *g_.tensor(id);
      fixed = fixed && (of.is_constant() || of.state || (!of.dynamic && is_input(id)));
    });
    Layout::IndexLimit limit{.node = i, .at = at};
    limit.input = static_cast<uint32_t>(std::ranges::find(g_.inputs, input) - g_.inputs.begin());
    limit.live = live_dim || !fixed;
    const bool first_block = l_.blocks.size() == 1 || i < l_.blocks[0].end;
    if (!live_dim && !(limit.live && first_block)) {
      const auto extent = ops::index_extent({g_, n, *l_.defs[i], l_.bound}, at);
      if (extent.ok()) limit.extent = *extent;
    }
    l_.index_limits.push_back(limit);
  }

  bool is_input(ValueId id) const { return std::ranges::find(g_.inputs, id) != g_.inputs.end(); }

  // The method input that holds the same elements as `id` does before `node`; kNoValue if there is
  // none. A value that is written later, too, is not looked through: `producer_` knows its last
  // writer only.
  ValueId trace_to_input(ValueId id, uint32_t node, Through through) const {
    for (;;) {
      if (is_input(id)) return l_.roots[root(id)].written ? kNoValue : id;
      const uint32_t p = producer_[index(id)];
      if (p == kNone || p >= node || l_.defs[p] == nullptr) return kNoValue;
      const bool view = l_.defs[p]->op_class == OpClass::kView;
      const bool copy =
          through == Through::kCasts ? casts_integers(p) : g_.nodes[p].op->name == graph::kCopyOp;
      if (!view && !copy) return kNoValue;
      id = g_.nodes[p].args[0];
      node = p;
    }
  }

  bool casts_integers(uint32_t i) const {
    if (!l_.defs[i]->casts) return false;
    const DType from = g_.tensor(g_.nodes[i].args[0])->dtype;
    const DType to = g_.tensor(g_.nodes[i].args.back())->dtype;
    return ops::has(ops::kIntegers, from) && ops::has(ops::kIndexTypes, to);
  }

  bool has_live_scalar_args(size_t i) const {
    const graph::Node& n = g_.nodes[i];
    for (size_t a = 0; a + 1 < n.args.size(); ++a) {
      if (std::holds_alternative<graph::LiveScalar>(g_[n.args[a]])) return true;
    }
    return false;
  }

  // Loop counters: within a block a scalar has one value, so a block ends before one that was read
  // is written.
  void split_at_rewrites(std::set<uint32_t>& starts) const {
    std::vector<bool> used(g_.values.size());
    std::vector<uint32_t> list;
    const auto use = [&](ValueId id) {
      if (id == kNoValue || !std::holds_alternative<graph::LiveScalar>(g_[id]) || used[index(id)])
        return;
      used[index(id)] = true;
      list.push_back(index(id));
    };
    for (uint32_t i = 0; i < g_.nodes.size(); ++i) {
      const graph::Node& n = g_.nodes[i];
      if (l_.defs[i] == nullptr) continue;
      if (used[index(n.args.back())]) starts.insert(i);
      if (starts.contains(i)) {
        for (const uint32_t v : list) used[v] = false;
        list.clear();
      }
      for (const ValueId id : n.args) {
        use(id);
        if (const auto* members = std::get_if<graph::ValueList>(&g_[id])) {
          for (const ValueId m : members->items) use(m);
        }
      }
    }
  }
};

}  // namespace

void split_blocks(Draft& d) {
  Blocks blocks(d);
  blocks.split_blocks();
  blocks.mark_roots();
  blocks.find_index_limits();
  for (Block& b : d.l.blocks) blocks.find_keys(b);
}

}  // namespace pteryx::layout
