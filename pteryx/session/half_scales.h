// Scales and minimums of layers with 4-bit weights in f16, for sessions of f16 precision: half the
// bytes, in the order in which kernels fetch them.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <map>
#include <span>
#include <tuple>
#include <vector>

#include "pteryx/base/source.h"
#include "pteryx/graph/graph.h"

namespace pteryx {

class HalfScales {
 public:
  enum class Kept : uint8_t {
    kNowhere,   // made on their way to the GPU, which keeps the only copy
    kInMemory,  // for kernels on the CPU, from the first view of their source
  };
  explicit HalfScales(std::span<const SourcePtr> sources, Kept kept = Kept::kNowhere)
      : kept_(kept), sources_(sources.begin(), sources.end()) {}

  // Scales [groups, columns] of g's layers become f16 [columns / 8, groups, 8], with a source of
  // their own. Those that f16 would not hold to its full precision stay, and those whose bytes are
  // not in memory or mapped. Where there are minimums, both do so or neither, and f16 may lose bits
  // of the small ones if that is little beside the largest scale.
  void convert(graph::Graph& g);
  // Those given, and behind them those that were made.
  const std::vector<SourcePtr>& sources() const { return sources_; }

 private:
  struct Converted {
    bool fits = false;
    ByteRange data;
  };
  enum class Numbers : uint8_t { kScales, kScalesBesideMinimums, kMinimums };
  const Converted& converted(const graph::Tensor& t, Numbers numbers);
  Converted make(const graph::Tensor& t, Numbers numbers);

  Kept kept_;
  std::vector<SourcePtr> sources_;
  // By the bytes that they are made of, how many columns these have, and what they are.
  std::map<std::tuple<std::vector<ByteRange>, int64_t, Numbers>, Converted> made_;
};

}  // namespace pteryx
