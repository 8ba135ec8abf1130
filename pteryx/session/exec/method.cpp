// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/session/exec/method.h"

#include <utility>

namespace pteryx::exec {

Method::Method(graph::Graph graph, Layout layout, States states, ops::PlanContext context,
               ConstantPool& constants, uint32_t most_recordings, CpuKernels cpu)
    : graph_(std::move(graph)),
      layout_(std::move(layout)),
      context_(std::move(context)),
      constants_(constants),
      states_(states.group),
      memory_(graph_, layout_, std::move(states.roots), constants),
      recorder_(graph_, layout_, context_, constants, memory_, most_recordings),
      faults_(graph_, layout_, constants.device(), memory_.faults()),
      runner_(graph_, layout_, constants.device(), memory_, recorder_, faults_, std::move(cpu)) {
  memory_.use(states_.state());
  recorder_.warm(std::move(layout_.plans), states_.state().id());
}

Result<bool> Method::advance() {
  PTERYX_ASSIGN(const bool constants, constants_.advance());
  PTERYX_ASSIGN(const bool memory, memory_.advance());
  PTERYX_ASSIGN(const bool state, states_.state().advance());
  if (!constants || !memory || !state) return false;
  return recorder_.advance_warm();
}

Result<std::unique_ptr<DecodeAhead>> Method::decode_ahead(const FeedRule& rule, uint32_t depth) {
  return DecodeAhead::create(graph_, layout_, constants_.device(), memory_, faults_, rule, depth);
}

}  // namespace pteryx::exec
