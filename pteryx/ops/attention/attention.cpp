// Scaled dot-product attention: over key-value caches (with or without writing them first) and over
// whole tensors.
// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/ops/attention/attention.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "pteryx/ops/strided.h"
#include "pteryx/ops/table.h"

namespace pteryx::ops {
namespace attention {
namespace {

constexpr uint8_t kNone = Places::kNone;
constexpr size_t kQ = 0;

struct Row {
  std::string_view name;
  std::span<const std::string_view> spellings;
  std::span<const Arg> args;
  Places at;
};

bool has(const Node& n, uint8_t place) { return place != kNone && n.has(place); }

// [batch, rows, heads, size] over caches of [batch, capacity, kv heads, size].
Status read_cached(const Node& n, Attention& a) {
  const Places& at = places(n);
  a.batch = a.q.dim(0);
  a.rows = a.q.dim(1);
  a.heads = a.q.dim(2);
  const int64_t kv_heads = a.k.dim(2);
  const int64_t capacity = a.k.dim(1);
  PTERYX_TRY(n.expect(at.k, "shape", {a.batch, capacity, kv_heads, a.size}, a.k.dims));
  if (kv_heads < 1 || a.heads % kv_heads != 0) {
    return n.mismatch(at.k, "heads", fmt::format("a divisor of {}", a.heads),
                      std::to_string(kv_heads));
  }
  a.group = a.heads / kv_heads;
  a.capacity = capacity;
  a.q_strides = {a.rows * a.heads * a.size, a.size, a.heads * a.size};
  a.k_strides = {capacity * kv_heads * a.size, a.size, kv_heads * a.size};
  a.y_strides = a.q_strides;
  // A mask replaces the causal rule, and says how many keys there are.
  a.causal = !a.mask && (!has(n, at.causal) || n.flag(at.causal));
  if (!a.mask || a.mask->dim(-1) == 1) return {};
  a.keys = a.mask->dim(-1);
  if (a.keys < 1 || a.keys > capacity) {
    return n.mismatch(at.mask, "width", fmt::format("1 to {}", capacity), std::to_string(a.keys));
  }
  return {};
}

// [.., heads, rows, size] over [.., heads, keys, size].
Status read_whole(const Node& n, Attention& a) {
  const size_t rank = a.q.rank();
  a.rows = a.q.dim(-2);
  a.heads = a.q.dim(-3);
  a.keys = a.capacity = a.k.rank() < 2 ? 0 : a.k.dim(-2);
  for (size_t i = 0; i + 3 < rank; ++i) a.batch *= a.q.dims[i];
  Dims expected = a.q.dims;
  expected[rank - 2] = a.keys;
  PTERYX_TRY(n.expect(places(n).k, "shape", expected, a.k.dims));
  if (a.keys < 1) return n.fail(Code::kInvalidArgument, "k has no rows");
  a.q_strides = {a.heads * a.rows * a.size, a.rows * a.size, a.size};
  a.k_strides = {a.heads * a.keys * a.size, a.keys * a.size, a.size};
  a.y_strides = a.q_strides;
  if (a.mask && rank > 4 && a.mask->rank() > 3) {
    return n.unsupported(
        fmt::format("attn_mask of rank {} with q of rank {}", a.mask->rank(), rank));
  }
  return {};
}

// `heads` of [batch, rows, .., size] over as many of [batch, keys, .., size].
Status read_packed(const Node& n, Attention& a) {
  const Places& at = places(n);
  a.batch = a.q.dim(0);
  a.rows = a.q.dim(1);
  a.keys = a.capacity = a.k.dim(1);
  PTERYX_TRY(n.expect(at.k, "shape", {a.batch, a.keys, a.k.dim(2), a.size}, a.k.dims));
  PTERYX_ASSIGN(a.heads, n.integer(at.heads));
  if (a.keys < 1) return n.fail(Code::kInvalidArgument, "k has no rows");
  if (a.heads < 1) return n.malformed(at.heads, "value", "at least 1", std::to_string(a.heads));
  std::array<int64_t, 3> first{};
  for (size_t i = 0; i < first.size(); ++i) {
    const size_t arg = at.heads + 1U + i;
    const int64_t packed = (i == 0 ? a.q : a.k).dim(2);
    PTERYX_ASSIGN(first[i], n.integer(arg));
    if (first[i] < 0 || first[i] > packed - a.heads) {
      return n.malformed(arg, "value", fmt::format("0 to {}", packed - a.heads),
                         std::to_string(first[i]));
    }
  }
  const auto strides = [&](int64_t rows, int64_t packed, int64_t head) {
    return Strides{rows * packed * a.size, a.size, packed * a.size, head * a.size};
  };
  a.q_strides = strides(a.rows, a.q.dim(2), first[0]);
  a.k_strides = strides(a.keys, a.k.dim(2), first[1]);
  a.v_first = first[2] * a.size;
  a.y_strides = strides(a.rows, a.heads, 0);
  return {};
}

Status read_mask(const Node& n, Attention& a) {
  const Dims full = {a.batch, a.heads, a.rows, std::max<int64_t>(a.keys, 1)};
  const auto both = broadcast(a.mask->dims, full);
  if (!both || *both != full) {
    return n.mismatch(places(n).mask, "shape",
                      fmt::format("one that broadcasts to {}", to_string(full)),
                      to_string(a.mask->dims));
  }
  const Dims strides = broadcast_strides(a.mask->dims, full);
  for (size_t i = 0; i < 4; ++i) a.mask_strides[i] = strides[i];
  return {};
}

Status shape(const Node& n, Shapes& s) {
  PTERYX_ASSIGN(const Attention a, read_attention(n));
  const Places& at = places(n);
  if (at.start != kNone) {
    PTERYX_ASSIGN([[maybe_unused]] const int64_t start, read_start(n, kQ, at.k, at.start));
  }
  return s.set(at.heads == kNone ? n.in(kQ).dims : Dims{a.batch, a.rows, a.heads, a.size});
}

bool gpu(const Node& n) {
  const Places& at = places(n);
  if (n.in(kQ).dim(-1) > kMaxSize) return false;
  if (at.new_k == kNone) return true;
  return cache_fits_gpu(n.in(at.k)) && cache_fits_gpu(n.in(at.v));
}

// The scores of one row, then their softmax.
void weigh(const Attention& a, const HostTensor& q, const HostTensor& k, const HostTensor* mask,
           int64_t b, int64_t h, int64_t r, std::vector<double>& weights) {
  constexpr double kLowest = -3.4028234e38;
  const int64_t from = a.q_strides.at(b, h, r);
  double peak = kLowest;
  for (size_t c = 0; c < weights.size(); ++c) {
    const auto key = static_cast<int64_t>(c);
    const int64_t at = a.k_strides.at(b, h / a.group, key);
    double score = 0;
    for (int64_t d = 0; d < a.size; ++d) score += q.number(from + d) * k.number(at + d);
    score *= a.scale;
    if (mask != nullptr) {
      const double m = mask->number(b * a.mask_strides[0] + h * a.mask_strides[1] +
                                    r * a.mask_strides[2] + key * a.mask_strides[3]);
      if (mask->dtype == DType::kBool) {
        if (m == 0) score = kLowest;
      } else {
        score = std::fmax(score + std::fmax(m, kLowest), kLowest);
      }
    }
    weights[c] = score;
    peak = std::fmax(peak, score);
  }
  double total = 0;
  for (double& w : weights) total += w = std::exp(w - peak);
  for (double& w : weights) w /= total;
}

Status cpu(const Node& n, const Host& host) {
  const Places& at = places(n);
  PTERYX_ASSIGN(Attention a, read_attention(n));
  int64_t start = 0;
  if (at.start != kNone) {
    PTERYX_ASSIGN(start, read_start(n, kQ, at.k, at.start));
  }
  if (a.keys == 0) a.keys = start + a.rows;
  if (at.new_k != kNone) {
    PTERYX_ASSIGN(const CacheRows new_k, read_cache_rows(n, at.new_k, at.k));
    PTERYX_ASSIGN(const CacheRows new_v, read_cache_rows(n, at.new_v, at.v));
    write_cache_rows(host, new_k, start);
    write_cache_rows(host, new_v, start);
  }
  const HostTensor q = host.host(a.q.id);
  const HostTensor k = host.host(a.k.id);
  const HostTensor v = host.host(a.v.id);
  const HostTensor y = host.host(n.out_id());
  const HostTensor mask = a.mask ? host.host(a.mask->id) : HostTensor{};
  std::vector<double> weights;
  Strides v_strides = a.k_strides;
  v_strides.first = a.v_first;
  for (int64_t item = 0; item < a.batch * a.heads * a.rows; ++item) {
    const int64_t r = item % a.rows;
    const int64_t h = item / a.rows % a.heads;
    const int64_t b = item / a.rows / a.heads;
    weights.resize(static_cast<size_t>(a.causal ? std::min(a.keys, start + r + 1) : a.keys));
    weigh(a, q, k, a.mask ? &mask : nullptr, b, h, r, weights);
    const int64_t to = a.y_strides.at(b, h, r);
    for (int64_t d = 0; d < a.size; ++d) {
      double sum = 0;
      for (size_t c = 0; c < weights.size(); ++c) {
        sum += weights[c] * v.number(v_strides.at(b, h / a.group, static_cast<int64_t>(c)) + d);
      }
      y.put(to + d, sum);
    }
  }
  return {};
}

enum UpdatePosition { kValue, kCache, kStart };

// The result is a formality: never written, its dims stay the file's.
Status update_shape(const Node& n, Shapes& /*s*/) {
  PTERYX_ASSIGN([[maybe_unused]] const CacheRows c, read_cache_rows(n, kValue, kCache));
  PTERYX_ASSIGN([[maybe_unused]] const int64_t start, read_start(n, kValue, kCache, kStart));
  return {};
}
bool update_gpu(const Node& n) { return cache_fits_gpu(n.in(kCache)); }
Status update_plan(const Node& n, Plan& p) {
  PTERYX_ASSIGN(const CacheRows c, read_cache_rows(n, kValue, kCache));
  return plan_cache_rows(n, p, n.live(kStart), c, nullptr);
}
Status update_cpu(const Node& n, const Host& h) {
  PTERYX_ASSIGN(const CacheRows c, read_cache_rows(n, kValue, kCache));
  PTERYX_ASSIGN(const int64_t start, read_start(n, kValue, kCache, kStart));
  write_cache_rows(h, c, start);
  return {};
}

Result<bool> update_fast(const Node& n, const Host& h, CpuContext& context) {
  PTERYX_ASSIGN(const CacheRows c, read_cache_rows(n, kValue, kCache));
  PTERYX_ASSIGN(const int64_t start, read_start(n, kValue, kCache, kStart));
  return copy_cache_rows(h, c, start, context);
}

constexpr DTypes kMasks = kFloats | kBools;
constexpr Arg cache(Arg a) {
  a.cache = true;
  return a;
}
constexpr Arg written_cache(std::string_view name) {
  Arg a = cache(mutated(name, kFloats));
  a.min_rank = a.max_rank = 4;
  return a;
}
constexpr Arg kWithCacheArgs[] = {in("q", kFloats, 4, 4),
                                  in("k", kFloats, 4, 4),
                                  in("v", kFloats, 4, 4),
                                  written_cache("k_cache"),
                                  written_cache("v_cache"),
                                  number("start_pos"),
                                  any("seq_len"),
                                  optional_in("attn_mask", kMasks),
                                  optional_number("dropout_p"),
                                  optional_number("is_causal"),
                                  optional_number("scale"),
                                  out("y", kFloats)};
constexpr Arg kCustomArgs[] = {in("q", kFloats, 4, 4),
                               cache(in("k_cache", kFloats, 4, 4)),
                               cache(in("v_cache", kFloats, 4, 4)),
                               number("start_pos"),
                               optional_in("attn_mask", kMasks),
                               optional_number("dropout_p"),
                               optional_number("is_causal"),
                               optional_number("scale"),
                               out("y", kFloats)};
constexpr Arg kWholeArgs[] = {in("q", kFloats, 3),        cache(in("k", kFloats, 3)),
                              cache(in("v", kFloats, 3)), optional_in("attn_mask", kMasks),
                              optional_number("scale"),   out("y", kFloats)};
constexpr Arg kPackedArgs[] = {
    in("q", kFloats, 4, 4), in("k", kFloats, 4, 4),   in("v", kFloats, 4, 4),
    number("heads"),        number("q_head"),         number("k_head"),
    number("v_head"),       optional_number("scale"), out("y", kFloats)};
constexpr Arg kUpdateArgs[] = {in("value", kFloats, 4, 4), written_cache("cache"),
                               number("start_pos"), any("y")};

constexpr std::string_view kWithCacheSpellings[] = {"llama.sdpa_with_kv_cache.default",
                                                    "llama::sdpa_with_kv_cache.out"};
constexpr std::string_view kCustomSpellings[] = {"custom_sdpa.default", "llama::custom_sdpa.out"};
constexpr std::string_view kUpdateSpellings[] = {"llama.update_cache.default",
                                                 "llama::update_cache.out"};

constexpr Row kRows[] = {
    {"sdpa_with_kv_cache.default",
     kWithCacheSpellings,
     kWithCacheArgs,
     {.new_k = 1,
      .new_v = 2,
      .k = 3,
      .v = 4,
      .start = 5,
      .mask = 7,
      .dropout = 8,
      .causal = 9,
      .scale = 10}},
    {"llama.custom_sdpa.default",
     kCustomSpellings,
     kCustomArgs,
     {.start = 3, .mask = 4, .dropout = 5, .causal = 6, .scale = 7}},
    {"et_vk.sdpa.default", {}, kWholeArgs, {.mask = 3, .scale = 4}},
    {kPackedOp, {}, kPackedArgs, {.scale = 7, .heads = 3}},
};

}  // namespace

const Places& places(const Node& n) { return static_cast<const Row*>(n.def().row)->at; }

LiveInt start_of(const Node& n) {
  const uint8_t start = places(n).start;
  return start == kNone ? LiveInt{} : n.live(start);
}

Result<Attention> read_attention(const Node& n) {
  const Places& at = places(n);
  Attention a{.q = n.in(kQ), .k = n.in(at.k), .v = n.in(at.v)};
  a.size = a.q.dim(-1);
  if (has(n, at.mask)) a.mask = n.in(at.mask);
  PTERYX_TRY(n.expect(at.v, "shape", a.k.dims, a.v.dims));
  const auto read = at.heads != kNone ? read_packed : at.start == kNone ? read_whole : read_cached;
  PTERYX_TRY(read(n, a));
  for (const uint8_t x : {at.new_k, at.new_v}) {
    if (x == kNone) continue;
    PTERYX_TRY(n.expect(x, "shape", {a.batch, a.rows, a.k.dim(2), a.size}, n.in(x).dims));
  }
  if (a.mask) PTERYX_TRY(read_mask(n, a));
  if (has(n, at.dropout) && n.number(at.dropout) != 0) {
    return n.unsupported(fmt::format("dropout_p: expected 0, got {}", n.number(at.dropout)));
  }
  a.scale = has(n, at.scale) ? n.number(at.scale)
                             : 1.0 / std::sqrt(static_cast<double>(std::max<int64_t>(a.size, 1)));
  return a;
}

}  // namespace attention

void add_attention(std::vector<OpDef>& table) {
  using namespace attention;
  for (const Row& r : kRows) {
    table.push_back({.name = r.name,
                     .spellings = r.spellings,
                     .args = r.args,
                     .shape = shape,
                     .plan = plan_by_route,
                     .gpu = gpu,
                     .cpu = cpu,
                     .fast = fast,
                     .family = "attention",
                     .routes = routes(),
                     .row = &r});
  }
  table.push_back({.name = "update_cache.default",
                   .spellings = kUpdateSpellings,
                   .args = kUpdateArgs,
                   .shape = update_shape,
                   .plan = update_plan,
                   .gpu = update_gpu,
                   .cpu = update_cpu,
                   .fast = update_fast});
}

}  // namespace pteryx::ops
