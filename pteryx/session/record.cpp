// From live sizes to recorded dispatches: shapes, plans, pipelines, bindings, params; and the cache
// of all that.
// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <bit>

#include <fmt/format.h>

#include "pteryx/session/method.h"

namespace pteryx {

using graph::index;
using graph::ValueId;

// A dispatch whose pipeline is compiling.
struct PendingDispatch {
  gpu::PipelineId pipeline = gpu::PipelineId::kNone;
  std::vector<gpu::Binding> bindings;  // binding 0, the params, has its buffer filled in later
  gpu::Grid grid;
  std::string label;
};

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
  std::vector<std::byte> params;
  std::vector<PendingDispatch> pending;
  for (const Span& span : b.spans) {
    r.span_begin.push_back(static_cast<uint32_t>(pending.size()));
    r.state_end.push_back(r.span_begin.back());
    for (const uint32_t node : span.nodes) {
      ops::ScalarReads reads;
      PTERYX_TRY(record_node(node, r, reads, params, pending));
      keep_reads(reads, r);
      if (layout_.changes_state[node]) r.state_end.back() = static_cast<uint32_t>(pending.size());
    }
  }
  r.span_begin.push_back(static_cast<uint32_t>(pending.size()));
  PTERYX_TRY(device_->finish_pipelines());
  if (!params.empty()) {
    PTERYX_ASSIGN(r.params,
                  make_buffer(device_, params.size(), gpu::BufferKind::kUniform, "params"));
    PTERYX_TRY(device_->write(r.params.get(), 0, params));
  }
  for (PendingDispatch& p : pending) {
    p.bindings[0].buffer = r.params.get();
    PTERYX_ASSIGN(const gpu::BindGroupId id,
                  device_->create_bindings(p.pipeline, p.bindings, p.label));
    r.bindings.emplace_back(device_, id);
    r.dispatches.push_back({p.pipeline, id, p.grid});
  }
  r.downloads.resize(b.spans.size());
  for (const Step& s : b.steps) {
    if (s.kind != Step::Kind::kSubmit) continue;
    for (const uint32_t root : s.downloads) {
      const Root& info = layout_.roots[root];
      const DType t = graph_.tensor(info.value)->dtype;
      const uint64_t element = t == DType::kI64 ? 4 : size_bytes(t);
      const uint64_t bytes =
          align_up(static_cast<uint64_t>(numel(r.live.dims[index(info.value)])) * element, 4);
      if (bytes > 0) {
        r.downloads[s.index].push_back({root,
                                        {root_buffer_[root].buffer, root_buffer_[root].offset,
                                         readback_.get(), info.readback_offset, bytes}});
      }
    }
  }
  return {};
}

Status Method::record_node(uint32_t node, Recording& r, ops::ScalarReads& reads,
                           std::vector<std::byte>& params, std::vector<PendingDispatch>& pending) {
  const ops::OpDef& def = *layout_.defs[node];
  ops::Plan plan(context_);
  const ops::Node n(graph_, graph_.nodes[node], def, r.live, &reads);
  PTERYX_TRY(def.plan(n, plan));
  std::vector<gpu::BufferId> scratch;
  for (size_t i = 0; i < plan.scratch_bytes.size(); ++i) {
    PTERYX_ASSIGN(const gpu::BufferId id, scratch_buffer(i, plan.scratch_bytes[i], r));
    scratch.push_back(id);
  }
  std::vector<gpu::BufferId> relaid;
  for (const ops::PlannedConstant& c : plan.constants) {
    PTERYX_ASSIGN(const gpu::BufferId id,
                  constants_.relaid(*graph_.tensor(c.source), buffer(c.source).buffer, c));
    relaid.push_back(id);
  }
  for (const ops::PlannedDispatch& d : plan.dispatches) {
    PendingDispatch p;
    std::vector<gpu::BindingKind> kinds = {gpu::BindingKind::kUniform};
    const uint64_t offset = align_up(params.size(), device_->caps().uniform_alignment);
    params.resize(offset + std::max<size_t>(align_up(d.params.size(), 16), 16));
    std::copy(d.params.begin(), d.params.end(), params.begin() + static_cast<ptrdiff_t>(offset));
    p.bindings.push_back({gpu::BufferId::kNone, offset, params.size() - offset});
    for (const ops::PlannedBinding& b : d.bindings) {
      kinds.push_back(b.written ? gpu::BindingKind::kStorageReadWrite
                                : gpu::BindingKind::kStorageRead);
      switch (b.kind) {
        case ops::PlannedBinding::Kind::kValue: p.bindings.push_back(buffer(b.value)); break;
        case ops::PlannedBinding::Kind::kScratch:
          p.bindings.push_back({scratch[b.scratch], 0, 0});
          break;
        case ops::PlannedBinding::Kind::kConstant:
          p.bindings.push_back({relaid[b.constant], 0, 0});
          break;
        case ops::PlannedBinding::Kind::kScalars:
          p.bindings.push_back({inbox_.get(), 0, align_up(layout_.scalar_slots * 4, 16)});
          break;
      }
    }
    auto pipeline = device_->create_pipeline({.label = d.label,
                                              .code = d.code,
                                              .constants = d.constants,
                                              .bindings = kinds,
                                              .uses_f16 = d.f16,
                                              .uses_subgroups = d.subgroups,
                                              .uses_subgroup_matrix = d.subgroup_matrix});
    if (!pipeline.ok())
      return std::move(pipeline).status().during(graph::describe(graph_, graph_.nodes[node]));
    p.pipeline = *pipeline;
    p.grid = d.grid;
    p.label = d.label;
    pending.push_back(std::move(p));
  }
  return {};
}

// Temporaries are shared by all nodes: dispatches run one after another.
Result<gpu::BufferId> Method::scratch_buffer(size_t i, uint64_t bytes, Recording& r) {
  bytes = std::max<uint64_t>(bytes, 4);
  if (scratch_.size() <= i) scratch_.resize(i + 1);
  // A recording keeps what it bound; the largest so far serves whoever comes next.
  const bool large_enough = scratch_[i] != nullptr && scratch_bytes_[i] >= bytes;
  if (!large_enough) {
    PTERYX_ASSIGN(OwnedBuffer b, make_buffer(device_, bytes, gpu::BufferKind::kStorage,
                                             fmt::format("scratch {}", i)));
    scratch_[i] = std::make_shared<OwnedBuffer>(std::move(b));
    scratch_bytes_.resize(std::max(scratch_bytes_.size(), i + 1));
    scratch_bytes_[i] = bytes;
  }
  if (r.scratch.empty() || r.scratch.back() != scratch_[i]) r.scratch.push_back(scratch_[i]);
  return scratch_[i]->get();
}

}  // namespace pteryx
