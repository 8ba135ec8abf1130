// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/session/exec/constants.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

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

uint64_t bytes_of(const graph::Tensor& t) {
  return static_cast<uint64_t>(numel(t.max)) * gpu_element_bytes(t.dtype);
}

// What shaders see: arrays of vec4 can be bound.
uint64_t bound_bytes(const graph::Tensor& t) {
  return align_up(std::max<uint64_t>(bytes_of(t), 16), 16);
}

// What it takes of a buffer that it shares.
uint64_t room_for(const graph::Tensor& t, const gpu::Caps& caps) {
  return align_up(bound_bytes(t), std::max<uint64_t>(caps.storage_alignment, 16));
}

}  // namespace

std::vector<gpu::Binding> ConstantPool::upload(std::span<const Wanted> wanted) {
  // Of a buffer that several share: large enough to need few, small enough to be had.
  constexpr uint64_t kMost = uint64_t{64} << 20;
  const uint64_t most = std::min(kMost, device_->caps().max_buffer_bytes);
  std::vector<Wanted> together;
  uint64_t bytes = 0;
  std::set<ConstantId> seen;
  const auto make = [&] {
    if (!together.empty()) place(together, bytes);
    together.clear();
    bytes = 0;
  };
  for (const Wanted& w : wanted) {
    const ConstantId id(*w.tensor);
    if (places_.contains(id) || !seen.insert(id).second) continue;
    const uint64_t size = room_for(*w.tensor, device_->caps());
    if (bytes + size > most) make();
    together.push_back(w);
    bytes += size;
  }
  make();
  std::vector<gpu::Binding> at;
  at.reserve(wanted.size());
  for (const Wanted& w : wanted) at.push_back(places_.find(ConstantId(*w.tensor))->second.at);
  return at;
}

// In one buffer of so many bytes, one behind the other.
void ConstantPool::place(std::span<const Wanted> together, uint64_t bytes) {
  const std::string_view first = together.front().label;
  const std::string label = together.size() == 1
                                ? std::string(first)
                                : fmt::format("{} and {} more", first, together.size() - 1);
  const gpu::BufferId id = device_->create_buffer({.size = bytes, .label = label});
  const auto buffer = std::make_shared<const OwnedBuffer>(device_, id);
  uint64_t offset = 0;
  for (const Wanted& w : together) {
    const Place place{{id, offset, bound_bytes(*w.tensor)}, buffer};
    offset += room_for(*w.tensor, device_->caps());
    places_.emplace(ConstantId(*w.tensor), place);
    Upload u{
        .data = w.tensor->data, .label = std::string(w.label), .at = place.at, .host = nullptr};
    if (!written_as_they_are(*w.tensor))
      u.host = std::make_unique<ConstantPieces>(*w.tensor, sources_);
    uploads_.push_back(std::move(u));
  }
}

gpu::Binding ConstantPool::relaid(const graph::Tensor& t, const gpu::Binding& source,
                                  const ops::PlannedConstant& wanted) {
  RelaidId id(ConstantId(t), wanted.layout);
  if (const auto it = relaid_.find(id); it != relaid_.end()) return {it->second.get(), 0, 0};
  const ops::PlannedDispatch& d = wanted.make;
  Relaid r{.id = id, .params = {}, .bindings = {}, .dispatch = {}, .created = {}};
  OwnedBuffer made =
      r.created.buffer(device_, wanted.size_bytes, gpu::BufferKind::kStorage, wanted.layout);
  r.params = r.created.buffer(device_, ops::params_bytes(d), gpu::BufferKind::kUniform, d.label);
  r.created.write(device_->write(r.params.get(), 0, d.params));
  r.dispatch = ops::bind(*device_, d, {r.params.get(), 0, 0}, [&](const ops::PlannedBinding& b) {
    return b.written ? gpu::Binding{made.get(), 0, 0} : source;
  });
  r.bindings = r.created.dispatch(device_, r.dispatch);
  relaying_.push_back(std::move(r));
  return {relaid_.emplace(std::move(id), std::move(made)).first->second.get(), 0, 0};
}

// With all that was to be in the same buffer.
void ConstantPool::forget(const Upload& u) {
  const gpu::BufferId buffer = u.at.buffer;
  std::erase_if(places_, [&](const auto& p) { return p.second.at.buffer == buffer; });
  std::erase_if(uploads_, [&](const Upload& other) { return other.at.buffer == buffer; });
}

void ConstantPool::forget(const Relaid& r) {
  const RelaidId id = r.id;
  relaid_.erase(id);
  std::erase_if(relaying_, [&](const Relaid& other) { return other.id == id; });
}

// Every job a step, so that what they wait for can come at once.
template <typename Job>
Result<bool> ConstantPool::step_all(std::vector<Job>& jobs) {
  for (auto job = jobs.begin(); job != jobs.end(); ++job) {
    auto done = step(*job);
    if (!done.ok()) {
      forget(*job);
      return done;
    }
    job->done = *done;
  }
  std::erase_if(jobs, [](const Job& job) { return job.done; });
  return jobs.empty();
}

Result<bool> ConstantPool::advance() {
  if (uploads_.empty() && relaying_.empty()) return true;
  awaited_bytes_ = 0;
  PTERYX_ASSIGN(const bool uploaded, step_all(uploads_));
  if (!uploaded) return false;
  return step_all(relaying_);
}

Result<bool> ConstantPool::step(Upload& u) {
  constexpr uint64_t kChunk = 32U << 20;  // so much between two reports
  if (u.host != nullptr) {
    PTERYX_ASSIGN(const bool written, write_host(u));
    if (!written) return false;
  }
  for (; u.part < u.data.size(); ++u.part, u.of_part = 0) {
    const ByteRange& part = u.data[u.part];
    while (u.of_part < part.size) {
      const uint64_t size = std::min(kChunk, part.size - u.of_part);
      PTERYX_TRY(device_->write(u.at.buffer, u.at.offset + u.offset, sources_[part.source],
                                part.offset + u.of_part, size));
      u.of_part += size;
      u.offset += size;
      PTERYX_ASSIGN(const bool there, device_->settled(u.at.buffer));
      if (there) PTERYX_TRY(count(u));
    }
  }
  PTERYX_ASSIGN(const bool there, device_->settled(u.at.buffer));
  if (!there) return false;
  PTERYX_TRY(count(u));
  return true;
}

// Host memory holds the pieces of the first few uploads; the others have their turn afterwards.
Result<bool> ConstantPool::write_host(Upload& u) {
  constexpr uint64_t kMost = uint64_t{8} << 20;
  for (; !u.host->done(); u.host->next()) {
    if (awaited_bytes_ >= kMost) return false;
    PTERYX_ASSIGN(const bool there, u.host->advance());
    if (!there) {
      awaited_bytes_ += u.host->piece_bytes();
      return false;
    }
    PTERYX_ASSIGN(const Bytes bytes, u.host->take(u.label));
    PTERYX_TRY(device_->write(u.at.buffer, u.at.offset + u.offset, bytes));
    u.offset += bytes.size();
  }
  u.part = u.data.size();
  u.host.reset();
  return true;
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
