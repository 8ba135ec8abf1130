// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/session/layout.h"

#include <string>

#include "pteryx/session/layout/stages.h"

namespace pteryx {
namespace {

Result<Layout> make(layout::Draft d) {
  PTERYX_TRY(layout::place(d));
  PTERYX_TRY(layout::check_shapes(d));
  layout::find_roots(d);
  layout::split_blocks(d);
  layout::compile_steps(d);
  PTERYX_TRY(layout::plan_nodes(d));
  layout::assign_memory(d);
  return std::move(d.l);
}

}  // namespace

ops::Live largest(const graph::Graph& g) {
  ops::Live live;
  live.dims.resize(g.values.size());
  live.scalars.resize(g.values.size());
  for (uint32_t i = 0; i < g.values.size(); ++i) {
    if (const auto* t = std::get_if<graph::Tensor>(&g.values[i])) live.dims[i] = t->max;
    if (const auto* s = std::get_if<graph::LiveScalar>(&g.values[i]))
      live.scalars[i] = {s->kind, s->initial_int, s->initial_double};
  }
  return live;
}

Result<Layout> make_layout(const graph::Graph& g, const ops::PlanContext& context) {
  auto layout = make({.g = g, .context = context});
  if (layout.ok() || layout.status().code() != Code::kInvalidArgument) return layout;
  // At the bound every size is the file's, so what would be the caller's fault in a run is its.
  return invalid_program(std::string(layout.status().message()));
}

}  // namespace pteryx
