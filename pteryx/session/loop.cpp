// Runs that feed themselves. SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/session/loop.h"

#include <array>
#include <cstring>

#include <fmt/format.h>

#include "pteryx/gpu/native/blocking.h"
#include "pteryx/session/method.h"

namespace pteryx {

using graph::index;
using graph::ValueId;

namespace {

constexpr size_t kMaxDeltas = 62;
constexpr uint64_t kRuleBytes = 4 * (2 + 2 * kMaxDeltas);

// A result below 0 says that there is none. The run after it reads 0, which is in every table, and
// nobody takes what it makes.
constexpr std::string_view kAdvance = R"(
@group(0) @binding(0) var<storage, read> result: array<u32>;
@group(0) @binding(1) var<storage, read> rule: array<u32>;
@group(0) @binding(2) var<storage, read_write> inbox: array<u32>;

@compute @workgroup_size(1)
fn main() {
  inbox[rule[0]] = select(result[0], 0u, result[0] > 0x7fffffffu);
  for (var i = 0u; i < rule[1]; i++) { inbox[rule[2u + 2u * i]] += rule[3u + 2u * i]; }
}
)";

uint32_t word_at(std::span<const std::byte> bytes, uint64_t word) {
  uint32_t v = 0;
  std::memcpy(&v, &bytes[word * 4], 4);
  return v;
}

}  // namespace

Result<std::unique_ptr<Loop>> Loop::create(const std::shared_ptr<gpu::Device>& device,
                                           gpu::Binding inbox, gpu::Binding result, uint64_t token,
                                           uint32_t input_root, uint32_t depth) {
  auto l = std::make_unique<Loop>();
  l->device_ = device;
  l->result_ = result;
  l->token_ = token;
  l->input_root_ = input_root;
  Creations created;
  l->rule_ = created.buffer(device, kRuleBytes, gpu::BufferKind::kStorage, "loop rule");
  const gpu::BindingKind kinds[] = {gpu::BindingKind::kStorageRead, gpu::BindingKind::kStorageRead,
                                    gpu::BindingKind::kStorageReadWrite};
  l->advance_.pipeline = device->create_pipeline(
      {.label = "loop/advance", .code = kAdvance, .constants = {}, .bindings = kinds});
  const gpu::Binding bindings[] = {result, {l->rule_.get(), 0, kRuleBytes}, inbox};
  l->advance_.bindings = device->create_bindings(l->advance_.pipeline, bindings, "loop/advance");
  l->bindings_ = created.dispatch(device, l->advance_);
  for (uint32_t i = 0; i < depth; ++i) {
    l->readbacks_.push_back(created.buffer(device, 16, gpu::BufferKind::kReadback, "loop result"));
  }
  PTERYX_TRY(gpu::wait_until(*device, [&] { return created.settled(*device); }));
  const std::array<uint32_t, 2> rule = {static_cast<uint32_t>(token / 4), 0};
  PTERYX_TRY(device->write(l->rule_.get(), 0, std::as_bytes(std::span(rule))));
  l->deltas_.reserve(kMaxDeltas);
  return l;
}

Status Loop::learn(std::span<const std::byte> want, std::span<const std::byte> has, bool feed) {
  const bool follows = std::memcmp(want.data(), has.data(), want.size()) == 0;
  const bool comparable = feed && last_fed_ && last_.size() == want.size();
  last_fed_ = feed;
  last_.resize(want.size());
  if (!follows && comparable) {
    deltas_.clear();
    for (uint32_t w = 0; w < want.size() / 4; ++w) {
      const uint32_t amount = word_at(want, w) - word_at(last_, w);
      if (amount != 0 && w != token_ / 4) deltas_.push_back({w, amount});
      if (deltas_.size() > kMaxDeltas) break;
    }
    if (deltas_.size() > kMaxDeltas) deltas_.clear();  // not a rule worth having
    std::array<uint32_t, 1 + 2 * kMaxDeltas> words{};
    words[0] = static_cast<uint32_t>(deltas_.size());
    for (size_t i = 0; i < deltas_.size(); ++i) {
      words[1 + 2 * i] = deltas_[i].word;
      words[2 + 2 * i] = deltas_[i].amount;
    }
    PTERYX_TRY(device_->write(rule_.get(), 4,
                              std::as_bytes(std::span(words).first(1 + 2 * deltas_.size()))));
  }
  std::memcpy(last_.data(), want.data(), want.size());
  return {};
}

