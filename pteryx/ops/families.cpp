// Every family of operators. SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/ops/families.h"

#include "pteryx/ops/table.h"

namespace pteryx::ops {
namespace {

constexpr Family kFamilies[] = {
    add_any_all,        add_affine,   add_attention,     add_binary,
    add_choose_qparams, add_conv,     add_copy,          add_copy_index,
    add_creation,       add_distance, add_embedding_bag, add_embedding_parts,
    add_embedding_q4,   add_grid,     add_index,         add_item,
    add_join,           add_movement, add_matmul,        add_norm,
    add_batch_norm,     add_pool,     add_put,           add_qlinear,
    add_reduce,         add_rope,     add_sample,        add_scalars,
    add_scan,           add_softmax,  add_sort,          add_unary,
    add_upsample,       add_views,    add_where,
};

}  // namespace

std::span<const Family> families() { return kFamilies; }

}  // namespace pteryx::ops
