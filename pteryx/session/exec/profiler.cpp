// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/session/exec/profiler.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace pteryx::exec {

Profiler::~Profiler() {
  for (const Pending& p : pending_) device_->release(p.ticket);
  for (const Timer& t : timers_) device_->destroy(t.id);
}

void Profiler::waited() {
  if (waiting_since_) add(Phase::kWait, *waiting_since_, now_us());
  waiting_since_.reset();
}

std::string_view Profiler::keep(std::string_view text) {
  const auto it = texts_.find(text);
  return it != texts_.end() ? *it : *texts_.emplace(text).first;
}

size_t Profiler::free_timer(uint32_t passes) {
  for (size_t i = 0; i < timers_.size(); ++i) {
    if (!timers_[i].busy && timers_[i].passes >= passes) return i;
  }
  timers_.push_back({.id = device_->create_timer(passes), .passes = passes});
  return timers_.size() - 1;
}

Status Profiler::submit(std::span<const gpu::Dispatch> dispatches,
                        std::span<const gpu::Copy> copies) {
  const double begin = now_us();
  if (!has_timestamps()) {  // encoding cannot be told from handing over
    PTERYX_TRY(device_->submit(dispatches, copies));
    add(Phase::kSubmit, begin, now_us());
    return {};
  }
  const bool each = detail_ == Profile::Detail::kDispatches;
  const size_t at = free_timer(each ? static_cast<uint32_t>(dispatches.size()) : 1);
  gpu::Timing timing{.timer = timers_[at].id,
                     .each = each ? gpu::Timing::Each::kDispatch : gpu::Timing::Each::kSubmit};
  PTERYX_TRY(device_->submit_timed(dispatches, copies, timing));
  const double encoded = begin + static_cast<double>(timing.encode_ns) / 1e3;
  const double submitted = encoded + static_cast<double>(timing.submit_ns) / 1e3;
  add(Phase::kEncode, begin, encoded);
  add(Phase::kSubmit, encoded, submitted);
  if (dispatches.empty()) return {};
  Pending p{.timer = at, .submitted_us = encoded};
  PTERYX_ASSIGN(p.ticket, device_->read_times(timers_[at].id));
  timers_[at].busy = true;
  if (!each) p.spans.push_back({.method = keep(items_.front().method)});
  for (size_t i = 0; each && i < items_.size(); ++i) {
    const Item& x = items_[i];
    p.spans.push_back({.kernel = keep(x.kernel),
                       .method = keep(x.method),
                       .op = keep(x.op),
                       .node = x.node,
                       .bytes = x.bytes,
                       .flops = x.flops});
    p.node_flops.push_back(x.node_flops);
  }
  pending_.push_back(std::move(p));
  return {};
}

Result<bool> Profiler::advance() {
  while (!pending_.empty()) {
    Pending& p = pending_.front();
    PTERYX_ASSIGN(const bool there, device_->done(p.ticket));
    if (!there) return false;
    const Bytes times = device_->mapped(p.ticket);
    if (times.empty()) return device_error("timestamps could not be mapped");
    take(p, times, now_us());
    device_->release(p.ticket);
    timers_[p.timer].busy = false;
    pending_.erase(pending_.begin());
  }
  // What is submitted does not begin before that, and what is there has ended: of the sums that
  // allow it the smallest, since an idle GPU begins at once.
  if (placed_ < gpu_.size() && least_) {
    const double add = most_ ? std::min(*least_, *most_) : *least_;
    for (; placed_ < gpu_.size(); ++placed_) {
      gpu_[placed_].begin_us += add;
      gpu_[placed_].end_us += add;
    }
  }
  return true;
}

void Profiler::take(Pending& p, Bytes times, double done_us) {
  const double tick_us = device_->caps().timestamp_ns / 1e3;
  const size_t count = std::min(p.spans.size(), times.size() / 16);
  for (size_t i = 0; i < count; ++i) {
    uint64_t pair[2] = {};
    std::memcpy(pair, times.data() + 16 * i, sizeof(pair));
    p.spans[i].begin_us = static_cast<double>(pair[0]) * tick_us;
    p.spans[i].end_us = static_cast<double>(std::max(pair[0], pair[1])) * tick_us;
  }
  if (count == 0) return;
  const double least = p.submitted_us - p.spans.front().begin_us;
  const double most = done_us - p.spans[count - 1].end_us;
  least_ = least_ ? std::max(*least_, least) : least;
  most_ = most_ ? std::min(*most_, most) : most;
  for (size_t i = 0; i < p.node_flops.size();) {
    size_t end = i;
    size_t longest = i;
    bool known = false;
    for (; end < count && p.spans[end].node == p.spans[i].node; ++end) {
      const auto took = [&](size_t k) { return p.spans[k].end_us - p.spans[k].begin_us; };
      if (took(end) > took(longest)) longest = end;
      known = known || p.spans[end].flops > 0;
    }
    if (!known && end > i) p.spans[longest].flops = p.node_flops[i];
    i = std::max(end, i + 1);
  }
  gpu_.insert(gpu_.end(), p.spans.begin(), p.spans.begin() + static_cast<ptrdiff_t>(count));
}

void Profiler::clear() {
  for (const Pending& p : pending_) {
    device_->release(p.ticket);
    timers_[p.timer].busy = false;
  }
  pending_.clear();
  host_.clear();
  gpu_.clear();
  placed_ = 0;
  least_.reset();
  most_.reset();
  waiting_since_.reset();
}

}  // namespace pteryx::exec

namespace pteryx {

Profile::Profile(std::shared_ptr<gpu::Device> device, Detail detail)
    : profiler_(std::make_unique<exec::Profiler>(std::move(device), detail)) {}
Profile::Profile(Profile&&) noexcept = default;
Profile& Profile::operator=(Profile&&) noexcept = default;
Profile::~Profile() = default;
Result<bool> Profile::advance() { return profiler_->advance(); }
std::span<const Profile::HostSpan> Profile::host() const { return profiler_->host(); }
std::span<const Profile::GpuSpan> Profile::gpu() const { return profiler_->gpu(); }
bool Profile::has_timestamps() const { return profiler_->has_timestamps(); }
void Profile::clear() { profiler_->clear(); }

std::string_view name(Profile::Phase phase) {
  switch (phase) {
    case Profile::Phase::kShapes: return "shapes";
    case Profile::Phase::kWrites: return "writes";
    case Profile::Phase::kEncode: return "encode";
    case Profile::Phase::kSubmit: return "submit";
    case Profile::Phase::kHost: return "CPU operators";
    case Profile::Phase::kWait: return "wait";
    case Profile::Phase::kRead: return "read";
  }
  return "";
}

}  // namespace pteryx
