// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/session/exec/decode_ahead.h"

#include <array>
#include <cstring>
#include <limits>
#include <span>

#include <fmt/format.h>

#include "pteryx/ops/bind.h"
#include "pteryx/ops/sample/sample.h"

namespace pteryx::exec {

using graph::index;
using graph::ValueId;

namespace {

// The result of a run in which a node reported something.
constexpr int32_t kReported = std::numeric_limits<int32_t>::min();
// Of a buffer in the ring: the token, then the reports.
constexpr uint64_t kFaultsAt = 16;

const graph::Tensor* tensor_at(const graph::Graph& g, const std::vector<ValueId>& ids, size_t i) {
  return i < ids.size() ? g.tensor(ids[i]) : nullptr;
}

// Where the node that draws finds its settings among the small inputs.
uint64_t settings_offset(const graph::Graph& g, const Layout& layout) {
  constexpr size_t kSettings = 1;  // of its arguments
  for (const graph::Node& n : g.nodes) {
    if (n.op != nullptr && n.op->name == ops::kSampleOp)
      return layout.roots[layout.root_of[index(n.args[kSettings])]].inbox;
  }
  return kNoOffset;
}

}  // namespace

Result<std::unique_ptr<DecodeAhead>> DecodeAhead::create(const graph::Graph& g,
                                                         const Layout& layout,
                                                         const std::shared_ptr<gpu::Device>& device,
                                                         Memory& memory, Faults& faults,
                                                         const FeedRule& rule, uint32_t depth) {
  const graph::Tensor* const output = tensor_at(g, g.outputs, rule.token_output);
  if (depth == 0 || output == nullptr || tensor_at(g, g.inputs, rule.token_input) == nullptr ||
      tensor_at(g, g.inputs, rule.position_input) == nullptr) {
    return invalid_argument(
        fmt::format("method '{}' has no tensors input {}, input {} and output "
                    "{}",
                    g.method, rule.token_input, rule.position_input, rule.token_output));
  }
  std::unique_ptr<DecodeAhead> d(new DecodeAhead(g, layout, device, memory, faults));
  d->token_root_ = layout.root_of[index(g.inputs[rule.token_input])];
  d->position_root_ = layout.root_of[index(g.inputs[rule.position_input])];
  d->token_offset_ = layout.roots[d->token_root_].inbox;
  d->result_ = memory.buffer_of(g.outputs[rule.token_output]);
  if (!layout.one_stretch || d->token_offset_ == kNoOffset ||
      d->result_.buffer == gpu::BufferId::kNone || output->dtype != DType::kI32) {
    return unsupported(fmt::format("method '{}' does not run on the GPU in one piece", g.method));
  }
  Creations& created = d->created_;
  if (layout.feeds) {
    d->settings_offset_ = settings_offset(g, layout);
    if (d->settings_offset_ == kNoOffset)
      return unsupported(fmt::format("method '{}' keeps its settings by themselves", g.method));
  } else {
    PTERYX_TRY(d->make_dispatch(g.outputs[rule.token_output]));
  }
  d->parked_ = created.buffer(device, 4, gpu::BufferKind::kStorage, "parked token");
  for (uint32_t i = 0; i < depth; ++i) {
    d->ring_.push_back(created.buffer(device, kFaultsAt + faults.size_bytes(),
                                      gpu::BufferKind::kReadback, "drawn token"));
  }
  d->pending_.resize(depth);
  return d;
}

// The dispatch behind those of a run whose nodes do not feed the next one.
Status DecodeAhead::make_dispatch(ValueId token) {
  PTERYX_ASSIGN(const ops::PlannedDispatch planned, ops::plan_advance(token));
  kernel_ = planned.label;
  const uint64_t bytes = ops::params_bytes(planned);  // of none
  params_ = created_.buffer(device_, bytes, gpu::BufferKind::kUniform, "no params");
  dispatch_ =
      ops::bind(*device_, planned, {params_.get(), 0, bytes}, [&](const ops::PlannedBinding& b) {
        return b.kind == ops::PlannedBinding::Kind::kValue ? memory_.buffer_of(b.value)
                                                           : memory_.bound(b.kind);
      });
  bindings_ = created_.dispatch(device_, dispatch_);
  return {};
}

// Evaluates what the position decides once more, at the position behind this run's. Where that
// fails, the next run is refused and no rule is needed; where it is no sum, the host writes what
// the rule got wrong.
std::vector<Recording::Move> DecodeAhead::moves_of(const Block& b, const Recording& r) const {
  std::vector<Recording::Move> moves;
  const ValueId position = layout_.roots[position_root_].value;
  const DType dtype = graph_.tensor(position)->dtype;
  const Dims& dims = r.live.dims[index(position)];
  const auto elements = static_cast<size_t>(numel(dims));
  const std::byte* const now = memory_.host(position_root_);
  std::vector<std::byte> bytes(now, now + elements * size_bytes(dtype));
  const ops::HostTensor next{dtype, dims, bytes.data()};
  for (int64_t i = 0; i < next.numel(); ++i) next.put_integer(i, next.integer(i) + 1);
  ops::Live live = r.live;
  for (const uint32_t i : b.items) {
    if (layout_.item_source[i] != position_root_) continue;
    const ops::Node n(graph_, graph_.nodes[i], *layout_.defs[i], live);
    ops::Shapes shapes(n, live);
    if (!layout_.defs[i]->item(n, next, shapes).ok()) return moves;
  }
  for (const uint32_t i : b.scalar_nodes) {
    const ops::Node n(graph_, graph_.nodes[i], *layout_.defs[i], live);
    bool same = true;
    ops::Shapes shapes(n, live, same);
    if (!layout_.defs[i]->shape(n, shapes).ok()) return moves;
  }
  for (const ValueId id : r.slots) {
    const int64_t by = live.scalars[index(id)].i - r.live.scalars[index(id)].i;
    const uint32_t word = std::get_if<graph::LiveScalar>(&graph_[id])->slot;
    if (by != 0) moves.push_back({word, static_cast<uint32_t>(by)});
  }
  if (const uint64_t offset = layout_.roots[position_root_].inbox; offset != kNoOffset) {
    for (size_t i = 0; i < elements; ++i)
      moves.push_back({static_cast<uint32_t>(offset / 4 + i), 1});
  }
  if (moves.size() > ops::kMostMoves) moves.clear();  // the host writes them
  return moves;
}

Status DecodeAhead::prepare(const Block& b, Recording& r) {
  if (!r.moves) r.moves = moves_of(b, r);
  words_ = {static_cast<uint32_t>(token_offset_ / 4), static_cast<uint32_t>(settings_offset_ / 4),
            static_cast<uint32_t>(r.moves->size())};
  for (const Recording::Move& m : *r.moves) words_.insert(words_.end(), {m.word, m.amount});
  return memory_.write_rule(words_);
}

std::span<const gpu::Copy> DecodeAhead::copies() {
  const gpu::BufferId to = ring_[next_].get();
  copies_ = {gpu::Copy{result_.buffer, result_.offset, to, 0, 4},
             gpu::Copy{faults_.buffer(), 0, to, kFaultsAt, faults_.size_bytes()}};
  return std::span(copies_).first(faults_.none() ? 1 : 2);
}

Status DecodeAhead::started(const Recording& r, Staging& staging) {
  for (const Recording::Move& m : *r.moves) staging.added(uint64_t{m.word} * 4, m.amount);
  staging.lost(token_offset_);
  parked_full_ = false;
  PTERYX_ASSIGN(const gpu::Ticket ticket, device_->read(ring_[next_].get(), 0, 4));
  pending_[next_] = {ticket, faults_.next() - 1};
  next_ = (next_ + 1) % ring_.size();
  ++count_;
  return {};
}

Result<std::optional<int32_t>> DecodeAhead::take() {
  if (count_ == 0) return invalid_argument("no run is under way");
  const size_t at = oldest();
  const Pending pending = pending_[at];
  auto there = device_->done(pending.ticket);
  if (there.ok() && !*there) return std::optional<int32_t>();
  const Bytes bytes = there.ok() ? device_->mapped(pending.ticket) : Bytes();
  Result<int32_t> token = bytes.empty() ? device_error("a drawn token could not be mapped")
                                        : read_token(pending, bytes);
  device_->release(pending.ticket);
  if (token.ok() && *token == kReported) {
    auto ticket = device_->read(ring_[at].get(), kFaultsAt, faults_.size_bytes());
    if (ticket.ok()) {
      pending_[at] = {*ticket, pending.submit, true};
      return std::optional<int32_t>();
    }
    token = std::move(ticket).status();
  }
  --count_;
  if (!there.ok()) return std::move(there).status();
  PTERYX_ASSIGN(const int32_t drawn, std::move(token));
  return std::optional(drawn);
}

Result<int32_t> DecodeAhead::read_token(const Pending& p, Bytes bytes) {
  if (p.faults) {
    const Status s = faults_.take(bytes, p.submit, p.submit);
    return s.ok() ? device_error("a report was lost") : after_change_of_state(s);
  }
  int32_t token = 0;
  std::memcpy(&token, bytes.data(), sizeof(token));
  if (token != kReported) faults_.read(p.submit);
  return token;
}

void DecodeAhead::discard() {
  for (; count_ > 0; --count_) device_->release(pending_[oldest()].ticket);
}

Status DecodeAhead::park() {
  const gpu::Copy copy{result_.buffer, result_.offset, parked_.get(), 0, 4};
  PTERYX_TRY(device_->submit({}, std::span(&copy, 1)));
  parked_full_ = true;
  return {};
}

Status DecodeAhead::unpark(Staging& staging) {
  const gpu::Copy copy{parked_.get(), 0, memory_.inbox(), token_offset_, 4};
  PTERYX_TRY(device_->submit({}, std::span(&copy, 1)));
  parked_full_ = false;
  staging.lost(token_offset_);
  return {};
}

}  // namespace pteryx::exec
