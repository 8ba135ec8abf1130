// The kernel files that the build embeds.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <optional>
#include <span>
#include <string_view>

namespace pteryx::ops {

struct KernelFile {
  std::string_view name;  // "quant/qlinear_dot4.wgsl"
  std::string_view text;
};

std::span<const KernelFile> kernel_files();
// Nothing where there is no such file.
std::optional<std::string_view> kernel_file(std::string_view name);

}  // namespace pteryx::ops
