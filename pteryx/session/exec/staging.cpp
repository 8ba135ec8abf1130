// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/session/exec/staging.h"

#include <algorithm>
#include <cstring>

namespace pteryx::exec {

void Staging::put(uint64_t offset, Bytes bytes) {
  if (bytes.empty()) return;
  std::memcpy(&wanted_[offset], bytes.data(), bytes.size());
  begin_ = std::min(begin_, offset);
  end_ = std::max(end_, offset + bytes.size());
  if (unknown_ && *unknown_ >= offset && *unknown_ < offset + bytes.size()) {
    uint32_t word = 0;
    std::memcpy(&word, &wanted_[*unknown_], sizeof(word));
    word = ~word;  // whatever it holds, it is to be written
    std::memcpy(&held_[*unknown_], &word, sizeof(word));
    unknown_.reset();
  }
}

bool Staging::same(uint64_t at) const { return std::memcmp(&wanted_[at], &held_[at], 4) == 0; }

Status Staging::send() {
  const uint64_t begin = begin_ / 4 * 4;
  const uint64_t end = align_up(end_, 4);
  begin_ = kNoOffset;
  end_ = 0;
  if (begin >= end) return {};
  if (!unknown_ || *unknown_ < begin || *unknown_ >= end) return write_difference(begin, end);
  PTERYX_TRY(write_difference(begin, *unknown_));
  return write_difference(*unknown_ + 4, end);
}

Status Staging::write_difference(uint64_t begin, uint64_t end) {
  while (begin < end && same(begin)) begin += 4;
  while (begin < end && same(end - 4)) end -= 4;
  if (begin >= end) return {};
  PTERYX_TRY(device_->write(buffer_, begin, Bytes(&wanted_[begin], end - begin)));
  std::memcpy(&held_[begin], &wanted_[begin], end - begin);
  return {};
}

void Staging::added(uint64_t offset, uint32_t amount) {
  uint32_t word = 0;
  std::memcpy(&word, &held_[offset], sizeof(word));
  word += amount;
  std::memcpy(&held_[offset], &word, sizeof(word));
}

}  // namespace pteryx::exec
