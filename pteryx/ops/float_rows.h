// Rows of f32 or f16 host tensors as f32, for fast CPU kernels. SPDX-License-Identifier:
// BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstring>

#include "pteryx/base/checked.h"
#include "pteryx/cpu/arena.h"
#include "pteryx/cpu/pool.h"
#include "pteryx/cpu/rows.h"
#include "pteryx/ops/op.h"

namespace pteryx::ops {

inline bool is_f32(const Tensor& t) { return t.dtype == DType::kF32; }
inline bool is_f32_or_f16(const Tensor& t) { return is_f32(t) || t.dtype == DType::kF16; }

inline size_t size(int64_t v) { return static_cast<size_t>(v); }
inline uint64_t count_of(const HostTensor& t) { return static_cast<uint64_t>(t.numel()); }

inline float* floats(const HostTensor& t) { return reinterpret_cast<float*>(t.data); }
inline uint16_t* halves(const HostTensor& t) { return reinterpret_cast<uint16_t*>(t.data); }

// Elements from `first` on.
inline void load_floats(const HostTensor& from, int64_t first, size_t count, float* to) {
  if (from.dtype == DType::kF16) {
    cpu::from_f16(halves(from) + first, count, to);
  } else {
    std::memcpy(to, floats(from) + first, count * sizeof(float));
  }
}
inline void store_floats(const float* from, const HostTensor& to, int64_t first, size_t count) {
  if (to.dtype == DType::kF16) {
    cpu::to_f16(from, count, halves(to) + first);
  } else {
    std::memcpy(floats(to) + first, from, count * sizeof(float));
  }
}

// Elements of a tensor into another, which has the same type, or both have f32 or f16.
inline void copy_elements(const HostTensor& from, int64_t first, const HostTensor& to, int64_t at,
                          size_t count) {
  const size_t bytes = size_bytes(to.dtype);
  if (from.dtype == to.dtype) {
    std::memcpy(to.data + size(at) * bytes, from.data + size(first) * bytes, count * bytes);
  } else if (to.dtype == DType::kF32) {
    load_floats(from, first, count, floats(to) + at);
  } else {
    store_floats(floats(from) + first, to, at, count);
  }
}

// All of an f32 or f16 tensor as f32: itself, or a copy.
inline float* widened(const HostTensor& t, CpuContext& c) {
  if (t.dtype == DType::kF32) return floats(t);
  auto* const to = c.memory.take_array<float>(count_of(t));
  if (c.dry_run()) return to;
  load_floats(t, 0, static_cast<size_t>(t.numel()), to);
  return to;
}

// Calls body(begin, end) for parts of `count` items, by all threads where there is work for them:
// a part has `least` items or more, unless it is the only one.
template <typename Body>
void for_parts(CpuContext& c, size_t count, size_t least, const Body& body) {
  if (c.dry_run()) return;
  const size_t most = c.pool.threads() == 1 ? 1 : 4 * c.pool.threads();
  const size_t parts = std::clamp<size_t>(count / std::max<size_t>(least, 1), 1, most);
  const size_t each = count / parts;  // or one more: count * parts may be more than a size_t holds
  const size_t more = count % parts;
  c.pool.run(parts, [&](size_t part, size_t /*thread*/) {
    const size_t begin = part * each + std::min(part, more);
    body(begin, begin + each + (part < more ? 1 : 0));
  });
}

// So many bytes of memory for each thread, aligned.
class PerThread {
 public:
  PerThread(CpuContext& c, uint64_t bytes)
      : own_(static_cast<size_t>(
            align_up(std::min<uint64_t>(bytes, cpu::Arena::kMost), cpu::Arena::kAlignment))),
        memory_(c.memory.take_array<std::byte>(own_, c.pool.threads())) {}
  std::byte* of(size_t thread) const { return memory_ + thread * own_; }

 private:
  size_t own_;
  std::byte* memory_;
};

// Elements that are worth a thread's while.
inline constexpr size_t kPartElements = 8192;

}  // namespace pteryx::ops
