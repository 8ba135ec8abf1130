// Large writes from sources, through upload buffers. SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cstring>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "pteryx/base/checked.h"
#include "pteryx/base/thread.h"
#include "pteryx/gpu/native/native_device.h"

namespace pteryx::gpu::native {
namespace {

constexpr uint64_t kPartAlignment = 16;

// One core copies from a mapped file at a fraction of what the memory gives.
void copy(std::byte* to, const std::byte* from, uint64_t size) {
  constexpr uint64_t kMostThreads = 4;
  constexpr uint64_t kShare = uint64_t{1} << 20;  // worth a thread
  const uint64_t cores = std::max(std::thread::hardware_concurrency(), 1U);
  const uint64_t count = std::clamp<uint64_t>(size / kShare, 1, std::min(cores, kMostThreads));
  const uint64_t share = align_up(size / count, 4096);
  std::vector<Thread> threads;
  for (uint64_t at = share; at < size; at += share) {
    const auto part = [=] { std::memcpy(to + at, from + at, std::min(share, size - at)); };
    if (std::optional<Thread> thread = Thread::start(part)) {
      threads.push_back(std::move(*thread));
    } else {
      part();
    }
  }
  std::memcpy(to, from, std::min(share, size));
}

}  // namespace

// A mapped one; null if all are on their way to the GPU.
Result<UploadSlot*> NativeDevice::free_upload() {
  for (UploadSlot& u : uploads_) {
    if (u.state == UploadSlot::State::kBusy) poll(u.future, 0);
    if (u.state == UploadSlot::State::kFailed) {
      PTERYX_TRY(errors_.take());
      return device_error(fmt::format("upload buffer: {}", u.error));
    }
    if (u.state == UploadSlot::State::kMapped) return &u;
    if (u.state != UploadSlot::State::kNone) continue;
    WGPUBufferDescriptor desc = WGPU_BUFFER_DESCRIPTOR_INIT;
    desc.label = view("upload");
    desc.size = kUploadBytes;
    desc.usage = WGPUBufferUsage_MapWrite | WGPUBufferUsage_CopySrc;
    desc.mappedAtCreation = WGPU_TRUE;
    ErrorScope errors = scope();
    BufferHandle handle = own(fn(), fn().DeviceCreateBuffer(device_.get(), &desc));
    const auto error = errors.close();
    PTERYX_TRY(errors_.take());
    if (error || handle == nullptr) {
      return memory_error(fmt::format("upload buffer of {} bytes: {}", kUploadBytes,
                                      error ? error->text : "not created"));
    }
    u.buffer = std::move(handle);
    u.state = UploadSlot::State::kMapped;
    return &u;
  }
  return nullptr;
}

// What was filled so far goes to the GPU.
void NativeDevice::send_upload() {
  UploadSlot* const filled = std::exchange(filling_, nullptr);
  if (filled == nullptr) return;
  UploadSlot& upload = *filled;
  const Functions& f = fn();
  f.BufferUnmap(upload.buffer.get());
  const EncoderHandle encoder = own(f, f.DeviceCreateCommandEncoder(device_.get(), nullptr));
  for (const UploadSlot::Part& p : upload.parts) {
    f.CommandEncoderCopyBufferToBuffer(encoder.get(), upload.buffer.get(), p.from, p.to, p.offset,
                                       p.size);
  }
  upload.parts.clear();
  upload.used = 0;
  upload.memory = nullptr;
  const CommandsHandle commands = own(f, f.CommandEncoderFinish(encoder.get(), nullptr));
  WGPUCommandBuffer const buffer = commands.get();
  // wgpu-native ends the process when commands with an error are submitted.
  if (errors_.empty()) f.QueueSubmit(queue_.get(), 1, &buffer);
  unflushed_bytes_ = 0;
  WGPUBufferMapCallbackInfo info = WGPU_BUFFER_MAP_CALLBACK_INFO_INIT;
  info.mode = provider().callback_mode();
  info.callback = [](WGPUMapAsyncStatus status, WGPUStringView message, void* user, void*) {
    auto& u = *static_cast<UploadSlot*>(user);
    const bool mapped = status == WGPUMapAsyncStatus_Success;
    u.state = mapped ? UploadSlot::State::kMapped : UploadSlot::State::kFailed;
    if (!mapped) u.error = text(message);
  };
  info.userdata1 = &upload;
  upload.state = UploadSlot::State::kBusy;
  upload.future = f.BufferMapAsync(upload.buffer.get(), WGPUMapMode_Write, 0, kUploadBytes, info);
}

// Up to 3 bytes behind the end are zero. It is sent with others when the buffer is full, or before
// anything that could see that it was not.
Result<bool> NativeDevice::upload_part(const BufferSlot& slot, SourceWrite& w) {
  if (filling_ == nullptr) {
    PTERYX_ASSIGN(UploadSlot* const upload, free_upload());
    if (upload == nullptr) return false;
    upload->memory =
        static_cast<std::byte*>(fn().BufferGetMappedRange(upload->buffer.get(), 0, kUploadBytes));
    if (upload->memory == nullptr) {
      PTERYX_TRY(errors_.take());
      return device_error("upload buffer: its memory cannot be had");
    }
    filling_ = upload;
  }
  UploadSlot& upload = *filling_;
  const uint64_t size = std::min(w.size, kUploadBytes - upload.used);
  std::byte* const to = upload.memory + upload.used;
  if (const auto bytes = w.source->view(w.from, size)) {
    copy(to, bytes->data(), size);
  } else {
    PTERYX_ASSIGN(const bool there, w.source->read(w.from, MutableBytes(to, size)));
    if (!there) return false;
  }
  const uint64_t padded = align_up(size, 4);
  std::memset(to + size, 0, padded - size);
  upload.parts.push_back({slot.handle.get(), w.offset, upload.used, padded});
  upload.used += align_up(padded, kPartAlignment);
  if (upload.used == kUploadBytes) send_upload();
  w.from += size;
  w.offset += size;
  w.size -= size;
  PTERYX_TRY(errors_.take());
  return true;
}

bool NativeDevice::is_filling(const BufferSlot& slot, uint64_t offset, uint64_t size) const {
  return filling_ != nullptr &&
         std::ranges::any_of(filling_->parts, [&](const UploadSlot::Part& p) {
           return p.to == slot.handle.get() && p.offset < offset + size &&
                  offset < p.offset + p.size;
         });
}

void NativeDevice::forget_upload(const BufferSlot& slot) {
  if (filling_ == nullptr) return;
  std::erase_if(filling_->parts,
                [&](const UploadSlot::Part& p) { return p.to == slot.handle.get(); });
}

// Sends what there is, and lets memory go that is not on its way to the GPU.
void NativeDevice::drop_uploads() {
  send_upload();
  uploading_ = false;
  for (UploadSlot& u : uploads_) {
    if (u.state == UploadSlot::State::kBusy) poll(u.future, 0);
    if (u.state == UploadSlot::State::kBusy) {
      uploading_ = true;
    } else {
      u = UploadSlot();
    }
  }
}

void NativeDevice::end_uploads() {
  for (UploadSlot& u : uploads_) {
    if (u.state != UploadSlot::State::kBusy) continue;
    fn().BufferUnmap(u.buffer.get());
    poll(u.future, UINT64_MAX);  // answers at once, now that it is unmapped
  }
}

}  // namespace pteryx::gpu::native
