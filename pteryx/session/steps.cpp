// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/session/steps.h"

#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "pteryx/fuse/passes.h"
#include "pteryx/session/exec/inputs.h"
#include "pteryx/session/exec/method.h"

namespace pteryx {

namespace {
// Inputs and outputs of a method that samples.
constexpr size_t kTokens = 0;
constexpr size_t kPosition = 1;
constexpr size_t kLogits = 0;
constexpr size_t kToken = 1;

bool draws_tokens(const exec::Method& m) { return fuse::token_history(m.graph()) != nullptr; }

bool takes_all_positions(const graph::Graph& g) {
  return numel(g.tensor(g.inputs[kPosition])->max) > 1;
}

Status not_finite(int64_t position) {
  return invalid_program(
      fmt::format("the model's logits are not finite at position {}: the weights are damaged, or "
                  "an activation overflowed",
                  position));
}
}  // namespace

Result<Steps::Methods> Steps::find(const Session& session) {
  constexpr Methods kKnown[] = {{"forward", "forward"}, {"prefill", "decode"}};
  Status why = unsupported(
      "it has no method 'forward', nor 'prefill' and 'decode', that takes tokens [1, S] and their "
      "position and gives logits");
  for (const Methods& m : kKnown) {
    const exec::Method* const prompt = session.find(m.prompt);
    const exec::Method* const token = session.find(m.token);
    if (prompt == nullptr || token == nullptr) continue;
    if (!draws_tokens(*prompt) || !draws_tokens(*token)) continue;
    if (&prompt->states() == &token->states()) return m;
    why = unsupported(fmt::format(
        "methods '{}' and '{}' do not share their caches: what one reads the other does not know",
        m.prompt, m.token));
  }
  return why;
}

Result<std::unique_ptr<Steps>> Steps::open(Session& session, uint32_t depth, Caches caches) {
  PTERYX_ASSIGN(const Methods methods, find(session));
  exec::Method& token = *session.find(methods.token);
  auto ahead = token.decode_ahead(
      {.token_input = kTokens, .position_input = kPosition, .token_output = kToken}, depth);
  if (!ahead.ok() && ahead.status().code() != Code::kUnsupported) return std::move(ahead).status();
  std::unique_ptr<Steps> steps(new Steps(*session.find(methods.prompt), token, session.device(),
                                         ahead.ok() ? std::move(ahead).value() : nullptr, depth));
  if (caches == Caches::kOwn) {
    steps->own_ = token.states().new_state();
    steps->state_ = steps->own_.get();
  }
  return steps;
}

Steps::Steps(exec::Method& prompt, exec::Method& token, std::shared_ptr<gpu::Device> device,
             std::unique_ptr<exec::DecodeAhead> ahead, uint32_t depth)
    : prompt_(&prompt),
      token_(&token),
      method_(&token),
      state_(&token.states().state()),
      device_(std::move(device)),
      ahead_(std::move(ahead)),
      drawn_at_(depth),
      fed_(depth) {}

Steps::~Steps() {
  discard();
  if (ahead_ != nullptr) token_->runner().forget(*ahead_);
  if (own_ == nullptr) return;
  prompt_->forget(*own_);
  token_->forget(*own_);
}

Status Steps::begin(Begun what, std::span<const TokenId> tokens, int64_t position,
                    exec::RunRequest request) {
  if (begun_ != Begun::kNothing) return invalid_argument("another step is being started");
  method_ = &method_of(tokens.size());
  tokens_.assign(tokens.begin(), tokens.end());
  position_ = position;
  // The position of the first token, or of each.
  positions_.resize(takes_all_positions(method_->graph()) ? tokens.size() : 1);
  std::iota(positions_.begin(), positions_.end(), position);
  inputs_ = {tensor<int64_t>({1, static_cast<int64_t>(tokens_.size())}, tokens_),
             tensor<int64_t>({static_cast<int64_t>(positions_.size())}, positions_),
             tensor<int32_t>({static_cast<int64_t>(settings_.size())},
                             std::span<const int32_t>(settings_))};
  request.inputs = inputs_;
  request.state = state_;
  request.profiler = profiler_;
  PTERYX_ASSIGN(run_, method_->runner().begin(request));
  begun_ = what;
  begun_fed_ = request.fed;
  return {};
}

Status Steps::feed(std::span<const TokenId> tokens, int64_t position) {
  return begin(Begun::kFeed, tokens, position, {.outputs = 0});
}

Status Steps::start(std::span<const TokenId> tokens, int64_t position) {
  if (waiting_) return invalid_argument("no further run can be started");
  return begin(Begun::kStart, tokens, position,
               {.outputs = uint64_t{1} << kToken,
                .ahead = is_ahead(tokens.size()) ? ahead_.get() : nullptr});
}

Status Steps::start_next(int64_t position) {
  if (!can_feed_ || !token_->runner().can_feed(*ahead_)) {
    const TokenId token = last_;
    return start(std::span(&token, 1), position);
  }
  constexpr TokenId kAnything = 0;  // the token is on the GPU
  return begin(Begun::kStart, std::span(&kAnything, 1), position,
               {.ahead = ahead_.get(), .fed = true});
}

Status Steps::run(std::span<const TokenId> tokens, int64_t position) {
  return begin(Begun::kRun, tokens, position, {});
}

Result<bool> Steps::advance() {
  if (begun_ == Begun::kNothing) return true;
  auto done = proceed();
  if (done.ok() && !*done) return false;
  const Begun what = std::exchange(begun_, Begun::kNothing);
  if (!done.ok()) {
    method_->runner().cancel(run_);
    return done;
  }
  can_feed_ = what == Begun::kStart && is_ahead(tokens_.size());
  if (what == Begun::kStart) {
    fed_[started_ % fed_.size()] = begun_fed_;
    drawn_at_[started_++ % drawn_at_.size()] = position_ + static_cast<int64_t>(tokens_.size()) - 1;
    if (!can_feed_) {
      drawn_token_ = method_->runner().outputs()[kToken].tensor()->as<int32_t>()[0];
      waiting_ = true;
    }
  }
  if (what == Begun::kRun) PTERYX_TRY(read_logits());
  return true;
}

Result<bool> Steps::proceed() {
  if (ahead_ != nullptr) {
    PTERYX_ASSIGN(const bool there, ahead_->advance());
    if (!there) return false;
  }
  PTERYX_ASSIGN(const bool caches, state_->advance());
  if (!caches) return false;
  return method_->runner().advance();
}

Status Steps::read_logits() {
  const std::span<const Value> outputs = method_->runner().outputs();
  const TensorView& logits = *outputs[kLogits].tensor();
  if (logits.dtype != DType::kF32)
    return unsupported(fmt::format("logits of type {}", name(logits.dtype)));
  const int32_t token = outputs[kToken].tensor()->as<int32_t>()[0];
  const std::span<const float> all = logits.as<float>();
  const auto width = static_cast<size_t>(logits.dims.back());
  const int64_t first = position_ + static_cast<int64_t>(tokens_.size() - all.size() / width);
  for (size_t row = 0; row < all.size() / width; ++row) {
    if (!ops::can_draw(all.subspan(row * width, width)))
      return not_finite(first + static_cast<int64_t>(row));
  }
  if (token < 0) return not_finite(position_ + static_cast<int64_t>(tokens_.size()) - 1);
  last_ = static_cast<TokenId>(token);
  drawn_ = {last_, all.last(width), all};
  return {};
}

Result<std::optional<TokenId>> Steps::take() {
  const size_t oldest = started_ - under_way();
  std::optional<int32_t> token;
  if (waiting_) {
    waiting_ = false;
    token = drawn_token_;
  } else {
    if (ahead_ == nullptr) return invalid_argument("no run is under way");
    if (profiler_ != nullptr) profiler_->wait();
    PTERYX_ASSIGN(token, ahead_->take());
    if (!token) return std::optional<TokenId>();
    if (profiler_ != nullptr) profiler_->waited();
    const std::optional<int64_t> given = std::exchange(taken_, std::nullopt);
    if (*token >= 0) taken_ = *token;
    if (fed_[oldest % fed_.size()] && given) PTERYX_TRY(check_fed(*given));
  }
  if (*token < 0) return not_finite(drawn_at_[oldest % drawn_at_.size()]);
  last_ = static_cast<TokenId>(*token);
  return std::optional(last_);
}

// A step that was given a token on the GPU: logits may be wider than the table of the embedding.
Status Steps::check_fed(int64_t token) const {
  const ops::HostTensor x{DType::kI64, {1}, reinterpret_cast<std::byte*>(&token)};
  const Status s = exec::check_known_indices(token_->graph(), token_->layout(), kTokens, x);
  return s.ok() ? Status() : exec::after_change_of_state(s);
}

void Steps::discard() {
  taken_.reset();
  if (begun_ != Begun::kNothing) method_->runner().cancel(run_);
  begun_ = Begun::kNothing;
  waiting_ = false;
  if (ahead_ != nullptr) ahead_->discard();
}

uint32_t Steps::under_way() const {
  return (ahead_ == nullptr ? 0 : ahead_->under_way()) + (waiting_ ? 1 : 0);
}

Result<int64_t> Steps::capacity(const Session& session) {
  PTERYX_ASSIGN(const Methods methods, find(session));
  return fuse::token_history(session.find(methods.prompt)->graph())->max[0];
}

}  // namespace pteryx
