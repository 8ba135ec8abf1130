// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/gpu/native/sizes.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "pteryx/base/json.h"
#include "pteryx/base/output_file.h"
#include "pteryx/base/source.h"

namespace pteryx::gpu {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kLargestFile = uint64_t{1} << 20;
// What any GPU stays within: a file from elsewhere must not make a plan absurd.
constexpr uint64_t kMostProcessors = 4096;
constexpr uint64_t kMostInvocations = 16384;

struct Row {
  AdapterKind kind;
  std::string_view name;  // part of the adapter's; "": any
  Sizes sizes;
};
// The first that fits. Those with a name were measured by `pteryx tune`.
constexpr Row kRows[] = {
    {AdapterKind::kDiscrete, "H200", {.processors = 132, .invocations = 2048}},
    {AdapterKind::kSoftware, "llvmpipe", {.processors = 4, .invocations = 256}},
    {AdapterKind::kDiscrete, "", {.processors = 64, .invocations = 2048}},
    {AdapterKind::kIntegrated, "", {.processors = 16, .invocations = 1024}},
    {AdapterKind::kSoftware, "", {.processors = 4, .invocations = 256}},
    {AdapterKind::kUnknown, "", {}},
};

std::string file_in(const std::string& folder) { return (fs::path(folder) / "gpus.json").string(); }

// {"NVIDIA H200": {"processors": 132, "invocations": 2048}}; null where there is none to use.
Json read_file(const std::string& folder) {
  const auto text = read_all(file_in(folder), kLargestFile);
  if (!text.ok()) return {};
  auto document = parse_json(*text, "gpus.json", {.unique = true});
  return document.ok() ? std::move(document).value() : Json();
}

std::optional<uint32_t> number_in(const Json& entry, std::string_view name, uint64_t most) {
  const auto value = entry[name].whole();
  if (!value || *value < 1 || *value > most) return std::nullopt;
  return static_cast<uint32_t>(*value);
}

}  // namespace

Sizes usual_sizes(AdapterKind kind, std::string_view adapter) {
  const auto* const row = std::ranges::find_if(kRows, [&](const Row& r) {
    return r.kind == kind && adapter.find(r.name) != std::string_view::npos;
  });
  return row == std::end(kRows) ? Sizes() : row->sizes;
}

std::optional<Sizes> kept_sizes(const std::string& folder, std::string_view adapter) {
  if (folder.empty()) return std::nullopt;
  const Json all = read_file(folder);
  const Json& entry = all[adapter];
  const auto processors = number_in(entry, "processors", kMostProcessors);
  const auto invocations = number_in(entry, "invocations", kMostInvocations);
  if (!processors || !invocations) return std::nullopt;
  return Sizes{.processors = *processors, .invocations = *invocations};
}

Result<std::string> keep_sizes(const std::string& folder, std::string_view adapter,
                               const Sizes& sizes) {
  std::error_code error;
  if (fs::create_directories(folder, error))
    fs::permissions(folder, fs::perms::owner_all, error);  // as the cache of conversions wants it
  if (error) return io_error(folder + ": the folder cannot be made: " + error.message());
  Json all = read_file(folder);
  Json entry;
  entry.set("processors", sizes.processors);
  entry.set("invocations", sizes.invocations);
  all.set(adapter, std::move(entry));
  const std::string path = file_in(folder);
  PTERYX_TRY(write_file(path, all.dump(2) + "\n"));
  return path;
}

Result<bool> forget_sizes(const std::string& folder, std::string_view adapter) {
  Json all = read_file(folder);
  if (!all.erase(adapter)) return false;
  PTERYX_TRY(write_file(file_in(folder), all.dump(2) + "\n"));
  return true;
}

}  // namespace pteryx::gpu
