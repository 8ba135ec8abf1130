// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/session/exec/recorder.h"

#include <algorithm>
#include <bit>

#include <fmt/format.h>

#include "pteryx/ops/bind.h"
#include "pteryx/session/exec/shape_rules.h"
#include "pteryx/session/limits.h"

namespace pteryx::exec {

using graph::index;
using graph::ValueId;

namespace {

uint64_t hash_of(std::span<const int64_t> key) {
  uint64_t h = 0x9E3779B97F4A7C15U;
  for (const int64_t v : key) h = (h ^ static_cast<uint64_t>(v)) * 0x100000001B3U + (h >> 29);
  return h;
}

int64_t pinned(const ops::ScalarReads::Value& read, const ops::Live& live) {
  const ops::Scalar& s = live.scalars[index(read.id)];
  if (read.step > 0) return ops::bucket_of(s.i + read.plus, read.step);
  return s.kind == graph::ScalarKind::kDouble ? std::bit_cast<int64_t>(s.d) : s.i;
}

void keep_reads(const ops::ScalarReads& reads, Recording& r) {
  for (const ops::ScalarReads::Value& v : reads.values) {
    const bool known = std::any_of(r.pins.begin(), r.pins.end(),
                                   [&](const Recording::Pin& p) { return p.read == v; });
    if (!known) r.pins.push_back({v, pinned(v, r.live)});
  }
  for (const ValueId id : reads.slots) {
    if (std::find(r.slots.begin(), r.slots.end(), id) == r.slots.end()) r.slots.push_back(id);
  }
}

Recording::Note note_of(uint32_t node, const ops::PlannedDispatch& d, const NodePlan& plan) {
  using Kind = ops::PlannedBinding::Kind;
  Recording::Note note{.kernel = d.label, .node = node, .values = {}, .flops = d.flops};
  for (const ops::PlannedBinding& b : d.bindings) {
    if (b.kind == Kind::kValue) note.values.push_back(b.value);
    if (b.kind == Kind::kScratch) note.other_bytes += plan.scratch_bytes[b.scratch];
    if (b.kind == Kind::kConstant) note.other_bytes += plan.constants[b.constant].size_bytes;
  }
  return note;
}

bool is_of(const Recording& r, uint64_t state) {
  return r.key.front() == static_cast<int64_t>(state);
}

}  // namespace

Recorder::Recorder(const graph::Graph& g, const Layout& layout, const ops::PlanContext& context,
                   ConstantPool& constants, const Memory& memory, uint32_t most_recordings)
    : graph_(g),
      layout_(layout),
      context_(context),
      constants_(constants),
      memory_(memory),
      device_(constants.device()),
      most_(std::max(most_recordings, 1U)),
      recordings_(layout.blocks.size()) {}

void Recorder::make_key(const Block& b, const ops::Live& live, uint64_t state) {
  key_.assign(1, static_cast<int64_t>(state));
  for (const ValueId id : b.key_tensors) {
    for (const int64_t d : live.dims[index(id)]) key_.push_back(d);
  }
}

// Of the key at hand.
std::unique_ptr<Recording> Recorder::empty_recording() const {
  auto made = std::make_unique<Recording>();
  made->key = key_;
  made->hash = hash_of(key_);
  made->last_used = clock_;
  return made;
}

void Recorder::warm(std::vector<std::optional<NodePlan>> plans, uint64_t state) {
  for (size_t at = 0; at < layout_.blocks.size(); ++at) {
    bool all = gives_bound(layout_.blocks[at]);
    for (const Span& span : layout_.blocks[at].spans) {
      for (const uint32_t node : span.nodes) all = all && plans[node].has_value();
    }
    if (all) record_at_bound(at, plans, state);
  }
  for (const auto& plan : plans) {
    if (!plan) continue;
    for (const ops::PlannedDispatch& d : plan->dispatches)
      warm_shaders_.pipeline(ops::create_pipeline(*device_, d));
    if (plan->feeding) warm_shaders_.pipeline(ops::create_pipeline(*device_, *plan->feeding));
  }
}

// Whether results have the file's bounds as their sizes where everything else has. Rules that read
// scalars run again before a recording is used; these would not.
bool Recorder::gives_bound(const Block& b) const {
  ops::Live live = layout_.bound;
  bool same = true;
  for (uint32_t i = b.begin; i < b.end && same; ++i) {
    if (layout_.defs[i] == nullptr || layout_.place[i] == Place::kItem) continue;
    if (std::ranges::binary_search(b.scalar_nodes, i)) continue;
    const ops::Node n(graph_, graph_.nodes[i], *layout_.defs[i], live);
    ops::Shapes shapes(n, live, same);
    same = layout_.defs[i]->shape(n, shapes).ok() && same;
  }
  return same;
}

void Recorder::record_at_bound(size_t at, std::vector<std::optional<NodePlan>>& plans,
                               uint64_t state) {
  const Block& b = layout_.blocks[at];
  make_key(b, layout_.bound, state);
  std::unique_ptr<Recording> made = empty_recording();
  made->live = layout_.bound;
  const Status recorded = record_spans(b, *made, [&](uint32_t node, Draft& d) -> Status {
    add_plan(node, std::move(*std::exchange(plans[node], std::nullopt)), d);
    return {};
  });
  PTERYX_DCHECK(recorded.ok());
  warm_.push_back({at, made.get()});
  recordings_[at].push_back(std::move(made));
}

Result<bool> Recorder::advance_warm() {
  while (!warm_.empty()) {
    const Warm next = warm_.back();
    auto there = advance(next.block, *next.recording);
    if (there.ok() && !*there) return false;
    warm_.pop_back();
    if (!there.ok()) return there;
  }
  return warm_shaders_.settled(*device_);
}

Result<Recording*> Recorder::find(size_t at, const ops::Live& live, uint64_t state) {
  const Block& b = layout_.blocks[at];
  make_key(b, live, state);
  const uint64_t hash = hash_of(key_);
  auto& cache = recordings_[at];
  ++clock_;
  for (const auto& r : cache) {
    if (r->hash != hash || r->key != key_) continue;
    PTERYX_ASSIGN(const bool good, holds(b, live, *r));
    if (!good) continue;
    r->last_used = clock_;
    return r.get();
  }
  std::unique_ptr<Recording> made = empty_recording();
  PTERYX_TRY(record(b, live, *made));
  make_room(cache, state);
  cache.push_back(std::move(made));
  return cache.back().get();
}

// Each state has as many places as it would have alone.
void Recorder::make_room(std::vector<std::unique_ptr<Recording>>& cache, uint64_t state) const {
  auto oldest = cache.end();
  size_t count = 0;
  for (auto r = cache.begin(); r != cache.end(); ++r) {
    if (!is_of(**r, state)) continue;
    ++count;
    if (oldest == cache.end() || (*r)->last_used < (*oldest)->last_used) oldest = r;
  }
  if (count >= most_) cache.erase(oldest);
}

Result<bool> Recorder::advance(size_t block, Recording& r) {
  if (r.ready) return true;
  Result<bool> there = constants_.advance();
  if (there.ok() && *there) there = r.created.settled(*device_);
  if (!there.ok()) {
    const auto drop = [&](Shared& shared) {  // one of them may be what failed
      if (std::find(r.scratch.begin(), r.scratch.end(), shared.buffer) != r.scratch.end())
        shared.buffer.reset();
    };
    std::for_each(scratch_.begin(), scratch_.end(), drop);
    drop(counted_);
    std::erase_if(recordings_[block], [&](const auto& kept) { return kept.get() == &r; });
    return there;
  }
  r.ready = *there;
  return r.ready;
}

void Recorder::forget(uint64_t state) {
  for (auto& cache : recordings_)
    std::erase_if(cache, [&](const auto& r) { return is_of(*r, state); });
}

size_t Recorder::size() const {
  size_t n = 0;
  for (const auto& cache : recordings_) n += cache.size();
  return n;
}

// Whether a recording made for the same input sizes is good for the scalars of this run. Its
// scalars then are this run's.
Result<bool> Recorder::holds(const Block& b, const ops::Live& live, Recording& r) const {
  for (const ValueId id : b.key_scalars) r.live.scalars[index(id)] = live.scalars[index(id)];
  for (const uint32_t i : r.rules) {
    const ops::Node n(graph_, graph_.nodes[i], *layout_.defs[i], r.live);
    bool same = true;
    ops::Shapes shapes(n, r.live, same);
    PTERYX_TRY(layout_.defs[i]->shape(n, shapes));
    if (!same) return false;
  }
  return std::all_of(r.pins.begin(), r.pins.end(),
                     [&](const Recording::Pin& p) { return pinned(p.read, r.live) == p.value; });
}

Status Recorder::record(const Block& b, const ops::Live& live, Recording& r) {
  r.live = live;
  for (uint32_t i = b.begin; i < b.end; ++i) {
    if (layout_.defs[i] == nullptr || layout_.place[i] == Place::kItem) continue;
    const ops::Node n(graph_, graph_.nodes[i], *layout_.defs[i], r.live);
    ops::Shapes shapes(n, r.live);
    PTERYX_TRY(layout_.defs[i]->shape(n, shapes));
  }
  return record_spans(b, r, [&](uint32_t node, Draft& d) { return plan_node(node, d); });
}

// `plan` adds what a node does to the draft.
Status Recorder::record_spans(const Block& b, Recording& r,
                              const std::function<Status(uint32_t, Draft&)>& plan) {
  r.rules = distinct_rules(graph_, layout_, b.scalar_nodes, r.live);
  Draft d{r};
  for (const Span& span : b.spans) {
    r.span_begin.push_back(static_cast<uint32_t>(d.planned.size()));
    r.state_end.push_back(r.span_begin.back());
    for (const uint32_t node : span.nodes) {
      PTERYX_TRY(plan(node, d));
      if (layout_.changes_state[node]) r.state_end.back() = static_cast<uint32_t>(d.planned.size());
    }
  }
  r.span_begin.push_back(static_cast<uint32_t>(d.planned.size()));
  bind(d);
  add_downloads(b, r);
  return {};
}

void Recorder::bind(Draft& d) {
  Recording& r = d.r;
  if (!d.params.empty()) {
    r.params = r.created.buffer(device_, d.params.size(), gpu::BufferKind::kUniform, "params");
    r.created.write(device_->write(r.params.get(), 0, d.params));
  }
  for (const Planned& p : d.planned) r.dispatches.push_back(bind(p, r));
  if (!d.feeding) return;
  r.feeding->dispatches = r.dispatches;
  r.feeding->dispatches[r.feeding->at] = bind(*d.feeding, r);
  find_done(d, *r.feeding);
}

// A dispatch is done if all that it writes is written by the one that feeds.
void Recorder::find_done(const Draft& d, Recording::Feeding& f) const {
  const auto written_by_both = [&](const ops::PlannedBinding& b) {
    return b.kind == ops::PlannedBinding::Kind::kValue &&
           std::ranges::any_of(d.feeding->dispatch.bindings, [&](const ops::PlannedBinding& other) {
             return other.written && other.kind == b.kind && other.value == b.value;
           });
  };
  bool state = true;
  for (const Planned& p : d.planned) {
    for (const ops::PlannedBinding& b : p.dispatch.bindings) {
      if (!b.written) continue;
      if (!written_by_both(b)) return;
      state = state && graph_.tensor(b.value)->state;
    }
    ++f.ready_begin;
    if (state) ++f.kept_begin;
  }
}

gpu::Dispatch Recorder::bind(const Planned& p, Recording& r) {
  const gpu::Binding at{r.params.get(), p.params_offset, ops::params_bytes(p.dispatch)};
  const gpu::Dispatch made = ops::bind(*device_, p.dispatch, at,
                                       [&](const ops::PlannedBinding& x) { return bound(p, x); });
  r.bindings.push_back(r.created.dispatch(device_, made));
  return made;
}

void Recorder::add_downloads(const Block& b, Recording& r) const {
  r.downloads.resize(b.spans.size());
  for (const Step& s : b.steps) {
    if (s.kind != Step::Kind::kSubmit) continue;
    for (const uint32_t root : s.downloads) {
      const Root& info = layout_.roots[root];
      const auto elements = static_cast<uint64_t>(numel(r.live.dims[index(info.value)]));
      const uint64_t element = gpu_element_bytes(graph_.tensor(info.value)->dtype);
      const uint64_t bytes = align_up(elements * element, 4);
      if (bytes == 0) continue;
      const gpu::Binding& from = memory_.buffer(root);
      r.downloads[s.index].push_back(
          {root, {from.buffer, from.offset, memory_.readback(), info.readback_offset, bytes}});
    }
  }
}

Status Recorder::plan_node(uint32_t node, Draft& d) {
  const ops::OpDef& def = *layout_.defs[node];
  ops::Plan plan(context_, fault_slot(layout_, node));
  ops::ScalarReads reads;
  PTERYX_TRY(def.plan(ops::Node(graph_, graph_.nodes[node], def, d.r.live, &reads), plan));
  NodePlan made{
      std::move(plan.dispatches), std::move(plan.constants), std::move(plan.scratch_bytes),
      plan.counted_bytes,         std::move(reads),          std::move(plan.feeding)};
  PTERYX_TRY(check_plan(graph_, graph_.nodes[node], made, context_.caps));
  add_plan(node, std::move(made), d);
  return {};
}

void Recorder::add_plan(uint32_t node, NodePlan plan, Draft& d) {
  keep_reads(plan.reads, d.r);
  for (const ops::PlannedDispatch& x : plan.dispatches) d.r.notes.push_back(note_of(node, x, plan));
  const auto used = std::make_shared<NodeBuffers>();
  scratch_.resize(std::max(scratch_.size(), plan.scratch_bytes.size()));
  for (size_t i = 0; i < plan.scratch_bytes.size(); ++i) {
    used->scratch.push_back(
        shared_buffer(scratch_[i], plan.scratch_bytes[i], fmt::format("scratch {}", i), d.r));
  }
  if (plan.counted_bytes > 0)
    used->counted = shared_buffer(counted_, plan.counted_bytes, "counted scratch", d.r);
  for (const ops::PlannedConstant& c : plan.constants) {
    used->constants.push_back(
        constants_.relaid(*graph_.tensor(c.source), memory_.buffer_of(c.source), c));
  }
  for (ops::PlannedDispatch& x : plan.dispatches) {
    const uint64_t offset = add_params(x, d);
    d.planned.push_back({std::move(x), offset, used});
  }
  if (!plan.feeding) return;
  const auto at = static_cast<uint32_t>(d.planned.size() - 1);
  d.r.feeding = Recording::Feeding{.at = at, .kernel = plan.feeding->label, .dispatches = {}};
  const uint64_t offset = add_params(*plan.feeding, d);
  d.feeding = Planned{std::move(*plan.feeding), offset, used};
}

uint64_t Recorder::add_params(const ops::PlannedDispatch& x, Draft& d) const {
  const uint64_t offset = align_up(d.params.size(), device_->caps().uniform_alignment);
  d.params.resize(offset + ops::params_bytes(x));
  std::copy(x.params.begin(), x.params.end(), d.params.begin() + static_cast<ptrdiff_t>(offset));
  return offset;
}

gpu::Binding Recorder::bound(const Planned& p, const ops::PlannedBinding& b) const {
  switch (b.kind) {
    case ops::PlannedBinding::Kind::kValue: return memory_.buffer_of(b.value);
    case ops::PlannedBinding::Kind::kScratch: return {p.buffers->scratch[b.scratch], 0, 0};
    case ops::PlannedBinding::Kind::kCounted: return {p.buffers->counted, 0, 0};
    case ops::PlannedBinding::Kind::kConstant: return p.buffers->constants[b.constant];
    default: return memory_.bound(b.kind);
  }
}

// Temporaries are shared by all nodes: dispatches run one after another.
gpu::BufferId Recorder::shared_buffer(Shared& shared, uint64_t bytes, const std::string& label,
                                      Recording& r) {
  bytes = std::max<uint64_t>(bytes, 4);
  // A recording keeps what it bound; the largest so far serves whoever comes next.
  if (shared.buffer == nullptr || shared.bytes < bytes) {
    shared.buffer = std::make_shared<OwnedBuffer>(
        r.created.buffer(device_, bytes, gpu::BufferKind::kStorage, label));
    shared.bytes = bytes;
  }
  if (std::find(r.scratch.begin(), r.scratch.end(), shared.buffer) == r.scratch.end())
    r.scratch.push_back(shared.buffer);
  return shared.buffer->get();
}

}  // namespace pteryx::exec
