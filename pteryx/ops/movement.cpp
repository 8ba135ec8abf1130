// The one kernel of the operators that only move elements, on the GPU and on the CPU.
// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/ops/movement.h"

#include <algorithm>

#include "pteryx/ops/op.h"
#include "pteryx/ops/raw.h"
#include "pteryx/ops/shaders/movement.h"
#include "pteryx/ops/strided.h"
#include "pteryx/ops/table.h"

namespace pteryx::ops {
namespace {

constexpr size_t kX = 0;

bool wanted(const Node& n, size_t i) {
  const ValueId id = n.out_id(i);
  return id != graph::kNoValue && n.graph().tensor(id) != nullptr;
}

// By Rule, as the shader has them.
constexpr std::string_view kRuleNames[] = {"every",     "wrap",  "pad",  "reflect",
                                           "replicate", "lower", "upper"};

const MovementRow& row(const Node& n) { return *static_cast<const MovementRow*>(n.def().row); }

Status shape(const Node& n, Shapes& s) {
  for (size_t i = 0; i < n.out_count(); ++i) {
    PTERYX_ASSIGN(const Source source, row(n).source(n, i));
    PTERYX_TRY(s.set(i, source.result));
  }
  return {};
}

bool one_type(const Node& n) {
  for (size_t i = 0; i < n.out_count(); ++i) {
    if (wanted(n, i) && n.out(i).dtype != n.in(kX).dtype) return false;
  }
  return true;
}

Status plan(const Node& n, Plan& p) {
  for (size_t i = 0; i < n.out_count(); ++i) {
    if (!wanted(n, i)) continue;
    PTERYX_ASSIGN(const Source source,
                  row(n).live_source != nullptr ? row(n).live_source(n) : row(n).source(n, i));
    PTERYX_TRY(plan_moved(n, p, source, n.in(kX), n.out(i)));
  }
  return {};
}

// The same walk as the shader's.
std::optional<int64_t> source_of(const Source& s, int64_t i) {
  int64_t at = s.base;
  int64_t rest = i;
  for (size_t d = s.dims.rank(); d-- > 0;) {
    int64_t c = rest % s.dims[d];
    rest /= s.dims[d];
    if (s.rule >= Rule::kWrap && s.rule <= Rule::kReplicate) {
      c += s.shifts[d];
      const int64_t extent = s.extents[d];
      if (s.rule == Rule::kWrap) c %= extent;
      if (s.rule == Rule::kPad && (c < 0 || c >= extent)) return std::nullopt;
      if (s.rule == Rule::kReflect) {
        c = std::abs(c);
        if (c >= extent) c = 2 * (extent - 1) - c;
      }
      if (s.rule == Rule::kReplicate) c = std::clamp<int64_t>(c, 0, extent - 1);
    }
    at += c * s.strides[d];
  }
  if (s.rule == Rule::kLower || s.rule == Rule::kUpper) {
    const int64_t width = s.dims.back();
    const int64_t off = i % width - (i / width) % s.dims[s.dims.rank() - 2];
    if (s.rule == Rule::kLower ? off > s.diagonal : off < s.diagonal) return std::nullopt;
  }
  return at;
}

Status cpu(const Node& n, const Host& h) {
  const HostTensor x = h.host(n.in(kX).id);
  for (size_t k = 0; k < n.out_count(); ++k) {
    if (!wanted(n, k)) continue;
    const HostTensor y = h.host(n.out_id(k));
    PTERYX_ASSIGN(const Source source, row(n).source(n, k));
    for (int64_t i = 0; i < y.numel(); ++i) {
      if (const auto at = source_of(source, i)) {
        y.copy(i, x, *at);
      } else {
        y.put(i, source.fill);
      }
    }
  }
  return {};
}

Result<bool> fast(const Node& n, const Host& h, CpuContext& c) {
  if (n.out_count() != 1 || !wanted(n, 0)) return false;
  PTERYX_ASSIGN(const Source source, row(n).source(n, 0));
  return move_fast(source, h.host(n.in(kX).id), h.host(n.out_id()), c);
}

}  // namespace

Status plan_moved(const Node& n, Plan& p, const Source& given, const Tensor& x, const Tensor& y) {
  Source source = given;
  if (source.rule == Rule::kEvery) {
    Walk walk = merge_dims(source.dims, std::span(&source.strides, 1));
    source.dims = walk.dims;
    source.strides = walk.strides[0];
  }
  const shaders::MovementParams params{
      .dims = packed_dims(source.dims),
      .strides = packed_strides(source.strides),
      .shifts = packed_strides(source.shifts),
      .extents = packed_dims(source.extents),
      .n = u32(y.numel()),
      .first = u32(static_cast<int64_t>(kMaxRank - source.dims.rank())),
      .base = u32(source.base),
      .fill = element_bits(source.fill, y.dtype),
      .diagonal = static_cast<int32_t>(source.diagonal),
      .start = source.start.value_or(LiveInt{}).word,
      .start_extent = u32(source.start_extent)};
  std::vector<LiveInt> live;
  if (source.start) live.push_back(*source.start);
  const std::string_view rule = kRuleNames[static_cast<size_t>(source.rule)];
  return p.dispatch(n,
                    {.shader = &shaders::movement,
                     .options = {{"rule", std::string(rule)}, {"live_start", source.start ? 1 : 0}},
                     .variant = source.rule == Rule::kEvery ? "" : rule,
                     .bind = {{"x", x}, {"y", y}},
                     .params = bytes_of(params),
                     .live = live,
                     .grid = per_element(words(y.numel(), y.dtype), p.caps())});
}

void add_movement(std::vector<OpDef>& table) {
  for (const auto rows : {strided_rows(), slice_rows(), filled_rows()}) {
    for (const MovementRow& r : rows) {
      table.push_back({.name = r.name,
                       .spellings = r.spellings,
                       .args = r.args,
                       .shape = shape,
                       .plan = plan,
                       .gpu = one_type,
                       .cpu = cpu,
                       .fast = fast,
                       .row = &r});
    }
  }
}

}  // namespace pteryx::ops
