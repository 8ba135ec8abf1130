// What the nodes of a method report on the GPU: indices outside their tensor.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <memory>

#include "pteryx/base/bytes.h"
#include "pteryx/gpu/device.h"
#include "pteryx/graph/graph.h"
#include "pteryx/session/layout.h"

namespace pteryx::exec {

// The buffer of the reports is zero until a node finds such an index. Whoever reads something back
// copies it along; reports stay until they were read.
class Faults {
 public:
  // All of these outlive it. `buffer` has Layout::fault_bytes.
  Faults(const graph::Graph& g, const Layout& layout, std::shared_ptr<gpu::Device> device,
         gpu::BufferId buffer)
      : graph_(g), layout_(layout), device_(std::move(device)), buffer_(buffer) {}

  // Nothing can be reported: none of the rest is needed.
  bool none() const { return layout_.fault_slots == 0; }
  uint64_t size_bytes() const { return layout_.fault_bytes(); }
  gpu::BufferId buffer() const { return buffer_; }

  // Submits are numbered from 1; this is the next.
  uint64_t next() const { return submitted_ + 1; }
  void submit() { ++submitted_; }
  // A copy of the buffer, made by submit `last` of a run that began with `first`. Errors:
  // kInvalidArgument for an index outside its tensor; the buffer is then zero again.
  Status take(Bytes copy, uint64_t first, uint64_t last);
  // The same where the copy need not be looked at.
  void read(uint64_t last) { read_ = last; }
  // Drops what nobody has read.
  Status forget();

 private:
  Status clear();

  const graph::Graph& graph_;
  const Layout& layout_;
  std::shared_ptr<gpu::Device> device_;
  gpu::BufferId buffer_;
  uint64_t submitted_ = 0;
  uint64_t read_ = 0;  // the last one whose reports were read
};

// An error of a run that had changed state by then says so.
Status after_change_of_state(const Status& s);

}  // namespace pteryx::exec
