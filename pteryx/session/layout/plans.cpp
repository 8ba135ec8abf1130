// Plans of GPU nodes, at the bound. SPDX-License-Identifier: BSD-3-Clause
#include <utility>

#include "pteryx/session/layout/stages.h"

namespace pteryx::layout {
namespace {

class Plans : Stage {
 public:
  using Stage::Stage;

  Status plan_nodes() {
    l_.plans.resize(g_.nodes.size());
    for (size_t i = 0; i < g_.nodes.size(); ++i) {
      if (l_.place[i] != Place::kGpu || unfit_[i]) continue;
      ops::Plan plan(context_, fault_slot(l_, i));
      ops::ScalarReads reads;
      const ops::Node n(g_, g_.nodes[i], *l_.defs[i], l_.bound, &reads);
      Status s = l_.defs[i]->plan(n, plan);
      // What only data can tell is judged when they are there. So is a node that a jump may leave
      // out for the sizes that it cannot do.
      const bool left_out = g_.has_jumps && !l_.is_static;
      if (!s.ok() && (has_data_dependent_size(i) || reads_data(reads) || left_out)) continue;
      PTERYX_TRY(std::move(s));
      l_.plans[i] = {
          std::move(plan.dispatches), std::move(plan.constants), std::move(plan.scratch_bytes),
          plan.counted_bytes,         std::move(reads),          std::move(plan.feeding)};
      l_.feeds = l_.feeds || l_.plans[i]->feeding;
    }
    return {};
  }
};

}  // namespace

Status plan_nodes(Draft& d) { return Plans(d).plan_nodes(); }

}  // namespace pteryx::layout
