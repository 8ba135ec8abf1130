// Scales of layers with 4-bit weights in f16, for sessions of f16 precision: half the bytes, in the
// order in which kernels fetch them.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <map>
#include <span>
#include <utility>
#include <vector>

#include "pteryx/base/source.h"
#include "pteryx/graph/graph.h"

namespace pteryx {

class HalfScales {
 public:
  explicit HalfScales(std::span<const SourcePtr> sources)
      : sources_(sources.begin(), sources.end()) {}

  // Scales [groups, columns] of g's layers become f16 [columns / 8, groups, 8], with a source of
  // their own. Those that f16 would not hold to its full precision stay, and those whose bytes are
  // not in memory or mapped.
  void convert(graph::Graph& g);
  // Those given, and behind them those that were made.
  const std::vector<SourcePtr>& sources() const { return sources_; }

 private:
  struct Made {
    bool fits = false;
    ByteRange data;
  };
  Made make(const graph::Tensor& t);

  std::vector<SourcePtr> sources_;
  // By the bytes that they are made of, and how many columns these have.
  std::map<std::pair<std::vector<ByteRange>, int64_t>, Made> made_;
};

}  // namespace pteryx
