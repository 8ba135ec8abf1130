// Objects kept under small ids that can be told from the ids of objects gone since.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

#include "pteryx/base/status.h"

namespace pteryx::gpu {

// An id is a slot's number plus one in the low bits and how often the slot was reused in the high
// bits. A T stays where it is until erase. Reusing a slot allocates nothing.
template <typename Id, typename T>
class Slots {
 public:
  // kNone if every number is taken.
  Id insert(T value) {
    if (free_.empty()) {
      if (slots_.size() == kIndexMask) return Id::kNone;
      free_.reserve(slots_.size() + 1);
      free_.push_back(static_cast<uint32_t>(slots_.size()));
      slots_.emplace_back();
    }
    const uint32_t index = free_.back();
    free_.pop_back();
    Slot& slot = slots_[index];
    slot.used = true;
    slot.value = std::move(value);
    return static_cast<Id>(slot.reuse << kIndexBits | (index + 1));
  }

  // Null for kNone, for an id never given out and for one whose object is gone.
  T* find(Id id) { return const_cast<T*>(std::as_const(*this).find(id)); }
  const T* find(Id id) const {
    const auto bits = static_cast<uint32_t>(id);
    const uint32_t index = (bits & kIndexMask) - 1;
    if (index >= slots_.size()) return nullptr;
    const Slot& slot = slots_[index];
    return slot.used && slot.reuse == bits >> kIndexBits ? &slot.value : nullptr;
  }

  void erase(Id id) {
    if (find(id) == nullptr) return;
    const uint32_t index = (static_cast<uint32_t>(id) & kIndexMask) - 1;
    Slot& slot = slots_[index];
    slot.value = T();
    slot.used = false;
    slot.reuse = (slot.reuse + 1) & (UINT32_MAX >> kIndexBits);
    free_.push_back(index);
  }

  bool empty() const { return free_.size() == slots_.size(); }

  template <typename Visit>
  void for_each(Visit visit) {
    for (Slot& slot : slots_) {
      if (slot.used) visit(slot.value);
    }
  }

 private:
  static constexpr uint32_t kIndexBits = 20;
  static constexpr uint32_t kIndexMask = (1u << kIndexBits) - 1;
  struct Slot {
    T value;
    uint32_t reuse = 0;
    bool used = false;
  };
  std::deque<Slot> slots_;
  std::vector<uint32_t> free_;
};

}  // namespace pteryx::gpu
