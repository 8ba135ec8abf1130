// The program of a decoder-only language model: forward(tokens [1, S], position [1]) -> logits
// [1, vocabulary] of the last token, with the KV caches inside.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "pteryx/base/status.h"
#include "pteryx/convert/matrix.h"
#include "pteryx/convert/model.h"
#include "pteryx/convert/program_writer.h"

namespace pteryx::convert {

// A linear layer, its bias if it has one.
struct Linear {
  std::shared_ptr<EncodedMatrix> weight;
  std::optional<std::vector<float>> bias;
};

struct Layer {
  std::vector<float> attention_norm, ffn_norm;
  std::vector<float> q_norm, k_norm;  // empty unless shape.qk_norm
  Linear q, k, v, o, gate, up, down;
};

struct Decoder {
  ModelShape shape;
  std::shared_ptr<EncodedMatrix> embedding;
  std::vector<Layer> layers;
  std::vector<float> norm;
  Linear output;  // its weight is the embedding's where they are tied
  std::optional<int64_t> bos;
  std::vector<int64_t> eos;
};

struct DecoderOptions {
  int64_t max_context = 0;      // rows of a KV cache
  int64_t max_tokens = 0;       // of one call
  DType kv_type = DType::kF32;  // or kF16
};

ProgramSpec decoder_program(const Decoder& d, const DecoderOptions& options);

}  // namespace pteryx::convert
