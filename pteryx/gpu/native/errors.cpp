// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/gpu/native/errors.h"

#include <memory>
#include <utility>

#include <fmt/format.h>

namespace pteryx::gpu::native {
namespace {

std::string trimmed(std::string_view s) {
  constexpr std::string_view kSpace = " \t\r\n";
  const size_t first = s.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return {};
  return std::string(s.substr(first, s.find_last_not_of(kSpace) - first + 1));
}

}  // namespace

void ErrorLog::attach(WGPUDeviceDescriptor& desc) {
  desc.uncapturedErrorCallbackInfo.callback = [](WGPUDevice const*, WGPUErrorType type,
                                                 WGPUStringView message, void* log, void*) {
    static_cast<ErrorLog*>(log)->record(type, text(message));
  };
  desc.uncapturedErrorCallbackInfo.userdata1 = this;
  desc.deviceLostCallbackInfo.mode = WGPUCallbackMode_AllowSpontaneous;
  desc.deviceLostCallbackInfo.callback = [](WGPUDevice const*, WGPUDeviceLostReason,
                                            WGPUStringView message, void* log, void*) {
    static_cast<ErrorLog*>(log)->lose(text(message));
  };
  desc.deviceLostCallbackInfo.userdata1 = this;
}

void ErrorLog::record(WGPUErrorType type, std::string_view text) {
  if (provider_.tells_loss(text)) return lose(text);
  const std::lock_guard lock(mutex_);
  if (first_.empty()) {
    code_ = type == WGPUErrorType_OutOfMemory ? Code::kMemory : Code::kDevice;
    first_ = trimmed(text);
  } else {
    ++more_;
  }
  any_.store(true, std::memory_order_release);
}

void ErrorLog::lose(std::string_view text) {
  const std::lock_guard lock(mutex_);
  if (loss_.empty()) loss_ = trimmed(text);
  lost_.store(true, std::memory_order_release);
  any_.store(true, std::memory_order_release);
}

Status ErrorLog::take() {
  if (empty()) return ok_status();
  const std::lock_guard lock(mutex_);
  if (lost()) return device_error(fmt::format("the GPU device is lost: {}", loss_));
  any_.store(false, std::memory_order_release);
  std::string message = std::exchange(first_, {});
  if (const uint64_t more = std::exchange(more_, 0); more > 0) {
    message += fmt::format("\n  and {} more", more);
  }
  return {code_, std::move(message)};
}

ErrorScope::ErrorScope(const Provider& provider, WGPUInstance instance, WGPUDevice device)
    : provider_(provider), instance_(instance), device_(device) {
  for (const WGPUErrorFilter filter : provider_.error_filters()) {
    provider_.fn().DevicePushErrorScope(device_, filter);
  }
}

std::optional<ErrorScope::Caught> ErrorScope::close() {
  if (!std::exchange(open_, false)) return std::nullopt;
  // An answer that came late would find its own place.
  struct Answer {
    size_t missing = 0;
    std::optional<Caught> caught;
  };
  const auto answer = std::make_shared<Answer>();
  WGPUPopErrorScopeCallbackInfo info = WGPU_POP_ERROR_SCOPE_CALLBACK_INFO_INIT;
  info.mode = provider_.callback_mode();
  info.callback = [](WGPUPopErrorScopeStatus, WGPUErrorType type, WGPUStringView message,
                     void* result, void*) {
    const std::unique_ptr<std::shared_ptr<Answer>> owned(
        static_cast<std::shared_ptr<Answer>*>(result));
    Answer& a = **owned;
    --a.missing;
    if (type != WGPUErrorType_NoError) a.caught = Caught{type, trimmed(text(message))};
  };
  // From the innermost outwards; the outermost has the last word.
  for (size_t i = 0; i < provider_.error_filters().size(); ++i) {
    ++answer->missing;
    info.userdata1 = std::make_unique<std::shared_ptr<Answer>>(answer).release();
    provider_.poll(instance_, device_, provider_.fn().DevicePopErrorScope(device_, info), 0);
  }
  if (answer->missing != 0 && !answer->caught)
    return Caught{WGPUErrorType_Unknown, "the library does not say whether it failed"};
  return answer->caught;
}

}  // namespace pteryx::gpu::native
