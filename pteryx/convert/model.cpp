// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/convert/model.h"

#include <array>
#include <cmath>

#include <fmt/format.h>

#include "pteryx/convert/llama2c.h"

namespace pteryx::convert {
namespace {

struct PartNames {
  std::string_view hugging_face;
  std::string_view gguf;
  bool of_layer = true;
};
constexpr std::array<PartNames, 14> kNames = {{
    {"model.embed_tokens", "token_embd", false},
    {"model.norm", "output_norm", false},
    {"lm_head", "output", false},
    {"input_layernorm", "attn_norm"},
    {"self_attn.q_proj", "attn_q"},
    {"self_attn.k_proj", "attn_k"},
    {"self_attn.v_proj", "attn_v"},
    {"self_attn.o_proj", "attn_output"},
    {"self_attn.q_norm", "attn_q_norm"},
    {"self_attn.k_norm", "attn_k_norm"},
    {"post_attention_layernorm", "ffn_norm"},
    {"mlp.gate_proj", "ffn_gate"},
    {"mlp.up_proj", "ffn_up"},
    {"mlp.down_proj", "ffn_down"},
}};

std::string stem(Naming naming, Part part, int64_t layer) {
  const PartNames& n = kNames[static_cast<size_t>(part)];
  const std::string_view name = naming == Naming::kGguf ? n.gguf : n.hugging_face;
  if (!n.of_layer) return std::string(name);
  return fmt::format("{}.{}.{}", naming == Naming::kGguf ? "blk" : "model.layers", layer, name);
}

}  // namespace

std::string tensor_name(Naming naming, Part part, int64_t layer) {
  return stem(naming, part, layer) + ".weight";
}

Result<const SourceTensor*> Model::get(Part part, int64_t layer, const Dims& dims) const {
  // A tied matrix may be stored under either name.
  if (part == Part::kEmbedding && shape.tied &&
      weights.find(tensor_name(naming, part, layer)) == nullptr &&
      weights.find(tensor_name(naming, Part::kOutput, layer)) != nullptr) {
    part = Part::kOutput;
  }
  return weights.get(tensor_name(naming, part, layer), dims);
}

Result<const SourceTensor*> Model::bias(Part part, int64_t layer, int64_t rows) const {
  const std::string name = stem(naming, part, layer) + ".bias";
  if (!weights.has(name)) {
    return static_cast<const SourceTensor*>(nullptr);
  }
  return weights.get(name, {rows});
}

Status check(const ModelShape& s) {
  // Far above any model; below what would make tables and caches of a small file fill a disk.
  struct Limit {
    std::string_view what;
    int64_t size, most;
  };
  const Limit limits[] = {
      {"hidden size", s.hidden, 1 << 18},    {"layers", s.layers, 1 << 12},
      {"heads", s.heads, 1 << 12},           {"key-value heads", s.kv_heads, 1 << 12},
      {"head size", s.head_size, 1 << 10},   {"feed-forward size", s.ffn, 1 << 20},
      {"vocabulary", s.vocabulary, 1 << 24}, {"context", s.context, 1 << 24},
  };
  for (const Limit& l : limits) {
    if (l.size <= 0 || l.size > l.most) {
      return invalid_program(
          fmt::format("{}: {}: expected 1 to {}, got {}", s.architecture, l.what, l.most, l.size));
    }
  }
  if (s.heads % s.kv_heads != 0) {
    return invalid_program(
        fmt::format("{}: heads: expected a multiple of the {} key-value heads, got {}",
                    s.architecture, s.kv_heads, s.heads));
  }
  if (s.head_size % 2 != 0) {
    return invalid_program(
        fmt::format("{}: head size: expected an even number, got {}", s.architecture, s.head_size));
  }
  const auto outside = [](double v, double least, double most) {
    return !(v >= least && v <= most);
  };
  if (outside(s.norm_eps, 0, 1)) {
    return invalid_program(
        fmt::format("{}: norm epsilon: expected 0 to 1, got {}", s.architecture, s.norm_eps));
  }
  if (outside(s.rope_theta, 1, 1e12)) {
    return invalid_program(
        fmt::format("{}: rope base: expected 1 to 1e12, got {}", s.architecture, s.rope_theta));
  }
  if (outside(s.rope_scaling.factor, 1e-3, 1e6)) {
    return invalid_program(fmt::format("{}: rope scaling factor: expected 0.001 to 1000000, got {}",
                                       s.architecture, s.rope_scaling.factor));
  }
  const RopeScaling& r = s.rope_scaling;
  if (!(r.factor > 0) || !(r.high_freq > r.low_freq) || !(r.low_freq > 0) ||
      !(r.original_context > 0)) {
    return invalid_program(fmt::format(
        "{}: rope scaling: expected factors above 0, the low frequency factor below the "
        "high one, got factor {}, low {}, high {}, original context {}",
        s.architecture, r.factor, r.low_freq, r.high_freq, r.original_context));
  }
  if (!s.rope_factors.empty() && s.rope_factors.size() != static_cast<size_t>(s.head_size / 2)) {
    return invalid_program(fmt::format("{}: rope factors: expected {}, got {}", s.architecture,
                                       s.head_size / 2, s.rope_factors.size()));
  }
  return {};
}

Result<Model> model_from_llama2c(const SourcePtr& file) {
  PTERYX_ASSIGN(Llama2c c, parse_llama2c(file));
  Model m;
  m.shape = {.architecture = "llama",
             .hidden = c.hidden,
             .layers = c.layers,
             .heads = c.heads,
             .kv_heads = c.kv_heads,
             .head_size = c.hidden / c.heads,
             .ffn = c.ffn,
             .vocabulary = c.vocabulary,
             .context = c.context};
  m.weights = std::move(c.tensors);
  m.shape.tied = m.weights.find("lm_head.weight") == nullptr;
  m.bos = 1;
  m.eos = {1, 2};  // these models were trained with BOS between texts
  PTERYX_TRY(check(m.shape));
  PTERYX_TRY(check_token_id("llama2.c: EOS", m.eos.back(), c.vocabulary));
  return m;
}

Status check_token_id(std::string_view key, int64_t id, int64_t vocabulary) {
  if (id >= 0 && id < vocabulary) return {};
  return invalid_program(
      fmt::format("{}: expected a token below {}, the vocabulary, got {}", key, vocabulary, id));
}

}  // namespace pteryx::convert
