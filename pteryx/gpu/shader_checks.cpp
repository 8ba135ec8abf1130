// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/gpu/shader_checks.h"

#include <algorithm>

#include <fmt/format.h>

#include "pteryx/base/checked.h"

namespace pteryx::gpu {

Hash128 shader_key(const ShaderDesc& desc) {
  Hasher h;
  h.add((desc.uses_f16 ? 1u : 0u) | (desc.uses_subgroups ? 2u : 0u) |
        (desc.uses_subgroup_matrix ? 4u : 0u));
  h.add(desc.code);
  h.add(uint64_t{desc.constants.size()});
  for (const Constant& c : desc.constants) {
    h.add(c.name);
    h.add(std::string_view(reinterpret_cast<const char*>(&c.value), sizeof(c.value)));
  }
  h.add(uint64_t{desc.bindings.size()});
  for (const BindingKind kind : desc.bindings) h.add(static_cast<uint64_t>(kind));
  return h.hash();
}

Status check_features(const ShaderDesc& desc, const Caps& caps) {
  const char* missing = nullptr;
  if (desc.uses_f16 && !caps.f16) missing = "f16";
  if (desc.uses_subgroups && !caps.subgroups) missing = "subgroups";
  if (desc.uses_subgroup_matrix && !caps.subgroup_matrix) missing = "subgroup_matrix";
  if (missing == nullptr) return ok_status();
  return unsupported(
      shader_error(desc.label, fmt::format("uses {}, which the device does not offer", missing)));
}

Status binding_error(const BindingPlace& place, std::string_view text) {
  return invalid_argument(fmt::format("bindings '{}' of shader '{}': binding {}: {}", place.label,
                                      place.shader, place.index, text));
}

Result<uint64_t> check_binding(const BindingPlace& place, const Binding& binding,
                               const CheckedBuffer& buffer, const Caps& caps) {
  const bool uniform = place.kind == BindingKind::kUniform;
  if (buffer.kind != (uniform ? BufferKind::kUniform : BufferKind::kStorage)) {
    return binding_error(place, fmt::format("expects a {} buffer, '{}' is none",
                                            uniform ? "uniform" : "storage", buffer.label));
  }
  const uint64_t rest = buffer.size - std::min(binding.offset, buffer.size);
  const uint64_t size = binding.size == 0 ? rest : align_up(binding.size, 4);
  if (size == 0 || size > rest) {
    return binding_error(place, fmt::format("{} bytes at {} do not fit buffer '{}' of {}", size,
                                            binding.offset, buffer.label, buffer.size));
  }
  const uint64_t alignment = uniform ? caps.uniform_alignment : caps.storage_alignment;
  if (binding.offset % alignment != 0) {
    return binding_error(
        place, fmt::format("offset {} is not a multiple of {}", binding.offset, alignment));
  }
  if (!uniform && size > caps.max_binding_bytes) {
    return binding_error(place,
                         fmt::format("{} bytes of buffer '{}': max_binding_bytes of the device is "
                                     "{}",
                                     size, buffer.label, caps.max_binding_bytes));
  }
  return size;
}

Status check_binding_count(std::string_view label, std::string_view shader, size_t expected,
                           size_t got) {
  if (expected == got) return {};
  return invalid_argument(fmt::format("bindings '{}' of shader '{}': expected {}, got {}", label,
                                      shader, expected, got));
}

Status check_grid(std::string_view shader, const Grid& grid, const Caps& caps) {
  if (std::max({grid.x, grid.y, grid.z}) <= caps.max_workgroups_per_dim) return {};
  return invalid_argument(fmt::format("shader '{}': grid {}x{}x{} exceeds {} in a dimension",
                                      shader, grid.x, grid.y, grid.z, caps.max_workgroups_per_dim));
}

}  // namespace pteryx::gpu
