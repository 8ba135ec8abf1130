// From live sizes to recorded dispatches: shapes, plans, pipelines, bindings, params; and the cache
// of all that.
// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <bit>

#include <fmt/format.h>

#include "pteryx/gpu/native/blocking.h"
#include "pteryx/ops/bind.h"
#include "pteryx/session/method.h"

namespace pteryx {

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

}  // namespace

Result<Recording*> Method::find_recording(size_t at) {
  const Block& b = layout_.blocks[at];
  key_.clear();
  for (const ValueId id : b.key_tensors) {
    for (const int64_t d : live_.dims[index(id)]) key_.push_back(d);
  }
  const uint64_t hash = hash_of(key_);
  auto& cache = recordings_[at];
  ++clock_;
  for (const auto& r : cache) {
    if (r->hash != hash || r->key != key_) continue;
    PTERYX_ASSIGN(const bool good, holds(b, *r));
    if (!good) continue;
    r->last_used = clock_;
    return r.get();
  }
  auto made = std::make_unique<Recording>();
  made->key = key_;
  made->hash = hash;
  made->last_used = clock_;
  PTERYX_TRY(record(b, *made));
  if (cache.size() >= plan_cache_) {
    const auto oldest =
        std::min_element(cache.begin(), cache.end(),
                         [](const auto& x, const auto& y) { return x->last_used < y->last_used; });
    if (active_ == &(*oldest)->live) active_ = nullptr;
    cache.erase(oldest);
  }
  cache.push_back(std::move(made));
  return cache.back().get();
}

// Whether a recording made for the same input sizes is good for the scalars of this run. Its
// scalars then are this run's.
Result<bool> Method::holds(const Block& b, Recording& r) const {
  for (const ValueId id : b.key_scalars) r.live.scalars[index(id)] = live_.scalars[index(id)];
  for (const uint32_t i : b.scalar_nodes) {
    const ops::Node n(graph_, graph_.nodes[i], *layout_.defs[i], r.live);
    bool same = true;
    ops::Shapes shapes(n, r.live, same);
    PTERYX_TRY(layout_.defs[i]->shape(n, shapes));
    if (!same) return false;
  }
  return std::all_of(r.pins.begin(), r.pins.end(),
                     [&](const Recording::Pin& p) { return pinned(p.read, r.live) == p.value; });
}

void Method::keep_reads(const ops::ScalarReads& reads, Recording& r) {
  for (const ops::ScalarReads::Value& v : reads.values) {
    const bool known = std::any_of(r.pins.begin(), r.pins.end(),
                                   [&](const Recording::Pin& p) { return p.read == v; });
    if (!known) r.pins.push_back({v, pinned(v, r.live)});
  }
  for (const ValueId id : reads.slots) {
    if (std::find(r.slots.begin(), r.slots.end(), id) == r.slots.end()) r.slots.push_back(id);
  }
}

Status Method::record(const Block& b, Recording& r) {
  r.live = live_;
  for (uint32_t i = b.begin; i < b.end; ++i) {
    if (layout_.defs[i] == nullptr || layout_.place[i] == Place::kItem) continue;
    const ops::Node n(graph_, graph_.nodes[i], *layout_.defs[i], r.live);
    ops::Shapes shapes(n, r.live);
    PTERYX_TRY(layout_.defs[i]->shape(n, shapes));
  }
  std::vector<Planned> planned;
  std::vector<std::byte> params;
  Creations created;
  for (const Span& span : b.spans) {
    r.span_begin.push_back(static_cast<uint32_t>(planned.size()));
    r.state_end.push_back(r.span_begin.back());
    for (const uint32_t node : span.nodes) {
      PTERYX_TRY(plan_node(node, r, created, params, planned));
      if (layout_.changes_state[node]) r.state_end.back() = static_cast<uint32_t>(planned.size());
    }
  }
  r.span_begin.push_back(static_cast<uint32_t>(planned.size()));
  if (!params.empty())
    r.params = created.buffer(device_, params.size(), gpu::BufferKind::kUniform, "params");
  for (const Planned& p : planned) {
    const gpu::Binding at{r.params.get(), p.params_offset, ops::params_bytes(p.dispatch)};
    r.dispatches.push_back(ops::bind(*device_, p.dispatch, at,
                                     [&](const ops::PlannedBinding& x) { return bound(p, x); }));
    r.bindings.push_back(created.dispatch(device_, r.dispatches.back()));
  }
  PTERYX_TRY(gpu::wait_until(*device_, [&] { return created.settled(*device_); }));
  if (!params.empty()) PTERYX_TRY(device_->write(r.params.get(), 0, params));
  r.downloads.resize(b.spans.size());
  for (const Step& s : b.steps) {
    if (s.kind != Step::Kind::kSubmit) continue;
    for (const uint32_t root : s.downloads) {
      const Root& info = layout_.roots[root];
      const auto elements = static_cast<uint64_t>(numel(r.live.dims[index(info.value)]));
      const uint64_t bytes = align_up(elements * gpu_element(root), 4);
      if (bytes > 0) {
        r.downloads[s.index].push_back({root,
                                        {root_buffer_[root].buffer, root_buffer_[root].offset,
                                         readback_.get(), info.readback_offset, bytes}});
      }
    }
  }
  return {};
}

