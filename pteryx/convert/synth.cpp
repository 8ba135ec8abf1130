// Random weights in the shape of a known model. Rows are made from the seed, the matrix and the
// row, so that a program needs no memory to speak of; quantised ones are made as codes.
// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "pteryx/convert/choice.h"
#include "pteryx/convert/convert.h"
#include "pteryx/convert/write_model.h"

namespace pteryx::convert {
namespace {

// SplitMix64: any seed gives a good sequence.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t next() {
    uint64_t z = state_ += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }

 private:
  uint64_t state_;
};

// Uniform codes whose RMS times the scale is `rms`, or uniform floats of that RMS.
class RandomRows final : public RowSource {
 public:
  RandomRows(uint64_t seed, float rms) : seed_(seed), rms_(rms) {}

  Result<bool> read(int64_t row, std::span<float> out) override {
    Random r = of_row(row);
    const float scale = rms_ * std::sqrt(3.0F) / 2147483648.0F;
    for (size_t i = 0; i < out.size(); i += 2) {
      const uint64_t bits = r.next();
      out[i] = static_cast<float>(static_cast<int32_t>(bits)) * scale;
      if (i + 1 < out.size()) {
        out[i + 1] = static_cast<float>(static_cast<int32_t>(bits >> 32)) * scale;
      }
    }
    return true;
  }
  bool has_codes(const Encoding& e) const override {
    return e.target == Target::kQ8 || (e.target == Target::kQ4 && !e.minimums);
  }
  Result<bool> codes(int64_t row, const Encoding& e, const RowCodes& to) override {
    const auto& [codes, scales, minimums] = to;
    Random r = of_row(row);
    if (e.target == Target::kQ8) {
      fill<8>(r, codes, [](uint64_t bits) { return static_cast<int>(bits % 255) - 127; });
      std::fill(scales.begin(), scales.end(), rms_ / 73.6F);
      return true;
    }
    fill<4>(r, codes, [](uint64_t bits) { return static_cast<int>(bits) - 8; });
    // The signs of the scales cancel the mean of the codes, which is -1/2.
    for (size_t g = 0; g < scales.size(); ++g) {
      scales[g] = (r.next() & 1) != 0 ? rms_ / 4.64F : -rms_ / 4.64F;
    }
    return true;
  }

 private:
  Random of_row(int64_t row) const {
    return Random(Random(seed_ + static_cast<uint64_t>(row)).next());
  }
  template <unsigned Bits, typename Code>
  static void fill(Random& r, std::span<int8_t> codes, Code code) {
    constexpr uint64_t kMask = (uint64_t{1} << Bits) - 1;
    for (size_t i = 0; i < codes.size();) {
      uint64_t bits = r.next();
      for (unsigned n = 0; n < 64 / Bits && i < codes.size(); ++n, ++i, bits >>= Bits) {
        codes[i] = static_cast<int8_t>(code(bits & kMask));
      }
    }
  }
  uint64_t seed_;
  float rms_;
};

struct Preset {
  std::string_view name;
  ModelShape shape;
  std::optional<int64_t> bos;
  std::vector<int64_t> eos;
};

std::vector<Preset> presets() {
  const RopeScaling llama31 = {.kind = RopeScaling::Kind::kLlama3, .factor = 8};
  const RopeScaling llama32 = {.kind = RopeScaling::Kind::kLlama3, .factor = 32};
  return {
      {"llama-3.1-8b",
       {.architecture = "llama",
        .hidden = 4096,
        .layers = 32,
        .heads = 32,
        .kv_heads = 8,
        .head_size = 128,
        .ffn = 14336,
        .vocabulary = 128256,
        .context = 131072,
        .norm_eps = 1e-5,
        .rope_theta = 500000,
        .rope_scaling = llama31},
       128000,
       {128001, 128008, 128009}},
      {"llama-3.2-1b",
       {.architecture = "llama",
        .hidden = 2048,
        .layers = 16,
        .heads = 32,
        .kv_heads = 8,
        .head_size = 64,
        .ffn = 8192,
        .vocabulary = 128256,
        .context = 131072,
        .norm_eps = 1e-5,
        .rope_theta = 500000,
        .rope_scaling = llama32,
        .tied = true},
       128000,
       {128001, 128008, 128009}},
      {"qwen3-0.6b",
       {.architecture = "qwen3",
        .hidden = 1024,
        .layers = 28,
        .heads = 16,
        .kv_heads = 8,
        .head_size = 128,
        .ffn = 3072,
        .vocabulary = 151936,
        .context = 40960,
        .norm_eps = 1e-6,
        .rope_theta = 1000000,
        .rope = RopeLayout::kHalves,
        .qk_norm = true,
        .tied = true},
       151643,
       {151645}},
      {"tiny",
       {.architecture = "llama",
        .hidden = 64,
        .layers = 2,
        .heads = 4,
        .kv_heads = 2,
        .head_size = 16,
        .ffn = 160,
        .vocabulary = 256,
        .context = 256,
        .norm_eps = 1e-5,
        .tied = true},
       1,
       {2}},
  };
}

