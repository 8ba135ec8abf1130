// What pteryx.wasm has: language models on a GPU. It leaves out the CPU's kernels, and operators of
// networks that language models do without; programs that need either are run by another module.
// web/build.mjs leaves out the kernels of the same families.
// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/ops/cpu_kernel.h"
#include "pteryx/ops/families.h"
#include "pteryx/ops/table.h"

namespace pteryx::ops {
namespace {

constexpr Family kFamilies[] = {
    add_any_all,
    add_affine,
    add_attention,
    add_binary,
    add_choose_qparams,
    add_copy,
    add_copy_index,
    add_creation,
    add_index,
    add_item,
    add_join,
    add_embedding_parts,
    add_embedding_q4,
    add_movement,
    add_matmul,
    add_norm,
    add_put,
    add_qlinear,
    add_reduce,
    add_rope,
    add_sample,
    add_scalars,
    add_softmax,
    add_unary,
    add_views,
    add_where,
};

}  // namespace

bool has_cpu_kernels() { return false; }
std::span<const Family> families() { return kFamilies; }

}  // namespace pteryx::ops
