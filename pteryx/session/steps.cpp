// Steps over a method that feeds itself. SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/session/steps.h"

#include <fmt/format.h>

#include "pteryx/session/method.h"

namespace pteryx {

namespace {
constexpr size_t kTokens = 0;
constexpr size_t kLogits = 0;
constexpr size_t kToken = 1;

Status not_finite(int64_t position) {
  return invalid_program(
      fmt::format("the model's logits are not finite at position {}: the weights are damaged, or "
                  "an activation overflowed",
                  position));
}
}  // namespace

Result<Steps> Steps::open(Session& session, std::string_view method, uint32_t depth) {
  Method* m = session.find(method);
  if (m == nullptr) return invalid_argument(fmt::format("there is no method '{}'", method));
  if (m->graph().inputs.size() != 3 || m->graph().outputs.size() != 2) {
    return unsupported(fmt::format("method '{}' does not draw tokens", method));
  }
  Status s = m->make_loop(kTokens, kToken, depth);
  if (!s.ok() && s.code() != Code::kUnsupported) return s;
  return Steps(*m, s.ok() ? depth : 1, s.ok());
}

std::array<Value, 3> Steps::inputs(std::span<const int64_t> tokens) {
  return {tensor<int64_t>({1, static_cast<int64_t>(tokens.size())}, tokens),
          tensor<int64_t>({1}, std::span<const int64_t>(&position_, 1)),
          tensor<int32_t>({static_cast<int64_t>(settings_.size())},
                          std::span<const int32_t>(settings_))};
}

Status Steps::feed(std::span<const int64_t> tokens, int64_t position) {
  position_ = position;
  auto result = method_->run(inputs(tokens), 0);
  return result.ok() ? Status() : std::move(result).status();
}

void Steps::note_start(size_t tokens) {
  drawn_at_[started_++ % depth_] = position_ + static_cast<int64_t>(tokens) - 1;
}

Status Steps::start(std::span<const int64_t> tokens, int64_t position) {
  position_ = position;
  if (ahead_) {
    PTERYX_TRY(method_->start(inputs(tokens), false));
    note_start(tokens.size());
    return {};
  }
  if (waiting_) return invalid_argument("no further run can be started");
  auto outputs = method_->run(inputs(tokens), uint64_t{1} << kToken);
  if (!outputs.ok()) return std::move(outputs).status();
  last_ = (*outputs)[kToken].tensor()->as<int32_t>()[0];
  waiting_ = true;
  note_start(tokens.size());
  return {};
}

Status Steps::start_next(int64_t position) {
  if (!ahead_) {
    const int64_t token = last_;
    return start(std::span(&token, 1), position);
  }
  constexpr int64_t kAnything = 0;  // the token is on the GPU
  position_ = position;
  PTERYX_TRY(method_->start(inputs(std::span(&kAnything, 1)), true));
  note_start(1);
  return {};
}

Result<int32_t> Steps::finish() {
  if (ahead_) return method_->finish();
  if (!waiting_) return invalid_argument("no run is under way");
  waiting_ = false;
  return last_;
}

Result<int32_t> Steps::take() {
  const size_t oldest = started_ - under_way();
  PTERYX_ASSIGN(const int32_t token, finish());
  if (token < 0) return not_finite(drawn_at_[oldest % depth_]);
  return token;
}

Status Steps::discard() {
  while (under_way() > 0) {
    PTERYX_ASSIGN([[maybe_unused]] const int32_t token, finish());
  }
  return {};
}

Result<Steps::Drawn> Steps::run(std::span<const int64_t> tokens, int64_t position) {
  position_ = position;
  PTERYX_ASSIGN(const auto outputs, method_->run(inputs(tokens)));
  const TensorView& logits = *outputs[kLogits].tensor();
  if (logits.dtype != DType::kF32)
    return unsupported(fmt::format("logits of type {}", name(logits.dtype)));
  last_ = outputs[kToken].tensor()->as<int32_t>()[0];
  const std::span<const float> all = logits.as<float>();
  const auto width = static_cast<size_t>(logits.dims.back());
  const int64_t first = position + static_cast<int64_t>(tokens.size() - all.size() / width);
  for (size_t row = 0; row < all.size() / width; ++row) {
    if (!ops::can_draw(all.subspan(row * width, width)))
      return not_finite(first + static_cast<int64_t>(row));
  }
  return Drawn{last_, all.last(width), all};
}

uint32_t Steps::under_way() const { return ahead_ ? method_->under_way() : (waiting_ ? 1 : 0); }

int64_t Steps::capacity() const {
  const graph::Graph& g = method_->graph();
  for (const graph::Node& n : g.nodes) {
    if (n.op != nullptr && n.op->name == ops::kRememberOp) return g.tensor(n.args[1])->max[0];
  }
  return 0;
}

}  // namespace pteryx
