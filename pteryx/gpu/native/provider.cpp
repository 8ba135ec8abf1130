// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/gpu/native/provider.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <system_error>
#include <utility>

#include <dlfcn.h>

#include <fmt/format.h>

namespace pteryx::gpu::native {
namespace {

// Without the second, Dawn offers no shader-f16 on NVIDIA; the first is for subgroup matrices.
constexpr const char* kDawnToggles[] = {"allow_unsafe_apis", "vulkan_enable_f16_on_nvidia"};
constexpr const char* kDawnUncheckedToggles[] = {"disable_robustness"};
// Which rounds times to a tenth of a millisecond, for pages.
constexpr const char* kDawnDisabledToggles[] = {"timestamp_quantization"};

// wgpu-native ends the process when asked for internal errors.
constexpr WGPUErrorFilter kDawnFilters[] = {WGPUErrorFilter_OutOfMemory, WGPUErrorFilter_Internal,
                                            WGPUErrorFilter_Validation};
constexpr WGPUErrorFilter kWgpuFilters[] = {WGPUErrorFilter_OutOfMemory,
                                            WGPUErrorFilter_Validation};

DawnToggles toggles(std::span<const char* const> enabled) {
  DawnToggles t;
  t.enabled_count = enabled.size();
  t.enabled = enabled.data();
  return t;
}

template <typename Function>
bool load(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

// The name of a function that is not there, or "".
std::string load_all(void* library, Functions& fn) {
#define PTERYX_WEBGPU_LOAD(name) \
  if (!load(library, "wgpu" #name, fn.name)) return "wgpu" #name;
  PTERYX_WEBGPU_FUNCTIONS(PTERYX_WEBGPU_LOAD)
#undef PTERYX_WEBGPU_LOAD
  load(library, "wgpuDevicePoll", fn.DevicePoll);
  load(library, "wgpuInstanceEnumerateAdapters", fn.InstanceEnumerateAdapters);
  load(library, "wgpuDeviceCreateShaderModuleTrusted", fn.DeviceCreateShaderModuleTrusted);
  load(library, "wgpuGetVersion", fn.GetVersion);
  load(library, "wgpuQueueGetTimestampPeriod", fn.QueueGetTimestampPeriod);
  load(library, "wgpuAdapterPropertiesSubgroupMatrixConfigsFreeMembers",
       fn.AdapterPropertiesSubgroupMatrixConfigsFreeMembers);
  return {};
}

// What a request's callback left.
template <typename Object>
struct Answer {
  Object object = nullptr;
  std::string problem;
};

template <typename Object, typename Status>
void take_answer(Status, Object object, WGPUStringView message, void* answer, void*) {
  auto& a = *static_cast<Answer<Object>*>(answer);
  a.object = object;
  if (object == nullptr) a.problem = text(message);
}

}  // namespace

Result<const Provider*> Provider::open(const std::string& path) {
  static std::mutex mutex;
  static std::map<std::string, std::unique_ptr<const Provider>> opened;
  const std::lock_guard lock(mutex);
  if (const auto it = opened.find(path); it != opened.end()) return it->second.get();

  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return device_error(dlerror());
  std::unique_ptr<Provider> provider(new Provider);
  if (const std::string missing = load_all(library, provider->fn_); !missing.empty()) {
    dlclose(library);
    return device_error(fmt::format("{}: not a WebGPU library, {} is missing", path, missing));
  }
  provider->kind_ = provider->fn_.DevicePoll == nullptr ? ProviderKind::kDawn : ProviderKind::kWgpu;
  provider->library_ = path;
  return opened.emplace(path, std::move(provider)).first->second.get();
}

std::string Provider::version() const {
  if (fn_.GetVersion == nullptr) return {};
  const uint32_t v = fn_.GetVersion();
  return fmt::format("{}.{}.{}.{}", v >> 24, (v >> 16) & 0xFF, (v >> 8) & 0xFF, v & 0xFF);
}

std::string Provider::build() const {
  std::error_code error;
  const auto size = std::filesystem::file_size(library_, error);
  const auto time = std::filesystem::last_write_time(library_, error);
  const auto written = error ? 0 : time.time_since_epoch().count();
  return fmt::format("{} {} {}", version(), error ? 0 : size, written);
}

InstanceHandle Provider::create_instance() const {
  WGPUInstanceDescriptor desc = WGPU_INSTANCE_DESCRIPTOR_INIT;
  if (kind_ == ProviderKind::kDawn) {
    const WGPUInstanceFeatureName timed_wait = WGPUInstanceFeatureName_TimedWaitAny;
    DawnToggles chain = toggles(kDawnToggles);
    desc.requiredFeatures = &timed_wait;
    desc.requiredFeatureCount = 1;
    desc.nextInChain = &chain.chain;
    // Dawn writes its warnings, which are about limits nobody asked for, to stderr otherwise.
    DawnInstance quiet;
    quiet.log = [](uint32_t, WGPUStringView, void*, void*) {};
    chain.chain.next = &quiet.chain;
    return own(fn_, fn_.CreateInstance(&desc));
  }
  WGPUInstanceExtras extras = {};
  extras.chain.sType = static_cast<WGPUSType>(WGPUSType_InstanceExtras);
  extras.backends = WGPUInstanceBackend_Primary;
  desc.nextInChain = &extras.chain;
  return own(fn_, fn_.CreateInstance(&desc));
}

std::vector<AdapterHandle> Provider::find_adapters(WGPUInstance instance, Backend backend) const {
  std::vector<AdapterHandle> adapters;
  if (fn_.InstanceEnumerateAdapters != nullptr) {
    if (backend == Backend::kNull) return adapters;
    std::vector<WGPUAdapter> raw(fn_.InstanceEnumerateAdapters(instance, nullptr, nullptr));
    if (!raw.empty()) fn_.InstanceEnumerateAdapters(instance, nullptr, raw.data());
    for (const WGPUAdapter adapter : raw) adapters.push_back(own(fn_, adapter));
    return adapters;
  }

  // Dawn answers each request with one adapter: these three find all of a usual machine, some of
  // them twice.
  WGPURequestAdapterOptions fast = WGPU_REQUEST_ADAPTER_OPTIONS_INIT;
  DawnToggles chain = toggles(kDawnToggles);
  fast.nextInChain = &chain.chain;
  fast.powerPreference = WGPUPowerPreference_HighPerformance;
  if (backend == Backend::kNull) fast.backendType = WGPUBackendType_Null;
  WGPURequestAdapterOptions frugal = fast;
  frugal.powerPreference = WGPUPowerPreference_LowPower;
  WGPURequestAdapterOptions fallback = fast;
  fallback.powerPreference = WGPUPowerPreference_Undefined;
  fallback.forceFallbackAdapter = true;
  for (const WGPURequestAdapterOptions& options : {fast, frugal, fallback}) {
    Answer<WGPUAdapter> answer;
    WGPURequestAdapterCallbackInfo info = WGPU_REQUEST_ADAPTER_CALLBACK_INFO_INIT;
    info.mode = callback_mode();
    info.callback = take_answer;
    info.userdata1 = &answer;
    poll(instance, nullptr, fn_.InstanceRequestAdapter(instance, &options, info), UINT64_MAX);
    if (answer.object != nullptr) adapters.push_back(own(fn_, answer.object));
  }
  return adapters;
}

Result<DeviceHandle> Provider::request_device(WGPUInstance instance, WGPUAdapter adapter,
                                              WGPUDeviceDescriptor desc, Checks checks,
                                              BlobCache* kept) const {
  DawnToggles chain;
  if (checks == Checks::kOff) chain = toggles(kDawnUncheckedToggles);
  chain.disabled_count = std::size(kDawnDisabledToggles);
  chain.disabled = kDawnDisabledToggles;
  DawnCache cache;
  if (kept != nullptr) {
    cache.load = &BlobCache::load;
    cache.store = &BlobCache::store;
    cache.load_data[0] = cache.store_data[0] = kept;
    chain.chain.next = &cache.chain;
  }
  if (kind_ == ProviderKind::kDawn) desc.nextInChain = &chain.chain;
  Answer<WGPUDevice> answer;
  WGPURequestDeviceCallbackInfo info = WGPU_REQUEST_DEVICE_CALLBACK_INFO_INIT;
  info.mode = callback_mode();
  info.callback = take_answer;
  info.userdata1 = &answer;
  const WGPUFuture future = fn_.AdapterRequestDevice(adapter, &desc, info);
  if (kind_ == ProviderKind::kDawn) {
    poll(instance, nullptr, future, UINT64_MAX);
  } else {
    fn_.InstanceProcessEvents(instance);
  }
  if (answer.object == nullptr) return device_error("no device: " + answer.problem);
  return own(fn_, answer.object);
}

WGPUFeatureName Provider::subgroups_feature() const {
  return kind_ == ProviderKind::kDawn ? WGPUFeatureName_Subgroups
                                      : static_cast<WGPUFeatureName>(WGPUNativeFeature_Subgroup);
}

bool Provider::has_subgroup_matrix(WGPUAdapter adapter) const {
  if (kind_ != ProviderKind::kDawn || !fn_.AdapterHasFeature(adapter, kDawnSubgroupMatrix) ||
      fn_.AdapterPropertiesSubgroupMatrixConfigsFreeMembers == nullptr) {
    return false;
  }
  DawnSubgroupMatrixConfigs matrix;
  WGPUAdapterInfo info = WGPU_ADAPTER_INFO_INIT;
  info.nextInChain = &matrix.chain;
  if (fn_.AdapterGetInfo(adapter, &info) != WGPUStatus_Success) return false;
  const bool found =
      std::ranges::any_of(std::span(matrix.configs, matrix.count), [](const DawnMatrixConfig& c) {
        return c.component == DawnMatrixType::kF16 && c.result == DawnMatrixType::kF32 &&
               c.m == 16 && c.n == 16 && c.k == 16;
      });
  const bool compiles_only = info.backendType == WGPUBackendType_Null;  // lists no configurations
  fn_.AdapterPropertiesSubgroupMatrixConfigsFreeMembers(matrix);
  fn_.AdapterInfoFreeMembers(info);
  return found || compiles_only;
}

bool Provider::has_language_feature(WGPUInstance instance,
                                    WGPUWGSLLanguageFeatureName feature) const {
  return tells_language_features() &&
         fn_.InstanceHasWGSLLanguageFeature(instance, feature) != WGPU_FALSE;
}

std::string Provider::directives(const ShaderDesc& desc) const {
  std::string s;
  if (desc.uses_f16) s += "enable f16; ";
  if (kind_ == ProviderKind::kDawn) {  // wgpu-native has subgroups without being told, and rejects
                                       // the directive
    if (desc.uses_subgroups) s += "enable subgroups; ";
    // That neighbours share a subgroup is not to be seen in the text, so offsets that hang on the
    // invocation would be refused.
    if (desc.uses_subgroup_matrix) {
      s += "enable chromium_experimental_subgroup_matrix; "
           "diagnostic(off, chromium.subgroup_matrix_uniformity); ";
    }
  }
  return s;
}

ModuleHandle Provider::create_module(WGPUDevice device, const WGPUShaderModuleDescriptor& desc,
                                     Checks checks) const {
  if (checks == Checks::kOff && fn_.DeviceCreateShaderModuleTrusted != nullptr) {
    return own(fn_,
               fn_.DeviceCreateShaderModuleTrusted(device, &desc, WGPUShaderRuntimeChecks_None));
  }
  return own(fn_, fn_.DeviceCreateShaderModule(device, &desc));
}

double Provider::timestamp_ns(WGPUQueue queue) const {
  return fn_.QueueGetTimestampPeriod == nullptr
             ? 1.0
             : static_cast<double>(fn_.QueueGetTimestampPeriod(queue));
}

std::span<const WGPUErrorFilter> Provider::error_filters() const {
  if (kind_ == ProviderKind::kDawn) return kDawnFilters;
  return kWgpuFilters;
}

WGPUCallbackMode Provider::callback_mode() const {
  return kind_ == ProviderKind::kDawn ? WGPUCallbackMode_WaitAnyOnly
                                      : WGPUCallbackMode_AllowSpontaneous;
}

void Provider::poll(WGPUInstance instance, WGPUDevice device, WGPUFuture future,
                    uint64_t timeout_ns) const {
  if (kind_ == ProviderKind::kDawn) {
    WGPUFutureWaitInfo info = {future, WGPU_FALSE};
    fn_.InstanceWaitAny(instance, 1, &info, timeout_ns);
  } else if (device != nullptr) {
    fn_.DevicePoll(device, WGPU_FALSE, nullptr);
  }
}

void Provider::tick(WGPUInstance instance, WGPUDevice device) const {
  if (kind_ == ProviderKind::kDawn) {
    fn_.InstanceProcessEvents(instance);
  } else {
    fn_.DevicePoll(device, WGPU_FALSE, nullptr);
  }
}

bool Provider::tells_loss(std::string_view error) const {
  return kind_ == ProviderKind::kWgpu && error.find("device is lost") != std::string_view::npos;
}

}  // namespace pteryx::gpu::native
