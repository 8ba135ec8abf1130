// All layers of a kind lie together. Nothing in the file says what it is, so its size has to be
// exactly what the seven integers ask for.
// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/convert/llama2c.h"

#include <array>
#include <cstdlib>

#include <fmt/format.h>

#include "pteryx/base/checked.h"

namespace pteryx::convert {
namespace {

constexpr uint64_t kHeaderBytes = 28;
constexpr int32_t kLargest = 1 << 24;

Status read_header(Bytes file, Llama2c& m, bool& own_output) {
  std::array<int32_t, 7> v{};
  for (size_t i = 0; i < v.size(); ++i) {
    const auto x = read_at<int32_t>(file, i * 4);
    if (!x) return invalid_program(fmt::format("llama2.c: {} bytes are too few", file.size()));
    v[i] = *x;
  }
  own_output = v[5] < 0;
  if (own_output && v[5] >= -kLargest) v[5] = -v[5];
  for (const int32_t x : v) {
    if (x <= 0 || x > kLargest) {
      return invalid_program(
          fmt::format("not a llama2.c checkpoint: header [{}]", fmt::join(v, ", ")));
    }
  }
  m = {v[0], v[1], v[2], v[3], v[4], v[5], v[6], {}};
  if (m.hidden % m.heads != 0 || m.heads % m.kv_heads != 0 || m.hidden / m.heads % 2 != 0) {
    return invalid_program(fmt::format("llama2.c: width {} with {} heads and {} key heads",
                                       m.hidden, m.heads, m.kv_heads));
  }
  return {};
}

class Taker {
 public:
  Taker(Bytes file, Checkpoint& into) : file_(file), into_(into) {}

  Status take(std::string name, const Dims& dims) {
    const auto size = data_bytes(SourceType::kF32, dims.span());
    const auto bytes = size ? slice(file_, at_, *size) : std::nullopt;
    if (!bytes) {
      return invalid_program(
          fmt::format("llama2.c: tensor '{}' {} ends past the {} bytes of the file", name,
                      to_string(dims), file_.size()));
    }
    at_ += *size;
    into_.tensors.emplace(name, SourceTensor{name, SourceType::kF32, dims, *bytes});
    return {};
  }
  Status take_layers(int32_t layers, std::string_view part, const Dims& dims) {
    for (int32_t i = 0; i < layers; ++i) {
      PTERYX_TRY(take(fmt::format("model.layers.{}.{}.weight", i, part), dims));
    }
    return {};
  }
  Status skip(uint64_t bytes) {
    if (!in_range(at_, bytes, file_.size())) {
      return invalid_program(fmt::format("llama2.c: the file ends at {} bytes", file_.size()));
    }
    at_ += bytes;
    return {};
  }
  uint64_t at() const { return at_; }

 private:
  Bytes file_;
  Checkpoint& into_;
  uint64_t at_ = kHeaderBytes;
};

}  // namespace

Result<Llama2c> parse_llama2c(Bytes file) {
  Llama2c m;
  bool own_output = false;
  PTERYX_TRY(read_header(file, m, own_output));
  const int64_t head = m.hidden / m.heads;
  const Dims square = {m.hidden, m.hidden};
  const Dims keys = {head * m.kv_heads, m.hidden};
  const Dims wide = {m.ffn, m.hidden};
  Taker t(file, m.tensors);
  PTERYX_TRY(t.take("model.embed_tokens.weight", {m.vocabulary, m.hidden}));
  PTERYX_TRY(t.take_layers(m.layers, "input_layernorm", {m.hidden}));
  PTERYX_TRY(t.take_layers(m.layers, "self_attn.q_proj", square));
  PTERYX_TRY(t.take_layers(m.layers, "self_attn.k_proj", keys));
  PTERYX_TRY(t.take_layers(m.layers, "self_attn.v_proj", keys));
  PTERYX_TRY(t.take_layers(m.layers, "self_attn.o_proj", square));
  PTERYX_TRY(t.take_layers(m.layers, "post_attention_layernorm", {m.hidden}));
  PTERYX_TRY(t.take_layers(m.layers, "mlp.gate_proj", wide));
  PTERYX_TRY(t.take_layers(m.layers, "mlp.down_proj", {m.hidden, m.ffn}));
  PTERYX_TRY(t.take_layers(m.layers, "mlp.up_proj", wide));
  PTERYX_TRY(t.take("model.norm.weight", {m.hidden}));
  PTERYX_TRY(t.skip(static_cast<uint64_t>(m.context) * static_cast<uint64_t>(head) * 4));  // rope
  if (own_output) PTERYX_TRY(t.take("lm_head.weight", {m.vocabulary, m.hidden}));
  if (t.at() != file.size()) {
    return invalid_program(fmt::format("llama2.c: expected {} bytes, got {}", t.at(), file.size()));
  }
  return m;
}

}  // namespace pteryx::convert
