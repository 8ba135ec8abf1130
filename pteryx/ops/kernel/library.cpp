// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/ops/kernel/library.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "pteryx/ops/kernel/files.h"

namespace pteryx::ops {
namespace {

class Library {
 public:
  Result<std::shared_ptr<const Kernel>> kernel(std::string_view file, const Options& options) {
    std::shared_ptr<const Kernel>& known = kernels_[{std::string(file), options}];
    if (known == nullptr) {
      PTERYX_ASSIGN(Kernel made, expand_kernel(file, options, kernel_file));
      known = std::make_shared<const Kernel>(std::move(made));
    }
    return known;
  }

  bool has_option(std::string_view file, std::string_view option) {
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
  std::map<std::pair<std::string, Options>, std::shared_ptr<const Kernel>> kernels_;
  std::map<std::string, std::vector<OptionDeclaration>, std::less<>> options_;
};

// Of each thread, so that none waits for another; never destroyed, since the web has no end of a
// thread.
Library& library() {
  thread_local Library* const all = new Library;  // NOLINT(cppcoreguidelines-owning-memory)
  return *all;
}

}  // namespace

Result<std::shared_ptr<const Kernel>> find_kernel(std::string_view file, const Options& options) {
  return library().kernel(file, options);
}

bool has_option(std::string_view file, std::string_view option) {
  return library().has_option(file, option);
}

}  // namespace pteryx::ops
