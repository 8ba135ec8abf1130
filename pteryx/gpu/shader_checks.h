// What every device that runs shaders checks of them, and what it knows them by.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "pteryx/base/status.h"
#include "pteryx/gpu/buffer_checks.h"
#include "pteryx/gpu/device.h"
#include "pteryx/gpu/hasher.h"

namespace pteryx::gpu {

// 128 bits of hash stand for text, constants and bindings: no two shaders of a process share them.
Hash128 shader_key(const ShaderDesc& desc);
struct ShaderKeyHash {
  size_t operator()(const Hash128& k) const { return static_cast<size_t>(k.a); }
};

inline std::string shader_error(std::string_view label, std::string_view text) {
  return "shader '" + std::string(label) + "': " + std::string(text);
}

// Errors: kUnsupported for one that uses what the device does not offer.
Status check_features(const ShaderDesc& desc, const Caps& caps);

// Binding `index` of bindings `label`, of a buffer of the device. Gives the bytes that are bound.
// Errors: kInvalidArgument.
struct BindingPlace {
  std::string_view label;
  std::string_view shader;
  size_t index = 0;
  BindingKind kind = BindingKind::kUniform;
};
Result<uint64_t> check_binding(const BindingPlace& place, const Binding& binding,
                               const CheckedBuffer& buffer, const Caps& caps);
Status binding_error(const BindingPlace& place, std::string_view text);
// How many there are.
Status check_binding_count(std::string_view label, std::string_view shader, size_t expected,
                           size_t got);

// Errors: kInvalidArgument.
Status check_grid(std::string_view shader, const Grid& grid, const Caps& caps);
inline bool is_empty(const Grid& grid) { return grid.x == 0 || grid.y == 0 || grid.z == 0; }

}  // namespace pteryx::gpu
