// Where the WebGPU libraries are looked for.
// SPDX-License-Identifier: BSD-3-Clause
#include <array>
#include <filesystem>
#include <system_error>
#include <utility>

#include <dlfcn.h>

#include <fmt/format.h>

#include "pteryx/gpu/native/provider.h"

// Set by the build to where scripts/setup puts the libraries; an installed Pteryx has them beside
// itself.
#ifndef PTERYX_PROVIDER_DIR
#define PTERYX_PROVIDER_DIR ""
#endif

namespace pteryx::gpu::native {
namespace {

namespace fs = std::filesystem;

constexpr std::array kKinds = {ProviderKind::kDawn, ProviderKind::kWgpu};

struct LibraryName {
  std::string_view provider;  // also its folder under PTERYX_PROVIDER_DIR
  std::string_view file;
};
LibraryName library_name(ProviderKind kind) {
  if (kind == ProviderKind::kDawn) return {"dawn", "libwebgpu_dawn.so"};
  return {"wgpu", "libwgpu_native.so"};
}

// The folder of the executable and, when Pteryx is part of a shared library, the folder of that.
std::vector<fs::path> own_folders() {
  std::vector<fs::path> folders;
  std::error_code error;
  if (const fs::path exe = fs::read_symlink("/proc/self/exe", error); !error) {
    folders.push_back(exe.parent_path());
  }
  Dl_info info = {};
  if (dladdr(reinterpret_cast<void*>(&library_name), &info) != 0 && info.dli_fname != nullptr) {
    const fs::path file = fs::weakly_canonical(info.dli_fname, error);
    if (!error && file.has_parent_path() &&
        (folders.empty() || file.parent_path() != folders.front())) {
      folders.push_back(file.parent_path());
    }
  }
  return folders;
}

// A file that is not there is no news; one that is there and does not load is.
ProviderSearch find_provider(ProviderKind kind) {
  ProviderSearch search;
  search.name = library_name(kind).provider;
  const std::vector<std::string> candidates = library_candidates(kind);
  for (const std::string& path : candidates) {
    std::error_code error;
    const bool bare = path.find('/') == std::string::npos;
    if (!bare && !fs::exists(path, error)) continue;
    search.path = path;
    Result<const Provider*> opened = Provider::open(path);
    if (opened.ok()) {
      search.found = *opened;
      search.problem.clear();
      search.broken = false;
      return search;
    }
    search.broken = search.broken || !bare;
    if (!search.problem.empty()) search.problem += "; ";
    search.problem += opened.status().message();
  }
  search.problem += fmt::format("; tried {}", fmt::join(candidates, ", "));
  return search;
}

ProviderSearch open_given(const std::string& path) {
  ProviderSearch search;
  Result<const Provider*> opened = Provider::open(path);
  search.path = path;
  if (opened.ok()) {
    search.found = *opened;
    search.name = search.found->name();
  } else {
    search.problem = opened.status().message();
  }
  return search;
}

}  // namespace

std::vector<std::string> library_candidates(ProviderKind kind) {
  const auto [provider, file] = library_name(kind);
  std::vector<std::string> paths;
  for (const fs::path& folder : own_folders()) {
    paths.push_back((folder.parent_path() / "lib" / "pteryx" / file).string());
    paths.push_back((folder / file).string());
  }
  if (constexpr std::string_view kBuilt = PTERYX_PROVIDER_DIR; !kBuilt.empty()) {
    paths.push_back((fs::path(kBuilt) / provider / file).string());
  }
  paths.emplace_back(file);
  return paths;
}

Result<std::vector<ProviderSearch>> find_providers(std::string_view wish,
                                                   const std::string& library) {
  std::vector<ProviderSearch> searches;
  if (library == "none") return searches;
  if (!library.empty()) {
    searches.push_back(open_given(library));
    return searches;
  }
  for (const ProviderKind kind : kKinds) {
    if (wish.empty() || wish == library_name(kind).provider) {
      searches.push_back(find_provider(kind));
    }
  }
  if (searches.empty()) {
    return invalid_argument(fmt::format("provider '{}' is unknown; known are dawn wgpu", wish));
  }
  return searches;
}

}  // namespace pteryx::gpu::native
