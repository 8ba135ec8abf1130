// Values that are one piece of memory. SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <vector>

#include "pteryx/session/layout/stages.h"

namespace pteryx::layout {
namespace {

using graph::index;
using graph::ValueId;
using ops::OpClass;

// Of a tensor in a GPU buffer.
uint64_t gpu_bytes(const graph::Tensor& t) {
  return align_up(static_cast<uint64_t>(numel(t.max)) * gpu_element_bytes(t.dtype), 16);
}

class Aliasing : Stage {
 public:
  using Stage::Stage;

  void find_roots() {
    const std::vector<bool> changing = find_mutable();
    l_.root_of.assign(g_.values.size(), kNone);
    for (size_t i = 0; i < g_.nodes.size(); ++i) {
      if (l_.defs[i] == nullptr || l_.defs[i]->op_class != OpClass::kView) continue;
      const ValueId from = g_.nodes[i].args[0];
      const ValueId to = g_.nodes[i].args.back();
      const graph::Tensor* t = g_.tensor(to);
      if (changing[index(from)] || changing[index(to)] || t->has_data() || g_.has_jumps ||
          t->dtype != g_.tensor(from)->dtype) {
        continue;
      }
      l_.root_of[index(to)] = root_for(from);
      l_.place[i] = Place::kNothing;
    }
    for (uint32_t v = 0; v < g_.values.size(); ++v) {
      if (std::holds_alternative<graph::Tensor>(g_.values[v])) root_for(ValueId{v});
    }
    for (uint32_t v = 0; v < g_.values.size(); ++v) {
      const auto* t = std::get_if<graph::Tensor>(&g_.values[v]);
      if (t == nullptr) continue;
      Root& r = l_.roots[l_.root_of[v]];
      r.gpu_bytes = std::max(r.gpu_bytes, gpu_bytes(*t));
      r.host_bytes =
          std::max(r.host_bytes, static_cast<uint64_t>(numel(t->max)) * size_bytes(t->dtype));
    }
  }

 private:
  // A value that more than its one producer writes must not have views: they would change under
  // their readers.
  std::vector<bool> find_mutable() const {
    std::vector<uint8_t> writes(g_.values.size());
    for (size_t i = 0; i < g_.nodes.size(); ++i) {
      each_write(i, [&](ValueId id) {
        writes[index(id)] = static_cast<uint8_t>(std::min(writes[index(id)] + 1, 2));
      });
    }
    std::vector<bool> changing(g_.values.size());
    for (uint32_t v = 0; v < g_.values.size(); ++v) {
      const auto* t = std::get_if<graph::Tensor>(&g_.values[v]);
      if (t != nullptr) changing[v] = t->state || writes[v] > 1;
    }
    for (const ValueId id : g_.inputs)
      changing[index(id)] = changing[index(id)] || writes[index(id)] > 0;
    return changing;
  }

  uint32_t root_for(ValueId id) {
    uint32_t& r = l_.root_of[index(id)];
    if (r != kNone) return r;
    r = static_cast<uint32_t>(l_.roots.size());
    const graph::Tensor& t = *g_.tensor(id);
    l_.roots.push_back({.value = id, .constant = t.is_constant(), .state = t.state});
    return r;
  }
};

}  // namespace

void find_roots(Draft& d) { Aliasing(d).find_roots(); }

}  // namespace pteryx::layout
