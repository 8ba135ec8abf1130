// Errors of a device: those its callbacks bring at any time, and those of one call.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "pteryx/base/status.h"
#include "pteryx/gpu/native/provider.h"

namespace pteryx::gpu::native {

// Callbacks record here, from any thread; the next call of ours reports. A lost device stays lost.
class ErrorLog {
 public:
  explicit ErrorLog(const Provider& provider) : provider_(provider) {}

  // Puts the callbacks into a descriptor; the log must outlive the device.
  void attach(WGPUDeviceDescriptor& desc);

  bool empty() const { return !any_.load(std::memory_order_acquire); }
  bool lost() const { return lost_.load(std::memory_order_acquire); }
  // Takes what was recorded, ok if nothing was. Errors: kMemory, kDevice.
  Status take();

 private:
  void record(WGPUErrorType type, std::string_view text);
  void lose(std::string_view text);

  const Provider& provider_;
  std::atomic<bool> any_ = false;
  std::atomic<bool> lost_ = false;
  std::mutex mutex_;  // guards what follows; held by no one who calls the provider
  Code code_ = Code::kOk;
  std::string first_;
  uint64_t more_ = 0;
  std::string loss_;
};

// Catches what goes wrong in the calls between its making and close(), both in one thread with the
// device locked. Both libraries know the answer when they are asked, so nothing waits.
class ErrorScope {
 public:
  ErrorScope(const Provider& provider, WGPUInstance instance, WGPUDevice device);
  ~ErrorScope() { close(); }
  ErrorScope(const ErrorScope&) = delete;
  ErrorScope& operator=(const ErrorScope&) = delete;

  struct Caught {
    WGPUErrorType type;
    std::string text;
  };
  std::optional<Caught> close();

 private:
  const Provider& provider_;
  WGPUInstance instance_;
  WGPUDevice device_;
  bool open_ = true;
};

}  // namespace pteryx::gpu::native
