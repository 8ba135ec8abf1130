// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/ops/cpu_scratch.h"

#include <algorithm>
#include <deque>

#include "pteryx/cpu/arena.h"

namespace pteryx::ops {
namespace {

// Tensors whose data must not be touched, and which of them were asked for in what form.
class NoData final : public Host {
 public:
  NoData(const graph::Graph& g, const Live& live) : graph_(g), live_(live) {}
  HostTensor host(ValueId id) const override {
    whole_.push_back(id);
    return {graph_.tensor(id)->dtype, live_.dims[graph::index(id)], cpu::Arena::no_memory()};
  }
  std::span<const Bytes> parts(ValueId id) const override {
    const graph::Tensor& t = *graph_.tensor(id);
    if (!t.is_constant() || t.data.size() < 2) return {};
    if (!t.dim_order.empty() || t.stored.value_or(t.dtype) != t.dtype) return {};
    apart_.push_back(id);
    std::vector<Bytes>& parts = parts_.emplace_back();
    for (const ByteRange& r : t.data) parts.push_back(place_of(r));
    return parts;
  }
  std::vector<ValueId> only_apart() const {
    std::vector<ValueId> ids = apart_;
    std::erase_if(ids, [&](ValueId id) { return std::ranges::find(whole_, id) != whole_.end(); });
    return ids;
  }

 private:
  // What follows in the file follows here; files are apart.
  static Bytes place_of(const ByteRange& r) {
    const uint64_t at = cpu::Arena::kAlignment + (uint64_t{r.source} << 48U) + r.offset;
    const auto address = static_cast<uintptr_t>(at);
    return {reinterpret_cast<const std::byte*>(address),  // NOLINT(performance-no-int-to-ptr)
            static_cast<size_t>(r.size)};
  }

  const graph::Graph& graph_;
  const Live& live_;
  mutable std::vector<ValueId> whole_;
  mutable std::vector<ValueId> apart_;
  mutable std::deque<std::vector<Bytes>> parts_;
};

}  // namespace

uint64_t cpu_scratch_bytes(const graph::Graph& g, const Live& live, const Node& n, cpu::Pool& pool,
                           Precision precision) {
  if (n.def().fast == nullptr) return 0;
  cpu::Arena arena{cpu::Arena::CountOnly{}};
  CpuContext context{pool, arena, precision};
  // One that refuses these sizes, or leaves the call to the reference, has taken what it has.
  (void)n.def().fast(n, NoData(g, live), context);
  return arena.taken();
}

std::vector<ValueId> taken_in_parts(const graph::Graph& g, const Live& live, const Node& n,
                                    cpu::Pool& pool, Precision precision) {
  if (n.def().fast == nullptr) return {};
  cpu::Arena arena{cpu::Arena::CountOnly{}};
  CpuContext context{pool, arena, precision};
  const NoData tensors(g, live);
  const auto done = n.def().fast(n, tensors, context);
  if (!done.ok() || !*done) return {};
  return tensors.only_apart();
}

}  // namespace pteryx::ops
