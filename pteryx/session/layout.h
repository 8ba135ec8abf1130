// How a graph will run: which node on the GPU and which on the CPU, which values share memory, what
// is uploaded and downloaded when. Pure: needs capabilities, not a device, so `inspect` and tests
// make one anywhere.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "pteryx/graph/graph.h"
#include "pteryx/graph/memory_plan.h"
#include "pteryx/ops/index_bound.h"
#include "pteryx/ops/op.h"

namespace pteryx {

inline constexpr uint32_t kNone = std::numeric_limits<uint32_t>::max();
inline constexpr uint64_t kNoOffset = std::numeric_limits<uint64_t>::max();

// Bytes of one element in a GPU buffer: i64 is held as i32.
constexpr uint64_t gpu_element_bytes(DType t) { return t == DType::kI64 ? 4 : size_bytes(t); }

enum class Place : uint8_t {
  kNothing,  // a view that costs nothing, or a jump
  kScalar,   // host scalars, computed with the shapes
  kItem,     // a scalar read from a tensor
  kGpu,
  kCpu,
};

// One piece of memory: a tensor value and the values that are views of it.
struct Root {
  graph::ValueId value = graph::kNoValue;  // the one that owns the memory
  bool gpu = false;                        // some GPU node uses it
  bool host = false;                       // some CPU node or the caller uses it
  bool constant = false;
  bool state = false;
  bool input = false;
  bool written = false;      // by a node
  bool gpu_written = false;  // by a node on the GPU
  bool cross_block = false;  // used in more than one block
  uint64_t gpu_bytes = 0;    // at the bound, multiple of 16
  uint64_t host_bytes = 0;
  uint32_t slot = kNone;         // shared GPU buffer; kNone: a buffer of its own
  uint32_t host_slot = kNone;    // shared host memory; kNone: its own
  uint64_t inbox = kNoOffset;    // place in the inbox, instead of a buffer
  uint64_t readback_offset = 0;  // in the readback buffer, if it is ever downloaded
};

struct Step {
  enum class Kind : uint8_t {
    kHost,      // run node `index` on the CPU
    kUpload,    // host memory of root `index` to its GPU buffer
    kSubmit,    // dispatches of span `index`, then copies of `downloads` to the readback buffer
    kDownload,  // wait, then readback memory to the host memory of the last submit's downloads
  };
  Kind kind = Kind::kHost;
  uint32_t index = 0;
  std::vector<uint32_t> downloads = {};  // roots
};

struct Span {
  std::vector<uint32_t> nodes;  // GPU nodes in order
};

// Nodes whose shapes are all known when the first of them runs.
struct Block {
  uint32_t begin = 0;
  uint32_t end = 0;  // node range
  std::vector<Step> steps;
  std::vector<Span> spans;
  std::vector<uint32_t> items;  // kItem nodes, evaluated before the shapes
  // What comes from outside, or is read from tensors, and decides every shape of the block.
  std::vector<graph::ValueId> key_tensors;
  std::vector<graph::ValueId> key_scalars;
  std::vector<uint32_t> scalar_nodes;  // nodes that read those scalars, or ones made from them
  uint32_t jump = kNone;               // a jump node that ends it
};

struct MemoryNeed {
  uint64_t constants = 0;
  uint64_t state = 0;
  uint64_t activations = 0;
  uint64_t scratch = 0;   // temporaries of kernels at the bound
  uint64_t transfer = 0;  // readback buffers
  uint64_t gpu_total() const { return constants + state + activations + scratch + transfer; }
  uint64_t host = 0;
  uint64_t host_state = 0;    // of host: what stays from run to run
  uint64_t host_scratch = 0;  // temporaries of kernels on the CPU at the bound
  // Constants that nodes on the CPU read; see HostConstants.
  uint64_t in_place = 0;
  uint64_t copied = 0;
  uint64_t host_total() const { return host + host_scratch + copied; }
};

// What a node does on the GPU at the bound, with the live scalars that data decide at 0. Good in a
// run where its tensors have these sizes and the scalars that were read have the same values.
struct NodePlan {
  std::vector<ops::PlannedDispatch> dispatches;
  std::vector<ops::PlannedConstant> constants;
  std::vector<uint64_t> scratch_bytes;
  uint64_t counted_bytes = 0;
  ops::ScalarReads reads;
  std::optional<ops::PlannedDispatch> feeding = {};
};

struct Layout {
  std::vector<const ops::OpDef*> defs;  // of each node; null for jumps
  std::vector<Place> place;             // of each node
  std::vector<uint32_t> root_of;        // of each value; kNone for scalars and lists
  std::vector<uint32_t> item_source;    // of each node: root to read a kItem scalar from
  std::vector<bool> changes_state;      // of each node
  std::vector<Root> roots;
  std::vector<Block> blocks;
  std::vector<uint64_t> slot_bytes;
  std::vector<uint64_t> host_slot_bytes;
  uint64_t readback_bytes = 0;
  // One buffer that the host writes at once: the live scalars that shaders read, then small tensors
  // that come from the host.
  uint64_t inbox_bytes = 0;
  uint32_t scalar_slots = 0;
  ops::Live bound;  // dims at the bound
  // Of each node; none where it does not run on the GPU, or only the data of a run tell whether it
  // can be planned.
  std::vector<std::optional<NodePlan>> plans;
  bool feeds = false;  // one of them has a dispatch for runs that feed the next one
  MemoryNeed memory;
  // Indices that come from an input.
  struct IndexLimit {
    uint32_t input = 0;
    uint32_t node = 0;
    ops::IndexArg at = {};
    std::optional<int64_t> extent = {};  // checked against it before anything runs
    bool live = false;  // checked against the sizes of this run, before its block runs
  };
  std::vector<IndexLimit> index_limits;
  // Of each node: the slot where it reports the other indices, kNone if it need not.
  std::vector<uint32_t> fault_slot;
  uint32_t fault_slots = 0;
  uint64_t fault_bytes() const { return uint64_t{fault_slots} * ops::kFaultWords * 4; }
  std::vector<uint64_t> scratch_bytes;  // of each temporary that nodes share, at the bound
  uint64_t counted_bytes = 0;           // of the one with counters
  struct Relaid {
    graph::ValueId source = graph::kNoValue;
    std::string layout;
    uint64_t bytes = 0;
  };
  std::vector<Relaid> relaid;  // constants in another layout, each once
  bool is_static = true;       // no input may change its size
  // Uploads, one submit, and downloads of outputs: nothing runs on the CPU in between.
  bool one_stretch = false;

  const Root& root(graph::ValueId id) const { return roots[root_of[graph::index(id)]]; }
};

// Checks every node and decides where it runs: all of them on the CPU where caps.cpu says that
// there is nothing else. Errors: kUnsupported listing every operator that cannot run,
// kInvalidProgram for contradictions between a node and its arguments.
Result<Layout> make_layout(const graph::Graph& g, const ops::PlanContext& context);

// Every tensor at its bound, every scalar at its initial value.
ops::Live largest(const graph::Graph& g);

// The slot that the plan of a node is told.
inline std::optional<uint32_t> fault_slot(const Layout& l, size_t node) {
  return l.fault_slot[node] == kNone ? std::nullopt : std::optional(l.fault_slot[node]);
}

// Visits the tensors of an argument, looking into lists.
template <typename F>
void for_each_tensor(const graph::Graph& g, graph::ValueId id, F&& visit) {
  if (const auto* list = std::get_if<graph::ValueList>(&g[id])) {
    for (const graph::ValueId item : list->items) {
      if (item != graph::kNoValue && g.tensor(item) != nullptr) visit(item);
    }
  } else if (g.tensor(id) != nullptr) {
    visit(id);
  }
}

}  // namespace pteryx
