// Loading and running a method. SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/session/method.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "pteryx/gpu/native/blocking.h"

namespace pteryx {

using graph::index;
using graph::ValueId;

namespace {

// A backward jump makes a loop; a hostile program may make it endless.
constexpr uint64_t kBlockBudget = 10'000'000;

}  // namespace

Method::Method(graph::Graph graph, Layout layout, std::shared_ptr<gpu::Device> device,
               ops::PlanContext context, ConstantPool& constants, uint32_t plan_cache)
    : graph_(std::move(graph)),
      layout_(std::move(layout)),
      device_(std::move(device)),
      context_(std::move(context)),
      constants_(constants),
      plan_cache_(std::max(plan_cache, 1U)),
      live_(layout_.bound),
      recordings_(layout_.blocks.size()) {}

Result<std::unique_ptr<Method>> Method::create(graph::Graph graph, Layout layout,
                                               std::shared_ptr<gpu::Device> device,
                                               ops::PlanContext context, ConstantPool& constants,
                                               const LoadOptions& options) {
  std::unique_ptr<Method> m(new Method(std::move(graph), std::move(layout), std::move(device),
                                       std::move(context), constants, options.testing.plan_cache));
  PTERYX_TRY(m->allocate(options));
  m->find_published();
  m->outputs_.resize(m->graph_.outputs.size());
  // Compile what the largest shapes need now, so that the first run does not wait for it.
  if (m->layout_.blocks.size() == 1 && m->layout_.blocks[0].key_scalars.empty()) {
    auto warm = m->find_recording(0);
    if (!warm.ok()) return std::move(warm).status();
  }
  return m;
}

Status Method::allocate(const LoadOptions& options) {
  root_buffer_.resize(layout_.roots.size());
  root_host_.assign(layout_.roots.size(), nullptr);
  memory_.resize(layout_.roots.size());
  stage_.resize(layout_.roots.size());
  for (size_t i = 0; i < layout_.roots.size(); ++i) stage_[i] = layout_.roots[i].written;
  for (const ValueId id : graph_.outputs) {
    if (graph_.tensor(id) != nullptr) stage_[layout_.root_of[index(id)]] = true;
  }
  std::vector<gpu::BufferId> slots;
  Creations created;
  const auto own = [&](uint64_t bytes, std::string_view label) {
    owned_.push_back(created.buffer(device_, bytes, gpu::BufferKind::kStorage, label));
    return owned_.back().get();
  };
  slots.reserve(layout_.slot_bytes.size());
  for (size_t i = 0; i < layout_.slot_bytes.size(); ++i)
    slots.push_back(own(layout_.slot_bytes[i], fmt::format("slot {}", i)));
  if (layout_.inbox_bytes > 0) {
    inbox_ = created.buffer(device_, layout_.inbox_bytes, gpu::BufferKind::kStorage,
                            "scalars and inputs");
    inbox_host_.resize(layout_.inbox_bytes);
    inbox_gpu_.resize(layout_.inbox_bytes);
  }
  for (uint32_t i = 0; i < layout_.roots.size(); ++i) {
    const Root& r = layout_.roots[i];
    const std::string_view label = graph_.label(r.value);
    if (r.gpu && r.constant) {
      PTERYX_ASSIGN(root_buffer_[i].buffer,
                    constants_.upload(*graph_.tensor(r.value), label, options));
    } else if (r.gpu && r.inbox != kNoOffset) {
      root_buffer_[i] = {inbox_.get(), r.inbox, std::max<uint64_t>(r.gpu_bytes, 16)};
    } else if (r.gpu && r.slot != kNone) {
      root_buffer_[i].buffer = slots[r.slot];
    } else if (r.gpu) {
      root_buffer_[i].buffer = own(std::max<uint64_t>(r.gpu_bytes, 4), label);
    }
    if (r.host) PTERYX_TRY(init_host(i));
  }
  if (layout_.readback_bytes > 0) {
    readback_ =
        created.buffer(device_, layout_.readback_bytes, gpu::BufferKind::kReadback, "readback");
  }
  PTERYX_TRY(gpu::wait_until(*device_, [&] { return created.settled(*device_); }));
  return init_state();
}

// Host memory: constants where the file has them, everything else of its own.
Status Method::init_host(uint32_t i) {
  const Root& r = layout_.roots[i];
  const graph::Tensor& t = *graph_.tensor(r.value);
  if (r.constant) {
    ConstantBytes& bytes = host_constants_.emplace_back(t, constants_.sources());
    PTERYX_TRY(bytes.read_now());
    // Read only: a constant is never a result.
    root_host_[i] = const_cast<std::byte*>(bytes.bytes().data());
    return {};
  }
  memory_[i].resize(std::max<uint64_t>(r.host_bytes, 1));
  root_host_[i] = memory_[i].data();
  return {};
}

Status Method::init_state() {
  for (uint32_t i = 0; i < layout_.roots.size(); ++i) {
    const Root& r = layout_.roots[i];
    if (!r.state || (!r.gpu && !r.host)) continue;
    const graph::Tensor& t = *graph_.tensor(r.value);
    std::vector<std::byte> initial(r.host_bytes);
    if (t.has_data()) {
      ConstantBytes bytes(t, constants_.sources());
      PTERYX_TRY(bytes.read_now());
      initial.assign(bytes.bytes().begin(), bytes.bytes().end());
    }
    if (r.host && !initial.empty()) std::memcpy(root_host_[i], initial.data(), initial.size());
    if (r.gpu && t.dtype != DType::kI64)
      PTERYX_TRY(device_->write(root_buffer_[i].buffer, 0, initial));
    if (r.gpu && t.dtype == DType::kI64) {
      active_ = &layout_.bound;
      std::swap(memory_[i], initial);
      std::byte* const before = std::exchange(root_host_[i], memory_[i].data());
      Status s = upload(i);
      std::swap(memory_[i], initial);
      root_host_[i] = before;
      PTERYX_TRY(std::move(s));
    }
  }
  return {};
}

Status Method::reset() {
  live_ = layout_.bound;
  return init_state();
}

// Values that another block or the caller reads: their dims and scalars outlive the block.
void Method::find_published() {
  published_.resize(layout_.blocks.size());
  std::vector<bool> wanted(graph_.values.size());
  for (const ValueId id : graph_.outputs) wanted[index(id)] = true;
  for (const Block& b : layout_.blocks) {
    for (const ValueId id : b.key_tensors) wanted[index(id)] = true;
    for (const ValueId id : b.key_scalars) wanted[index(id)] = true;
    if (b.jump != kNone) wanted[index(graph_.nodes[b.jump].args[0])] = true;
  }
  for (size_t b = 0; b < layout_.blocks.size(); ++b) {
    for (uint32_t i = layout_.blocks[b].begin; i < layout_.blocks[b].end; ++i) {
      if (layout_.defs[i] == nullptr || layout_.place[i] == Place::kItem) continue;
      const ValueId last = graph_.nodes[i].args.back();
      if (wanted[index(last)]) published_[b].push_back(last);
      for_each_tensor(graph_, last, [&](ValueId id) {
        if (id != last && wanted[index(id)]) published_[b].push_back(id);
      });
    }
  }
}

size_t Method::cached_plans() const {
  size_t n = 0;
  for (const auto& block : recordings_) n += block.size();
  return n;
}

Result<std::span<const Value>> Method::run(std::span<const Value> inputs, uint64_t outputs) {
  PTERYX_TRY(device_->take_error());
  if (outputs != wanted_) want(outputs);
  PTERYX_TRY(bind_inputs(inputs));
  uint64_t executed = 0;
  for (size_t at = 0; at < layout_.blocks.size();) {
    if (++executed > kBlockBudget) {
      return invalid_program(
          fmt::format("method '{}' ran {} blocks without finishing", graph_.method, kBlockBudget));
    }
    PTERYX_TRY(run_block(at));
    PTERYX_TRY(next_block(layout_.blocks[at], at));
  }
  collect_outputs();
  return std::span<const Value>(outputs_);
}

Status Method::run_block(size_t at) {
  const Block& b = layout_.blocks[at];
  PTERYX_TRY(evaluate_items(b));
  PTERYX_ASSIGN(Recording * r, find_recording(at));
  active_ = &r->live;
  PTERYX_TRY(execute(b, *r));
  for (const ValueId id : published_[at]) {
    live_.dims[index(id)] = r->live.dims[index(id)];
    live_.scalars[index(id)] = r->live.scalars[index(id)];
  }
  return {};
}

Status Method::next_block(const Block& b, size_t& at) const {
  ++at;
  if (b.jump == kNone) return {};
  const graph::Node& jump = graph_.nodes[b.jump];
  const auto* literal = std::get_if<bool>(&graph_[jump.args[0]]);
  const bool condition = literal != nullptr ? *literal : live_.scalars[index(jump.args[0])].i != 0;
  if (condition) return {};
  for (at = 0; at < layout_.blocks.size() && layout_.blocks[at].begin != jump.target;) ++at;
  return {};
}

Status Method::evaluate_items(const Block& b) {
  for (const uint32_t i : b.items) {
    const ops::OpDef& def = *layout_.defs[i];
    const ops::Node n(graph_, graph_.nodes[i], def, live_);
    ops::Shapes shapes(n, live_);
    const uint32_t r = layout_.item_source[i];
    const ValueId source = layout_.roots[r].value;
    const ops::HostTensor x{graph_.tensor(source)->dtype, live_.dims[index(source)], root_host_[r]};
    PTERYX_TRY(def.item(n, x, shapes));
  }
  return {};
}

Status Method::execute(const Block& b, Recording& r) {
  PTERYX_TRY(fill_scalars(r));
  for (const Step& s : b.steps) {
    switch (s.kind) {
      case Step::Kind::kHost: {
        const ops::OpDef& def = *layout_.defs[s.index];
        PTERYX_TRY(def.cpu(ops::Node(graph_, graph_.nodes[s.index], def, r.live), *this));
        break;
      }
      case Step::Kind::kUpload: PTERYX_TRY(upload(s.index)); break;
      case Step::Kind::kSubmit: {
        const uint32_t begin = r.span_begin[s.index];
        const auto copies = wanted_copies(r.downloads[s.index]);
        const bool skip_rest = wanted_ == 0 && layout_.one_stretch;
        const uint32_t end = skip_rest ? r.state_end[s.index] : r.span_begin[s.index + 1];
        if (begin == end && copies.empty()) break;
        PTERYX_TRY(send_inbox());
        PTERYX_TRY(device_->submit(std::span(r.dispatches).subspan(begin, end - begin), copies));
        break;
      }
      case Step::Kind::kDownload: PTERYX_TRY(download(s)); break;
    }
  }
  return {};
}

// Which downloads serve only outputs that are not wanted.
void Method::want(uint64_t outputs) {
  wanted_ = outputs;
  unwanted_root_.assign(layout_.roots.size(), false);
  if (!layout_.one_stretch) return;  // others may be read by a step on the CPU
  for (const bool wanted : {false, true}) {
    for (size_t i = 0; i < graph_.outputs.size(); ++i) {
      const uint32_t root = layout_.root_of[index(graph_.outputs[i])];
      if (root == kNone || (i >= 64 || (outputs >> i & 1U) != 0) != wanted) continue;
      unwanted_root_[root] = !wanted;
    }
  }
}

std::span<const gpu::Copy> Method::wanted_copies(std::span<const Recording::Download> downloads) {
  copies_.clear();
  for (const Recording::Download& d : downloads) {
    if (wants(d.root)) copies_.push_back(d.copy);
  }
  return copies_;
}

void Method::collect_outputs() {
  for (size_t i = 0; i < graph_.outputs.size(); ++i) {
    const ValueId id = graph_.outputs[i];
    if (i < 64 && (wanted_ >> i & 1U) == 0) {
      outputs_[i] = Value();
    } else if (const auto* t = graph_.tensor(id)) {
      const Dims& dims = live_.dims[index(id)];
      const uint64_t bytes = static_cast<uint64_t>(numel(dims)) * size_bytes(t->dtype);
      outputs_[i] = TensorView{.dtype = t->dtype,
                               .dims = dims,
                               .data = root_host_[layout_.root_of[index(id)]],
                               .size_bytes = bytes};
    } else if (const auto* live = std::get_if<graph::LiveScalar>(&graph_[id])) {
      const ops::Scalar& s = live_.scalars[index(id)];
      if (live->kind == graph::ScalarKind::kInt) outputs_[i] = Value(s.i);
      if (live->kind == graph::ScalarKind::kBool) outputs_[i] = Value(s.i != 0);
      if (live->kind == graph::ScalarKind::kDouble) outputs_[i] = Value(s.d);
    } else if (const auto* literal = std::get_if<int64_t>(&graph_[id])) {
      outputs_[i] = Value(*literal);
    } else if (const auto* number = std::get_if<double>(&graph_[id])) {
      outputs_[i] = Value(*number);
    } else if (const auto* flag = std::get_if<bool>(&graph_[id])) {
      outputs_[i] = Value(*flag);
    } else if (const auto* text = std::get_if<std::string>(&graph_[id])) {
      outputs_[i] = Value(*text);
    }
  }
}

ops::HostTensor Method::host(ValueId id) const {
  return {graph_.tensor(id)->dtype, active_->dims[index(id)],
          root_host_[layout_.root_of[index(id)]]};
}

gpu::Binding Method::buffer(ValueId id) const { return root_buffer_[layout_.root_of[index(id)]]; }

uint64_t Method::live_elements(uint32_t root) const {
  return static_cast<uint64_t>(numel(active_->dims[index(layout_.roots[root].value)]));
}

}  // namespace pteryx
