// Memory and results. SPDX-License-Identifier: BSD-3-Clause
#include "result.h"

#include <cstdlib>

#include <fmt/format.h>

#include "pteryx/base/web/host.h"

namespace pteryx::web {
namespace {

std::string result;  // of the last call

std::string_view code_name(Code code) {
  switch (code) {
    case Code::kInvalidProgram: return "invalid-program";
    case Code::kInvalidArgument: return "invalid-argument";
    case Code::kUnsupported: return "unsupported";
    case Code::kDevice: return "device";
    case Code::kMemory: return "out-of-memory";
    case Code::kIo: return "io";
    case Code::kCancelled: return "cancelled";
    case Code::kOk: break;
  }
  return "internal";
}

}  // namespace

int32_t give(const Json& json) {
  result = json.dump();
  return kDone;
}

int32_t give(Bytes bytes) {
  result.assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return kDone;
}

int32_t fail(const Status& status) {
  give(Json().set("code", code_name(status.code())).set("message", status.message()));
  return kFailed;
}

int32_t fail_handle(std::string_view what) {
  return fail(invalid_argument(fmt::format("the {} is not there, or was disposed of", what)));
}

void take(const Json& j, std::string_view name, bool& value) {
  if (const bool* const b = j[name].flag()) value = *b;
}

void take(const Json& j, std::string_view name, std::string& value) {
  if (const std::string* const s = j[name].text()) value = *s;
}

void take(const Json& j, std::string_view name, double& value) {
  if (const auto d = j[name].number()) value = *d;
}

void take(const Json& j, std::string_view name, float& value) {
  if (const auto d = j[name].number()) value = static_cast<float>(*d);
}

void take(const Json& j, std::string_view name, uint64_t& value) {
  const Json& found = j[name];
  if (const auto u = found.whole()) {
    value = *u;
  } else if (const auto d = found.number()) {
    value = *d < 0x1p64 ? static_cast<uint64_t>(std::max(*d, 0.0)) : UINT64_MAX;
  }
}

void take(const Json& j, std::string_view name, int64_t& value) {
  const Json& found = j[name];
  if (const auto i = found.integer()) {
    value = *i;
  } else if (const auto d = found.number()) {
    value = *d >= 0x1p63 ? INT64_MAX : *d > -0x1p63 ? static_cast<int64_t>(*d) : INT64_MIN;
  }
}

std::span<const Json> elements(const Json& j) {
  return j.array() != nullptr ? std::span<const Json>(*j.array()) : std::span<const Json>();
}

Result<SourcePtr> read_source(const Json& description) {
  uint32_t id = 0;
  std::string name;
  double size = -1;
  take(description, "id", id);
  take(description, "name", name);
  take(description, "size", size);
  if (id == 0 || !(size >= 0)) return invalid_argument("a source has no id or no size");
  return SourcePtr(std::make_shared<HostSource>(id, std::move(name), static_cast<uint64_t>(size)));
}

Result<std::vector<SourcePtr>> read_sources(const Json& list) {
  std::vector<SourcePtr> sources;
  for (const Json& description : elements(list)) {
    PTERYX_ASSIGN(SourcePtr source, read_source(description));
    sources.push_back(std::move(source));
  }
  return sources;
}

}  // namespace pteryx::web

using namespace pteryx::web;  // NOLINT: all below is exports

PTERYX_EXPORT(allocate) void* export_allocate(size_t size) { return std::malloc(size); }
PTERYX_EXPORT(release) void export_release(void* memory) { std::free(memory); }
PTERYX_EXPORT(result_data) const char* export_result_data() { return result.data(); }
PTERYX_EXPORT(result_size) size_t export_result_size() { return result.size(); }
