// How a token is drawn from logits: one definition, followed by the kernels and by the CPU.
//
//   1. Tokens that stand in the last `window` positions are held back: a positive logit is divided
//      by `repetition`, a negative one multiplied; then `presence` is taken off once and
//      `frequency` for each time it stands there.
//   2. Temperature 0: the highest wins, of equals the lowest id. Else logits are divided by it.
//   3. Of these, top_k keeps the k highest; top_p the fewest of the rest that hold that share of
//      their probability; min_p those with at least that fraction of the highest probability.
//      Equals of the last one kept stay as well.
//   4. What is left is drawn from by its probabilities: each gets Gumbel noise that follows from
//      seed, position and id alone, and the highest sum wins. So equal seeds give equal text.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

#include "pteryx/base/sampling.h"
#include "pteryx/ops/op.h"

namespace pteryx::ops {

// A Sampling as the kernels read it: an i32 tensor.
inline constexpr size_t kSamplingWords = 16;
using SamplingWords = std::array<int32_t, kSamplingWords>;

inline SamplingWords words_of(const Sampling& s) {
  const auto f = [](float v) { return std::bit_cast<int32_t>(v); };
  const auto u = [](uint64_t v) { return static_cast<int32_t>(static_cast<uint32_t>(v)); };
  return {f(s.temperature), f(s.top_p),       f(s.min_p),     f(s.repetition),
          f(s.presence),    f(s.frequency),   u(s.top_k),     u(s.window),
          u(s.seed),        u(s.seed >> 32U), u(s.vocabulary)};
}
inline Sampling sampling_of(const SamplingWords& w) {
  const auto f = [](int32_t v) { return std::bit_cast<float>(v); };
  const auto u = [](int32_t v) { return static_cast<uint32_t>(v); };
  return {.temperature = f(w[0]),
          .top_p = f(w[1]),
          .min_p = f(w[2]),
          .repetition = f(w[3]),
          .presence = f(w[4]),
          .frequency = f(w[5]),
          .top_k = u(w[6]),
          .seed = u(w[8]) | (uint64_t{u(w[9])} << 32U),
          .window = u(w[7]),
          .vocabulary = u(w[10])};
}

// "pteryx.remember": [tokens [1, S], history [C], start_pos, y]: writes tokens into history, which
// holds the token of every position, from start_pos on. Like update_cache, y is a formality.
inline constexpr const char* kRememberOp = "pteryx.remember";
// "pteryx.sample": [logits [.., V], settings, history, tokens [1, S], start_pos, weight, scales,
// group_size, is_linear_weight, x, y [1, 1]]. Draws
// from the last row of logits, which stands at position start_pos + S - 1. -inf is a logit that is
// never drawn; where one is NaN or +inf, or none is finite, y is kNoToken. Where there is a table
// (arguments as those of et_vk.embedding_q4gsw), a run that feeds the next one leaves the row of
// the drawn token in the first row of x.
inline constexpr const char* kSampleOp = "pteryx.sample";
inline constexpr int32_t kNoToken = -1;
// Words of live scalars and small inputs that a run moves for the one that it feeds.
inline constexpr int64_t kMostMoves = 62;
// Prepares the run that reads the token `y`, where the node that makes it cannot.
Result<PlannedDispatch> plan_advance(graph::ValueId y);
// Whether a token can be drawn from a row.
bool can_draw(std::span<const float> logits);

}  // namespace pteryx::ops
