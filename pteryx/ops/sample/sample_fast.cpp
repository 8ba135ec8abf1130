// Drawing the next token on the CPU without sorting all of them. SPDX-License-Identifier:
// BSD-3-Clause
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <optional>

#include "pteryx/cpu/arena.h"
#include "pteryx/cpu/rows.h"
#include "pteryx/ops/float_rows.h"
#include "pteryx/ops/sample/draw.h"

namespace pteryx::ops::sample {
namespace {

// Divides and takes off as hold_back does, of the tokens that stand there alone.
void hold_back(const Sampling& s, std::span<const int32_t> before, std::span<float> z,
               std::span<uint32_t> times) {
  std::ranges::fill(times, 0U);
  for (const int32_t t : before) {
    if (t >= 0 && static_cast<size_t>(t) < z.size()) ++times[static_cast<size_t>(t)];
  }
  for (const int32_t t : before) {
    if (t < 0 || static_cast<size_t>(t) >= z.size()) continue;
    uint32_t& count = times[static_cast<size_t>(t)];
    if (count == 0) continue;
    float& v = z[static_cast<size_t>(t)];
    v = v > 0 ? v / s.repetition : v * s.repetition;
    v -= s.presence + s.frequency * static_cast<float>(count);
    count = 0;
  }
}

// The lowest number that top_k, top_p and min_p leave. `sorted` has room for all of z.
float lowest_kept(const Sampling& s, std::span<const float> z, float peak,
                  std::span<float> sorted) {
  float bottom = std::numeric_limits<float>::lowest();
  std::ranges::copy(z, sorted.begin());
  size_t count = z.size();
  if (s.top_k > 0 && s.top_k < count) {
    const auto at = sorted.begin() + static_cast<ptrdiff_t>(s.top_k - 1);
    std::nth_element(sorted.begin(), at, sorted.end(), std::greater<>());
    bottom = *at;
    count = static_cast<size_t>(
        std::partition(at, sorted.end(), [&](float v) { return v >= bottom; }) - sorted.begin());
  }
  if (s.top_p < 1) {
    double all = 0;
    for (const float v : sorted.first(count)) all += std::exp(static_cast<double>(v) - peak);
    double sum = 0;
    const auto enough = [&] { return sum > 0 && sum >= s.top_p * all; };  // one at least
    // From the top on, some at a time: few hold most of the probability.
    for (size_t done = 0, some = 64; done < count && !enough(); some *= 4) {
      const size_t until = std::min(done + some, count);
      const auto part = sorted.first(count).subspan(done);
      std::partial_sort(part.begin(), part.begin() + static_cast<ptrdiff_t>(until - done),
                        part.end(), std::greater<>());
      for (; done < until && !enough(); ++done) {
        sum += std::exp(static_cast<double>(sorted[done]) - peak);
        bottom = sorted[done];
      }
      done = until;
    }
  }
  const double least = peak + std::log(std::max(static_cast<double>(s.min_p), 1e-30));
  return static_cast<double>(bottom) >= least ? bottom : static_cast<float>(least);
}

bool penalises(const Sampling& s) {
  return s.repetition != 1 || s.presence != 0 || s.frequency != 0;
}

// The likeliest token where nothing else is asked for and all logits are finite.
std::optional<int32_t> likeliest(const Sampling& s, std::span<const float> z) {
  if (s.temperature > 0 || penalises(s)) return std::nullopt;
  const size_t allowed = s.vocabulary == 0 ? z.size() : std::min<size_t>(s.vocabulary, z.size());
  const size_t at = cpu::find_largest(z.data(), allowed);
  const auto others = z.subspan(allowed);
  if (at == allowed || z[at] == std::numeric_limits<float>::lowest() ||
      (!others.empty() && cpu::find_largest(others.data(), others.size()) == others.size()))
    return std::nullopt;
  return static_cast<int32_t>(at);
}

int32_t choose(const Draw& d, std::span<const int32_t> before, std::span<float> z,
               cpu::Arena& memory) {
  constexpr float kLowest = std::numeric_limits<float>::lowest();
  const Sampling& s = d.settings;
  if (!can_draw(z)) return kNoToken;
  if (penalises(s)) hold_back(s, before, z, {memory.take_array<uint32_t>(z.size()), z.size()});
  const size_t allowed = s.vocabulary == 0 ? z.size() : std::min<size_t>(s.vocabulary, z.size());
  for (float& v : z.first(allowed)) {
    if (s.temperature > 0) v /= s.temperature;
    if (!(std::abs(v) <= std::numeric_limits<float>::max())) v = kLowest;
  }
  std::ranges::fill(z.subspan(allowed), kLowest);
  const auto highest = static_cast<uint32_t>(std::ranges::max_element(z) - z.begin());
  const float peak = z[highest];
  if (peak == kLowest) return kNoToken;
  if (!(s.temperature > 0)) return static_cast<int32_t>(highest);
  const float kept = lowest_kept(s, z, peak, {memory.take_array<float>(z.size()), z.size()});
  const auto position = static_cast<uint32_t>(d.end);
  const auto score_of = [&](uint32_t id) {
    return static_cast<double>(z[id]) - peak + noise(s, position, id);
  };
  constexpr double kMostNoise = 17.4;  // of 24 bits
  uint32_t best = highest;
  double best_score = score_of(highest);
  for (uint32_t id = 0; id < z.size(); ++id) {
    if (z[id] < kept || z[id] == kLowest || id == highest) continue;
    if (static_cast<double>(z[id]) - peak + kMostNoise < best_score) continue;
    const double score = score_of(id);
    if (score > best_score || (score == best_score && id < best)) {
      best_score = score;
      best = id;
    }
  }
  return static_cast<int32_t>(best);
}

}  // namespace

Result<bool> draw_fast(const Node& n, const Host& h, CpuContext& c) {
  const HostTensor logits = h.host(n.in(kLogits).id);
  if (logits.dtype != DType::kF32 && logits.dtype != DType::kF16) return false;
  if (c.dry_run()) {
    // The row, how often its tokens occurred, and the row in order.
    for (int i = 0; i < 3; ++i)
      c.memory.take_array<float>(static_cast<size_t>(n.in(kLogits).dim(-1)));
    return true;
  }
  PTERYX_ASSIGN(const Draw d, read_draw(n, h));
  const HostTensor history = h.host(n.in(kHistory).id);
  const std::span before(reinterpret_cast<const int32_t*>(history.data) + d.begin,
                         static_cast<size_t>(d.end - d.begin));
  const auto vocabulary = static_cast<size_t>(n.in(kLogits).dim(-1));
  const int64_t last = logits.numel() - static_cast<int64_t>(vocabulary);  // row
  if (logits.dtype == DType::kF32) {
    const auto* const row = reinterpret_cast<const float*>(logits.data) + last;
    if (const auto token = likeliest(d.settings, {row, vocabulary})) {
      h.host(n.out_id()).put_integer(0, *token);
      return true;
    }
  }
  const std::span z(c.memory.take_array<float>(vocabulary), vocabulary);
  load_floats(logits, last, vocabulary, z.data());
  h.host(n.out_id()).put_integer(0, choose(d, before, z, c.memory));
  return true;
}

}  // namespace pteryx::ops::sample
