// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/session/exec/decode_ahead.h"

#include <array>
#include <cstring>
#include <limits>
#include <span>

#include <fmt/format.h>

namespace pteryx::exec {

using graph::index;
using graph::ValueId;

namespace {

constexpr size_t kMaxMoves = 62;
constexpr uint64_t kRuleBytes = 4 * (2 + 2 * kMaxMoves);

// The result of a run in which a node reported something.
constexpr int32_t kReported = std::numeric_limits<int32_t>::min();
// Of a buffer in the ring: the token, then the reports.
constexpr uint64_t kFaultsAt = 16;

// A result below 0 says that there is none. The run after it reads 0, which is in every table, and
// nobody takes what it makes.
constexpr std::string_view kAdvance = R"(
@group(0) @binding(0) var<storage, read_write> result: array<u32>;
@group(0) @binding(1) var<storage, read> rule: array<u32>;
@group(0) @binding(2) var<storage, read_write> staging: array<u32>;

@compute @workgroup_size(1)
fn main() {
  look_at_reports();
  staging[rule[0]] = select(result[0], 0u, result[0] > 0x7fffffffu);
  for (var i = 0u; i < rule[1]; i++) { staging[rule[2u + 2u * i]] += rule[3u + 2u * i]; }
}
)";

constexpr std::string_view kNoReports = "fn look_at_reports() {}\n";
constexpr std::string_view kReports = R"(
@group(0) @binding(3) var<storage, read> faults: array<vec4<u32>>;
fn look_at_reports() {
  for (var i = 0u; i < arrayLength(&faults); i++) {
    if (faults[i].x != 0u) { result[0] = 0x80000000u; }
  }
}
)";

const graph::Tensor* tensor_at(const graph::Graph& g, const std::vector<ValueId>& ids, size_t i) {
  return i < ids.size() ? g.tensor(ids[i]) : nullptr;
}

}  // namespace

std::string DecodeAhead::code(bool reports) {
  return fmt::format("{}{}", reports ? kReports : kNoReports, kAdvance);
}

Result<std::unique_ptr<DecodeAhead>> DecodeAhead::create(const graph::Graph& g,
                                                         const Layout& layout,
                                                         const std::shared_ptr<gpu::Device>& device,
                                                         const Memory& memory, Faults& faults,
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
  d->rule_ = created.buffer(device, kRuleBytes, gpu::BufferKind::kStorage, "decode rule");
  d->parked_ = created.buffer(device, 4, gpu::BufferKind::kStorage, "parked token");
  std::vector<gpu::BindingKind> kinds = {gpu::BindingKind::kStorageReadWrite,
                                         gpu::BindingKind::kStorageRead,
                                         gpu::BindingKind::kStorageReadWrite};
  std::vector<gpu::Binding> bindings = {
      d->result_, {d->rule_.get(), 0, kRuleBytes}, {memory.inbox(), 0, layout.inbox_bytes}};
  if (!faults.none()) {
    kinds.push_back(gpu::BindingKind::kStorageRead);
    bindings.push_back({faults.buffer(), 0, faults.size_bytes()});
  }
  d->dispatch_.pipeline = device->create_pipeline(
      {.label = kLabel, .code = code(!faults.none()), .constants = {}, .bindings = kinds});
  d->dispatch_.bindings = device->create_bindings(d->dispatch_.pipeline, bindings, kLabel);
  d->bindings_ = created.dispatch(device, d->dispatch_);
  for (uint32_t i = 0; i < depth; ++i) {
    d->ring_.push_back(created.buffer(device, kFaultsAt + faults.size_bytes(),
                                      gpu::BufferKind::kReadback, "drawn token"));
  }
  d->pending_.resize(depth);
  const std::array<uint32_t, 2> words = {static_cast<uint32_t>(d->token_offset_ / 4), 0};
  created.write(device->write(d->rule_.get(), 0, std::as_bytes(std::span(words))));
  return d;
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
  if (moves.size() > kMaxMoves) moves.clear();  // the host writes them
  return moves;
}

Status DecodeAhead::prepare(const Block& b, Recording& r) {
  if (!r.moves) r.moves = moves_of(b, r);
  if (*r.moves == moves_) return {};
  std::array<uint32_t, 1 + 2 * kMaxMoves> words{};
  words[0] = static_cast<uint32_t>(r.moves->size());
  for (size_t i = 0; i < r.moves->size(); ++i) {
    words[1 + 2 * i] = (*r.moves)[i].word;
    words[2 + 2 * i] = (*r.moves)[i].amount;
  }
  PTERYX_TRY(device_->write(rule_.get(), 4,
                            std::as_bytes(std::span(words).first(1 + 2 * r.moves->size()))));
  moves_ = *r.moves;
  return {};
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
