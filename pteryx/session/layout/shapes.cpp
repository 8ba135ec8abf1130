// Shapes at the bound. SPDX-License-Identifier: BSD-3-Clause
#include <vector>

#include <fmt/format.h>

#include "pteryx/session/layout/stages.h"

namespace pteryx::layout {
namespace {

using graph::index;
using graph::kNoValue;
using graph::ValueId;
using ops::OpClass;

class Shapes : Stage {
 public:
  using Stage::Stage;

  void bound_live() {
    l_.bound.dims.resize(g_.values.size());
    l_.bound.scalars.resize(g_.values.size());
    for (uint32_t i = 0; i < g_.values.size(); ++i) {
      if (const auto* t = std::get_if<graph::Tensor>(&g_.values[i])) l_.bound.dims[i] = t->max;
      if (const auto* s = std::get_if<graph::LiveScalar>(&g_.values[i])) {
        l_.bound.scalars[i] = {s->kind, s->initial_int, s->initial_double};
      }
    }
    for (const ValueId id : g_.inputs) {
      const auto* t = g_.tensor(id);
      if (t != nullptr && t->dynamic) l_.is_static = false;
    }
  }

  // Every node's shape rule at the bound. Results that hang on data of a run cannot be checked
  // here.
  Status check_shapes() {
    hangs_on_data_.resize(g_.nodes.size());
    if (g_.has_jumps) return {};
    std::vector<bool> unknown(g_.values.size());
    for (size_t i = 0; i < g_.nodes.size(); ++i) {
      const graph::Node& n = g_.nodes[i];
      const ops::OpDef& def = *l_.defs[i];
      if (def.op_class == OpClass::kItem ||
          reads_unknown(n, unknown)) {  // scalars, or dims that follow from them
        hangs_on_data_[i] = true;
        unknown[index(n.args.back())] = true;
        for_each_tensor(g_, n.args.back(), [&](ValueId id) { unknown[index(id)] = true; });
        continue;
      }
      const ops::Node node(g_, n, def, l_.bound);
      ops::Shapes shapes(node, l_.bound);
      PTERYX_TRY(def.shape(node, shapes));
      if (l_.is_static) PTERYX_TRY(expect_bound(node));
    }
    return {};
  }

 private:
  bool reads_unknown(const graph::Node& n, const std::vector<bool>& unknown) const {
    for (size_t a = 0; a + 1 < n.args.size(); ++a) {
      if (unknown[index(n.args[a])]) return true;
      if (const auto* list = std::get_if<graph::ValueList>(&g_[n.args[a]])) {
        for (const ValueId id : list->items) {
          if (id != kNoValue && unknown[index(id)]) return true;
        }
      }
    }
    return false;
  }

  Status expect_bound(const ops::Node& n) const {
    Status status;
    for_each_tensor(g_, n.node().args.back(), [&](ValueId id) {
      const Dims& got = l_.bound.dims[index(id)];
      if (status.ok() && got != g_.tensor(id)->max) {
        status = n.fail(Code::kInvalidProgram,
                        fmt::format("{} ({}) shape: the file says {}, the inputs give {}",
                                    n.def().args.back().name, g_.label(id),
                                    to_string(g_.tensor(id)->max), to_string(got)));
      }
    });
    return status;
  }
};

}  // namespace

Status check_shapes(Draft& d) {
  Shapes shapes(d);
  shapes.bound_live();
  return shapes.check_shapes();
}

}  // namespace pteryx::layout
