// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/session/constants.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "pteryx/base/advance_all.h"
#include "pteryx/gpu/native/blocking.h"
#include "pteryx/ops/bind.h"
#include "pteryx/session/layout.h"

namespace pteryx {

ConstantId::ConstantId(const graph::Tensor& t)
    : data(t.data), dtype(t.dtype), dim_order(t.dim_order) {
  if (!dim_order.empty()) dims.assign(t.max.begin(), t.max.end());
}

ConstantBytes::ConstantBytes(const graph::Tensor& t, std::span<const SourcePtr> sources)
    : dims_(t.max), element_bytes_(size_bytes(t.dtype)), dim_order_(t.dim_order) {
  parts_.reserve(t.data.size());
  for (const ByteRange& r : t.data)
    parts_.emplace_back(sources[r.source], r.offset, r.size, element_bytes_);
}

Result<bool> ConstantBytes::advance() {
  if (there_) return true;
  PTERYX_ASSIGN(const bool all, advance_all(parts_));
  if (!all) return false;
  bytes_ = parts_.front().bytes();
  if (parts_.size() > 1) join();
  if (!dim_order_.empty()) to_row_major();
  there_ = true;
  return true;
}

Status ConstantBytes::read_now() {
  PTERYX_ASSIGN(const bool there, advance());
  return there ? Status() : io_error("the bytes of a constant are not there yet");
}

namespace {
MutableBytes memory_of(uint64_t size, std::vector<std::max_align_t>& memory) {
  memory.resize(div_up(size, sizeof(std::max_align_t)));
  return std::as_writable_bytes(std::span(memory)).first(size);
}
}  // namespace

void ConstantBytes::join() {
  uint64_t size = 0;
  for (const FetchedBytes& part : parts_) size += part.bytes().size();
  const MutableBytes out = memory_of(size, memory_);
  uint64_t at = 0;
  for (const FetchedBytes& part : parts_) {
    if (part.bytes().empty()) continue;
    std::memcpy(&out[at], part.bytes().data(), part.bytes().size());
    at += part.bytes().size();
  }
  bytes_ = out;
}

void ConstantBytes::to_row_major() {
  std::vector<std::max_align_t> ordered;
  const MutableBytes out = memory_of(bytes_.size(), ordered);
  const Dims from = strides_for_order(dims_, dim_order_);
  const Dims to = contiguous_strides(dims_);
  const int64_t n = numel(dims_);
  for (int64_t i = 0; i < n; ++i) {
    int64_t at = 0;
    for (size_t d = 0; d < dims_.rank(); ++d) at += i / to[d] % dims_[d] * from[d];
    std::memcpy(&out[static_cast<size_t>(i) * element_bytes_],
                &bytes_[static_cast<size_t>(at) * element_bytes_], element_bytes_);
  }
  memory_ = std::move(ordered);
  bytes_ = out;
}

namespace {

// Parts that are written from where they are, instead of through host memory.
bool written_as_they_are(const graph::Tensor& t) {
  constexpr uint64_t kSmall = 64U << 10;  // then one write is cheaper than many
  if (t.dtype == DType::kI64 || !t.dim_order.empty()) return false;
  if (t.data.size() == 1) return true;
  return std::ranges::all_of(
      t.data, [&](const ByteRange& r) { return r.size >= kSmall && r.size % 4 == 0; });
}

// As the GPU has them: only indices are i64.
Result<std::vector<std::byte>> narrowed(const graph::Tensor& t, Bytes bytes,
                                        std::string_view label) {
  const ops::HostTensor wide{t.dtype, t.max, const_cast<std::byte*>(bytes.data())};
  std::vector<std::byte> narrow(bytes.size() / 2);
  const ops::HostTensor to{DType::kI32, t.max, narrow.data()};
  for (int64_t i = 0; i < wide.numel(); ++i) {
    if (!fits<int32_t>(wide.integer(i))) {
      return invalid_program(fmt::format("constant {}: element {} is {}, which does not fit i32",
                                         label, i, wide.integer(i)));
    }
    to.put_integer(i, wide.integer(i));
  }
  return narrow;
}

}  // namespace

Status ConstantPool::count(uint64_t bytes, const LoadOptions& options) {
  done_ += bytes;
  if (!options.progress || options.progress("uploading weights", done_, total_)) return {};
  return {Code::kCancelled, "load cancelled while uploading weights"};
}

Status ConstantPool::write_parts(const graph::Tensor& t, gpu::BufferId buffer,
                                 const LoadOptions& options) {
  constexpr uint64_t kChunk = 32U << 20;
  uint64_t offset = 0;
  for (const ByteRange& part : t.data) {
    for (uint64_t at = 0; at < part.size; at += kChunk) {
      const uint64_t size = std::min(kChunk, part.size - at);
      PTERYX_TRY(device_->write(buffer, offset, sources_[part.source], part.offset + at, size));
      offset += size;
      PTERYX_TRY(count(size, options));
    }
  }
  return {};
}

Result<gpu::BufferId> ConstantPool::upload(const graph::Tensor& t, std::string_view label,
                                           const LoadOptions& options) {
  const ConstantId key(t);
  if (const auto it = buffers_.find(key); it != buffers_.end()) return it->second.get();
  const uint64_t size = static_cast<uint64_t>(numel(t.max)) * gpu_element_bytes(t.dtype);
  OwnedBuffer buffer(device_, device_->create_buffer({.size = size, .label = label}));
  PTERYX_TRY(gpu::settle(*device_, buffer.get()));
  if (written_as_they_are(t)) {
    PTERYX_TRY(write_parts(t, buffer.get(), options));
  } else {
    ConstantBytes host(t, sources_);
    PTERYX_TRY(host.read_now());
    std::vector<std::byte> narrow;
    if (t.dtype == DType::kI64) {
      PTERYX_ASSIGN(narrow, narrowed(t, host.bytes(), label));
    }
    PTERYX_TRY(device_->write(buffer.get(), 0, t.dtype == DType::kI64 ? narrow : host.bytes()));
    PTERYX_TRY(count(size, options));
  }
  PTERYX_TRY(gpu::settle(*device_, buffer.get()));
  const gpu::BufferId id = buffer.get();
  buffers_.emplace(key, std::move(buffer));
  return id;
}

Result<gpu::BufferId> ConstantPool::relaid(const graph::Tensor& t, gpu::BufferId source,
                                           const ops::PlannedConstant& wanted) {
  auto key = std::make_pair(ConstantId(t), wanted.layout);
  if (const auto it = relaid_.find(key); it != relaid_.end()) return it->second.get();
  const ops::PlannedDispatch& d = wanted.make;
  Creations created;
  OwnedBuffer made =
      created.buffer(device_, wanted.size_bytes, gpu::BufferKind::kStorage, wanted.layout);
  const OwnedBuffer params =
      created.buffer(device_, ops::params_bytes(d), gpu::BufferKind::kUniform, d.label);
  const gpu::Dispatch dispatch =
      ops::bind(*device_, d, {params.get(), 0, 0}, [&](const ops::PlannedBinding& b) {
        return gpu::Binding{b.written ? made.get() : source, 0, 0};
      });
  const OwnedBindings bindings = created.dispatch(device_, dispatch);
  PTERYX_TRY(gpu::wait_until(*device_, [&] { return created.settled(*device_); }));
  PTERYX_TRY(device_->write(params.get(), 0, d.params));
  PTERYX_TRY(device_->submit(std::span(&dispatch, 1), {}));
  return relaid_.emplace(std::move(key), std::move(made)).first->second.get();
}

}  // namespace pteryx
