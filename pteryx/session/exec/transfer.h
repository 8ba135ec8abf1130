// Between host memory and the GPU, within a run.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "pteryx/graph/graph.h"
#include "pteryx/session/exec/faults.h"
#include "pteryx/session/exec/memory.h"
#include "pteryx/session/exec/profiler.h"
#include "pteryx/session/exec/recorder.h"
#include "pteryx/session/exec/staging.h"
#include "pteryx/session/layout.h"

namespace pteryx::exec {

// Which outputs the caller wants, and so which roots come back.
class Wanted {
 public:
  static constexpr uint64_t kAll = ~uint64_t{0};

  // Bit i: output i is wanted; those behind 63 are.
  void set(const graph::Graph& g, const Layout& layout, uint64_t outputs);
  bool output(size_t i) const { return i >= 64 || (outputs_ >> i & 1U) != 0; }
  bool root(uint32_t r) const { return outputs_ == kAll || !unwanted_[r]; }
  bool nothing() const { return outputs_ == 0; }

 private:
  uint64_t outputs_ = kAll;
  std::vector<bool> unwanted_;  // of each root: downloaded for outputs that are not wanted
};

class Transfer {
 public:
  // All of these outlive it.
  Transfer(const graph::Graph& g, const Layout& layout, std::shared_ptr<gpu::Device> device,
           const Memory& memory, Staging& staging, Faults& faults)
      : graph_(g),
        layout_(layout),
        device_(std::move(device)),
        memory_(memory),
        staging_(staging),
        faults_(faults) {}
  ~Transfer() { cancel(); }

  // What is read from now on is of another run.
  void begin_run() { first_submit_ = faults_.next(); }

  // Errors: kInvalidArgument for an i64 that does not fit i32.
  Status upload(uint32_t root, const ops::Live& live);
  // The scalars that a recording's shaders read.
  Status put_scalars(const Recording& r);

  // What a submit copies: the roots that are wanted and, with them, what nodes reported. Reports
  // stay where they are until something is read.
  std::span<const gpu::Copy> copies(const Recording& r, uint32_t span, const Wanted& wanted);
  // Brings the roots that the submit before copied to the host; true once they are there. Errors:
  // kInvalidArgument for an index outside its tensor that a node reported.
  Result<bool> download(std::span<const uint32_t> roots, const ops::Live& live,
                        const Wanted& wanted, Profiler* profiler);
  void cancel();

 private:
  uint64_t elements(uint32_t root, const ops::Live& live) const;
  DType dtype(uint32_t root) const { return graph_.tensor(layout_.roots[root].value)->dtype; }
  void take(std::span<const uint32_t> roots, const ops::Live& live, const Wanted& wanted,
            Bytes bytes);

  const graph::Graph& graph_;
  const Layout& layout_;
  std::shared_ptr<gpu::Device> device_;
  const Memory& memory_;
  Staging& staging_;
  Faults& faults_;
  std::vector<int32_t> narrow_;  // i64 on its way to the GPU
  std::vector<gpu::Copy> copies_;
  gpu::Ticket ticket_ = gpu::Ticket::kNone;  // of a download under way
  uint64_t begin_ = 0;                       // of what it reads
  uint64_t faults_at_ = 0;                   // behind what the submit before copied
  uint64_t first_submit_ = 1;                // of the run
};

}  // namespace pteryx::exec
