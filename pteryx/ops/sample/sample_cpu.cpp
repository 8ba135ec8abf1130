// Drawing the next token on the CPU, as the definition says it. SPDX-License-Identifier:
// BSD-3-Clause
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "pteryx/ops/sample/draw.h"

namespace pteryx::ops {
namespace sample {
namespace {

uint32_t mix(uint32_t h) {
  h ^= h >> 16U;
  h *= 0x85EBCA6BU;
  h ^= h >> 13U;
  h *= 0xC2B2AE35U;
  return h ^ (h >> 16U);
}

}  // namespace

Result<int64_t> read_start(const Node& n, size_t tokens, size_t history, size_t start_arg) {
  PTERYX_ASSIGN(const int64_t start, n.integer(start_arg));
  const int64_t count = n.in(tokens).numel();
  const int64_t capacity = n.in(history).numel();
  if (start < 0 || start > capacity - count) {
    return n.fail(Code::kInvalidArgument,
                  fmt::format("start_pos {} + {} tokens exceed the {} positions of history", start,
                              count, capacity));
  }
  return start;
}

double noise(const Sampling& s, uint32_t position, uint32_t id) {
  const auto low = static_cast<uint32_t>(s.seed);
  const auto high = static_cast<uint32_t>(s.seed >> 32U);
  const uint32_t h = mix(mix(mix(id + 0x9E3779B9U) ^ low) ^ mix(position ^ high));
  return -std::log(-std::log((static_cast<double>(h >> 8U) + 0.5) / 16777216.0));
}

namespace {

void hold_back(const Sampling& s, std::span<const int64_t> before, std::vector<float>& z) {
  std::vector<uint32_t> times(z.size());
  for (const int64_t t : before) {
    if (t >= 0 && t < static_cast<int64_t>(z.size())) ++times[static_cast<size_t>(t)];
  }
  for (size_t id = 0; id < z.size(); ++id) {
    if (times[id] == 0) continue;
    z[id] = z[id] > 0 ? z[id] / s.repetition : z[id] * s.repetition;
    z[id] -= s.presence + s.frequency * static_cast<float>(times[id]);
  }
}

// Ids by falling number, cut where top_k, top_p and min_p cut.
std::vector<uint32_t> keep(const Sampling& s, const std::vector<float>& z) {
  std::vector<uint32_t> ids(z.size());
  std::iota(ids.begin(), ids.end(), 0U);
  std::stable_sort(ids.begin(), ids.end(), [&](uint32_t a, uint32_t b) { return z[a] > z[b]; });
  const float peak = z[ids[0]];
  const auto cut_after = [&](size_t last) {  // equals of the last one stay
    while (last + 1 < ids.size() && z[ids[last + 1]] == z[ids[last]]) ++last;
    ids.resize(last + 1);
  };
  if (s.top_k > 0 && s.top_k < ids.size()) cut_after(s.top_k - 1);
  if (s.top_p < 1) {
    double all = 0;
    for (const uint32_t id : ids) all += std::exp(static_cast<double>(z[id]) - peak);
    double sum = 0;
    for (size_t i = 0; i < ids.size(); ++i) {
      sum += std::exp(static_cast<double>(z[ids[i]]) - peak);
      if (sum >= s.top_p * all) {
        cut_after(i);
        break;
      }
    }
  }
  const double bottom = peak + std::log(std::max(static_cast<double>(s.min_p), 1e-30));
  while (ids.size() > 1 && z[ids.back()] < bottom) ids.pop_back();
  return ids;
}

int32_t draw(const Sampling& s, uint32_t position, std::span<const int64_t> before,
             std::vector<float> z) {
  constexpr float kLowest = std::numeric_limits<float>::lowest();
  if (!can_draw(z)) return kNoToken;
  hold_back(s, before, z);
  for (size_t id = 0; id < z.size(); ++id) {
    if (s.temperature > 0) z[id] /= s.temperature;
    const bool allowed = (s.vocabulary == 0 || id < s.vocabulary) && std::isfinite(z[id]);
    if (!allowed) z[id] = kLowest;
  }
  const auto highest = static_cast<uint32_t>(std::max_element(z.begin(), z.end()) - z.begin());
  if (z[highest] == kLowest) return kNoToken;
  if (!(s.temperature > 0)) return static_cast<int32_t>(highest);
  uint32_t best = highest;
  double best_score = -std::numeric_limits<double>::infinity();
  for (const uint32_t id : keep(s, z)) {
    if (z[id] == kLowest) continue;
    const double score = static_cast<double>(z[id]) - z[highest] + noise(s, position, id);
    if (score > best_score || (score == best_score && id < best)) {
      best_score = score;
      best = id;
    }
  }
  return static_cast<int32_t>(best);
}

}  // namespace

Result<Draw> read_draw(const Node& n, const Host& h) {
  PTERYX_ASSIGN(const int64_t start, read_start(n, kTokens, kHistory, kStart));
  const HostTensor words = h.host(n.in(kSettings).id);
  SamplingWords w{};
  for (size_t i = 0; i < w.size(); ++i)
    w[i] = static_cast<int32_t>(words.integer(static_cast<int64_t>(i)));
  Draw d{.settings = sampling_of(w), .end = start + n.in(kTokens).numel()};
  const auto window = static_cast<int64_t>(d.settings.window);
  d.begin = window == 0 ? 0 : std::max<int64_t>(d.end - window, 0);
  return d;
}

Status draw_on_cpu(const Node& n, const Host& h) {
  PTERYX_ASSIGN(const Draw d, read_draw(n, h));
  const HostTensor logits = h.host(n.in(kLogits).id);
  const HostTensor history = h.host(n.in(kHistory).id);
  std::vector<int64_t> before;
  for (int64_t i = d.begin; i < d.end; ++i) before.push_back(history.integer(i));
  const int64_t vocabulary = n.in(kLogits).dim(-1);
  std::vector<float> z(static_cast<size_t>(vocabulary));
  for (int64_t i = 0; i < vocabulary; ++i)
    z[static_cast<size_t>(i)] = static_cast<float>(logits.number(logits.numel() - vocabulary + i));
  h.host(n.out_id())
      .put_integer(0, draw(d.settings, static_cast<uint32_t>(d.end), before, std::move(z)));
  return {};
}

}  // namespace sample

bool can_draw(std::span<const float> logits) {
  bool any = false;
  for (const float v : logits) {
    if (std::isnan(v) || v == std::numeric_limits<float>::infinity()) return false;
    any = any || std::isfinite(v);
  }
  return any;
}

}  // namespace pteryx::ops
