// Normalisation of rows as the GPU plan and the CPU kernel see it.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "pteryx/ops/norm.h"
#include "pteryx/ops/op.h"

namespace pteryx::ops {

enum class NormKind : uint8_t { kRms, kTrailingRms, kLayer, kGroup, kBatch };
constexpr bool is_centred(NormKind k) { return k != NormKind::kRms && k != NormKind::kTrailingRms; }

// The rows of a call: [rows, length] dense, or for batches [N, rows, inner] with length N * inner.
struct NormRows {
  NormKind kind = NormKind::kRms;
  Affine affine = {};
  double eps = 0;
  bool silu = false;  // behind it
  int64_t rows = 1;
  int64_t length = 1;
  int64_t groups = 1;    // of channels, one row of a sample each
  int64_t channels = 1;  // in a group
  int64_t inner = 1;     // elements of a channel
  Dims stats = {};       // shape of mean and rstd
};

Result<NormRows> describe_norm(const Node& n);

std::span<const Route> norm_routes();
// With vectors and threads: all but batches.
Result<bool> norm_fast(const Node& n, const Host& h, CpuContext& c);

}  // namespace pteryx::ops
