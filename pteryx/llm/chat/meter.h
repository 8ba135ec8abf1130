// What rendering a template may take: work, and memory at any one time. Whoever makes text or lists
// asks first.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <utility>

#include "pteryx/base/status.h"

namespace pteryx::llm::chat {

class Meter {
 public:
  Meter(uint64_t most_bytes, uint64_t most_work) : most_bytes_(most_bytes), most_work_(most_work) {}
  Meter(const Meter&) = delete;
  Meter& operator=(const Meter&) = delete;

  // A unit is a few nanoseconds. Errors: kInvalidArgument when there is no more.
  Status work(uint64_t units) {
    if (units > most_work_ - work_) return out_of_work();
    work_ += units;
    return {};
  }

 private:
  friend class Charge;
  Status take(uint64_t bytes) {
    if (bytes > most_bytes_ - bytes_) return out_of_memory();
    bytes_ += bytes;
    return {};
  }
  Status out_of_work() const;
  Status out_of_memory() const;

  const uint64_t most_bytes_;
  const uint64_t most_work_;
  uint64_t bytes_ = 0;
  uint64_t work_ = 0;
};

// Memory that was asked for, given back when it ends. The meter lives longer.
class Charge {
 public:
  Charge() = default;
  explicit Charge(Meter& meter) : meter_(&meter) {}
  Charge(Charge&& other) noexcept : meter_(other.meter_), bytes_(std::exchange(other.bytes_, 0)) {}
  Charge& operator=(Charge&& other) noexcept {
    std::swap(meter_, other.meter_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~Charge() {
    if (bytes_ != 0) meter_->bytes_ -= bytes_;
  }

  // Errors: kInvalidArgument when there is no more.
  Status add(uint64_t bytes) {
    PTERYX_TRY(meter_->take(bytes));
    bytes_ += bytes;
    return {};
  }
  void give_back(uint64_t bytes) {
    meter_->bytes_ -= bytes;
    bytes_ -= bytes;
  }

 private:
  Meter* meter_ = nullptr;
  uint64_t bytes_ = 0;
};

}  // namespace pteryx::llm::chat
