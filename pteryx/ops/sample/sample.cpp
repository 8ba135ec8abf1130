// Drawing the next token. SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/ops/sample/sample.h"

#include <algorithm>
#include <bit>
#include <vector>

#include "pteryx/ops/kernel/library.h"
#include "pteryx/ops/op.h"
#include "pteryx/ops/sample/draw.h"
#include "pteryx/ops/scaled_table.h"
#include "pteryx/ops/shaders/advance.h"
#include "pteryx/ops/shaders/remember.h"
#include "pteryx/ops/shaders/sample.h"
#include "pteryx/ops/table.h"

namespace pteryx::ops {

using namespace sample;  // NOLINT(google-build-using-namespace): its own
namespace {

constexpr int64_t kBlock = 1024;  // ids of a workgroup

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

void add_sample(std::vector<OpDef>& table) {
  table.push_back({.name = kRememberOp,
                   .args = kRememberArgs,
                   .shape = remember_shape,
                   .plan = remember_plan,
                   .cpu = remember_cpu});
  table.push_back({.name = kSampleOp,
                   .args = kArgs,
                   .shape = shape,
                   .plan = plan,
                   .cpu = draw_on_cpu,
                   .fast = draw_fast});
}

}  // namespace pteryx::ops
