// A table of codes with a scale for each group of a row, as embeddings have it: how it lies in
// memory. scaled_table.wgsl reads it.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "pteryx/ops/op.h"

namespace pteryx::ops {

struct ScaledTable {
  enum class Order : uint8_t {
    kRows,    // [vocabulary, groups]
    kGroups,  // [groups, vocabulary], perhaps padded
    kBlocks,  // [vocabulary / 8, groups, 8], perhaps padded
  };
  int64_t vocabulary = 0;
  int64_t width = 0;
  int64_t row_bytes = 0;
  int64_t group = 0;
  Order order = Order::kRows;
  int64_t scale_row = 0;   // of blocks: the scales of eight tokens
  bool low_first = false;  // an even element is the low nibble of its byte

  int64_t scale_at(int64_t token, int64_t e) const;
  std::string order_name() const;  // as the kernels call it
};

struct ScaledTableArgs {
  size_t weight = 0;
  size_t scales = 0;
  bool bytes = false;  // a code each, else two
};
// Errors where arguments contradict each other. No group: as many groups as there are scales.
Result<ScaledTable> scaled_table(const Node& n, const ScaledTableArgs& args,
                                 std::optional<int64_t> group, bool low_first);

}  // namespace pteryx::ops
