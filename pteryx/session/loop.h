// A method that feeds itself: what one run gives is the next one's input, on the GPU.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <deque>
#include <span>
#include <vector>

#include "pteryx/gpu/device.h"
#include "pteryx/session/owned.h"

namespace pteryx {

// The last dispatch of every run moves the output into the inbox and adds to the other words there
// what the run before suggests (a position grows by one), so that a run which follows that rule
// needs nothing from the host.
class Loop {
 public:
  // `token` is the input's byte offset in the inbox, `result` where the output is.
  static Result<std::unique_ptr<Loop>> create(const std::shared_ptr<gpu::Device>& device,
                                              gpu::Binding inbox, gpu::Binding result,
                                              uint64_t token, uint32_t input_root, uint32_t depth);

  uint32_t input_root() const { return input_root_; }
  uint64_t token() const { return token_; }
  const gpu::Dispatch& advance() const { return advance_; }
  bool full() const { return tickets_.size() == readbacks_.size(); }
  uint32_t under_way() const { return static_cast<uint32_t>(tickets_.size()); }

  // A run is about to start: `want` is what the inbox shall hold, `has` what it holds. Learns the
  // step from one fed run to the next.
  Status learn(std::span<const std::byte> want, std::span<const std::byte> has, bool feed);
  // The run was submitted: what the inbox holds after it.
  void predict(std::span<std::byte> has);
  // The input's word after a run is whatever the run gave: makes it differ from any value the host
  // wants there.
  void forget_token(std::span<const std::byte> want, std::span<std::byte> has) const;

  gpu::Copy copy() const;  // of the result, in the submit that starts now
  Status started();
  Result<int32_t> finish();

 private:
  struct Delta {
    uint32_t word = 0;
    uint32_t amount = 0;
  };

  std::shared_ptr<gpu::Device> device_;
  gpu::Binding result_;
  uint64_t token_ = 0;
  uint32_t input_root_ = 0;
  OwnedBuffer rule_;  // token word, number of deltas, deltas
  OwnedBindings bindings_;
  gpu::Dispatch advance_;
  std::vector<Delta> deltas_;
  std::vector<std::byte> last_;  // what the run before wanted
  bool last_fed_ = false;
  std::vector<OwnedBuffer> readbacks_;
  size_t next_ = 0;
  std::deque<gpu::Ticket> tickets_;
};

}  // namespace pteryx