class Maker {
 public:
  Maker(const ModelShape& s, const SynthOptions& o) : s_(s), o_(o), seed_(o.seed) {}

  Result<Decoder> make() {
    Decoder d{.shape = s_};
    PTERYX_ASSIGN(d.embedding, matrix("embedding", s_.vocabulary, s_.hidden, 1, true));
    d.norm = ones(s_.hidden);
    for (int64_t i = 0; i < s_.layers; ++i) {
      PTERYX_ASSIGN(Layer l, layer(fmt::format("layers.{}.", i)));
      d.layers.push_back(std::move(l));
    }
    if (s_.tied) {
      d.output.weight = d.embedding;
    } else {
      PTERYX_ASSIGN(d.output.weight, matrix("output", s_.vocabulary, s_.hidden, 1));
    }
    return d;
  }

 private:
  static std::vector<float> ones(int64_t n) {
    return std::vector<float>(static_cast<size_t>(n), 1);
  }

  // Products keep the size of what goes in; what is added to the residual stream is smaller the
  // more layers there are.
  Result<Layer> layer(const std::string& in) {
    const double add = 1 / std::sqrt(2.0 * static_cast<double>(s_.layers));
    Layer l{.attention_norm = ones(s_.hidden), .ffn_norm = ones(s_.hidden)};
    if (s_.qk_norm) l.q_norm = l.k_norm = ones(s_.head_size);
    PTERYX_ASSIGN(l.q.weight, matrix(in + "q", s_.q_rows(), s_.hidden, 1));
    PTERYX_ASSIGN(l.k.weight, matrix(in + "k", s_.kv_rows(), s_.hidden, 1));
    PTERYX_ASSIGN(l.v.weight, matrix(in + "v", s_.kv_rows(), s_.hidden, 1));
    PTERYX_ASSIGN(l.o.weight, matrix(in + "o", s_.hidden, s_.q_rows(), add));
    PTERYX_ASSIGN(l.gate.weight, matrix(in + "gate", s_.ffn, s_.hidden, 1));
    PTERYX_ASSIGN(l.up.weight, matrix(in + "up", s_.ffn, s_.hidden, 1));
    PTERYX_ASSIGN(l.down.weight, matrix(in + "down", s_.hidden, s_.ffn, add));
    return l;
  }

  // `gain`: RMS of the product of a vector of RMS 1. Tied to an output, an embedding of gain 1
  // makes logits of RMS 1.
  Result<std::shared_ptr<EncodedMatrix>> matrix(std::string name, int64_t rows, int64_t cols,
                                                double gain, bool embedding = false) {
    seed_ += 0x2545f4914f6cdd1d;
    const auto rms = static_cast<float>(gain / std::sqrt(static_cast<double>(cols)));
    Matrix m{.name = std::move(name),
             .source = "random",
             .rows = rows,
             .cols = cols,
             .data = std::make_shared<RandomRows>(seed_, rms)};
    ConvertOptions o = o_.convert;
    if (o.quantize == Quantize::kAuto) o.quantize = Quantize::kQ4;
    Choice choice(m, o, embedding);
    for (bool done = false; !done;) {
      PTERYX_ASSIGN(done, choice.advance());
    }
    return std::make_shared<EncodedMatrix>(std::move(m), choice.encoding());
  }

  const ModelShape& s_;
  const SynthOptions& o_;
  uint64_t seed_;
};

}  // namespace

std::vector<std::string> synth_presets() {
  std::vector<std::string> names;
  for (const Preset& p : presets()) names.emplace_back(p.name);
  return names;
}

Result<ConvertReport> synth(const std::string& path, const SynthOptions& options) {
  for (const Preset& p : presets()) {
    if (p.name != options.preset) continue;
    PTERYX_ASSIGN(const DecoderOptions decoder, decoder_options(p.shape, options.convert));
    PTERYX_ASSIGN(Decoder d, Maker(p.shape, options).make());
    d.bos = p.bos;
    d.eos = p.eos;
    return write_model(d, decoder, {}, path, options.convert.progress, options.convert.threads);
  }
  return invalid_argument(
      fmt::format("preset '{}': {} are known", options.preset, fmt::join(synth_presets(), ", ")));
}

}  // namespace pteryx::convert
