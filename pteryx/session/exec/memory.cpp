// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/session/exec/memory.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace pteryx::exec {

using graph::index;

Memory::Memory(const graph::Graph& g, const Layout& layout, std::vector<StateRoot> state,
               ConstantPool& constants)
    : layout_(layout),
      state_(std::move(state)),
      device_(constants.device()),
      buffers_(layout.roots.size()),
      memory_(layout.roots.size()),
      host_(layout.roots.size()),
      apart_(layout.roots.size()),
      staged_(layout.roots.size()) {
  for (size_t i = 0; i < layout.roots.size(); ++i) staged_[i] = layout.roots[i].written;
  for (const graph::ValueId id : g.outputs) {
    if (g.tensor(id) != nullptr) staged_[layout.root_of[index(id)]] = true;
  }
  const auto own = [&](uint64_t bytes, std::string_view label) {
    owned_.push_back(created_.buffer(device_, bytes, gpu::BufferKind::kStorage, label));
    return owned_.back().get();
  };
  std::vector<gpu::BufferId> slots;
  slots.reserve(layout.slot_bytes.size());
  for (size_t i = 0; i < layout.slot_bytes.size(); ++i)
    slots.push_back(own(layout.slot_bytes[i], fmt::format("slot {}", i)));
  if (layout.inbox_bytes > 0) {
    inbox_ = created_.buffer(device_, layout.inbox_bytes, gpu::BufferKind::kStorage,
                             "scalars and inputs");
  }
  if (layout.readback_bytes > 0) {
    readback_ =
        created_.buffer(device_, layout.readback_bytes, gpu::BufferKind::kReadback, "readback");
  }
  constexpr uint64_t kLeast = 16;  // who looks at reports finds one that is none
  faults_ = created_.buffer(device_, std::max(layout.fault_bytes(), kLeast),
                            gpu::BufferKind::kStorage, "faults");
  rule_ = created_.buffer(device_, kRuleWords * 4, gpu::BufferKind::kStorage, "feed rule");
  take_host_memory();
  upload_constants(g, constants);
  for (uint32_t i = 0; i < layout.roots.size(); ++i) {
    const Root& r = layout.roots[i];
    if (r.state) continue;  // of a State
    const std::string_view label = g.label(r.value);
    if (r.gpu && r.constant) {
      // is uploaded
    } else if (r.gpu && r.inbox != kNoOffset) {
      buffers_[i] = {inbox_.get(), r.inbox, std::max<uint64_t>(r.gpu_bytes, 16)};
    } else if (r.gpu && r.slot != kNone) {
      buffers_[i].buffer = slots[r.slot];
    } else if (r.gpu) {
      buffers_[i].buffer = own(std::max<uint64_t>(r.gpu_bytes, 4), label);
    }
    if (r.host && r.constant)
      host_constants_.push_back({i, {*g.tensor(r.value), constants.sources()}});
  }
}

void Memory::take_host_memory() {
  cpu::Arena counts{cpu::Arena::CountOnly{}};
  for (const uint64_t bytes : layout_.host_slot_bytes) counts.take(bytes);
  if (!host_memory_.reserve(counts.taken())) {
    missing_bytes_ = counts.taken();
    return;
  }
  std::vector<std::byte*> slots;
  slots.reserve(layout_.host_slot_bytes.size());
  for (const uint64_t bytes : layout_.host_slot_bytes) slots.push_back(host_memory_.take(bytes));
  for (size_t i = 0; i < layout_.roots.size(); ++i) {
    const Root& r = layout_.roots[i];
    if (!r.host || r.constant || r.state) continue;
    if (r.host_slot != kNone) {
      host_[i] = slots[r.host_slot];
      continue;
    }
    memory_[i] = ZeroedMemory(std::max<uint64_t>(r.host_bytes, 1));
    host_[i] = memory_[i].data();
    if (host_[i] == nullptr) missing_bytes_ = r.host_bytes;
  }
}

void Memory::upload_constants(const graph::Graph& g, ConstantPool& constants) {
  std::vector<uint32_t> roots;
  std::vector<ConstantPool::Wanted> wanted;
  for (uint32_t i = 0; i < layout_.roots.size(); ++i) {
    const Root& r = layout_.roots[i];
    if (r.state || !r.gpu || !r.constant) continue;
    roots.push_back(i);
    wanted.push_back({g.tensor(r.value), g.label(r.value)});
  }
  const std::vector<gpu::Binding> at = constants.upload(wanted);
  for (size_t i = 0; i < roots.size(); ++i) buffers_[roots[i]] = at[i];
}

Status Memory::write_rule(std::span<const uint32_t> words) {
  if (std::ranges::equal(words, rule_words_)) return {};
  rule_words_.assign(words.begin(), words.end());
  return device_->write(rule_.get(), 0, std::as_bytes(words));
}

gpu::Binding Memory::bound(ops::PlannedBinding::Kind kind) const {
  using Kind = ops::PlannedBinding::Kind;
  if (kind == Kind::kFaults) return {faults_.get(), 0, 0};
  if (kind == Kind::kStaging) return {inbox_.get(), 0, layout_.inbox_bytes};
  if (kind == Kind::kRule) return {rule_.get(), 0, 0};
  if (kind == Kind::kScalars) return {inbox_.get(), 0, align_up(layout_.scalar_slots * 4, 16)};
  return {};
}

Result<bool> Memory::advance() {
  if (there_) return true;
  if (missing_bytes_ > 0) {
    return memory_error(
        fmt::format("activations on the CPU: no memory left for {} bytes", missing_bytes_));
  }
  PTERYX_ASSIGN(there_, created_.settled(*device_));
  for (HostConstant& c : host_constants_) {
    PTERYX_ASSIGN(const bool read, c.bytes.advance());
    there_ = there_ && read;
    if (!read) continue;
    if (c.bytes.parts().empty()) {
      // Read only: a constant is never a result.
      host_[c.root] = const_cast<std::byte*>(c.bytes.bytes().data());
    } else {
      apart_[c.root] = &c.bytes;
    }
  }
  return there_;
}

std::byte* Memory::joined(uint32_t root) const {
  if (apart_[root] == nullptr) return nullptr;
  return host_[root] = const_cast<std::byte*>(apart_[root]->bytes().data());
}

uint64_t Memory::joined_bytes() const {
  uint64_t all = 0;
  for (size_t i = 0; i < apart_.size(); ++i) {
    if (apart_[i] == nullptr || host_[i] == nullptr) continue;
    for (const Bytes& part : apart_[i]->parts()) all += part.size();
  }
  return all;
}

void Memory::use(State& state) {
  for (const StateRoot& s : state_) {
    buffers_[s.root].buffer = state.buffer(s.cell);
    host_[s.root] = state.memory(s.cell);
  }
}

}  // namespace pteryx::exec
