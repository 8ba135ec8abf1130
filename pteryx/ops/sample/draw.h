// Drawing a token on the CPU: what the reference and the fast kernel share.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "pteryx/ops/op.h"
#include "pteryx/ops/sample/sample.h"

namespace pteryx::ops::sample {

// Arguments of kSampleOp.
enum Position {
  kLogits,
  kSettings,
  kHistory,
  kTokens,
  kStart,
  kTable,
  kScales,
  kGroup,
  kLowFirst,
  kEmbedded
};

// The position of the first token, after checking that history reaches as far as the last.
Result<int64_t> read_start(const Node& n, size_t tokens, size_t history, size_t start_arg);

// What a call of the node draws by.
struct Draw {
  Sampling settings;
  int64_t begin = 0;  // of history, that counts
  int64_t end = 0;    // position of the token
};
Result<Draw> read_draw(const Node& n, const Host& h);
// Follows from seed, position and id alone.
double noise(const Sampling& s, uint32_t position, uint32_t id);

Status draw_on_cpu(const Node& n, const Host& h);
Result<bool> draw_fast(const Node& n, const Host& h, CpuContext& c);

}  // namespace pteryx::ops::sample
