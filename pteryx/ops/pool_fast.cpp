// Pooling on the CPU, with vectors and threads: planes are padded one by one.
// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <limits>

#include "pteryx/cpu/arena.h"
#include "pteryx/cpu/pool.h"
#include "pteryx/cpu/pooling.h"
#include "pteryx/cpu/rows.h"
#include "pteryx/ops/float_rows.h"
#include "pteryx/ops/pool.h"

namespace pteryx::ops::pooling {
namespace {

constexpr size_t kX = 0;

// Windows of one size that slide, where the sizes allow it.
bool make_sliding(Axis& a) {
  if (a.out == 0 || a.in % a.out != 0) return false;
  a.kernel = a.stride = a.in / a.out;
  return true;
}

cpu::Window window_of(const Pool& p) {
  const auto of = [&](int64_t Axis::* field) {
    return cpu::Window::Sizes{1, size(p.h.*field), size(p.w.*field)};
  };
  cpu::Window w{.in = of(&Axis::in),
                .out = of(&Axis::out),
                .kernel = of(&Axis::kernel),
                .stride = of(&Axis::stride),
                .padding = {0, size(p.h.padding), size(p.w.padding)},
                .dilation = of(&Axis::dilation)};
  for (size_t axis = 1; axis < 3; ++axis) {
    const size_t end = (w.out[axis] - 1) * w.stride[axis] + w.reach(axis);
    w.more[axis] = end - std::min(end, w.padded(axis));
  }
  return w;
}

// Kernels that are much larger than the input would ask for memory without bounds.
bool fits_memory(const Pool& p) {
  const auto all = [](const Axis& a) {
    return static_cast<double>(a.in + 2 * a.padding) + static_cast<double>(a.stride) +
           static_cast<double>(a.dilation) * static_cast<double>(a.kernel);
  };
  const auto given = static_cast<double>(p.h.in) * static_cast<double>(p.w.in);
  return all(p.h) * all(p.w) < 64 * given + 1e6 && given < 1e9;
}

bool fits(const Node& n, Pool& p) {
  if (!is_f32_or_f16(n.in(kX)) || n.in(kX).dtype != n.out().dtype) return false;
  if (n.in(kX).numel() == 0 || n.out().numel() == 0) return false;
  if (wants_indices(n) && n.out(1).dtype != DType::kI64 && n.out(1).dtype != DType::kI32)
    return false;
  if (is_adaptive(form_of(n)) && (!make_sliding(p.h) || !make_sliding(p.w))) return false;
  return fits_memory(p);
}

// An entry for each window along an axis.
template <typename T, typename F>
T* for_windows(CpuContext& c, const Axis& a, const F& entry) {
  T* const to = c.memory.take_array<T>(size(a.out));
  for (int64_t o = 0; o < a.out && !c.dry_run(); ++o)
    to[o] = static_cast<T>(entry(o * a.stride - a.padding, span(a, o, false)));
  return to;
}

// What sums are divided by, along one axis.
const float* divisors(CpuContext& c, const Axis& a, DivisorKind kind, double given) {
  return for_windows<float>(c, a, [&](int64_t /*begin*/, const Span& s) {
    if (kind == DivisorKind::kGiven) return given;
    return static_cast<double>(kind == DivisorKind::kWindow ? s.size : s.end - s.begin);
  });
}

cpu::Places places_of(const Pool& p, CpuContext& c) {
  const auto begin = [](int64_t b, const Span& /*s*/) { return b; };
  const auto inner = [](int64_t /*b*/, const Span& s) { return s.begin; };
  const auto rows = [&](const auto& entry) {
    return for_windows<int32_t>(c, p.h,
                                [&](int64_t b, const Span& s) { return entry(b, s) * p.w.in; });
  };
  auto* const taps = c.memory.take_array<int32_t>(size(p.h.kernel), size(p.w.kernel));
  for (int64_t i = 0; i < p.h.kernel && !c.dry_run(); ++i) {
    for (int64_t j = 0; j < p.w.kernel; ++j)
      taps[i * p.w.kernel + j] = static_cast<int32_t>(i * p.h.dilation * p.w.in + j * p.w.dilation);
  }
  return {.taps = taps,
          .rows = rows(begin),
          .columns = for_windows<int32_t>(c, p.w, begin),
          .inner_rows = rows(inner),
          .inner_columns = for_windows<int32_t>(c, p.w, inner)};
}

// All that the planes of a call share.
struct Planes {
  size_t count = 0;
  const float* x = nullptr;
  float* y = nullptr;
  HostTensor indices;  // without data: not wanted
};

void put_indices(const int32_t* from, size_t count, const HostTensor& to, size_t first) {
  if (to.dtype == DType::kI32) {
    std::memcpy(to.data + first * sizeof(int32_t), from, count * sizeof(int32_t));
  } else {
    std::copy(from, from + count, reinterpret_cast<int64_t*>(to.data) + first);
  }
}

// Planes that one item has: enough to be worth a thread's while.
size_t planes_of_item(const Planes& planes, size_t elements, size_t threads) {
  const size_t most = std::max<size_t>(planes.count / std::max<size_t>(4 * threads, 1), 1);
  return std::clamp<size_t>(kPartElements / std::max<size_t>(elements, 1), 1, most);
}

// One window covers a whole plane.
void mean_of_all(const Planes& planes, size_t elements, float by, CpuContext& c) {
  for_parts(c, planes.count, std::max<size_t>(kPartElements / elements, 1),
            [&](size_t begin, size_t end) {
              for (size_t i = begin; i < end; ++i)
                planes.y[i] = cpu::mean_of(planes.x + i * elements, elements, by);
            });
}

void by_planes(const Node& n, const Pool& p, const Planes& planes, CpuContext& c) {
  const cpu::Window w = window_of(p);
  const bool largest = is_max(form_of(n));
  const Divisor d = divisor(n);
  const float* const rows = divisors(c, p.h, d.kind, d.given);
  const float* const columns = divisors(c, p.w, d.kind, 1);
  const size_t elements = size(p.h.in * p.w.in);
  if (!largest && w.positions() == 1 && p.h.kernel == p.h.in && p.w.kernel == p.w.in &&
      p.h.padding == 0 && p.w.padding == 0) {
    if (!c.dry_run()) mean_of_all(planes, elements, rows[0] * columns[0], c);
    return;
  }

  auto* const starts = c.memory.take_array<size_t>(w.taps());
  for (size_t t = 0; t < w.taps() && !c.dry_run(); ++t) starts[t] = w.start_of(t);
  const cpu::Pooling pooling{w, starts};
  const bool indices = planes.indices.data != nullptr;
  const cpu::Places places = indices ? places_of(p, c) : cpu::Places{};
  const size_t plane = w.plane() + cpu::kSpare;
  const PerThread padded(c, uint64_t{plane} * sizeof(float));
  const PerThread found(c, indices ? uint64_t{w.positions()} * sizeof(int32_t) : 0);
  if (c.dry_run()) return;
  for (size_t t = 0; t < c.pool.threads(); ++t) {
    auto* const to = reinterpret_cast<float*>(padded.of(t));
    std::fill(to, to + plane, largest ? -std::numeric_limits<float>::infinity() : 0.0F);
  }
  const size_t each = planes_of_item(planes, elements, c.pool.threads());
  c.pool.run((planes.count + each - 1) / each, [&](size_t item, size_t thread) {
    auto* const own = reinterpret_cast<float*>(padded.of(thread));
    cpu::Places own_places = places;
    if (indices) own_places.to = reinterpret_cast<int32_t*>(found.of(thread));
    for (size_t i = item * each; i < std::min((item + 1) * each, planes.count); ++i) {
      float* const y = planes.y + i * w.positions();
      cpu::fill_plane(w, planes.x + i * elements, own);
      if (!largest) {
        cpu::pool_mean(pooling, own, rows, columns, y);
        continue;
      }
      cpu::pool_max(pooling, own, own_places, y);
      if (indices) put_indices(own_places.to, w.positions(), planes.indices, i * w.positions());
    }
  });
}

}  // namespace

Result<bool> fast(const Node& n, const Host& h, CpuContext& context) {
  PTERYX_ASSIGN(Pool p, read_pool(n));
  if (!fits(n, p)) return false;
  const HostTensor y = h.host(n.out_id());
  const auto results = size(y.numel());
  Planes planes{.count = size(n.in(kX).numel() / (p.h.in * p.w.in)),
                .x = widened(h.host(n.in(kX).id), context),
                .y = is_f32(n.out()) ? floats(y) : context.memory.take_array<float>(count_of(y)),
                .indices = {}};
  if (wants_indices(n)) planes.indices = h.host(n.out_id(1));
  by_planes(n, p, planes, context);
  if (!context.dry_run() && !is_f32(n.out())) store_floats(planes.y, y, 0, results);
  return true;
}

}  // namespace pteryx::ops::pooling
