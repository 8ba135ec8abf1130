// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <string>

#include "pteryx/base/json.h"
#include "pteryx/gpu/web/web_device.h"

namespace pteryx::gpu::web {
namespace {

bool lists(const Json& j, std::string_view list, std::string_view name) {
  const Json::Array* const found = j[list].array();
  return found != nullptr && std::ranges::any_of(*found, [&](const Json& n) {
           return n.text() != nullptr && *n.text() == name;
         });
}

std::string text(const Json& j, std::string_view name) {
  const std::string* const found = j[name].text();
  return found != nullptr ? *found : std::string();
}

// Numbers of a script are doubles.
uint64_t number(const Json& j, std::string_view name, uint64_t otherwise) {
  constexpr double kMost = 1e15;
  const auto found = j[name].number();
  return found ? static_cast<uint64_t>(std::clamp(*found, 0.0, kMost)) : otherwise;
}

// Pages are told who made a GPU, and seldom which it is.
Sizes usual_sizes(std::string_view vendor, bool software) {
  if (software) return {.processors = 4, .invocations = 256};
  if (vendor == "nvidia" || vendor == "amd") return {.processors = 64, .invocations = 2048};
  return {.processors = 16, .invocations = 1024};
}

}  // namespace

Result<Caps> read_caps(std::string_view json) {
  PTERYX_ASSIGN(const Json j, parse_json(json, "the description of the GPU"));
  if (j.object() == nullptr) return invalid_argument("the description of the GPU is not an object");
  Caps caps;
  caps.f16 = lists(j, "features", "shader-f16");
  caps.dot4 = lists(j, "language_features", "packed_4x8_integer_dot_product");
  caps.subgroup_min = static_cast<uint32_t>(number(j, "subgroupMinSize", 0));
  caps.subgroup_max = static_cast<uint32_t>(number(j, "subgroupMaxSize", 0));
  caps.subgroups = lists(j, "features", "subgroups") && caps.subgroup_max > 0;
  if (!caps.subgroups) caps.subgroup_min = caps.subgroup_max = 0;
  const bool* const fallback = j["isFallbackAdapter"].flag();
  caps.software = fallback != nullptr && *fallback;
  caps.slow_compiler = text(j, "architecture") == "swiftshader";
  const auto set = [&](std::string_view name, auto& limit) {
    limit = static_cast<std::remove_reference_t<decltype(limit)>>(number(j, name, limit));
  };
  set("maxBufferSize", caps.max_buffer_bytes);
  set("maxStorageBufferBindingSize", caps.max_binding_bytes);
  set("maxStorageBuffersPerShaderStage", caps.max_storage_buffers);
  set("maxComputeWorkgroupsPerDimension", caps.max_workgroups_per_dim);
  set("maxComputeInvocationsPerWorkgroup", caps.max_invocations);
  set("maxComputeWorkgroupSizeX", caps.max_workgroup_size_x);
  set("maxComputeWorkgroupStorageSize", caps.max_workgroup_bytes);
  set("minUniformBufferOffsetAlignment", caps.uniform_alignment);
  set("minStorageBufferOffsetAlignment", caps.storage_alignment);
  caps.sizes = usual_sizes(text(j, "vendor"), caps.software);
  caps.adapter = text(j, "name");
  caps.provider = "browser";
  PTERYX_TRY(mask_caps(caps, text(j, "disable")));
  return caps;
}

}  // namespace pteryx::gpu::web
