// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/ops/bind.h"

#include <algorithm>
#include <vector>

#include "pteryx/base/checked.h"

namespace pteryx::ops {

gpu::PipelineId create_pipeline(gpu::Device& device, const PlannedDispatch& d) {
  std::vector<gpu::BindingKind> kinds = {gpu::BindingKind::kUniform};
  for (const PlannedBinding& b : d.bindings) {
    kinds.push_back(b.written ? gpu::BindingKind::kStorageReadWrite
                              : gpu::BindingKind::kStorageRead);
  }
  return device.create_pipeline({.label = d.label,
                                 .code = d.code,
                                 .constants = {},
                                 .bindings = kinds,
                                 .uses_f16 = d.f16,
                                 .uses_subgroups = d.subgroups,
                                 .uses_subgroup_matrix = d.subgroup_matrix});
}

gpu::Dispatch bind(gpu::Device& device, const PlannedDispatch& d, const gpu::Binding& params,
                   const std::function<gpu::Binding(const PlannedBinding&)>& where) {
  std::vector<gpu::Binding> bindings = {params};
  for (const PlannedBinding& b : d.bindings) bindings.push_back(where(b));
  const gpu::PipelineId pipeline = create_pipeline(device, d);
  return {pipeline, device.create_bindings(pipeline, bindings, d.label), d.grid};
}

uint64_t params_bytes(const PlannedDispatch& d) {
  return align_up(std::max<uint64_t>(d.params.size(), 16), 16);
}

}  // namespace pteryx::ops
