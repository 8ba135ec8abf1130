// The GPU routes of attention. All of them keep a running maximum (online softmax): no route stores
// the scores of all rows.
// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/ops/attention/kernel.h"

namespace pteryx::ops::attention {
namespace {

constexpr Route kRoutes[] = {
    {"decode_subgroup", fits_decode_subgroup, plan_decode_subgroup},
    {"decode", fits_decode, plan_decode},
    {"matrix", fits_matrix, plan_matrix, nullptr, Precision::kF16},
    {"tiled", fits_tiled, plan_tiled},
    {"naive", nullptr, plan_naive},
};

}  // namespace

std::span<const Route> routes() { return kRoutes; }

}  // namespace pteryx::ops::attention
