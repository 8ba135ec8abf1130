// From a model to the weights of a decoder, each matrix with the format it gets.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>
#include <vector>

#include "pteryx/base/status.h"
#include "pteryx/convert/choice.h"
#include "pteryx/convert/convert.h"
#include "pteryx/convert/decoder.h"
#include "pteryx/convert/model.h"

namespace pteryx::convert {

// A matrix whose format is still to be chosen.
class Undecided {
 public:
  Undecided(std::shared_ptr<EncodedMatrix> matrix, const ConvertOptions& options, bool embedding)
      : matrix_(std::move(matrix)), choice_(matrix_->matrix(), options, embedding) {}

  int64_t elems() const { return matrix_->matrix().rows * matrix_->matrix().cols; }
  // True once the matrix has its format. Errors: those of Choice.
  Result<bool> advance();

 private:
  std::shared_ptr<EncodedMatrix> matrix_;
  Choice choice_;
};

struct LoadedDecoder {
  Decoder decoder;
  // To be decided, in any order or at once, before the decoder is used; the largest first.
  std::vector<std::unique_ptr<Undecided>> undecided;
};

// Finds the tensors of a model and reads those that are vectors. Errors: kIo, kInvalidProgram,
// kUnsupported.
Result<LoadedDecoder> load_decoder(const Model& model, const ConvertOptions& options);

}  // namespace pteryx::convert
