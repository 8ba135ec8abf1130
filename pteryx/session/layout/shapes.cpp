// Shapes at the bound. SPDX-License-Identifier: BSD-3-Clause
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "pteryx/session/layout/stages.h"

namespace pteryx::layout {
namespace {

using graph::index;
using graph::kNoValue;
using graph::ValueId;
using ops::OpClass;

// Scalars that are read from tensors, such as the position of a decode step, are known in a run
// only; so are sizes that follow from them. Most nodes behind a position do not depend on it
// though, and what is wrong with these is the program's fault. To tell them apart, shape rules run
// for two runs at once: one in which all such scalars are 0, and one in which they are 1. Results
// that have the file's bound in both do not depend on data; others do, and have their bound where
// nodes are planned. An error is the program's unless the rule saw data-dependent sizes, or looked
// at a data-dependent number.
class Shapes : Stage {
 public:
  using Stage::Stage;

  void set_bound() {
    l_.bound = largest(g_);
    for (const ValueId id : g_.inputs) {
      const auto* t = g_.tensor(id);
      if (t != nullptr && t->dynamic) l_.is_static = false;
    }
  }

  Status check_shapes() {
    data_dependent_.resize(g_.values.size());
    unfit_.resize(g_.nodes.size());
    zero_ = one_ = l_.bound;
    if (g_.has_jumps) return check_with_jumps();
    unknown_.resize(g_.values.size());
    for (const ValueId id : g_.inputs) set_data(id);
    for (size_t i = 0; i < g_.nodes.size(); ++i) {
      const graph::Node& n = g_.nodes[i];
      if (l_.defs[i]->op_class == OpClass::kItem) {
        set_data(n.args.back());
      } else if (!reads_any(n, data_dependent_)) {
        PTERYX_TRY(set_shape(i, zero_));
        PTERYX_TRY(expect_bound(i));
        take_results(n);
      } else {
        PTERYX_TRY(check_data_dependent(i));
      }
    }
    return {};
  }

 private:
  // A scalar that comes from outside the graph.
  void set_data(ValueId id) {
    const auto* s = std::get_if<graph::LiveScalar>(&g_[id]);
    if (s == nullptr) return;
    data_dependent_[index(id)] = true;
    l_.bound.scalars[index(id)] = zero_.scalars[index(id)] = {s->kind, 0, 0};
    one_.scalars[index(id)] = {s->kind, 1, 1};
  }

  Status set_shape(size_t i, ops::Live& live, ops::ScalarReads* reads = nullptr) const {
    const ops::Node node(g_, g_.nodes[i], *l_.defs[i], live, reads);
    ops::Shapes shapes(node, live);
    return l_.defs[i]->shape(node, shapes);
  }

  // A node with data-dependent arguments.
  Status check_data_dependent(size_t i) {
    const graph::Node& n = g_.nodes[i];
    bool known = !reads_any(n, unknown_);
    if (known) {
      ops::ScalarReads reads;
      Status s = set_shape(i, zero_, &reads);
      const bool saw_sizes = has_data_dependent_size(i);
      const bool saw_numbers = reads_data(reads);
      if (!saw_sizes && !saw_numbers) {
        PTERYX_TRY(std::move(s));
        PTERYX_TRY(expect_bound(i));
        take_results(n);
        return {};
      }
      // Errors in types, ranks and modes are the program's whatever the sizes.
      if (s.code() == Code::kInvalidProgram && !saw_numbers) return s;
      known = s.ok();
    }
    if (known) {
      compare_results(i);
    } else {
      each_result(n, [&](ValueId id) { unknown_[index(id)] = data_dependent_[index(id)] = true; });
    }
    unfit_[i] = !fits_bound(i);
    return {};
  }

  // The rule at the sizes of `live`, which stay: `same` says whether it gives them.
  Status compare_shape(size_t i, ops::Live& live, bool& same, ops::ScalarReads* reads = nullptr) {
    const ops::Node node(g_, g_.nodes[i], *l_.defs[i], live, reads);
    ops::Shapes shapes(node, live, same);
    return l_.defs[i]->shape(node, shapes);
  }
  // Whether the rule goes well at the bound and gives it, or would for some number that it reads.
  bool fits_bound(size_t i) {
    bool same = true;
    return compare_shape(i, l_.bound, same).ok() && (same || reads_scalars(g_.nodes[i]));
  }

