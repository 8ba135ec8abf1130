// SPDX-License-Identifier: BSD-3-Clause
#include "warm_up.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "interrupt.h"

namespace pteryx::cli {
namespace {

constexpr double kLeast = 0.3;  // seconds
constexpr double kMost = 2;
constexpr double kPart = 0.1;
constexpr double kSame = 0.97;  // of the time before: calls that take more of it are as fast

}  // namespace

bool Settling::add(double seconds) {
  total_ += seconds;
  part_ += seconds;
  part_best_ = part_best_ == 0 ? seconds : std::min(part_best_, seconds);
  if (total_ >= kMost) return true;
  if (part_ < kPart) return false;
  const bool same = before_best_ > 0 && part_best_ >= before_best_ * kSame;
  before_best_ = before_best_ == 0 ? part_best_ : std::min(before_best_, part_best_);
  part_ = part_best_ = 0;
  return same && total_ >= kLeast;
}

Status WarmUp::once(const std::function<Status()>& call) {
  using Clock = std::chrono::steady_clock;
  if (std::exchange(done_, true)) return {};
  Settling settling;
  for (bool enough = false; !enough;) {
    PTERYX_TRY(InterruptGuard::check());
    const auto start = Clock::now();
    PTERYX_TRY(call());
    enough = settling.add(std::chrono::duration<double>(Clock::now() - start).count()) || once_;
  }
  return {};
}

}  // namespace pteryx::cli
