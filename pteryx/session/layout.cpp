// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/session/layout.h"

#include <string>

#include "pteryx/session/layout/stages.h"

namespace pteryx {
namespace {

Result<Layout> make(layout::Draft d) {
  PTERYX_TRY(layout::resolve(d));
  PTERYX_TRY(layout::check_shapes(d));
  PTERYX_TRY(layout::place(d));
  layout::find_roots(d);
  layout::split_blocks(d);
  layout::compile_steps(d);
  PTERYX_TRY(layout::plan_nodes(d));
  layout::assign_memory(d);
  return std::move(d.l);
}

}  // namespace

Result<Layout> make_layout(const graph::Graph& g, const ops::PlanContext& context,
                           const LayoutOptions& options) {
  auto layout = make({.g = g, .context = context, .options = options});
  if (layout.ok() || layout.status().code() != Code::kInvalidArgument) return layout;
  // At the bound every size is the file's, so what would be the caller's fault in a run is its.
  return invalid_program(std::string(layout.status().message()));
}

}  // namespace pteryx
