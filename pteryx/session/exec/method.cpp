// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/session/exec/method.h"

#include <utility>

#include <fmt/format.h>

namespace pteryx::exec {

Method::Method(graph::Graph graph, Layout layout, ops::PlanContext context, ConstantPool& constants,
               uint32_t most_recordings)
    : graph_(std::move(graph)),
      layout_(std::move(layout)),
      context_(std::move(context)),
      constants_(constants),
      state_(graph_, layout_, constants),
      memory_(graph_, layout_, constants),
      recorder_(graph_, layout_, context_, constants, memory_, most_recordings),
      runner_(graph_, layout_, constants.device(), memory_, recorder_) {
  memory_.use(state_);
  recorder_.warm(std::move(layout_.plans), state_.id());
}

Result<bool> Method::advance() {
  PTERYX_ASSIGN(const bool constants, constants_.advance());
  PTERYX_ASSIGN(const bool memory, memory_.advance());
  PTERYX_ASSIGN(const bool state, state_.advance());
  if (!constants || !memory || !state) return false;
  return recorder_.advance_warm();
}

Result<std::unique_ptr<DecodeAhead>> Method::decode_ahead(const FeedRule& rule,
                                                          uint32_t depth) const {
  return DecodeAhead::create(graph_, layout_, constants_.device(), memory_, rule, depth);
}

std::unique_ptr<State> Method::new_state() const {
  return std::make_unique<State>(graph_, layout_, constants_);
}

Status Method::reset() {
  if (runner_.is_running())
    return invalid_argument(fmt::format("a run of '{}' is under way", graph_.method));
  runner_.reset();
  return state_.reset();
}

}  // namespace pteryx::exec
