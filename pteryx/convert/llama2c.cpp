// All layers of a kind lie together. Nothing in the file says what it is, so its size has to be
// exactly what the seven integers ask for.
// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/convert/llama2c.h"

#include <array>
#include <span>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "pteryx/base/checked.h"

namespace pteryx::convert {
namespace {

constexpr uint64_t kHeaderBytes = 28;
constexpr int32_t kLargest = 1 << 24;

Status read_header(const Source& file, Llama2c& m, bool& own_output) {
  if (file.size() < kHeaderBytes) {
    return invalid_program(fmt::format("not a llama2.c checkpoint: {} bytes, expected {} or more",
                                       file.size(), kHeaderBytes));
  }
  std::array<int32_t, 7> v{};
  PTERYX_TRY(file.read_now(0, std::as_writable_bytes(std::span(v))));
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
    return invalid_program(
        fmt::format("not a llama2.c checkpoint: width {} with {} heads and {} key-value heads",
                    m.hidden, m.heads, m.kv_heads));
  }
  return {};
}

class Taker {
 public:
  Taker(SourcePtr file, Checkpoint& into) : file_(std::move(file)), into_(into) {}

  Status take(std::string name, const Dims& dims) {
    const auto size = data_bytes(SourceType::kF32, dims.span());
    if (!size || !in_range(at_, *size, file_->size())) {
      return invalid_program(
          fmt::format("llama2.c: tensor '{}' {} ends past the {} bytes of the file", name,
                      to_string(dims), file_->size()));
    }
    const uint64_t offset = at_;
    at_ += *size;
    return into_.add({.name = std::move(name),
                      .type = SourceType::kF32,
                      .dims = dims,
                      .file = file_,
                      .offset = offset,
                      .size = *size});
  }
  Status take_layers(int32_t layers, std::string_view part, const Dims& dims) {
    for (int32_t i = 0; i < layers; ++i) {
      PTERYX_TRY(take(fmt::format("model.layers.{}.{}.weight", i, part), dims));
    }
    return {};
  }
  Status skip(uint64_t bytes) {
    if (!in_range(at_, bytes, file_->size())) {
      return invalid_program(fmt::format(
          "llama2.c: the rope tables end past the {} bytes of the file", file_->size()));
    }
    at_ += bytes;
    return {};
  }
  uint64_t at() const { return at_; }

 private:
  SourcePtr file_;
  Checkpoint& into_;
  uint64_t at_ = kHeaderBytes;
};

}  // namespace

Result<Llama2c> parse_llama2c(const SourcePtr& file) {
  Llama2c m;
  bool own_output = false;
  PTERYX_TRY(read_header(*file, m, own_output));
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
  if (t.at() != file->size()) {
    return invalid_program(
        fmt::format("llama2.c: expected {} bytes, got {}", t.at(), file->size()));
  }
  return m;
}

}  // namespace pteryx::convert
