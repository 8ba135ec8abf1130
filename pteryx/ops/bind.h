// From a planned dispatch to one that a device can replay.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>

#include "pteryx/gpu/device.h"
#include "pteryx/ops/op.h"

namespace pteryx::ops {

// Starts compiling its shader.
gpu::PipelineId create_pipeline(gpu::Device& device, const PlannedDispatch& d);

// Its pipeline and bindings, which may not be there yet (Device::settled); the bindings are the
// caller's to destroy. `params`: where its params are. `where`: what a binding of it stands for.
gpu::Dispatch bind(gpu::Device& device, const PlannedDispatch& d, const gpu::Binding& params,
                   const std::function<gpu::Binding(const PlannedBinding&)>& where);

// Bytes that the params of a dispatch take in a uniform buffer.
uint64_t params_bytes(const PlannedDispatch& d);

}  // namespace pteryx::ops
