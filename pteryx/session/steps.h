// Steps of a language model that run ahead of the caller: the token of one is the input of the
// next, without leaving the GPU. For sessions loaded with LoadOptions::sampling. Nothing waits.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "pteryx/base/token.h"
#include "pteryx/ops/sample/sample.h"
#include "pteryx/pteryx.h"
#include "pteryx/session/exec/decode_ahead.h"
#include "pteryx/session/exec/runner.h"

namespace pteryx {

class Steps {
 public:
  struct Methods {
    std::string_view prompt;  // takes any number of tokens
    std::string_view token;   // takes one; the same where one method does both
  };
  // 'forward', or 'prefill' and 'decode' over the same caches. Errors: kUnsupported where there are
  // none that draw tokens.
  static Result<Methods> find(const Session& session);

  enum class Caches : uint8_t {
    kSession,  // those that runs of the session use too
    kOwn,
  };
  // At most `depth` steps are under way; one, where the method does not run on the GPU in one
  // piece. `session` must outlive it. Errors: those of find().
  static Result<std::unique_ptr<Steps>> open(Session& session, uint32_t depth,
                                             Caches caches = Caches::kSession);
  ~Steps();
  Steps(const Steps&) = delete;
  Steps& operator=(const Steps&) = delete;

  void set(const Sampling& sampling) { settings_ = ops::words_of(sampling); }
  // Takes note of what steps cost from now on, and of waiting for their tokens; null: nobody does.
  void set(Profile* profile) { profiler_ = profile == nullptr ? nullptr : &profile->profiler(); }

  // Each of these begins something that is done once advance() says true, and not before anything
  // else is begun. Errors: kInvalidArgument for tokens outside the vocabulary, kDevice.
  //
  // Brings tokens into the caches and draws nothing.
  Status feed(std::span<const TokenId> tokens, int64_t position);
  // Starts a step with these tokens, the first at `position`; it draws the token after them.
  Status start(std::span<const TokenId> tokens, int64_t position);
  // The same with the token that the step started before it draws.
  Status start_next(int64_t position);
  // A step whose token comes with the logits that it was drawn from: drawn().
  Status run(std::span<const TokenId> tokens, int64_t position);
  // Errors: those of a run; kInvalidArgument for a position outside the caches, kInvalidProgram
  // where logits that drawn() would give are not finite.
  Result<bool> advance();

  struct Drawn {
    TokenId token = 0;
    std::span<const float> logits;  // until the next step
    std::span<const float> all;     // of every position, with LoadOptions::all_logits
  };
  const Drawn& drawn() const { return drawn_; }
  // The token of the oldest step under way; nothing: it is not there yet. Errors: kInvalidArgument
  // where none is, or its own token or another index was outside a table, kInvalidProgram where the
  // logits are not finite, kDevice.
  Result<std::optional<TokenId>> take();
  // Ends what was begun; nobody wants the tokens of the steps under way.
  void discard();

  // What the caches hold, for copies of it. While nothing is begun.
  exec::State& state() const { return *state_; }
  uint32_t under_way() const;
  // False: take a token first.
  bool can_start() const { return !waiting_ && (ahead_ == nullptr || !ahead_->is_full()); }
  // Positions that the caches hold. Errors: those of find().
  static Result<int64_t> capacity(const Session& session);
  gpu::Device& device() const { return *device_; }
  const std::shared_ptr<gpu::Device>& shared_device() const { return device_; }

 private:
  enum class Begun : uint8_t { kNothing, kFeed, kStart, kRun };

  Steps(exec::Method& prompt, exec::Method& token, std::shared_ptr<gpu::Device> device,
        std::unique_ptr<exec::DecodeAhead> ahead, uint32_t depth);
  bool is_ahead(size_t tokens) const { return ahead_ != nullptr && &method_of(tokens) == token_; }
  exec::Method& method_of(size_t tokens) const { return tokens == 1 ? *token_ : *prompt_; }
  Status begin(Begun what, std::span<const TokenId> tokens, int64_t position,
               exec::RunRequest request);
  Result<bool> proceed();
  Status read_logits();
  Status check_fed(int64_t token) const;

  exec::Method* prompt_;
  exec::Method* token_;
  exec::Method* method_;  // of what was begun last
  std::unique_ptr<exec::State> own_;
  exec::State* state_;
  std::shared_ptr<gpu::Device> device_;
  // Of token_; null: start() is done once its token is there, as it is with prompt_.
  std::unique_ptr<exec::DecodeAhead> ahead_;
  ops::SamplingWords settings_ = ops::words_of({});
  exec::Profiler* profiler_ = nullptr;

  Begun begun_ = Begun::kNothing;
  bool begun_fed_ = false;
  uint64_t run_ = 0;             // its number
  std::vector<int64_t> tokens_;  // its inputs
  std::vector<int64_t> positions_;
  int64_t position_ = 0;
  std::array<Value, 3> inputs_;

  Drawn drawn_;
  TokenId last_ = 0;               // the last token that came back
  int32_t drawn_token_ = 0;        // what came with the last step, where that was not of ahead_
  bool waiting_ = false;           // and it was not taken yet
  bool can_feed_ = false;          // the last step was of ahead_
  std::vector<int64_t> drawn_at_;  // positions of the logits of steps under way, a ring
  std::vector<bool> fed_;          // of the same: their token never left the GPU
  std::optional<int64_t> taken_;   // what such a step was given, where that came back
  size_t started_ = 0;             // steps so far
};

}  // namespace pteryx
