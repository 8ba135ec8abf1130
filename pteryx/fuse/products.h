// The products that passes make of linear layers, by their weights.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "pteryx/graph/graph.h"

namespace pteryx::fuse {

struct ProductOps {
  std::string_view layer;    // as it came
  std::string_view product;  // with slots for what is around it
  std::string_view rotated;  // for queries, keys and values
};
inline constexpr ProductOps kProductOps[] = {
    {"et_vk.linear_q4gsw.default", "pteryx.linear_q4gsw", "pteryx.linear_q4gsw_rope"},
    {"aten._weight_int8pack_mm.default", "pteryx.linear_q8", "pteryx.linear_q8_rope"},
    {"aten.linear.default", "pteryx.linear", "pteryx.linear_rope"},
};

// Which of these a node is as a product; null: none.
const ProductOps* product_of(const graph::Node& n);

// A layer: as it came, or a product with one result that has taken in minimums and a bias at most.
// kNoValue: there is none.
struct Layer {
  const ProductOps* ops = nullptr;
  graph::ValueId x = graph::kNoValue;
  graph::ValueId weight = graph::kNoValue;
  graph::ValueId scales = graph::kNoValue;
  graph::ValueId group = graph::kNoValue;
  graph::ValueId minimums = graph::kNoValue;
  graph::ValueId bias = graph::kNoValue;
  graph::ValueId y = graph::kNoValue;
};
std::optional<Layer> layer_of(const graph::Graph& g, const graph::Node& n);

bool is_plain_float(const graph::Tensor& t);  // f32 or f16

// Bytes of a constant as kernels may want it: rows of a weight are whole vectors.
uint64_t padded_bytes(const graph::Tensor& t);

// Makes a layer a product. False, and nothing changed, where it can be none: x and y of other
// forms, or constants of more than `most_bytes`.
bool make_product(graph::Graph& g, graph::Node& n, const graph::OpLookup& ops, uint64_t most_bytes);

}  // namespace pteryx::fuse