void Loop::predict(std::span<std::byte> has) {
  for (const Delta& d : deltas_) {
    const uint32_t v = word_at(has, d.word) + d.amount;
    std::memcpy(&has[uint64_t{d.word} * 4], &v, 4);
  }
}

void Loop::forget_token(std::span<const std::byte> want, std::span<std::byte> has) const {
  const uint32_t other = ~word_at(want, token_ / 4);
  std::memcpy(&has[token_], &other, 4);
}

gpu::Copy Loop::copy() const {
  return {result_.buffer, result_.offset, readbacks_[next_].get(), 0, 4};
}

Status Loop::started() {
  PTERYX_ASSIGN(const gpu::Ticket ticket, device_->read(readbacks_[next_].get(), 0, 4));
  next_ = (next_ + 1) % readbacks_.size();
  tickets_.push_back(ticket);
  return {};
}

Result<int32_t> Loop::finish() {
  const gpu::Ticket ticket = tickets_.front();
  tickets_.pop_front();
  Status s = gpu::wait(*device_, ticket);
  int32_t value = 0;
  if (s.ok()) std::memcpy(&value, device_->mapped(ticket).data(), 4);
  device_->release(ticket);
  if (!s.ok()) return s;
  return value;
}

Method::~Method() {
  while (loop_ != nullptr && loop_->under_way() > 0) {
    const auto ignored = loop_->finish();
    static_cast<void>(ignored.ok());
  }
}

Status Method::make_loop(size_t input, size_t output, uint32_t depth) {
  const bool known = input < graph_.inputs.size() && output < graph_.outputs.size() &&
                     graph_.tensor(graph_.inputs[input]) != nullptr &&
                     graph_.tensor(graph_.outputs[output]) != nullptr;
  if (!known || depth == 0) {
    return invalid_argument(fmt::format("method '{}' has no tensors input {} and output {}",
                                        graph_.method, input, output));
  }
  const uint32_t in = layout_.root_of[index(graph_.inputs[input])];
  const ValueId out = graph_.outputs[output];
  if (!layout_.one_stretch || layout_.roots[in].inbox == kNoOffset ||
      root_buffer_[layout_.root_of[index(out)]].buffer == gpu::BufferId::kNone ||
      graph_.tensor(out)->dtype != DType::kI32) {
    return unsupported(
        fmt::format("method '{}' does not run on the GPU in one piece", graph_.method));
  }
  const gpu::Binding inbox{inbox_.get(), 0, layout_.inbox_bytes};
  PTERYX_ASSIGN(loop_,
                Loop::create(device_, inbox, buffer(out), layout_.roots[in].inbox, in, depth));
  return {};
}

Status Method::start(std::span<const Value> inputs, bool feed) {
  if (loop_ == nullptr || loop_->full()) return invalid_argument("no further run can be started");
  PTERYX_TRY(device_->take_error());
  PTERYX_TRY(bind_inputs(inputs));
  const Block& b = layout_.blocks[0];
  PTERYX_TRY(evaluate_items(b));
  PTERYX_ASSIGN(Recording * r, find_recording(0));
  active_ = &r->live;
  PTERYX_TRY(fill_scalars(*r));
  for (const Step& s : b.steps) {
    if (s.kind == Step::Kind::kUpload && !(feed && s.index == loop_->input_root()))
      PTERYX_TRY(upload(s.index));
  }
  const uint64_t token = loop_->token();
  if (feed) std::memcpy(&inbox_host_[token], &inbox_gpu_[token], 4);
  PTERYX_TRY(loop_->learn(inbox_host_, inbox_gpu_, feed));
  PTERYX_TRY(send_inbox());
  const uint32_t end = r->span_begin.back();
  if (r->dispatches.size() == end) r->dispatches.push_back(loop_->advance());
  const gpu::Copy copy = loop_->copy();
  PTERYX_TRY(device_->submit(r->dispatches, std::span(&copy, 1)));
  loop_->predict(inbox_gpu_);
  return loop_->started();
}

Result<int32_t> Method::finish() {
  if (under_way() == 0) return invalid_argument("no run is under way");
  return loop_->finish();
}

uint32_t Method::under_way() const { return loop_ == nullptr ? 0 : loop_->under_way(); }

}  // namespace pteryx
