// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/session/exec/transfer.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/format.h>

namespace pteryx::exec {

using graph::index;
using graph::ValueId;

void Wanted::set(const graph::Graph& g, const Layout& layout, uint64_t outputs) {
  if (outputs == outputs_) return;
  outputs_ = outputs;
  unwanted_.assign(layout.roots.size(), false);
  if (!layout.one_stretch) return;  // a step on the CPU may read what is downloaded
  for (const bool wanted : {false, true}) {
    for (size_t i = 0; i < g.outputs.size(); ++i) {
      const uint32_t root = layout.root_of[index(g.outputs[i])];
      if (root != kNone && output(i) == wanted) unwanted_[root] = !wanted;
    }
  }
}

uint64_t Transfer::elements(uint32_t root, const ops::Live& live) const {
  return static_cast<uint64_t>(numel(live.dims[index(layout_.roots[root].value)]));
}

Status Transfer::upload(uint32_t root, const ops::Live& live) {
  const Root& r = layout_.roots[root];
  const DType t = dtype(root);
  const uint64_t n = elements(root, live);
  const auto send = [&](Bytes bytes) -> Status {
    if (r.inbox == kNoOffset) return device_->write(memory_.buffer(root).buffer, 0, bytes);
    staging_.put(r.inbox, bytes);
    return {};
  };
  if (t != DType::kI64) return send(Bytes(memory_.host(root), n * size_bytes(t)));
  const ops::HostTensor wide{t, {}, memory_.host(root)};
  if (narrow_.size() < n) narrow_.resize(n);
  for (uint64_t i = 0; i < n; ++i) {
    const int64_t v = wide.integer(static_cast<int64_t>(i));
    if (!fits<int32_t>(v)) {
      return invalid_argument(
          fmt::format("{}: element {} is {}, which does not fit i32", graph_.label(r.value), i, v));
    }
    narrow_[i] = static_cast<int32_t>(v);
  }
  return send(std::as_bytes(std::span(narrow_).first(n)));
}

Status Transfer::put_scalars(const Recording& r) {
  for (const ValueId id : r.slots) {
    const int64_t v = r.live.scalars[index(id)].i;
    if (!fits<int32_t>(v)) {
      return invalid_argument(fmt::format("{} is {}, which does not fit i32", graph_.label(id), v));
    }
    const auto word = static_cast<int32_t>(v);
    const uint64_t offset = uint64_t{std::get_if<graph::LiveScalar>(&graph_[id])->slot} * 4;
    staging_.put(offset, std::as_bytes(std::span(&word, 1)));
  }
  return {};
}

std::span<const gpu::Copy> Transfer::copies(const Recording& r, uint32_t span,
                                            const Wanted& wanted) {
  copies_.clear();
  uint64_t end = 0;
  for (const Recording::Download& d : r.downloads[span]) {
    if (!wanted.root(d.root)) continue;
    copies_.push_back(d.copy);
    end = std::max(end, d.copy.dst_offset + d.copy.size);
  }
  if (copies_.empty() || faults_.none()) return copies_;
  faults_at_ = align_up(end, 8);
  copies_.push_back({faults_.buffer(), 0, memory_.readback(), faults_at_, faults_.size_bytes()});
  return copies_;
}

Result<bool> Transfer::download(std::span<const uint32_t> roots, const ops::Live& live,
                                const Wanted& wanted, Profiler* profiler) {
  if (ticket_ == gpu::Ticket::kNone) {
    uint64_t end = 0;
    begin_ = layout_.readback_bytes;
    for (const uint32_t root : roots) {
      if (!wanted.root(root)) continue;
      const uint64_t offset = layout_.roots[root].readback_offset;
      const uint64_t bytes = elements(root, live) * gpu_element_bytes(dtype(root));
      begin_ = std::min(begin_, offset);
      end = std::max(end, offset + align_up(bytes, 4));
    }
    begin_ = begin_ / 8 * 8;
    if (end <= begin_) return true;
    if (!faults_.none()) end = faults_at_ + faults_.size_bytes();
    PTERYX_ASSIGN(ticket_, device_->read(memory_.readback(), begin_, end - begin_));
    if (profiler != nullptr) profiler->wait();
  }
  PTERYX_ASSIGN(const bool there, device_->done(ticket_));
  if (!there) return false;
  if (profiler != nullptr) profiler->waited();
  const PhaseTimer timer(profiler, Profile::Phase::kRead);
  const Bytes bytes = device_->mapped(ticket_);
  Status reported;
  if (!bytes.empty()) {
    take(roots, live, wanted, bytes);
    if (!faults_.none()) {
      reported =
          faults_.take(bytes.subspan(faults_at_ - begin_), first_submit_, faults_.next() - 1);
    }
  }
  cancel();
  if (bytes.empty()) return device_error("what was read back could not be mapped");
  PTERYX_TRY(std::move(reported));
  return true;
}

void Transfer::take(std::span<const uint32_t> roots, const ops::Live& live, const Wanted& wanted,
                    Bytes bytes) {
  for (const uint32_t root : roots) {
    const uint64_t n = elements(root, live);
    if (n == 0 || !wanted.root(root)) continue;
    const std::byte* from = bytes.data() + (layout_.roots[root].readback_offset - begin_);
    if (dtype(root) != DType::kI64) {
      std::memcpy(memory_.host(root), from, n * size_bytes(dtype(root)));
      continue;
    }
    const ops::HostTensor narrow{DType::kI32, {}, const_cast<std::byte*>(from)};
    const ops::HostTensor wide{DType::kI64, {}, memory_.host(root)};
    for (uint64_t i = 0; i < n; ++i) {
      wide.put_integer(static_cast<int64_t>(i), narrow.integer(static_cast<int64_t>(i)));
    }
  }
}

void Transfer::cancel() {
  if (ticket_ != gpu::Ticket::kNone) device_->release(std::exchange(ticket_, gpu::Ticket::kNone));
}

}  // namespace pteryx::exec
