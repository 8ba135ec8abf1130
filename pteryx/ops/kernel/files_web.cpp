// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/ops/kernel/files_web.h"

#include <algorithm>
#include <vector>

#include "pteryx/ops/kernel/files.h"

namespace pteryx::ops {
namespace {

std::vector<KernelFile> files;  // by name

std::string_view take_text(std::string_view& packed) {
  const size_t end = std::min(packed.find('\0'), packed.size());
  const std::string_view text = packed.substr(0, end);
  packed.remove_prefix(std::min(end + 1, packed.size()));
  return text;
}

}  // namespace

void add_kernel_files(std::string_view packed) {
  while (!packed.empty()) {
    const std::string_view name = take_text(packed);
    const auto at = std::ranges::lower_bound(files, name, {}, &KernelFile::name);
    files.insert(at, {name, take_text(packed)});
  }
}

std::span<const KernelFile> kernel_files() { return files; }

std::optional<std::string_view> kernel_file(std::string_view name) {
  const auto it = std::ranges::lower_bound(files, name, {}, &KernelFile::name);
  if (it == files.end() || it->name != name) return std::nullopt;
  return it->text;
}

}  // namespace pteryx::ops
