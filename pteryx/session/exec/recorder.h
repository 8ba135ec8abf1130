// From live sizes to recorded dispatches: shapes, plans, pipelines, bindings, params; and the cache
// of all that.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "pteryx/graph/graph.h"
#include "pteryx/ops/op.h"
#include "pteryx/session/exec/constants.h"
#include "pteryx/session/exec/memory.h"
#include "pteryx/session/exec/owned.h"
#include "pteryx/session/layout.h"

namespace pteryx::exec {

// Everything a block needs on the GPU for one set of live sizes, one state, and whatever scalars
// its plans did not look at.
struct Recording {
  std::vector<int64_t> key;  // the state, and live dims of the block's key tensors
  uint64_t hash = 0;
  uint64_t last_used = 0;
  ops::Live live;
  struct Pin {
    ops::ScalarReads::Value read;
    int64_t value = 0;
  };
  std::vector<Pin> pins;              // what plans read of the live scalars
  std::vector<uint32_t> rules;        // nodes whose shapes are computed anew from live scalars
  std::vector<graph::ValueId> slots;  // live scalars that shaders read
  std::vector<gpu::Dispatch> dispatches;
  // What each of them is, for profiles.
  struct Note {
    std::string kernel;
    uint32_t node = 0;
    std::vector<graph::ValueId> values;  // bound to it
    uint64_t other_bytes = 0;            // of temporaries and repacked constants
    double flops = 0;
  };
  std::vector<Note> notes;
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
  Creations created;
  bool ready = false;     // all of it is there
  bool has_room = false;  // memory for temporaries of kernels on the CPU was looked at
  std::vector<const graph::Node*> without_room;  // whose kernels would take more than there is
  // How words of the staging buffer move when the position grows by one; see decode_ahead.h.
  struct Move {
    uint32_t word = 0;
    uint32_t amount = 0;
    friend bool operator==(const Move&, const Move&) = default;
  };
  std::optional<std::vector<Move>> moves;
  // What feeds the next run, where a node does that itself: the dispatches of such a run, of which
  // one is another. The run before has done the first of them: up to `ready_begin` if nothing ran
  // since, else up to `kept_begin`, whose results are state.
  struct Feeding {
    uint32_t at = 0;
    std::string kernel;
    uint32_t kept_begin = 0;
    uint32_t ready_begin = 0;
    std::vector<gpu::Dispatch> dispatches;
  };
  std::optional<Feeding> feeding;
};

class Recorder {
 public:
  // All of these outlive it.
  Recorder(const graph::Graph& g, const Layout& layout, const ops::PlanContext& context,
           ConstantPool& constants, const Memory& memory, uint32_t most_recordings);

  // Takes the plans of a layout: a block whose every node has one is recorded at the bound, of the
  // others the shaders are compiled, so that the first run need not wait for them. Once, before
  // anything is found.
  void warm(std::vector<std::optional<NodePlan>> plans, uint64_t state);
  // True once that is there.
  Result<bool> advance_warm();
  // The recording of a block for these sizes and scalars, found or begun: it can run once advance()
  // says true. Valid until the next call for the same block. Errors: those of shapes and plans.
  Result<Recording*> find(size_t block, const ops::Live& live, uint64_t state);
  // A recording that fails is forgotten.
  Result<bool> advance(size_t block, Recording& r);
  // Drops what was recorded for a state.
  void forget(uint64_t state);
  size_t size() const;  // recordings kept

 private:
  // Temporaries and relaid constants of a node, by the numbers its plan has for them.
  struct NodeBuffers {
    std::vector<gpu::BufferId> scratch;
    gpu::BufferId counted = gpu::BufferId::kNone;
    std::vector<gpu::Binding> constants;
  };
  struct Planned {
    ops::PlannedDispatch dispatch;
    uint64_t params_offset = 0;
    std::shared_ptr<const NodeBuffers> buffers;
  };
  // A block on its way to a recording.
  struct Draft {
    Recording& r;
    std::vector<Planned> planned = {};
    std::optional<Planned> feeding = {};
    std::vector<std::byte> params = {};
  };

  Result<bool> holds(const Block& b, const ops::Live& live, Recording& r) const;
  void make_room(std::vector<std::unique_ptr<Recording>>& cache, uint64_t state) const;
  Status record(const Block& b, const ops::Live& live, Recording& r);
  Status record_spans(const Block& b, Recording& r,
                      const std::function<Status(uint32_t, Draft&)>& plan);
  std::unique_ptr<Recording> empty_recording() const;
  Status plan_node(uint32_t node, Draft& d);
  void add_plan(uint32_t node, NodePlan plan, Draft& d);
  bool gives_bound(const Block& b) const;
  void record_at_bound(size_t block, std::vector<std::optional<NodePlan>>& plans, uint64_t state);
  void make_key(const Block& b, const ops::Live& live, uint64_t state);
  uint64_t add_params(const ops::PlannedDispatch& x, Draft& d) const;
  void bind(Draft& d);
  void find_done(const Draft& d, Recording::Feeding& f) const;
  gpu::Dispatch bind(const Planned& p, Recording& r);
  void add_downloads(const Block& b, Recording& r) const;
  gpu::Binding bound(const Planned& p, const ops::PlannedBinding& b) const;
  // A temporary that nodes share.
  struct Shared {
    std::shared_ptr<OwnedBuffer> buffer;
    uint64_t bytes = 0;
  };
  gpu::BufferId shared_buffer(Shared& shared, uint64_t bytes, const std::string& label,
                              Recording& r);

  const graph::Graph& graph_;
  const Layout& layout_;
  const ops::PlanContext& context_;
  ConstantPool& constants_;
  const Memory& memory_;
  std::shared_ptr<gpu::Device> device_;
  uint32_t most_;
  std::vector<std::vector<std::unique_ptr<Recording>>> recordings_;  // of each block
  std::vector<Shared> scratch_;
  Shared counted_;  // zeros when it is made, and its counters ever after
  struct Warm {
    size_t block = 0;
    Recording* recording = nullptr;
  };
  std::vector<Warm> warm_;  // not there yet
  Creations warm_shaders_;
  std::vector<int64_t> key_;
  uint64_t clock_ = 0;
};

}  // namespace pteryx::exec
