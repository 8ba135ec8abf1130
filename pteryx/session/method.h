// One method, loaded: its graph, memory and recorded plans, and how it runs.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <deque>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "pteryx/graph/graph.h"
#include "pteryx/ops/op.h"
#include "pteryx/pteryx.h"
#include "pteryx/session/constants.h"
#include "pteryx/session/layout.h"
#include "pteryx/session/loop.h"
#include "pteryx/session/owned.h"

namespace pteryx {

// Everything a block needs on the GPU for one set of live sizes, and whatever scalars its plans did
// not look at.
struct Recording {
  std::vector<int64_t> key;  // live dims of the block's key tensors
  uint64_t hash = 0;
  uint64_t last_used = 0;
  ops::Live live;
  struct Pin {
    ops::ScalarReads::Value read;
    int64_t value = 0;
  };
  std::vector<Pin> pins;              // what plans read of the live scalars
  std::vector<graph::ValueId> slots;  // live scalars that shaders read
  std::vector<gpu::Dispatch> dispatches;
  std::vector<uint32_t> span_begin;  // of each span, and the end
  std::vector<uint32_t> state_end;   // of each span: behind its last dispatch that writes state
  struct Download {
    uint32_t root = 0;
    gpu::Copy copy;
  };
  std::vector<std::vector<Download>> downloads;  // of each span's submit
  OwnedBuffer params;
  std::vector<OwnedBindings> bindings;
  std::vector<std::shared_ptr<OwnedBuffer>> scratch;
};

class Method final : public ops::Host {
 public:
  // Plans and allocates. `context` holds the device's capabilities and forced routes.
  static Result<std::unique_ptr<Method>> create(graph::Graph graph, Layout layout,
                                                std::shared_ptr<gpu::Device> device,
                                                ops::PlanContext context, ConstantPool& constants,
                                                const LoadOptions& options);

  ~Method() override;
  const graph::Graph& graph() const { return graph_; }
  const Layout& layout() const { return layout_; }
  // Bit i of `outputs`: output i is wanted. Of a method that is one stretch of GPU work, what only
  // serves unwanted outputs is not computed behind the last change of state, and not downloaded.
  Result<std::span<const Value>> run(std::span<const Value> inputs, uint64_t outputs = kAllOutputs);
  static constexpr uint64_t kAllOutputs = ~uint64_t{0};
  Status reset();

  // Runs whose output `output`, one i32, is element 0 of `input` in the next, without the host in
  // between. Errors: kUnsupported where the method is not one stretch of GPU work.
  Status make_loop(size_t input, size_t output, uint32_t depth);
  // Starts a run; at most `depth` may be under way. `feed`: the input is what the run before gave.
  Status start(std::span<const Value> inputs, bool feed);
  // The output of the oldest run under way; waits for it.
  Result<int32_t> finish();
  uint32_t under_way() const;
  size_t cached_plans() const;

 private:
  Method(graph::Graph graph, Layout layout, std::shared_ptr<gpu::Device> device,
         ops::PlanContext context, ConstantPool& constants, uint32_t plan_cache);

  Status allocate(const LoadOptions& options);
  Status init_host(uint32_t root);
  Status init_state();
  void find_published();

  Status bind_inputs(std::span<const Value> inputs);
  Status bind_tensor(size_t i, const TensorView& v);
  Status convert_input(size_t i, const TensorView& v, const Dims& strides,
                       const ops::HostTensor& to) const;
  Status run_block(size_t block);
  Status evaluate_items(const Block& b);
  Result<Recording*> find_recording(size_t block);
  Result<bool> holds(const Block& b, Recording& r) const;
  Status record(const Block& b, Recording& r);
  // Temporaries and relaid constants of a node, by the numbers its plan has for them.
  struct NodeBuffers {
    std::vector<gpu::BufferId> scratch;
    std::vector<gpu::BufferId> constants;
  };
  struct Planned {
    ops::PlannedDispatch dispatch;
    uint64_t params_offset = 0;
    std::shared_ptr<const NodeBuffers> buffers;
  };
  Status plan_node(uint32_t node, Recording& r, Creations& created, std::vector<std::byte>& params,
                   std::vector<Planned>& planned);
  gpu::Binding bound(const Planned& p, const ops::PlannedBinding& b) const;
  static void keep_reads(const ops::ScalarReads& reads, Recording& r);
  gpu::BufferId scratch_buffer(size_t i, uint64_t bytes, Creations& created, Recording& r);
  Status execute(const Block& b, Recording& r);
  Status check_indices() const;
  Status fill_scalars(const Recording& r);
  Status upload(uint32_t root);
  void put_in_inbox(uint64_t offset, Bytes bytes);
  Status send_inbox();
  void want(uint64_t outputs);
  bool wants(uint32_t root) const { return wanted_ == kAllOutputs || !unwanted_root_[root]; }
  std::span<const gpu::Copy> wanted_copies(std::span<const Recording::Download> downloads);
  Status download(const Step& step);
  Status next_block(const Block& b, size_t& at) const;
  void collect_outputs();

  ops::HostTensor host(graph::ValueId id) const override;
  gpu::Binding buffer(graph::ValueId id) const;
  uint64_t live_elements(uint32_t root) const;
  uint64_t gpu_element(uint32_t root) const;  // bytes of one element in the GPU buffer

  graph::Graph graph_;
  Layout layout_;
  std::shared_ptr<gpu::Device> device_;
  ops::PlanContext context_;
  ConstantPool& constants_;
  uint32_t plan_cache_;

  std::vector<OwnedBuffer> owned_;  // slots, private roots
  std::vector<gpu::Binding> root_buffer_;
  std::vector<std::vector<std::byte>> memory_;  // host memory that roots own
  std::deque<ConstantBytes> host_constants_;
  std::vector<std::byte*> root_host_;  // where each root's host memory is
  std::vector<bool> stage_;            // inputs that must be copied: written, or handed out again
  OwnedBuffer readback_;
  OwnedBuffer inbox_;
  std::vector<std::byte> inbox_host_;  // what inbox_ shall hold
  std::vector<std::byte> inbox_gpu_;   // what it does hold
  uint64_t inbox_begin_ = kNoOffset;   // put there since it was sent
  uint64_t inbox_end_ = 0;
  std::unique_ptr<Loop> loop_;
  std::vector<std::shared_ptr<OwnedBuffer>> scratch_;
  std::vector<uint64_t> scratch_bytes_;
  std::vector<int32_t> narrow_;  // i64 on its way to the GPU

  ops::Live live_;                     // inputs, and values that cross blocks
  const ops::Live* active_ = nullptr;  // of the block that runs
  std::vector<std::vector<std::unique_ptr<Recording>>> recordings_;  // of each block
  std::vector<std::vector<graph::ValueId>> published_;  // of each block: values others read
  std::vector<int64_t> key_;
  uint64_t clock_ = 0;
  std::vector<Value> outputs_;
  uint64_t wanted_ = kAllOutputs;
  std::vector<bool> unwanted_root_;  // downloaded for outputs that are not wanted
  std::vector<gpu::Copy> copies_;
};

}  // namespace pteryx
