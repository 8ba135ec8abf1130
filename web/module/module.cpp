// Devices, and how programs are loaded on them. SPDX-License-Identifier: BSD-3-Clause
#include "module.h"

#include <fmt/format.h>

#include "pteryx/base/web/host.h"
#include "pteryx/gpu/web/web_device.h"
#include "pteryx/ops/kernel/files_web.h"

extern "C" {
// How far a load is; not 0: go on.
PTERYX_IMPORT(progress)
int32_t pteryx_progress(uint32_t job, const char* what, size_t size, double done, double total);
}

namespace pteryx::web {
namespace {

Table<std::shared_ptr<gpu::Device>> devices;

}  // namespace

Handle add_device(std::shared_ptr<gpu::Device> device) {
  return devices.add(std::make_unique<std::shared_ptr<gpu::Device>>(std::move(device)));
}

Result<std::shared_ptr<gpu::Device>> find_device(Handle handle) {
  const auto* const device = devices.find(handle);
  if (device == nullptr) return invalid_argument("the device is not there, or was closed");
  return *device;
}

Result<LoadOptions> read_load_options(const Json& j, std::shared_ptr<gpu::Device> device) {
  LoadOptions options;
  options.device = std::move(device);
  std::string precision;
  std::string kv;
  double limit = 0;
  uint32_t job = 0;
  take(j, "precision", precision);
  take(j, "kv", kv);
  take(j, "memoryLimit", limit);
  take(j, "threads", options.threads);
  take(j, "job", job);
  take(j, "routes", options.testing.routes);
  take(j, "fuse", options.testing.fuse);
  if (precision == "f16") options.precision = Precision::kF16;
  if (kv == "f16") options.kv_cache = DType::kF16;
  if (kv == "f32") options.kv_cache = DType::kF32;
  if (limit > 0) options.memory_limit = static_cast<uint64_t>(limit);
  options.progress = [job](std::string_view what, uint64_t done, uint64_t total) {
    return pteryx_progress(job, what.data(), what.size(), static_cast<double>(done),
                           static_cast<double>(total)) != 0;
  };
  return options;
}

Json describe(const ValueInfo& info, std::string name) {
  Json j;
  j.set("name", std::move(name));
  j.set("kind", info.kind);
  if (info.kind == "tensor") {
    j.set("dtype", pteryx::name(info.dtype));
    j.set("dims", Json::list(info.dims.span()));
    j.set("dynamic", info.dynamic);
    return j;
  }
  if (const auto* i = info.fixed.integer()) j.set("value", *i);
  if (const auto* d = info.fixed.number()) j.set("value", *d);
  if (const auto* b = info.fixed.flag()) j.set("value", *b);
  if (const auto* s = info.fixed.text()) j.set("value", *s);
  return j;
}

// Tokens, where they begin unless there is no cache, and logits: the signature of a language model.
bool is_language_model(const MethodInfo& info) {
  const auto is_integer = [](const ValueInfo& v) {
    return v.kind == "tensor" && (v.dtype == DType::kI64 || v.dtype == DType::kI32);
  };
  if (info.inputs.empty() || info.inputs.size() > 2 || info.outputs.size() != 1) return false;
  const ValueInfo& tokens = info.inputs.front();
  const ValueInfo& logits = info.outputs.front();
  return is_integer(tokens) && tokens.dims.rank() == 2 && logits.kind == "tensor" &&
         !is_integer(logits) && logits.dims.rank() >= 2 &&
         (info.inputs.size() == 1 || (is_integer(info.inputs[1]) && info.inputs[1].dims.rank() < 2));
}

// Programs have no names for inputs and outputs. Those of a language model have usual ones.
Json describe(const MethodInfo& info) {
  const bool model = is_language_model(info);
  Json inputs = Json::Array();
  for (size_t i = 0; i < info.inputs.size(); ++i) {
    const char* const usual = i == 0 ? "tokens" : "position";
    inputs.push(describe(info.inputs[i], model ? usual : fmt::format("input{}", i)));
  }
  Json outputs = Json::Array();
  for (size_t i = 0; i < info.outputs.size(); ++i) {
    outputs.push(describe(info.outputs[i], model ? "logits" : fmt::format("output{}", i)));
  }
  Json j;
  j.set("name", info.name).set("inputs", std::move(inputs));
  j.set("outputs", std::move(outputs));
  return j;
}

}  // namespace pteryx::web

using namespace pteryx;       // NOLINT: all below is exports
using namespace pteryx::web;  // NOLINT

// Kernels of a GPU, in memory of `allocate` that is the module's from now on.
PTERYX_EXPORT(kernels_add) void export_kernels_add(const char* packed, size_t size) {
  ops::add_kernel_files({packed, size});
}

// `description`: see gpu::web::read_caps.
PTERYX_EXPORT(device_open_gpu)
int32_t export_device_open_gpu(uint32_t device, const char* description, size_t size) {
  auto caps = gpu::web::read_caps({description, size});
  if (!caps.ok()) return fail(caps.status());
  std::shared_ptr<gpu::Device> opened =
      std::make_shared<gpu::web::WebDevice>(device, std::move(caps).value());
  return give(add_device(std::move(opened)));
}

PTERYX_EXPORT(device_close) void export_device_close(Handle device) { devices.erase(device); }

PTERYX_EXPORT(device_counters) int32_t export_device_counters(Handle handle) {
  const auto device = find_device(handle);
  if (!device.ok()) return fail(device.status());
  const gpu::Counters c = (*device)->counters();
  Json j;
  j.set("memoryBytes", c.buffer_bytes_alive);
  j.set("buffers", c.buffers_alive);
  j.set("bindGroups", c.bind_groups_alive);
  j.set("pipelines", c.pipelines_created);
  j.set("submits", c.submits);
  j.set("dispatches", c.dispatches);
  j.set("writes", c.writes);
  j.set("reads", c.reads);
  return give(j);
}
