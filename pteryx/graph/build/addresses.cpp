// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/graph/build/addresses.h"

#include <fmt/format.h>

namespace pteryx::graph {

using program::TensorRecord;

const TensorRecord* Addresses::planned(uint32_t value) const {
  if (value >= method_.values.size()) return nullptr;
  const auto* t = std::get_if<TensorRecord>(&method_.values[value]);
  return t != nullptr && t->placement ? t : nullptr;
}

Addresses::Address Addresses::address(const TensorRecord& t) {
  return {t.placement->buffer, t.placement->offset};
}

void Addresses::place_initial() {
  for (uint32_t i = 0; i < method_.values.size(); ++i) {
    const TensorRecord* t = planned(i);
    if (t != nullptr && t->data) make_state(i);
  }
  // A method that only writes such a place is the first to write what others read.
  for (uint32_t i = 0; i < method_.values.size(); ++i) {
    const TensorRecord* t = planned(i);
    if (t == nullptr || latest_.contains(address(*t))) continue;
    if (sharing_.states.contains({t->placement->buffer, t->placement->offset})) make_state(i);
  }
  for (const uint32_t i : method_.inputs) {
    if (const TensorRecord* t = planned(i)) latest_[address(*t)] = {i, ++sequence_};
  }
}

void Addresses::make_state(uint32_t i) {
  Tensor& t = *std::get_if<Tensor>(&out_.graph().values[i]);
  const auto [memory, offset] = address(*planned(i));
  t.state = true;
  if (sharing_.memories.contains(memory)) t.shared = {memory, offset};
  latest_[{memory, offset}] = {i, ++sequence_};
  states_.push_back(i);
}

Status Addresses::before_read(uint32_t i) {
  const TensorRecord* t = planned(i);
  if (t == nullptr || numel(t->sizes) == 0) return {};
  const auto it = latest_.find(address(*t));
  if (it ==
      latest_.end()) {  // read before anything was written: a buffer that persists, zero at first
    make_state(i);
    return {};
  }
  const Writer& writer = it->second;
  if (writer.value == i || viewed_[i] == writer.sequence) return {};
  const TensorRecord& source = *planned(writer.value);
  if (!source.unsupported.empty() || !t->unsupported.empty()) return {};
  if (source.dtype != t->dtype || numel(source.sizes) != numel(t->sizes)) {
    return invalid_program(fmt::format(
        "value {} ({} {}) is read at the address of value {} ({} {}), which was written last", i,
        name(t->dtype), to_string(t->sizes), writer.value, name(source.dtype),
        to_string(source.sizes)));
  }
  viewed_[i] = writer.sequence;
  out_.emit(kViewOp, {ValueId{writer.value}, ValueId{i}});
  return {};
}

void Addresses::after_write(uint32_t i) {
  const TensorRecord* t = planned(i);
  if (t != nullptr && numel(t->sizes) > 0) latest_[address(*t)] = {i, ++sequence_};
}

void Addresses::write_back_state() {
  for (const uint32_t i : states_) {
    const TensorRecord& t = *planned(i);
    const Writer& writer = latest_[address(t)];
    if (writer.value == i) continue;
    const TensorRecord& other = *planned(writer.value);
    if (other.dtype == t.dtype && other.sizes == t.sizes)
      out_.emit(kCopyOp, {ValueId{writer.value}, ValueId{i}});
  }
}

}  // namespace pteryx::graph
