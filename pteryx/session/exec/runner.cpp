// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/session/exec/runner.h"

#include <algorithm>
#include <chrono>

#include <fmt/format.h>

#include "pteryx/ops/cpu_scratch.h"
#include "pteryx/ops/work.h"
#include "pteryx/session/exec/inputs.h"

namespace pteryx::exec {

using graph::index;
using graph::ValueId;

namespace {

// A backward jump makes a loop; a hostile program may make it endless.
constexpr uint64_t kBlockBudget = 10'000'000;

using Clock = std::chrono::steady_clock;

}  // namespace

Runner::Runner(const graph::Graph& g, const Layout& layout, std::shared_ptr<gpu::Device> device,
               Memory& memory, Recorder& recorder, Faults& faults, CpuKernels cpu)
    : graph_(g),
      layout_(layout),
      device_(std::move(device)),
      memory_(memory),
      recorder_(recorder),
      faults_(faults),
      cpu_(std::move(cpu)),
      staging_(device_, memory.inbox(), layout.inbox_bytes),
      transfer_(g, layout, device_, memory, staging_, faults),
      live_(layout.bound),
      outputs_(g.outputs.size()) {
  find_published();
}

// Values that another block or the caller reads: their dims and scalars outlive the block.
void Runner::find_published() {
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

Result<uint64_t> Runner::begin(const RunRequest& request) {
  if (is_running()) {
    return invalid_argument(
        fmt::format("a run of '{}' is under way: finish it before the next", graph_.method));
  }
  if (request.state->is_in_use()) {
    return invalid_argument(
        fmt::format("a run of a method that shares state with '{}' is under way: finish it first",
                    graph_.method));
  }
  if (request.ahead != nullptr && request.ahead->is_full())
    return invalid_argument("no further run can be started");
  PTERYX_TRY(device_->take_error());
  if (request.state->id() != bound_state_) {
    memory_.use(*request.state);
    bound_state_ = request.state->id();
  }
  {
    const PhaseTimer timer(request.profiler, Profile::Phase::kWrites);
    PTERYX_TRY(bind_inputs(graph_, layout_, request.inputs, live_, memory_));
  }
  wanted_.set(graph_, layout_, request.outputs);
  transfer_.begin_run();
  request_ = request;
  request_.state->set_in_use(true);
  phase_ = Phase::kBlock;
  block_ = 0;
  blocks_run_ = 0;
  changed_state_ = false;
  return ++run_;
}

Result<bool> Runner::advance() {
  if (!is_running()) return true;
  auto finished = proceed();
  if (!finished.ok()) return failed(std::move(finished).status());
  if (*finished) {
    end();
    collect_outputs();
  }
  return finished;
}

Result<bool> Runner::proceed() {
  const bool in_turns = request_.turn && device_->caps().cpu;
  const auto end_of_turn = in_turns ? Clock::now() + *request_.turn : Clock::time_point::max();
  while (block_ < layout_.blocks.size()) {
    if (phase_ == Phase::kBlock) {
      PTERYX_TRY(enter_block());
      phase_ = Phase::kRecording;
    }
    if (phase_ == Phase::kRecording) {
      PTERYX_ASSIGN(const bool there, recorder_.advance(block_, *recording_));
      if (!there) return false;
      make_room();
      const PhaseTimer timer(request_.profiler, Profile::Phase::kWrites);
      PTERYX_TRY(transfer_.put_scalars(*recording_));
      step_ = 0;
      phase_ = Phase::kSteps;
    }
    const Block& b = layout_.blocks[block_];
    while (step_ < b.steps.size()) {
      PTERYX_ASSIGN(const bool taken, take_step(b, b.steps[step_]));
      if (!taken) return false;
      ++step_;
      if (in_turns && Clock::now() >= end_of_turn) return false;
    }
    leave_block(block_);
    block_ = next_block(block_);
    phase_ = Phase::kBlock;
  }
  return true;
}

Status Runner::enter_block() {
  const PhaseTimer timer(request_.profiler, Profile::Phase::kShapes);
  if (++blocks_run_ > kBlockBudget) {
    return invalid_program(
        fmt::format("method '{}' ran {} blocks without finishing", graph_.method, kBlockBudget));
  }
  PTERYX_TRY(evaluate_items(layout_.blocks[block_]));
  recording_ = nullptr;
  PTERYX_ASSIGN(recording_, recorder_.find(block_, live_, request_.state->id()));
  return check_live_indices(graph_, layout_, layout_.blocks[block_], recording_->live, live_,
                            memory_);
}

Status Runner::evaluate_items(const Block& b) {
  for (const uint32_t i : b.items) {
    const ops::OpDef& def = *layout_.defs[i];
    const ops::Node n(graph_, graph_.nodes[i], def, live_);
    ops::Shapes shapes(n, live_);
    const uint32_t r = layout_.item_source[i];
    const ValueId source = layout_.roots[r].value;
    const ops::HostTensor x{graph_.tensor(source)->dtype, live_.dims[index(source)],
                            memory_.host(r)};
    PTERYX_TRY(def.item(n, x, shapes));
  }
  return {};
}

Result<bool> Runner::take_step(const Block& b, const Step& s) {
  switch (s.kind) {
    case Step::Kind::kHost: {
      const PhaseTimer timer(request_.profiler, Profile::Phase::kHost);
      const ops::OpDef& def = *layout_.defs[s.index];
      changed_state_ = changed_state_ || layout_.changes_state[s.index];
      PTERYX_TRY(run_on_cpu(ops::Node(graph_, graph_.nodes[s.index], def, recording_->live)));
      return true;
    }
    case Step::Kind::kUpload: {
      const PhaseTimer timer(request_.profiler, Profile::Phase::kWrites);
      if (!request_.fed || s.index != request_.ahead->token_root())
        PTERYX_TRY(transfer_.upload(s.index, recording_->live));
      return true;
    }
    case Step::Kind::kSubmit: {
      PTERYX_TRY(hand_over());
      if (request_.ahead != nullptr) {
        PTERYX_TRY(request_.ahead->prepare(b, *recording_));
        PTERYX_TRY(submit_ahead());
      } else {
        PTERYX_TRY(submit(s));
      }
      return true;
    }
    case Step::Kind::kDownload: break;
  }
  if (request_.ahead != nullptr) return true;  // its token comes by itself
  return transfer_.download(s.downloads, recording_->live, wanted_, request_.profiler);
}

// There is room for what kernels take at the bound. Of smaller sizes, those that would take more
// are left to the references.
void Runner::make_room() {
  if (recording_->has_room || cpu_.pool == nullptr) return;
  const Block& b = layout_.blocks[block_];
  for (uint32_t i = b.begin; i < b.end; ++i) {
    if (layout_.defs[i] == nullptr || layout_.place[i] != Place::kCpu) continue;
    const ops::Node n(graph_, graph_.nodes[i], *layout_.defs[i], recording_->live);
    if (ops::cpu_scratch_bytes(graph_, recording_->live, n, *cpu_.pool, cpu_.precision) >
        cpu_.memory->size())
      recording_->without_room.push_back(&n.node());
  }
  recording_->has_room = true;
}

Status Runner::run_on_cpu(const ops::Node& n) {
  const auto& without_room = recording_->without_room;
  if (cpu_.pool != nullptr && n.def().fast != nullptr &&
      std::ranges::find(without_room, &n.node()) == without_room.end()) {
    cpu_.memory->reset();
    ops::CpuContext context{*cpu_.pool, *cpu_.memory, cpu_.precision};
    PTERYX_ASSIGN(const bool done, n.def().fast(n, *this, context));
    if (done) return {};
  }
  return n.def().cpu(n, *this);
}

// The staging buffer goes from one who feeds himself to another, or to a plain run.
Status Runner::hand_over() {
  if (feeder_ != nullptr && feeder_ != request_.ahead && feeder_->under_way() > 0)
    PTERYX_TRY(feeder_->park());
  follows_ = request_.fed && feeder_ == request_.ahead;
  if (request_.fed && !follows_) PTERYX_TRY(request_.ahead->unpark(staging_));
  feeder_ = request_.ahead;
  return {};
}

Status Runner::submit(const Step& s) {
  Recording& r = *recording_;
  const uint32_t begin = r.span_begin[s.index];
  const auto copies = transfer_.copies(r, s.index, wanted_);
  const bool skip_rest = wanted_.nothing() && layout_.one_stretch;
  const uint32_t end = skip_rest ? r.state_end[s.index] : r.span_begin[s.index + 1];
  if (begin == end && copies.empty()) return {};
  PTERYX_TRY(send(std::span(r.dispatches).subspan(begin, end - begin), copies, begin));
  faults_.submit();
  changed_state_ = changed_state_ || r.state_end[s.index] > begin;
  return {};
}

Status Runner::submit_ahead() {
  Recording& r = *recording_;
  if (r.feeding) {
    const uint32_t done = follows_ ? r.feeding->ready_begin : r.feeding->kept_begin;
    const uint32_t begin = request_.fed ? done : 0;
    PTERYX_TRY(
        send(std::span(r.feeding->dispatches).subspan(begin), request_.ahead->copies(), begin));
  } else {
    r.dispatches.resize(r.span_begin.back());
    r.dispatches.push_back(request_.ahead->dispatch());
    PTERYX_TRY(send(r.dispatches, request_.ahead->copies(), 0));
  }
  faults_.submit();
  changed_state_ = true;
  return request_.ahead->started(r, staging_);
}

// `first`: of the recording, the first of these dispatches.
Status Runner::send(std::span<const gpu::Dispatch> dispatches, std::span<const gpu::Copy> copies,
                    uint32_t first) {
  Profiler* const profiler = request_.profiler;
  {
    const PhaseTimer timer(profiler, Profile::Phase::kWrites);
    PTERYX_TRY(staging_.send());
  }
  if (profiler == nullptr) return device_->submit(dispatches, copies);
  std::vector<Profiler::Item>& items = profiler->items();
  items.clear();
  const std::string_view behind =
      request_.ahead != nullptr ? request_.ahead->kernel() : std::string_view();
  for (size_t i = first; i < first + dispatches.size(); ++i) {
    if (i >= recording_->notes.size()) {
      items.push_back({.kernel = behind, .method = graph_.method, .op = {}, .node = kNone});
      continue;
    }
    const Recording::Note& note = recording_->notes[i];
    const auto& feeding = recording_->feeding;
    const bool feeds = request_.ahead != nullptr && feeding && feeding->at == i;
    const ops::OpDef& def = *layout_.defs[note.node];
    const ops::Node n(graph_, graph_.nodes[note.node], def, recording_->live);
    items.push_back({.kernel = feeds ? feeding->kernel : note.kernel,
                     .method = graph_.method,
                     .op = def.name,
                     .node = note.node,
                     .bytes = static_cast<double>(note.other_bytes),
                     .flops = note.flops,
                     .node_flops = ops::flops_of(n)});
    for (const ValueId id : note.values) items.back().bytes += ops::bytes_of(n, id);
  }
  return profiler->submit(dispatches, copies);
}

void Runner::leave_block(size_t at) {
  for (const ValueId id : published_[at]) {
    live_.dims[index(id)] = recording_->live.dims[index(id)];
    live_.scalars[index(id)] = recording_->live.scalars[index(id)];
  }
}

size_t Runner::next_block(size_t at) const {
  const Block& b = layout_.blocks[at];
  if (b.jump == kNone) return at + 1;
  const graph::Node& jump = graph_.nodes[b.jump];
  const auto* literal = std::get_if<bool>(&graph_[jump.args[0]]);
  const bool condition = literal != nullptr ? *literal : live_.scalars[index(jump.args[0])].i != 0;
  if (condition) return at + 1;
  size_t target = 0;
  while (target < layout_.blocks.size() && layout_.blocks[target].begin != jump.target) ++target;
  return target;
}

void Runner::end() {
  phase_ = Phase::kIdle;
  request_.state->set_in_use(false);
}

Status Runner::failed(Status s) {
  end();
  transfer_.cancel();
  if (!changed_state_) return s;
  return after_change_of_state(s);
}

void Runner::cancel(uint64_t run) {
  if (run != run_ || !is_running()) return;
  end();
  transfer_.cancel();
}

void Runner::forget(const DecodeAhead& ahead) {
  if (feeder_ == &ahead) feeder_ = nullptr;
}

Status Runner::reset() {
  live_ = layout_.bound;
  return faults_.forget();
}

void Runner::collect_outputs() {
  for (size_t i = 0; i < graph_.outputs.size(); ++i) {
    const ValueId id = graph_.outputs[i];
    if (request_.ahead != nullptr || !wanted_.output(i)) {
      outputs_[i] = Value();
    } else if (const auto* t = graph_.tensor(id)) {
      const Dims& dims = live_.dims[index(id)];
      const uint64_t bytes = static_cast<uint64_t>(numel(dims)) * size_bytes(t->dtype);
      outputs_[i] = TensorView{
          .dtype = t->dtype, .dims = dims, .data = memory_.host_of(id), .size_bytes = bytes};
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

std::span<const Bytes> Runner::parts(ValueId id) const { return memory_.parts_of(id); }

ops::HostTensor Runner::host(ValueId id) const {
  return {graph_.tensor(id)->dtype, recording_->live.dims[index(id)], memory_.host_of(id)};
}

}  // namespace pteryx::exec
