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
      runner_(graph_, layout_, constants.device(), memory_, recorder_) {}

// Shaders compile while weights are uploaded, so they are asked for first.
Result<bool> Method::advance() {
  if (!begun_) {
    begun_ = true;
    memory_.use(state_);
    if (layout_.blocks.size() == 1 && layout_.blocks[0].key_scalars.empty()) {
      PTERYX_ASSIGN(warm_, recorder_.find(0, layout_.bound, state_.id()));
    }
  }
  PTERYX_ASSIGN(const bool constants, constants_.advance());
  PTERYX_ASSIGN(const bool memory, memory_.advance());
  PTERYX_ASSIGN(const bool state, state_.advance());
  if (!constants || !memory || !state) return false;
  if (warm_ == nullptr) return true;
  auto there = recorder_.advance(0, *warm_);
  if (!there.ok() || *there) warm_ = nullptr;
  return there;
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
