// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/ops/kernel/library.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "pteryx/ops/kernel/files.h"

namespace pteryx::ops {
namespace {

class Library {
 public:
  Result<std::shared_ptr<const Kernel>> kernel(std::string_view file, const Options& options) {
    const std::scoped_lock lock(mutex_);
    std::shared_ptr<const Kernel>& known = kernels_[{std::string(file), options}];
    if (known == nullptr) {
      PTERYX_ASSIGN(Kernel made, expand_kernel(file, options, kernel_file));
      known = std::make_shared<const Kernel>(std::move(made));
    }
    return known;
  }

  bool has_option(std::string_view file, std::string_view option) {
    const std::scoped_lock lock(mutex_);
    auto it = options_.find(file);
    if (it == options_.end()) {
      auto declared = declared_options(file, kernel_file);
      it = options_
               .emplace(std::string(file), declared.ok() ? std::move(declared).value()
                                                         : std::vector<OptionDeclaration>())
               .first;
    }
    return std::ranges::find(it->second, option, &OptionDeclaration::name) != it->second.end();
  }

 private:
  std::mutex mutex_;
  std::map<std::pair<std::string, Options>, std::shared_ptr<const Kernel>> kernels_;
  std::map<std::string, std::vector<OptionDeclaration>, std::less<>> options_;
};

Library& library() {
  static Library all;
  return all;
}

}  // namespace

Result<std::shared_ptr<const Kernel>> find_kernel(std::string_view file, const Options& options) {
  return library().kernel(file, options);
}

std::string_view text_of(const Shader& shader) {
  const auto kernel = find_kernel(shader.file, {});
  return kernel.ok() ? std::string_view((*kernel)->code) : std::string_view();
}

bool has_option(std::string_view file, std::string_view option) {
  return library().has_option(file, option);
}

}  // namespace pteryx::ops
