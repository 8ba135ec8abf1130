// Drawing the next token. SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/ops/sample/sample.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "pteryx/ops/kernel/library.h"
#include "pteryx/ops/op.h"
#include "pteryx/ops/scaled_table.h"
#include "pteryx/ops/shaders/advance.h"
#include "pteryx/ops/shaders/remember.h"
#include "pteryx/ops/shaders/sample.h"
#include "pteryx/ops/table.h"

namespace pteryx::ops {
namespace {

enum Position {
  kLogits,
  kSettings,
  kHistory,
  kTokens,
  kStart,
  kTable,
  kScales,
  kGroup,
  kLowFirst,
  kEmbedded
};
constexpr int64_t kBlock = 1024;  // ids of a workgroup

// The position of the first token, after checking that history reaches as far as the last.
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

Result<ScaledTable> table_of(const Node& n) {
  PTERYX_ASSIGN(const int64_t group, n.integer(kGroup));
  return scaled_table(n, {.weight = kTable, .scales = kScales}, group, n.flag(kLowFirst));
}

Status check(const Node& n) {
  const Tensor logits = n.in(kLogits);
  if (logits.dim(-1) < 1 || logits.rows() < 1)
    return n.fail(Code::kInvalidArgument,
                  fmt::format("logits {} is empty", to_string(logits.dims)));
  PTERYX_TRY(n.expect(kSettings, "shape", {kSamplingWords}, n.in(kSettings).dims));
  PTERYX_ASSIGN([[maybe_unused]] const int64_t start, read_start(n, kTokens, kHistory, kStart));
  if (!n.has(kTable)) return {};
  PTERYX_ASSIGN(const ScaledTable table, table_of(n));
  const Dims& x = n.in(kEmbedded).dims;
  if (x.rank() == 0 || x.back() != table.width || numel(x) == 0)
    return n.mismatch(kEmbedded, "shape", fmt::format("rows of {}", table.width), to_string(x));
  return {};
}

Status shape(const Node& n, Shapes& s) {
  PTERYX_TRY(check(n));
  return s.set({1, 1});
}

int64_t lanes_of(const gpu::Caps& caps) {
  const uint32_t lanes = caps.subgroups ? std::bit_floor(std::min(caps.subgroup_min, 32U)) : 0;
  return lanes < 4 ? 0 : lanes;
}

// Lets the dispatch that feeds the next run also embed its token, where as many buffers may be
// bound.
Status add_embedding(const Node& n, const gpu::Caps& caps, shaders::SampleParams& params,
                     DispatchDesc& d) {
  constexpr uint32_t kBuffers = 10;
  const bool embeds = n.has(kTable) && caps.max_storage_buffers >= kBuffers;
  d.options.set("embeds", embeds ? 1 : 0);
  if (!embeds) return {};
  PTERYX_ASSIGN(const ScaledTable t, table_of(n));
  params.rows = u32(t.vocabulary);
  params.width = u32(t.width);
  params.row_bytes = u32(t.row_bytes);
  params.group = u32(t.group);
  params.scale_row = u32(t.scale_row);
  d.params = bytes_of(params);
  d.options.set("low_first", t.low_first ? 1 : 0).set("scale_order", t.order_name());
  d.bind.push_back({"weight", n.in(kTable)});
  d.bind.push_back({"scales", n.in(kScales)});
  d.bind.push_back({"x", n.in(kEmbedded)});
  return {};
}

Status plan(const Node& n, Plan& p) {
  const Tensor logits = n.in(kLogits);
  const int64_t vocabulary = logits.dim(-1);
  const int64_t blocks = (vocabulary + kBlock - 1) / kBlock;
  const int64_t count = n.in(kTokens).numel();
  const LiveInt start = n.live(kStart);
  shaders::SampleParams params{.vocabulary = u32(vocabulary),
                               .blocks = u32(blocks),
                               .first = u32((logits.rows() - 1) * vocabulary),
                               .count = u32(count),
                               .start = start.word,
                               .positions = u32(n.in(kHistory).numel())};
  DispatchDesc d{.shader = &shaders::sample,
                 .options = {{"threads", p.caps().max_invocations >= 1024 ? 1024 : 256},
                             {"lanes", lanes_of(p.caps())},
                             {"counters", kCounters},
                             {"feeds", 0}},
                 .bind = {{"logits", logits},
                          {"history", n.in(kHistory)},
                          {"partial", p.counted_scratch(vocabulary + 2 * blocks)},
                          {"y", n.out()}},
                 .params = bytes_of(params),
                 .live = {start},
                 .grid = per_group(blocks, p.caps())};
  DispatchDesc feeding = d;
  d.bind.push_back({"settings", n.in(kSettings)});
  PTERYX_TRY(p.dispatch(n, std::move(d)));
  feeding.options.set("feeds", 1).set("most_moves", kMostMoves);
  feeding.variant = "feeding";
  PTERYX_TRY(add_embedding(n, p.caps(), params, feeding));
  return p.feed(n, std::move(feeding));
}

// ---------------------------------------------------------------- the same on the CPU

uint32_t mix(uint32_t h) {
  h ^= h >> 16U;
  h *= 0x85EBCA6BU;
  h ^= h >> 13U;
  h *= 0xC2B2AE35U;
  return h ^ (h >> 16U);
}

double noise(const Sampling& s, uint32_t position, uint32_t id) {
  const auto low = static_cast<uint32_t>(s.seed);
  const auto high = static_cast<uint32_t>(s.seed >> 32U);
  const uint32_t h = mix(mix(mix(id + 0x9E3779B9U) ^ low) ^ mix(position ^ high));
  return -std::log(-std::log((static_cast<double>(h >> 8U) + 0.5) / 16777216.0));
}

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

Status cpu(const Node& n, const Host& h) {
  PTERYX_ASSIGN(const int64_t start, read_start(n, kTokens, kHistory, kStart));
  const HostTensor logits = h.host(n.in(kLogits).id);
  const HostTensor words = h.host(n.in(kSettings).id);
  const HostTensor history = h.host(n.in(kHistory).id);
  SamplingWords w{};
  for (size_t i = 0; i < w.size(); ++i)
    w[i] = static_cast<int32_t>(words.integer(static_cast<int64_t>(i)));
  const Sampling s = sampling_of(w);
  const int64_t end = start + n.in(kTokens).numel();
  std::vector<int64_t> before;
  const int64_t begin = s.window == 0 ? 0 : std::max<int64_t>(end - s.window, 0);
  for (int64_t i = begin; i < end; ++i) before.push_back(history.integer(i));
  const int64_t vocabulary = n.in(kLogits).dim(-1);
  std::vector<float> z(static_cast<size_t>(vocabulary));
  for (int64_t i = 0; i < vocabulary; ++i)
    z[static_cast<size_t>(i)] = static_cast<float>(logits.number(logits.numel() - vocabulary + i));
  h.host(n.out_id()).put_integer(0, draw(s, static_cast<uint32_t>(end), before, std::move(z)));
  return {};
}

// ---------------------------------------------------------------- remember

enum RememberPosition { kNew, kMemory, kFirst };

Status remember_shape(const Node& n, Shapes& /*s*/) {
  PTERYX_ASSIGN([[maybe_unused]] const int64_t start, read_start(n, kNew, kMemory, kFirst));
  return {};
}

Status remember_plan(const Node& n, Plan& p) {
  const LiveInt start = n.live(kFirst);
  const int64_t count = n.in(kNew).numel();
  const shaders::RememberParams params{.n = u32(count), .start = start.word};
  return p.dispatch(n, {.shader = &shaders::remember,
                        .bind = {{"tokens", n.in(kNew)}, {"history", n.in(kMemory)}},
                        .params = bytes_of(params),
                        .live = {start},
                        .grid = per_element(count, p.caps())});
}

Status remember_cpu(const Node& n, const Host& h) {
  PTERYX_ASSIGN(const int64_t start, read_start(n, kNew, kMemory, kFirst));
  const HostTensor tokens = h.host(n.in(kNew).id);
  const HostTensor history = h.host(n.in(kMemory).id);
  for (int64_t i = 0; i < tokens.numel(); ++i) history.put_integer(start + i, tokens.integer(i));
  return {};
}

constexpr Arg memory() {
  Arg a = mutated("history", only(DType::kI32));
  a.min_rank = a.max_rank = 1;
  return a;
}
constexpr Arg kRememberArgs[] = {index_in("tokens"), memory(), number("start_pos"), any("y")};
constexpr Arg table() {
  Arg a = in("weight", only(DType::kU8), 2, 2);
  a.optional = true;
  return a;
}
constexpr Arg embedded() {
  Arg a = mutated("x", only(DType::kF32));
  a.optional = true;
  return a;
}
constexpr Arg kArgs[] = {in("logits", kFloats, 1),
                         in("settings", only(DType::kI32), 1, 1),
                         in("history", only(DType::kI32), 1, 1),
                         index_in("tokens"),
                         number("start_pos"),
                         table(),
                         optional_in("scales", kFloats),
                         optional_number("group_size"),
                         optional_number("is_linear_weight"),
                         embedded(),
                         out("y", only(DType::kI32))};

}  // namespace

Result<PlannedDispatch> plan_advance(graph::ValueId y) {
  PTERYX_ASSIGN(const auto kernel,
                find_kernel(shaders::advance.file, {{"most_moves", kMostMoves}}));
  PlannedDispatch d{.label = std::string(shaders::advance.name),
                    .code = kernel->code,
                    .bindings = {},
                    .params = {},
                    .grid = {}};
  for (const KernelTensor& t : kernel->tensors) {
    const auto kind = session_binding(t.name);
    d.bindings.push_back({.kind = kind.value_or(PlannedBinding::Kind::kValue),
                          .value = kind ? graph::kNoValue : y,
                          .written = t.is_written()});
  }
  return d;
}

bool can_draw(std::span<const float> logits) {
  bool any = false;
  for (const float v : logits) {
    if (std::isnan(v) || v == std::numeric_limits<float>::infinity()) return false;
    any = any || std::isfinite(v);
  }
  return any;
}

void add_sample(std::vector<OpDef>& table) {
  table.push_back({.name = kRememberOp,
                   .args = kRememberArgs,
                   .shape = remember_shape,
                   .plan = remember_plan,
                   .cpu = remember_cpu});
  table.push_back({.name = kSampleOp, .args = kArgs, .shape = shape, .plan = plan, .cpu = cpu});
}

}  // namespace pteryx::ops
