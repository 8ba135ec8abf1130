// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/session/exec/constants.h"

#include <algorithm>

#include "pteryx/ops/bind.h"
#include "pteryx/session/layout.h"

namespace pteryx::exec {
namespace {

// Parts that are written from where they are, instead of through host memory.
bool written_as_they_are(const graph::Tensor& t) {
  constexpr uint64_t kSmall = 64U << 10;  // then one write is cheaper than many
  if (t.dtype == DType::kI64 || !t.dim_order.empty() || t.stored) return false;
  if (t.data.size() == 1) return true;
  return std::ranges::all_of(
      t.data, [&](const ByteRange& r) { return r.size >= kSmall && r.size % 4 == 0; });
}

}  // namespace

gpu::BufferId ConstantPool::upload(const graph::Tensor& t, std::string_view label) {
  const ConstantId id(t);
  if (const auto it = buffers_.find(id); it != buffers_.end()) return it->second.get();
  const uint64_t size = static_cast<uint64_t>(numel(t.max)) * gpu_element_bytes(t.dtype);
  const gpu::BufferId buffer = device_->create_buffer({.size = size, .label = label});
  buffers_.emplace(id, OwnedBuffer(device_, buffer));
  Upload u{.id = id, .tensor = t, .label = std::string(label), .buffer = buffer, .host = {}};
  if (!written_as_they_are(t)) u.host.emplace(t, sources_);
  uploads_.push_back(std::move(u));
  return buffer;
}

gpu::BufferId ConstantPool::relaid(const graph::Tensor& t, gpu::BufferId source,
                                   const ops::PlannedConstant& wanted) {
  RelaidId id(ConstantId(t), wanted.layout);
  if (const auto it = relaid_.find(id); it != relaid_.end()) return it->second.get();
  const ops::PlannedDispatch& d = wanted.make;
  Relaid r{.id = id, .params = {}, .bindings = {}, .dispatch = {}, .created = {}};
  OwnedBuffer made =
      r.created.buffer(device_, wanted.size_bytes, gpu::BufferKind::kStorage, wanted.layout);
  r.params = r.created.buffer(device_, ops::params_bytes(d), gpu::BufferKind::kUniform, d.label);
  r.created.write(device_->write(r.params.get(), 0, d.params));
  r.dispatch = ops::bind(*device_, d, {r.params.get(), 0, 0}, [&](const ops::PlannedBinding& b) {
    return gpu::Binding{b.written ? made.get() : source, 0, 0};
  });
  r.bindings = r.created.dispatch(device_, r.dispatch);
  relaying_.push_back(std::move(r));
  return relaid_.emplace(std::move(id), std::move(made)).first->second.get();
}

// Every job a step, so that what they wait for can come at once.
template <typename Job>
Result<bool> ConstantPool::step_all(std::vector<Job>& jobs, auto& made) {
  for (auto job = jobs.begin(); job != jobs.end(); ++job) {
    auto done = step(*job);
    if (!done.ok()) {
      made.erase(job->id);
      jobs.erase(job);
      return done;
    }
    job->done = *done;
  }
  std::erase_if(jobs, [](const Job& job) { return job.done; });
  return jobs.empty();
}

Result<bool> ConstantPool::advance() {
  if (uploads_.empty() && relaying_.empty()) return true;
  PTERYX_ASSIGN(const bool uploaded, step_all(uploads_, buffers_));
  if (!uploaded) return false;
  return step_all(relaying_, relaid_);
}

Result<bool> ConstantPool::step(Upload& u) {
  constexpr uint64_t kChunk = 32U << 20;  // so much between two reports
  if (u.host) {
    PTERYX_ASSIGN(const bool there, u.host->advance());
    if (!there) return false;
    PTERYX_TRY(write_host(u));
  }
  for (; u.part < u.tensor.data.size(); ++u.part, u.of_part = 0) {
    const ByteRange& part = u.tensor.data[u.part];
    while (u.of_part < part.size) {
      const uint64_t size = std::min(kChunk, part.size - u.of_part);
      PTERYX_TRY(
          device_->write(u.buffer, u.offset, sources_[part.source], part.offset + u.of_part, size));
      u.of_part += size;
      u.offset += size;
      PTERYX_ASSIGN(const bool there, device_->settled(u.buffer));
      if (there) PTERYX_TRY(count(u));
    }
  }
  PTERYX_ASSIGN(const bool there, device_->settled(u.buffer));
  if (!there) return false;
  PTERYX_TRY(count(u));
  return true;
}

Status ConstantPool::write_host(Upload& u) {
  std::vector<std::byte> narrow;
  if (u.tensor.dtype == DType::kI64) {
    PTERYX_ASSIGN(narrow, narrowed(u.tensor, u.host->bytes(), u.label));
  }
  const Bytes bytes = u.tensor.dtype == DType::kI64 ? Bytes(narrow) : u.host->bytes();
  PTERYX_TRY(device_->write(u.buffer, 0, bytes));
  u.offset = bytes.size();
  u.part = u.tensor.data.size();
  u.host.reset();
  return {};
}

Status ConstantPool::count(Upload& u) {
  const uint64_t bytes = u.offset - u.counted;
  u.counted = u.offset;
  return on_bytes_ && bytes > 0 ? on_bytes_(bytes) : Status();
}

Result<bool> ConstantPool::step(Relaid& r) {
  PTERYX_ASSIGN(const bool there, r.created.settled(*device_));
  if (!there) return false;
  PTERYX_TRY(device_->submit(std::span(&r.dispatch, 1), {}));
  return true;
}

}  // namespace pteryx::exec
