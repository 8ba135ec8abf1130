// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/ops/cpu_scratch.h"

#include "pteryx/cpu/arena.h"

namespace pteryx::ops {
namespace {

// Tensors whose data must not be touched.
class NoData final : public Host {
 public:
  NoData(const graph::Graph& g, const Live& live) : graph_(g), live_(live) {}
  HostTensor host(ValueId id) const override {
    return {graph_.tensor(id)->dtype, live_.dims[graph::index(id)], cpu::Arena::no_memory()};
  }

 private:
  const graph::Graph& graph_;
  const Live& live_;
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

}  // namespace pteryx::ops