Status Method::plan_node(uint32_t node, Recording& r, Creations& created,
                         std::vector<std::byte>& params, std::vector<Planned>& planned) {
  const ops::OpDef& def = *layout_.defs[node];
  ops::Plan plan(context_);
  ops::ScalarReads reads;
  PTERYX_TRY(def.plan(ops::Node(graph_, graph_.nodes[node], def, r.live, &reads), plan));
  keep_reads(reads, r);
  const auto used = std::make_shared<NodeBuffers>();
  for (size_t i = 0; i < plan.scratch_bytes.size(); ++i)
    used->scratch.push_back(scratch_buffer(i, plan.scratch_bytes[i], created, r));
  for (const ops::PlannedConstant& c : plan.constants) {
    PTERYX_ASSIGN(const gpu::BufferId id,
                  constants_.relaid(*graph_.tensor(c.source), buffer(c.source).buffer, c));
    used->constants.push_back(id);
  }
  for (ops::PlannedDispatch& d : plan.dispatches) {
    const uint64_t offset = align_up(params.size(), device_->caps().uniform_alignment);
    params.resize(offset + ops::params_bytes(d));
    std::copy(d.params.begin(), d.params.end(), params.begin() + static_cast<ptrdiff_t>(offset));
    planned.push_back({std::move(d), offset, used});
  }
  return {};
}

gpu::Binding Method::bound(const Planned& p, const ops::PlannedBinding& b) const {
  switch (b.kind) {
    case ops::PlannedBinding::Kind::kValue: return buffer(b.value);
    case ops::PlannedBinding::Kind::kScratch: return {p.buffers->scratch[b.scratch], 0, 0};
    case ops::PlannedBinding::Kind::kConstant: return {p.buffers->constants[b.constant], 0, 0};
    case ops::PlannedBinding::Kind::kScalars: break;
  }
  return {inbox_.get(), 0, align_up(layout_.scalar_slots * 4, 16)};
}

// Temporaries are shared by all nodes: dispatches run one after another.
gpu::BufferId Method::scratch_buffer(size_t i, uint64_t bytes, Creations& created, Recording& r) {
  bytes = std::max<uint64_t>(bytes, 4);
  if (scratch_.size() <= i) scratch_.resize(i + 1);
  // A recording keeps what it bound; the largest so far serves whoever comes next.
  const bool large_enough = scratch_[i] != nullptr && scratch_bytes_[i] >= bytes;
  if (!large_enough) {
    scratch_[i] = std::make_shared<OwnedBuffer>(
        created.buffer(device_, bytes, gpu::BufferKind::kStorage, fmt::format("scratch {}", i)));
    scratch_bytes_.resize(std::max(scratch_bytes_.size(), i + 1));
    scratch_bytes_[i] = bytes;
  }
  if (r.scratch.empty() || r.scratch.back() != scratch_[i]) r.scratch.push_back(scratch_[i]);
  return scratch_[i]->get();
}

}  // namespace pteryx
