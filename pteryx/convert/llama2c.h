// llama2.c checkpoints: seven integers, then float32 tensors. SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

#include "pteryx/base/source.h"
#include "pteryx/base/status.h"
#include "pteryx/convert/checkpoint.h"

namespace pteryx::convert {

struct Llama2c {
  int32_t hidden = 0, ffn = 0, layers = 0, heads = 0, kv_heads = 0, vocabulary = 0, context = 0;
  Checkpoint tensors;  // by their Hugging Face names; no lm_head where it is the embedding
};

// Errors: kIo, kInvalidProgram.
Result<Llama2c> parse_llama2c(const SourcePtr& file);

}  // namespace pteryx::convert