  // With jumps a node runs after any other, often or never, and every scalar may be what data made
  // it. What a node writes has the file's bound if all that it reads has, and its rule says so
  // whatever the scalars: that is taken for all nodes, and taken back until it is true of all that
  // is left. These sizes are then those of every run, at least of one whose inputs have theirs at
  // the bound; where no input can have another, a node that contradicts them is the program's
  // fault.
  Status check_with_jumps() {
    for (uint32_t v = 0; v < g_.values.size(); ++v) {
      const auto* s = std::get_if<graph::LiveScalar>(&g_.values[v]);
      if (s == nullptr) continue;
      data_dependent_[v] = true;
      zero_.scalars[v] = {s->kind, 0, 0};
      one_.scalars[v] = {s->kind, 1, 1};
    }
    std::vector<std::vector<uint32_t>> readers(g_.values.size());
    std::vector<uint32_t> taken_back;  // nodes whose results may have other sizes
    for (uint32_t i = 0; i < g_.nodes.size(); ++i) {
      if (!has_rule(i)) continue;
      each_read(i, [&](ValueId id) { readers[index(id)].push_back(i); });
      bool same = true;
      const bool good =
          compare_shape(i, zero_, same).ok() && compare_shape(i, one_, same).ok() && same;
      if (!good) taken_back.push_back(i);
    }
    while (!taken_back.empty()) {
      const uint32_t node = taken_back.back();
      taken_back.pop_back();
      each_result(g_.nodes[node], [&](ValueId id) {
        if (data_dependent_[index(id)]) return;
        data_dependent_[index(id)] = true;
        const std::vector<uint32_t>& next = readers[index(id)];
        taken_back.insert(taken_back.end(), next.begin(), next.end());
      });
    }
    for (size_t i = 0; i < g_.nodes.size(); ++i) {
      if (!has_rule(i)) continue;
      ops::ScalarReads reads;
      bool same = true;
      Status s = compare_shape(i, zero_, same, &reads);
      const bool decided = l_.is_static && !has_data_dependent_arg(i) && !reads_data(reads);
      if (decided) PTERYX_TRY(std::move(s));
      unfit_[i] = !fits_bound(i);
    }
    return {};
  }
  bool has_rule(size_t i) const {
    return l_.defs[i] != nullptr && l_.defs[i]->op_class != OpClass::kItem &&
           l_.defs[i]->op_class != OpClass::kScalar;
  }
  bool has_data_dependent_arg(size_t i) const {
    bool found = false;
    each_read(i, [&](ValueId id) { found = found || data_dependent_[index(id)]; });
    return found;
  }

  // Of a node whose rule went well where scalars are 0.
  void compare_results(size_t i) {
    const graph::Node& n = g_.nodes[i];
    const bool one = set_shape(i, one_).ok();
    each_result(n, [&](ValueId id) {
      const uint32_t v = index(id);
      const graph::Tensor* t = g_.tensor(id);
      const bool same = t != nullptr && zero_.dims[v] == t->max && (!one || one_.dims[v] == t->max);
      data_dependent_[v] = !same;
      if (same) take(id);
    });
  }

  // What holds where scalars are 0 holds everywhere.
  void take(ValueId id) {
    const uint32_t v = index(id);
    l_.bound.dims[v] = one_.dims[v] = zero_.dims[v];
    l_.bound.scalars[v] = one_.scalars[v] = zero_.scalars[v];
  }
  void take_results(const graph::Node& n) {
    each_result(n, [&](ValueId id) { take(id); });
  }

  void each_result(const graph::Node& n, const auto& visit) const {
    if (std::holds_alternative<graph::LiveScalar>(g_[n.args.back()])) visit(n.args.back());
    for_each_tensor(g_, n.args.back(), visit);
  }

  bool reads_any(const graph::Node& n, const std::vector<bool>& marked) const {
    for (size_t a = 0; a + 1 < n.args.size(); ++a) {
      if (marked[index(n.args[a])]) return true;
      if (const auto* list = std::get_if<graph::ValueList>(&g_[n.args[a]])) {
        for (const ValueId id : list->items) {
          if (id != kNoValue && marked[index(id)]) return true;
        }
      }
    }
    return false;
  }

  bool reads_scalars(const graph::Node& n) const {
    const auto is_scalar = [&](ValueId id) {
      return id != kNoValue && std::holds_alternative<graph::LiveScalar>(g_[id]);
    };
    for (size_t a = 0; a + 1 < n.args.size(); ++a) {
      const auto* list = std::get_if<graph::ValueList>(&g_[n.args[a]]);
      if (is_scalar(n.args[a]) || (list != nullptr && std::ranges::any_of(list->items, is_scalar)))
        return true;
    }
    return false;
  }

  // Where no input may change its size, results have those of the file.
  Status expect_bound(size_t i) const {
    Status status;
    if (!l_.is_static) return status;
    const ops::Node n(g_, g_.nodes[i], *l_.defs[i], zero_);
    for_each_tensor(g_, n.node().args.back(), [&](ValueId id) {
      const Dims& got = zero_.dims[index(id)];
      if (status.ok() && got != g_.tensor(id)->max) {
        status = n.fail(Code::kInvalidProgram,
                        fmt::format("{} ({}) shape: the file says {}, the inputs give {}",
                                    n.def().args.back().name, g_.label(id),
                                    to_string(g_.tensor(id)->max), to_string(got)));
      }
    });
    return status;
  }

  ops::Live zero_, one_;       // dims and scalars of the two runs
  std::vector<bool> unknown_;  // of each value: no run is known in which it has a size or number
};

}  // namespace

Status check_shapes(Draft& d) {
  Shapes shapes(d);
  shapes.set_bound();
  return shapes.check_shapes();
}

}  // namespace pteryx::layout
