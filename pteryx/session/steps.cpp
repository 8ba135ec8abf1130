// Steps over a method that feeds itself. SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/session/steps.h"

#include <fmt/format.h>

#include "pteryx/session/method.h"

namespace pteryx {

namespace {
constexpr size_t kTokens = 0;
constexpr size_t kToken = 1;
}  // namespace

Result<Steps> Steps::open(Session& session, std::string_view method, uint32_t depth) {
  Method* m = session.find(method);
  if (m == nullptr) return invalid_argument(fmt::format("there is no method '{}'", method));
  if (m->graph().inputs.size() != 3 || m->graph().outputs.size() != 2) {
    return unsupported(fmt::format("method '{}' does not draw tokens", method));
  }
  PTERYX_TRY(m->make_loop(kTokens, kToken, depth));
  return Steps(*m, depth);
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

Status Steps::start(std::span<const int64_t> tokens, int64_t position) {
  position_ = position;
  return method_->start(inputs(tokens), false);
}

Status Steps::start_next(int64_t position) {
  constexpr int64_t kAnything = 0;  // the token is on the GPU
  position_ = position;
  return method_->start(inputs(std::span(&kAnything, 1)), true);
}

Result<int32_t> Steps::take() { return method_->finish(); }
uint32_t Steps::under_way() const { return method_->under_way(); }

}  // namespace pteryx
