// Large writes from sources, through upload buffers. SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "pteryx/base/checked.h"
#include "pteryx/gpu/native/native_device.h"

namespace pteryx::gpu::native {

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

// The first `size` bytes of it, which the host has written.
void NativeDevice::send_upload(UploadSlot& upload, uint64_t size, const BufferSlot& to,
                               uint64_t offset) {
  const Functions& f = fn();
  f.BufferUnmap(upload.buffer.get());
  const EncoderHandle encoder = own(f, f.DeviceCreateCommandEncoder(device_.get(), nullptr));
  f.CommandEncoderCopyBufferToBuffer(encoder.get(), upload.buffer.get(), 0, to.handle.get(), offset,
                                     size);
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

// Up to 3 bytes behind the end are zero.
Result<bool> NativeDevice::upload_part(BufferSlot& slot, SourceWrite& w) {
  PTERYX_ASSIGN(UploadSlot* const upload, free_upload());
  if (upload == nullptr) return false;
  const uint64_t size = std::min(w.size, kUploadBytes);
  const uint64_t padded = align_up(size, 4);
  auto* const to =
      static_cast<std::byte*>(fn().BufferGetMappedRange(upload->buffer.get(), 0, kUploadBytes));
  if (to == nullptr) {
    PTERYX_TRY(errors_.take());
    return device_error("upload buffer: its memory cannot be had");
  }
  if (const auto bytes = w.source->view(w.from, size)) {
    std::memcpy(to, bytes->data(), size);
  } else {
    PTERYX_ASSIGN(const bool there, w.source->read(w.from, MutableBytes(to, size)));
    if (!there) return false;
  }
  std::memset(to + size, 0, padded - size);
  send_upload(*upload, padded, slot, w.offset);
  w.from += size;
  w.offset += size;
  w.size -= size;
  PTERYX_TRY(errors_.take());
  return true;
}

// Lets their memory go, but for what is on its way to the GPU.
void NativeDevice::drop_uploads() {
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
