// Every operator Pteryx knows. A family adds its rows in one function; table.cpp lists the
// families.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "pteryx/graph/graph.h"
#include "pteryx/ops/op.h"

namespace pteryx::ops {

// Families, one file each.
void add_any_all(std::vector<OpDef>& table);
void add_affine(std::vector<OpDef>& table);
void add_attention(std::vector<OpDef>& table);
void add_binary(std::vector<OpDef>& table);
void add_choose_qparams(std::vector<OpDef>& table);
void add_conv(std::vector<OpDef>& table);
void add_copy(std::vector<OpDef>& table);
void add_copy_index(std::vector<OpDef>& table);
void add_creation(std::vector<OpDef>& table);
void add_distance(std::vector<OpDef>& table);
void add_embedding_bag(std::vector<OpDef>& table);
void add_embedding_parts(std::vector<OpDef>& table);
void add_embedding_q4(std::vector<OpDef>& table);
void add_grid(std::vector<OpDef>& table);
void add_index(std::vector<OpDef>& table);
void add_item(std::vector<OpDef>& table);
void add_join(std::vector<OpDef>& table);
void add_movement(std::vector<OpDef>& table);
void add_matmul(std::vector<OpDef>& table);
void add_batch_norm(std::vector<OpDef>& table);
void add_norm(std::vector<OpDef>& table);
void add_pool(std::vector<OpDef>& table);
void add_put(std::vector<OpDef>& table);
void add_qlinear(std::vector<OpDef>& table);
void add_reduce(std::vector<OpDef>& table);
void add_rope(std::vector<OpDef>& table);
void add_sample(std::vector<OpDef>& table);
void add_scalars(std::vector<OpDef>& table);
void add_scan(std::vector<OpDef>& table);
void add_softmax(std::vector<OpDef>& table);
void add_sort(std::vector<OpDef>& table);
void add_unary(std::vector<OpDef>& table);
void add_upsample(std::vector<OpDef>& table);
void add_views(std::vector<OpDef>& table);
void add_where(std::vector<OpDef>& table);

// All operators, in family order; made once.
std::span<const OpDef> all_ops();
// The operator a node was resolved to.
const OpDef& op(const graph::OpInfo& info);
// Finds an operator by any of its spellings, for build_graph.
const graph::OpLookup& lookup();

}  // namespace pteryx::ops
