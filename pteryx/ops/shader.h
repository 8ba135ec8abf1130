// A kernel file embedded by the build, and the shape descriptor shared by host and shaders.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace pteryx::ops {

struct Shader {
  std::string_view name;
  std::string_view file;  // "quant/qlinear_dot4.wgsl"
};

// Same layout as TensorMeta of common/index.wgsl. Right-aligned: dims[7] is the last dim, unused
// leading dims are 1 with stride 0.
struct TensorMeta {
  std::array<uint32_t, 8> dims{};
  std::array<uint32_t, 8> strides{};
};

}  // namespace pteryx::ops
