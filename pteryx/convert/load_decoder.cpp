// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/convert/load_decoder.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include <fmt/format.h>

namespace pteryx::convert {
namespace {

// Finds the tensors of a model and gives each its format.
class Loader {
 public:
  Loader(const Model& model, const ConvertOptions& options) : m_(model), o_(options) {}

  Result<LoadedDecoder> load() {
    const ModelShape& s = m_.shape;
    Decoder d{.shape = s, .bos = m_.bos, .eos = m_.eos};
    PTERYX_ASSIGN(d.embedding, matrix(Part::kEmbedding, 0, {s.vocabulary, s.hidden}));
    PTERYX_ASSIGN(d.norm, vector(Part::kNorm, 0, s.hidden));
    for (int64_t i = 0; i < s.layers; ++i) {
      PTERYX_ASSIGN(Layer layer, load_layer(i));
      d.layers.push_back(std::move(layer));
    }
    if (s.tied) {
      d.output.weight = d.embedding;
    } else {
      PTERYX_ASSIGN(d.output, linear(Part::kOutput, 0, {s.vocabulary, s.hidden}));
    }
    std::ranges::stable_sort(undecided_, std::ranges::greater(),
                             [](const auto& u) { return u->elems(); });
    return LoadedDecoder{std::move(d), std::move(undecided_)};
  }

 private:
  Result<Layer> load_layer(int64_t i) {
    const ModelShape& s = m_.shape;
    Layer l;
    PTERYX_ASSIGN(l.attention_norm, vector(Part::kAttentionNorm, i, s.hidden));
    PTERYX_ASSIGN(l.ffn_norm, vector(Part::kFfnNorm, i, s.hidden));
    if (s.qk_norm) {
      PTERYX_ASSIGN(l.q_norm, vector(Part::kQNorm, i, s.head_size));
      PTERYX_ASSIGN(l.k_norm, vector(Part::kKNorm, i, s.head_size));
    }
    PTERYX_ASSIGN(l.q, linear(Part::kQ, i, {s.q_rows(), s.hidden}));
    PTERYX_ASSIGN(l.k, linear(Part::kK, i, {s.kv_rows(), s.hidden}));
    PTERYX_ASSIGN(l.v, linear(Part::kV, i, {s.kv_rows(), s.hidden}));
    PTERYX_ASSIGN(l.o, linear(Part::kO, i, {s.hidden, s.q_rows()}));
    PTERYX_ASSIGN(l.gate, linear(Part::kGate, i, {s.ffn, s.hidden}));
    PTERYX_ASSIGN(l.up, linear(Part::kUp, i, {s.ffn, s.hidden}));
    PTERYX_ASSIGN(l.down, linear(Part::kDown, i, {s.hidden, s.ffn}));
    return l;
  }

  Result<std::vector<float>> values(const SourceTensor& t) {
    std::vector<float> out(static_cast<size_t>(t.cols()));
    PTERYX_TRY(t.read_row(0, out));
    for (const float v : out) {
      if (!std::isfinite(v)) {
        return invalid_program(fmt::format("tensor '{}' holds a value that is not finite", t.name));
      }
    }
    return out;
  }
  Result<std::vector<float>> vector(Part part, int64_t layer, int64_t size) {
    PTERYX_ASSIGN(const SourceTensor* t, m_.get(part, layer, {size}));
    return values(*t);
  }

  Result<std::shared_ptr<EncodedMatrix>> matrix(Part part, int64_t layer, const Dims& dims) {
    PTERYX_ASSIGN(const SourceTensor* t, m_.get(part, layer, dims));
    Matrix m{.name = t->name,
             .source = std::string(name(t->type)),
             .rows = dims[0],
             .cols = dims[1],
             .data = rows_of(*t)};
    auto encoded = std::make_shared<EncodedMatrix>(std::move(m), Encoding());
    undecided_.push_back(std::make_unique<Undecided>(encoded, o_, part == Part::kEmbedding));
    return encoded;
  }
  Result<Linear> linear(Part part, int64_t layer, const Dims& dims) {
    Linear l;
    PTERYX_ASSIGN(l.weight, matrix(part, layer, dims));
    PTERYX_ASSIGN(const SourceTensor* bias, m_.bias(part, layer, dims[0]));
    if (bias != nullptr) {
      PTERYX_ASSIGN(l.bias, values(*bias));
    }
    return l;
  }

  const Model& m_;
  const ConvertOptions& o_;
  std::vector<std::unique_ptr<Undecided>> undecided_;
};

}  // namespace

Result<bool> Undecided::advance() {
  PTERYX_ASSIGN(const bool done, choice_.advance());
  if (done) matrix_->set_encoding(choice_.encoding());
  return done;
}

Result<LoadedDecoder> load_decoder(const Model& model, const ConvertOptions& options) {
  return Loader(model, options).load();
}

}  // namespace pteryx::convert
