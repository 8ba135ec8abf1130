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

namespace pteryx::ops {

struct SampleSettings {
  float temperature = 0;  // 0: greedy
  float top_p = 1;        // 1: all
  float min_p = 0;        // 0: all
  float repetition = 1;   // 1: none
  float presence = 0;
  float frequency = 0;
  uint32_t top_k = 0;  // 0: all
  uint64_t seed = 0;
  uint32_t window = 0;      // 0: all positions
  uint32_t vocabulary = 0;  // ids from here on are never drawn; 0: all are

  static constexpr size_t kWords = 16;
  // As the kernels read them: an i32 tensor.
  std::array<int32_t, kWords> words() const {
    const auto f = [](float v) { return std::bit_cast<int32_t>(v); };
    const auto u = [](uint64_t v) { return static_cast<int32_t>(static_cast<uint32_t>(v)); };
    return {f(temperature), f(top_p),  f(min_p), f(repetition),  f(presence),  f(frequency),
            u(top_k),       u(window), u(seed),  u(seed >> 32U), u(vocabulary)};
  }
  static SampleSettings from_words(const std::array<int32_t, kWords>& w) {
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
};

// "pteryx.remember": [tokens [1, S], history [C], start_pos, y]: writes tokens into history, which
// holds the token of every position, from start_pos on. Like update_cache, y is a formality.
inline constexpr const char* kRememberOp = "pteryx.remember";
// "pteryx.sample": [logits [.., V], settings, history, tokens [1, S], start_pos, y [1, 1]]. Draws
// from the last row of logits, which stands at position start_pos + S - 1. -inf is a logit that is
// never drawn; where one is NaN or +inf, or none is finite, y is kNoToken.
inline constexpr const char* kSampleOp = "pteryx.sample";
inline constexpr int32_t kNoToken = -1;
// Whether a token can be drawn from a row.
bool can_draw(std::span<const float> logits);

}  // namespace pteryx::ops
