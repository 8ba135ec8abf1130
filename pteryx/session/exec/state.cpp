// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/session/exec/state.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>
#include <utility>

#include <fmt/format.h>

namespace pteryx::exec {
namespace {

uint64_t next_id() {
  static std::atomic<uint64_t> last = 0;
  return ++last;
}

// Whether the initial value can be seen to be 0, which it is then in every type and order.
bool lies_zero(const graph::Tensor& t, std::span<const SourcePtr> sources) {
  return std::ranges::all_of(t.data, [&](const ByteRange& r) {
    const auto lies = sources[r.source]->view(r.offset, r.size);
    return lies && is_zero(*lies);
  });
}

Status write_zeros(gpu::Device& device, gpu::BufferId buffer, uint64_t size) {
  constexpr uint64_t kChunk = 4U << 20;
  const std::vector<std::byte> zeros(std::min(size, kChunk));
  for (uint64_t at = 0; at < size; at += kChunk) {
    PTERYX_TRY(device.write(buffer, at, Bytes(zeros).first(std::min(kChunk, size - at))));
  }
  return {};
}

}  // namespace

InitialValues::InitialValues(std::span<const StateForm::Cell> cells,
                             std::span<const SourcePtr> sources) {
  std::map<ConstantId, Value*> known;
  for (const StateForm::Cell& c : cells) {
    Value*& value = of_cell_.emplace_back(nullptr);
    if (!c.tensor.has_data()) continue;
    const auto [it, is_new] = known.try_emplace(ConstantId(c.tensor), nullptr);
    if (is_new && !lies_zero(c.tensor, sources)) {
      it->second = &values_.emplace_back();
      it->second->bytes.emplace(c.tensor, sources);
      it->second->size = static_cast<uint64_t>(numel(c.tensor.max)) * size_bytes(c.tensor.dtype);
    }
    value = it->second;
  }
}

Result<bool> InitialValues::advance() {
  // A few at a time: caches are large, and most turn out to be zero, as they were made.
  constexpr uint64_t kMost = uint64_t{8} << 20;
  uint64_t awaited = 0;
  for (Value& v : values_) {
    if (v.there) continue;
    if (awaited >= kMost) return false;
    PTERYX_ASSIGN(v.there, v.bytes->advance());
    if (!v.there) {
      awaited += v.size;
    } else if (is_zero(v.bytes->bytes())) {
      v.bytes.reset();
    }
  }
  return awaited == 0;
}

std::optional<Bytes> InitialValues::of(size_t cell) const {
  Value* const value = of_cell_[cell];
  if (value == nullptr || !value->bytes) return std::nullopt;
  return value->bytes->bytes();
}

State::State(const StateForm& form, InitialValues& initial, const ConstantPool& constants)
    : form_(form), initial_(initial), device_(constants.device()), id_(next_id()) {
  for (const StateForm::Cell& c : form.cells) {
    Part& p = parts_.emplace_back();
    if (c.gpu) {
      p.buffer = created_.buffer(device_, std::max<uint64_t>(c.gpu_bytes, 4),
                                 gpu::BufferKind::kStorage, c.label);
    }
    if (c.host) p.memory = ZeroedMemory(std::max<uint64_t>(c.host_bytes, 1));
  }
}

Result<bool> State::advance() {
  if (there_) return true;
  PTERYX_ASSIGN(const bool made, created_.settled(*device_));
  for (size_t i = 0; i < parts_.size(); ++i) {
    const StateForm::Cell& c = form_.cells[i];
    if (c.host && parts_[i].memory.data() == nullptr) {
      return memory_error(
          fmt::format("state '{}' of {} bytes: no memory left", c.label, c.host_bytes));
    }
  }
  PTERYX_ASSIGN(const bool read, initial_.advance());
  if (!made || !read) return false;
  for (size_t i = 0; i < parts_.size(); ++i) {
    if (initial_.of(i) && !filled_) PTERYX_TRY(write_initial(i));
  }
  there_ = true;
  return true;
}

Status State::reset() {
  for (size_t i = 0; i < parts_.size(); ++i) PTERYX_TRY(write_initial(i));
  return {};
}

Status State::write_initial(size_t i) {
  const StateForm::Cell& c = form_.cells[i];
  Part& p = parts_[i];
  const std::optional<Bytes> initial = initial_.of(i);
  if (!initial) {
    std::ranges::fill(p.memory.bytes(), std::byte{0});
    return c.gpu ? write_zeros(*device_, p.buffer.get(), c.gpu_bytes) : Status();
  }
  const Bytes bytes = *initial;
  if (c.host && !bytes.empty()) std::memcpy(p.memory.data(), bytes.data(), bytes.size());
  if (!c.gpu) return {};
  if (c.tensor.dtype != DType::kI64) return device_->write(p.buffer.get(), 0, bytes);
  PTERYX_ASSIGN(const std::vector<std::byte> narrow, narrowed(c.tensor, bytes, c.label));
  return device_->write(p.buffer.get(), 0, narrow);
}

Status State::copy(const State& other) {
  std::vector<gpu::Copy> copies;
  for (size_t i = 0; i < parts_.size(); ++i) {
    std::ranges::copy(other.parts_[i].memory.bytes(), parts_[i].memory.bytes().begin());
    if (!form_.cells[i].gpu) continue;
    copies.push_back(
        {other.parts_[i].buffer.get(), 0, parts_[i].buffer.get(), 0, align_up(part_bytes(i), 4)});
  }
  filled_ = true;
  return device_->submit({}, copies);
}

Status State::restore(Bytes bytes) {
  uint64_t expected = sizeof(uint64_t);
  for (size_t i = 0; i < parts_.size(); ++i) expected += part_bytes(i);
  if (bytes.size() != expected) {
    return invalid_argument(fmt::format("state of {}: expected {} bytes, got {}", form_.methods,
                                        expected, bytes.size()));
  }
  uint64_t of = 0;
  std::memcpy(&of, bytes.data(), sizeof(of));
  bytes = bytes.subspan(sizeof(of));
  if (of != form_.fingerprint)
    return invalid_argument(fmt::format("state of {}: it is of another model", form_.methods));
  for (size_t i = 0; i < parts_.size(); ++i) {
    const Bytes part = bytes.first(part_bytes(i));
    bytes = bytes.subspan(part.size());
    if (form_.cells[i].gpu) {
      PTERYX_TRY(device_->write(parts_[i].buffer.get(), 0, part));
    } else {
      std::ranges::copy(part, parts_[i].memory.bytes().begin());
    }
  }
  filled_ = true;
  return {};
}

StateBytes::StateBytes(const State& state, std::shared_ptr<gpu::Device> device)
    : state_(state), device_(std::move(device)) {
  constexpr uint64_t kChunk = 8U << 20;
  uint64_t all = 0;
  uint64_t largest = 4;
  for (size_t i = 0; i < state.parts_.size(); ++i) {
    all += state.part_bytes(i);
    largest = std::max(largest, state.part_bytes(i));
  }
  const uint64_t of = state.form_.fingerprint;
  const Bytes head = std::as_bytes(std::span(&of, 1));
  bytes_.reserve(head.size() + all);
  bytes_.insert(bytes_.end(), head.begin(), head.end());
  chunk_ = std::min(kChunk, align_up(largest, 4));
  readback_ = created_.buffer(device_, chunk_, gpu::BufferKind::kReadback, "state");
}

StateBytes::~StateBytes() {
  if (ticket_ != gpu::Ticket::kNone) device_->release(ticket_);
}

Result<bool> StateBytes::advance() {
  PTERYX_ASSIGN(const bool made, created_.settled(*device_));
  if (!made) return false;
  while (part_ < state_.parts_.size()) {
    const State::Part& p = state_.parts_[part_];
    const uint64_t size = state_.part_bytes(part_);
    if (!state_.form_.cells[part_].gpu) {
      const Bytes own = p.memory.bytes().first(static_cast<size_t>(size));
      bytes_.insert(bytes_.end(), own.begin(), own.end());
      of_part_ = size;
    } else if (of_part_ < size) {
      const uint64_t count = std::min(chunk_, size - of_part_);
      if (ticket_ == gpu::Ticket::kNone) {
        const uint64_t whole = align_up(count, 4);
        const gpu::Copy copy{p.buffer.get(), of_part_, readback_.get(), 0, whole};
        PTERYX_TRY(device_->submit({}, std::span(&copy, 1)));
        PTERYX_ASSIGN(ticket_, device_->read(readback_.get(), 0, whole));
      }
      PTERYX_ASSIGN(const bool there, device_->done(ticket_));
      if (!there) return false;
      const Bytes chunk = device_->mapped(ticket_);
      if (chunk.size() >= count)
        bytes_.insert(bytes_.end(), chunk.begin(), chunk.begin() + static_cast<ptrdiff_t>(count));
      device_->release(std::exchange(ticket_, gpu::Ticket::kNone));
      if (chunk.size() < count) return device_error("the state could not be mapped");
      of_part_ += count;
    }
    if (of_part_ < size) continue;
    ++part_;
    of_part_ = 0;
  }
  return true;
}

}  // namespace pteryx::exec
