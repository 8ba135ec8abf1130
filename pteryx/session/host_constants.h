// What constants cost that nodes on the CPU read.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <span>
#include <vector>

#include "pteryx/base/precision.h"
#include "pteryx/base/source.h"
#include "pteryx/cpu/pool.h"
#include "pteryx/graph/graph.h"
#include "pteryx/session/constant.h"
#include "pteryx/session/layout.h"

namespace pteryx {

// Of one method or of several.
class HostConstants {
 public:
  // What reads them; without threads, the references.
  struct Kernels {
    cpu::Pool* pool = nullptr;
    Precision precision = Precision::kF32;
  };
  // The first `files` of the sources are files; others hold what was made of them.
  HostConstants(std::span<const SourcePtr> sources, size_t files, const Kernels& kernels)
      : sources_(sources), files_(files), kernels_(kernels) {}

  // Counts those that nodes of g on the CPU read, before anything is read.
  void add(const graph::Graph& g, const Layout& layout);
  uint64_t in_place() { return in_place_.total(); }
  uint64_t copied() { return copied_ + made_.total(); }

 private:
  std::vector<bool> joined(const graph::Graph& g, const Layout& layout) const;

  std::span<const SourcePtr> sources_;
  size_t files_;
  Kernels kernels_;
  ByteCount in_place_;
  ByteCount made_;
  uint64_t copied_ = 0;  // by each method for itself
};

}  // namespace pteryx
