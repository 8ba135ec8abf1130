// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/convert/convert.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include <fmt/format.h>

#include "pteryx/base/same_file.h"
#include "pteryx/convert/parallel.h"
#include "pteryx/convert/write_model.h"

namespace pteryx::convert {
namespace {

constexpr int64_t kLargestGroup = 1 << 16;

// Finds the tensors of a model and gives each its format.
class Loader {
 public:
  Loader(const Model& model, const ConvertOptions& options) : m_(model), o_(options) {}

  Result<Decoder> load() {
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
    PTERYX_TRY(choose_encodings());
    return d;
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
    undecided_.push_back({encoded.get(), part == Part::kEmbedding});
    return encoded;
  }
  // Looks at the rows of each where that is necessary, the largest first.
  Status choose_encodings() {
    const auto elements = [](const Undecided& u) {
      return u.matrix->matrix().rows * u.matrix->matrix().cols;
    };
    std::ranges::stable_sort(undecided_, std::ranges::greater(), elements);
    int64_t all = 0;
    for (const Undecided& u : undecided_) all += elements(u);
    const auto decide = [&](size_t i, const Stopped& /*stopped*/) -> Status {
      const Undecided& u = undecided_[i];
      PTERYX_ASSIGN(const Encoding e, choose(u.matrix->matrix(), o_, u.embedding));
      u.matrix->set_encoding(e);
      return {};
    };
    return run_parallel(undecided_.size(), threads_for(o_.threads, static_cast<uint64_t>(all)),
                        decide, [&] { return !o_.progress || o_.progress(0, 1); });
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

  struct Undecided {
    EncodedMatrix* matrix;
    bool embedding;
  };

  const Model& m_;
  const ConvertOptions& o_;
  std::vector<Undecided> undecided_;
};

// The output must not be what is still being read.
Status check_output(const std::string& source, const std::string& path,
                    const ConvertOptions& options) {
  PTERYX_ASSIGN(const std::vector<std::string> files, source_files(source));
  for (const std::string& file : files) {
    if (!same_file(file, path)) continue;
    return invalid_argument(
        file == source ? fmt::format("the output {} is the source itself", path)
                       : fmt::format("the output {} is {}, a file of the source", path, file));
  }
  if (!options.tokenizer.empty() && same_file(options.tokenizer, path)) {
    return invalid_argument(fmt::format("the output {} is the tokenizer", path));
  }
  return {};
}

}  // namespace

Result<ConvertReport> convert(const std::string& source, const std::string& path,
                              const ConvertOptions& options) {
  if (options.group_size < 1 || options.group_size > kLargestGroup) {
    return invalid_argument(
        fmt::format("group size: expected 1 to {}, got {}", kLargestGroup, options.group_size));
  }
  PTERYX_ASSIGN(Model model, open_model(source, options.tokenizer));
  PTERYX_TRY(check_output(source, path, options));
  PTERYX_ASSIGN(const DecoderOptions decoder, decoder_options(model.shape, options));
  PTERYX_ASSIGN(const Decoder d, Loader(model, options).load());
  PTERYX_ASSIGN(ConvertReport report, write_model(d, decoder, std::move(model.texts).attachments(),
                                                  path, options.progress, options.threads));
  report.warnings = std::move(model.warnings);
  return report;
}

}  // namespace pteryx::convert
