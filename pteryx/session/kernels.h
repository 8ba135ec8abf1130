// The kernels of a method as they are compiled. Planned for given capabilities, so that no GPU is
// needed.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pteryx/base/precision.h"
#include "pteryx/base/status.h"
#include "pteryx/gpu/caps.h"
#include "pteryx/gpu/device.h"

namespace pteryx {

// Nodes of a method that dispatch a kernel in the same way.
struct KernelUse {
  std::string method;
  std::string sizes;  // "at the bound", "1 token at position 0"
  std::string op;
  std::string purpose;             // of a weight that is repacked at load; "" in runs
  std::vector<std::string> binds;  // "params, 16 bytes", "x f32 [1, 64]", by binding
  gpu::Grid grid;
  std::vector<uint32_t> nodes;
};

struct KernelText {
  std::string label;  // "binary/f32,f32,f32/add"
  std::string code;   // WGSL without `enable` directives
  bool f16 = false;
  bool subgroups = false;
  bool subgroup_matrix = false;
  std::vector<KernelUse> uses;
};

struct KernelOptions {
  std::vector<std::string> data_files = {};
  gpu::Caps caps = {};
  std::optional<Precision> precision = {};  // none: f32, of language models f16
  std::string routes = {};
};
// The kernels of all methods, each once. A language model draws its tokens, and is planned for one
// token, at the first and the last position, and for the longest prompt; any other method at the
// bound. Errors: those of loading.
Result<std::vector<KernelText>> list_kernels(const std::string& path, const KernelOptions& options);

// A file for a person: what uses the kernel as a comment, and WGSL that a compiler takes.
std::string kernel_file(const KernelText& kernel);
// The first line of such a file.
inline constexpr std::string_view kKernelFileMark =
    "// A kernel as Pteryx compiles it, written by `pteryx inspect --kernels`.";

// A file name for each, made of its label: "binary-f32_f32_f32-add.wgsl"; where several have the
// same label, those behind the first have a number.
std::vector<std::string> kernel_file_names(const std::vector<KernelText>& kernels);

}  // namespace pteryx
