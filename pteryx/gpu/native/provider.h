// A WebGPU library opened at run time, and all that differs between Dawn and wgpu-native.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "pteryx/base/status.h"
#include "pteryx/gpu/device.h"
#include "pteryx/gpu/native/blob_cache.h"
#include "pteryx/gpu/native/functions.h"
#include "pteryx/gpu/native/handle.h"

namespace pteryx::gpu::native {

enum class ProviderKind : uint8_t { kDawn, kWgpu };
enum class Checks : uint8_t { kOn, kOff };  // of every access of a shader to memory
enum class Backend : uint8_t { kDefault, kNull };

class Provider {
 public:
  // Opens the library at `path` once per process; it is never closed, its drivers keep threads and
  // hooks. Errors: kDevice with the loader's words or the missing function.
  static Result<const Provider*> open(const std::string& path);

  const Functions& fn() const { return fn_; }
  ProviderKind kind() const { return kind_; }
  std::string_view name() const { return kind_ == ProviderKind::kDawn ? "dawn" : "wgpu"; }
  const std::string& library() const { return library_; }
  std::string version() const;  // "" where the library does not tell
  std::string build() const;    // tells one build from another, also where it has no version

  InstanceHandle create_instance() const;
  // Every adapter the instance offers, in the library's order; kNull is Dawn's backend that
  // compiles but does not run.
  std::vector<AdapterHandle> find_adapters(WGPUInstance instance, Backend backend) const;
  // Fills desc's chain with what the checks and the cache, if it is not null, need for the time of
  // the call. Errors: kDevice with the library's words.
  Result<DeviceHandle> request_device(WGPUInstance instance, WGPUAdapter adapter,
                                      WGPUDeviceDescriptor desc, Checks checks,
                                      BlobCache* kept) const;
  // Whether a device takes a BlobCache: wgpu-native has no functions for it.
  bool keeps_blobs() const { return kind_ == ProviderKind::kDawn; }

  WGPUFeatureName subgroups_feature() const;
  // f16 x f16 -> f32, 16x16x16 among the adapter's subgroup matrix configurations.
  bool has_subgroup_matrix(WGPUAdapter adapter) const;
  // False also where the library does not tell.
  bool has_language_feature(WGPUInstance instance, WGPUWGSLLanguageFeatureName feature) const;
  bool tells_language_features() const { return kind_ == ProviderKind::kDawn; }

  // The `enable` directives of a shader, on one line so that the compiler's line numbers stay true.
  std::string directives(const ShaderDesc& desc) const;
  ModuleHandle create_module(WGPUDevice device, const WGPUShaderModuleDescriptor& desc,
                             Checks checks) const;
  // Of one tick of timestamps: Dawn makes nanoseconds of them itself.
  double timestamp_ns(WGPUQueue queue) const;
  bool compiles_in_background() const { return kind_ == ProviderKind::kDawn; }

  // What error scopes can be asked for, outermost first: out of memory also raises errors of the
  // other kinds.
  std::span<const WGPUErrorFilter> error_filters() const;
  // Futures complete only inside poll: with Dawn the one given, with wgpu-native any.
  WGPUCallbackMode callback_mode() const;
  // Lets the library make progress; blocks for at most timeout_ns, and only if can_block().
  void poll(WGPUInstance instance, WGPUDevice device, WGPUFuture future, uint64_t timeout_ns) const;
  bool can_block() const { return kind_ == ProviderKind::kDawn; }
  // Frees what finished work still held.
  void tick(WGPUInstance instance, WGPUDevice device) const;
  // Whether the text of an error says that the device is gone; Dawn has a callback for that.
  bool tells_loss(std::string_view error) const;

 private:
  Provider() = default;

  Functions fn_;
  ProviderKind kind_ = ProviderKind::kDawn;
  std::string library_;
};

// The files to try for a provider, in order; the last is a bare name that the system's loader looks
// up.
std::vector<std::string> library_candidates(ProviderKind kind);

// The providers to use for a wish of "", "dawn" or "wgpu": the library at the given path alone if
// there is one, else the one wished for, else Dawn and then wgpu-native.
struct ProviderSearch {
  std::string name;  // "dawn", "wgpu"; "" if a library given by path cannot be opened
  std::string path;  // what was opened or, failing that, asked for
  const Provider* found = nullptr;
  std::string problem;  // why found is null
  bool broken = false;  // a file is there, and cannot be opened
};
Result<std::vector<ProviderSearch>> find_providers(std::string_view wish,
                                                   const std::string& library);

}  // namespace pteryx::gpu::native
