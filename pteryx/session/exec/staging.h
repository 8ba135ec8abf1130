// The buffer that brings a run its live scalars and small inputs in one write.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "pteryx/gpu/device.h"
#include "pteryx/session/layout.h"

namespace pteryx::exec {

// Knows what the buffer holds, so that only what differs is written: nothing, in a run that the GPU
// prepared by itself (decode_ahead.h).
class Staging {
 public:
  // `buffer` has `bytes` zeros.
  Staging(std::shared_ptr<gpu::Device> device, gpu::BufferId buffer, uint64_t bytes)
      : device_(std::move(device)), buffer_(buffer), wanted_(bytes), held_(bytes) {}

  // What the next run shall find there.
  void put(uint64_t offset, Bytes bytes);
  // Writes what differs from what the buffer holds.
  Status send();

  // A dispatch added to a word, or put something there that the host does not know: who does not
  // put anything else there leaves it as it is.
  void added(uint64_t offset, uint32_t amount);
  void lost(uint64_t offset) { unknown_ = offset; }

 private:
  bool same(uint64_t at) const;
  Status write_difference(uint64_t begin, uint64_t end);

  std::shared_ptr<gpu::Device> device_;
  gpu::BufferId buffer_;
  std::vector<std::byte> wanted_;
  std::vector<std::byte> held_;
  std::optional<uint64_t> unknown_;  // a word
  uint64_t begin_ = kNoOffset;       // put there since it was sent
  uint64_t end_ = 0;
};

}  // namespace pteryx::exec
