// Runs ahead of the caller: the token that one run draws is the input of the next, without leaving
// the GPU.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "pteryx/graph/graph.h"
#include "pteryx/session/exec/faults.h"
#include "pteryx/session/exec/memory.h"
#include "pteryx/session/exec/owned.h"
#include "pteryx/session/exec/recorder.h"
#include "pteryx/session/exec/staging.h"
#include "pteryx/session/layout.h"

namespace pteryx::exec {

// How a run follows from the one before: its token is what that one drew, its position one more.
struct FeedRule {
  size_t token_input = 0;
  size_t position_input = 0;
  size_t token_output = 0;  // one i32
};

// The last dispatch of every such run, of the node that draws or one behind it, moves the token
// into the staging buffer and adds to the words there what a position that is one more means for
// them (ops/sample/common/feed.wgsl), so that the next run needs nothing from the host. Tokens come
// back through a ring of buffers, four bytes each. Where nodes report indices outside their tensor,
// that dispatch puts kReported in place of the token, and a copy of the reports, which stands
// behind the token, is read only then.
class DecodeAhead {
 public:
  // At most `depth` runs are under way. Errors: kInvalidArgument where the method has no such
  // inputs and outputs, kUnsupported where it is not one stretch of GPU work.
  static Result<std::unique_ptr<DecodeAhead>> create(const graph::Graph& g, const Layout& layout,
                                                     const std::shared_ptr<gpu::Device>& device,
                                                     Memory& memory, Faults& faults,
                                                     const FeedRule& rule, uint32_t depth);
  ~DecodeAhead() { discard(); }

  // True once runs can be started.
  Result<bool> advance() { return created_.settled(*device_); }

  bool is_full() const { return count_ == ring_.size(); }
  uint32_t under_way() const { return static_cast<uint32_t>(count_); }
  // The token of the oldest run under way, below 0 where it drew none; nothing: it is not there
  // yet. Errors: kDevice, kInvalidArgument for an index outside its tensor.
  Result<std::optional<int32_t>> take();
  // Nobody wants the tokens of the runs under way.
  void discard();

  // For the runner. The input that the GPU brings by itself:
  uint32_t token_root() const { return token_root_; }
  // Before a run is submitted: the rule that fits its recording.
  Status prepare(const Block& b, Recording& r);
  // Behind those of a recording that does not feed the next run itself.
  const gpu::Dispatch& dispatch() const { return dispatch_; }
  std::string_view kernel() const { return kernel_; }
  std::span<const gpu::Copy> copies();
  // It was submitted.
  Status started(const Recording& r, Staging& staging);
  // Another run is about to use the staging buffer: keeps the token for the next of these.
  Status park();
  bool is_parked() const { return parked_full_; }
  Status unpark(Staging& staging);

 private:
  DecodeAhead(const graph::Graph& g, const Layout& layout, std::shared_ptr<gpu::Device> device,
              Memory& memory, Faults& faults)
      : graph_(g), layout_(layout), device_(std::move(device)), memory_(memory), faults_(faults) {}
  struct Pending {
    gpu::Ticket ticket = gpu::Ticket::kNone;
    uint64_t submit = 0;
    bool faults = false;  // the ticket is of what nodes reported, rather than of the token
  };
  size_t oldest() const { return (next_ + ring_.size() - count_) % ring_.size(); }
  Result<int32_t> read_token(const Pending& p, Bytes bytes);
  Status make_dispatch(graph::ValueId token);
  std::vector<Recording::Move> moves_of(const Block& b, const Recording& r) const;

  const graph::Graph& graph_;
  const Layout& layout_;
  std::shared_ptr<gpu::Device> device_;
  Memory& memory_;
  Faults& faults_;
  uint32_t token_root_ = 0;
  uint32_t position_root_ = 0;
  uint64_t token_offset_ = 0;  // in the staging buffer
  uint64_t settings_offset_ = 0;
  gpu::Binding result_;
  Creations created_;
  OwnedBuffer parked_;
  bool parked_full_ = false;
  OwnedBuffer params_;
  OwnedBindings bindings_;
  gpu::Dispatch dispatch_;
  std::string kernel_;
  std::vector<uint32_t> words_;  // of the rule
  std::vector<OwnedBuffer> ring_;
  size_t next_ = 0;  // of the ring
  std::array<gpu::Copy, 2> copies_;
  std::vector<Pending> pending_;  // of the ring
  size_t count_ = 0;              // under way, the last of them before next_
};

}  // namespace pteryx::exec
