// The files of each kind of source, written plainly. SPDX-License-Identifier: BSD-3-Clause
#include <cmath>
#include <filesystem>

#include <fmt/format.h>

#include "pteryx/base/checked.h"
#include "pteryx/base/dtype.h"
#include "pteryx/convert/testing/tiny_model.h"

namespace pteryx::convert::testing {
namespace {

template <typename T>
void put(std::string& out, T v) {
  out.append(reinterpret_cast<const char*>(&v), sizeof(T));
}
void put_text(std::string& out, std::string_view s) {
  put(out, static_cast<uint64_t>(s.size()));
  out += s;
}

using Tensors = std::map<std::string, std::pair<Dims, std::vector<float>>>;

std::string safetensors_text(const Tensors& tensors) {
  std::string header;
  std::string data;
  for (const auto& [name, tensor] : tensors) {
    const size_t start = data.size();
    data += as_f32(tensor.second);
    header +=
        fmt::format(R"({}"{}":{{"dtype":"F32","shape":{},"data_offsets":[{},{}]}})",
                    header.empty() ? "{" : ",", name, to_string(tensor.first), start, data.size());
  }
  header += "}";
  std::string file;
  put(file, static_cast<uint64_t>(header.size()));
  return file + header + data;
}

std::string config_of(const ModelShape& s) {
  const std::string name = s.architecture == "llama"   ? "Llama"
                           : s.architecture == "qwen2" ? "Qwen2"
                                                       : "Qwen3";
  return fmt::format(
      R"({{"architectures":["{}ForCausalLM"],"hidden_size":{},"num_hidden_layers":{},)"
      R"("num_attention_heads":{},"num_key_value_heads":{},"head_dim":{},"intermediate_size":{},)"
      R"("vocab_size":{},"max_position_embeddings":{},"rms_norm_eps":{},"rope_theta":{},)"
      R"("tie_word_embeddings":{},"hidden_act":"silu","bos_token_id":1,"eos_token_id":[2,3]}})",
      name, s.hidden, s.layers, s.heads, s.kv_heads, s.head_size, s.ffn, s.vocabulary, s.context,
      s.norm_eps, s.rope_theta, s.tied);
}

// The GGUF name of a tensor of a layer, or of the model.
std::string gguf_name(const std::string& name, const ModelShape& s) {
  for (int part = 0; part <= static_cast<int>(Part::kDown); ++part) {
    for (int64_t i = 0; i < s.layers; ++i) {
      std::string from = tensor_name(Naming::kHuggingFace, static_cast<Part>(part), i);
      std::string to = tensor_name(Naming::kGguf, static_cast<Part>(part), i);
      if (from == name) return to;
      const size_t stem = from.size() - std::string_view("weight").size();
      if (from.substr(0, stem) + "bias" == name) {
        return to.substr(0, to.size() - std::string_view("weight").size()) + "bias";
      }
    }
  }
  return name;
}

}  // namespace

std::string as_f32(const std::vector<float>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
}

std::string as_q4_0(const std::vector<float>& values) {
  std::string out;
  for (size_t b = 0; b < values.size(); b += 32) {
    const float scale = values[b] / -8;  // the first of each block has code -8
    put(out, float_to_half(scale));
    const auto code = [&](size_t i) { return std::lround(values[b + i] / scale) + 8; };
    for (size_t j = 0; j < 16; ++j) {
      out += static_cast<char>(code(j) | code(j + 16) << 4);
    }
  }
  return out;
}

std::string as_q4_1(const std::vector<float>& values) {
  std::string out;
  for (size_t b = 0; b < values.size(); b += 32) {
    const float scale = (values[b + 1] - values[b]) / 15;  // the first two have codes 0 and 15
    put(out, float_to_half(scale));
    put(out, float_to_half(values[b]));
    const auto code = [&](size_t i) { return std::lround((values[b + i] - values[b]) / scale); };
    for (size_t j = 0; j < 16; ++j) out += static_cast<char>(code(j) | code(j + 16) << 4);
  }
  return out;
}

void GgufBuilder::key(std::string_view name, uint32_t type) {
  put_text(metadata_, name);
  put(metadata_, type);
  ++entries_;
}
void GgufBuilder::text(std::string_view name, std::string_view value) {
  key(name, 8);
  put_text(metadata_, value);
}
void GgufBuilder::u32(std::string_view name, uint32_t value) {
  key(name, 4);
  put(metadata_, value);
}
void GgufBuilder::f32(std::string_view name, float value) {
  key(name, 6);
  put(metadata_, value);
}
void GgufBuilder::flag(std::string_view name, bool value) {
  key(name, 7);
  put(metadata_, static_cast<uint8_t>(value));
}
void GgufBuilder::texts(std::string_view name, const std::vector<std::string>& values) {
  key(name, 9);
  put(metadata_, uint32_t{8});
  put(metadata_, static_cast<uint64_t>(values.size()));
  for (const std::string& v : values) put_text(metadata_, v);
}
void GgufBuilder::floats(std::string_view name, const std::vector<float>& values) {
  key(name, 9);
  put(metadata_, uint32_t{6});
  put(metadata_, static_cast<uint64_t>(values.size()));
  for (const float v : values) put(metadata_, v);
}
void GgufBuilder::integers(std::string_view name, const std::vector<int32_t>& values) {
  key(name, 9);
  put(metadata_, uint32_t{5});
  put(metadata_, static_cast<uint64_t>(values.size()));
  for (const int32_t v : values) put(metadata_, v);
}

void GgufBuilder::tensor(std::string_view name, uint32_t ggml_type, const Dims& dims,
                         std::string_view data) {
  put_text(infos_, name);
  put(infos_, static_cast<uint32_t>(dims.rank()));
  for (size_t d = dims.rank(); d-- > 0;) put(infos_, static_cast<uint64_t>(dims[d]));
  put(infos_, ggml_type);
  data_.resize(align_up(data_.size(), 32));
  put(infos_, static_cast<uint64_t>(data_.size()));
  data_ += data;
  ++tensors_;
}

std::string GgufBuilder::finish(uint32_t version) const {
  std::string out = "GGUF";
  put(out, version);
  put(out, tensors_);
  put(out, entries_);
  out += metadata_ + infos_;
  out.resize(align_up(out.size(), 32));
  return out + data_;
}

void GgufBuilder::vocabulary(int64_t size) {
  std::vector<std::string> tokens(static_cast<size_t>(size));
  for (size_t i = 0; i < tokens.size(); ++i) tokens[i] = fmt::format("t{}", i);
  text("tokenizer.ggml.model", "gpt2");
  text("tokenizer.ggml.pre", "smollm");
  texts("tokenizer.ggml.tokens", tokens);
}

namespace {

void add_tensors(const TinyModel& m, Blocks blocks, GgufBuilder& b, size_t first, size_t count) {
  size_t at = 0;
  for (const auto& [name, tensor] : m.tensors) {
    const size_t i = at++;
    if (i < first || i >= first + count) continue;
    const bool matrix = tensor.first.rank() == 2;
    const std::string own = gguf_name(name, m.shape);
    if (matrix && blocks == Blocks::kQ4_0) {
      b.tensor(own, 2, tensor.first, as_q4_0(tensor.second));
    } else if (matrix && blocks == Blocks::kQ4_1 && own != "token_embd.weight") {
      b.tensor(own, 3, tensor.first, as_q4_1(tensor.second));
    } else {
      b.tensor(own, 0, tensor.first, as_f32(tensor.second));
    }
  }
}

GgufBuilder metadata_of(const ModelShape& s, Texts texts) {
  GgufBuilder b;
  b.text("general.architecture", s.architecture);
  const auto u32 = [&](std::string_view key, int64_t v) {
    b.u32(fmt::format("{}.{}", s.architecture, key), static_cast<uint32_t>(v));
  };
  u32("block_count", s.layers);
  u32("embedding_length", s.hidden);
  u32("feed_forward_length", s.ffn);
  u32("attention.head_count", s.heads);
  u32("attention.head_count_kv", s.kv_heads);
  u32("attention.key_length", s.head_size);
  u32("context_length", s.context);
  b.f32(s.architecture + ".attention.layer_norm_rms_epsilon", static_cast<float>(s.norm_eps));
  b.f32(s.architecture + ".rope.freq_base", static_cast<float>(s.rope_theta));
  if (texts == Texts::kVocabulary) b.vocabulary(s.vocabulary);
  return b;
}

}  // namespace

GgufBuilder gguf_of(const TinyModel& m, Blocks blocks, Texts texts) {
  GgufBuilder b = metadata_of(m.shape, texts);
  add_tensors(m, blocks, b, 0, m.tensors.size());
  return b;
}

std::vector<std::string> write_split_gguf(const TinyModel& m, const std::string& name,
                                          size_t parts) {
  std::vector<std::string> paths;
  const size_t per_part = m.tensors.size() / parts + 1;
  for (size_t i = 0; i < parts; ++i) {
    GgufBuilder b = i == 0 ? metadata_of(m.shape, Texts::kVocabulary) : GgufBuilder();
    b.u32("split.no", static_cast<uint32_t>(i));
    b.u32("split.count", static_cast<uint32_t>(parts));
    b.u32("split.tensors.count", static_cast<uint32_t>(m.tensors.size()));
    add_tensors(m, Blocks::kF32, b, i * per_part, per_part);
    paths.push_back(fmt::format("{}-{:05}-of-{:05}.gguf", name, i + 1, parts));
    write_file(paths.back(), b.finish());
  }
  return paths;
}

std::string llama2c_tokenizer(size_t size) {
  std::string out;
  put(out, static_cast<int32_t>(8));  // the longest token
  for (size_t i = 0; i < size; ++i) {
    const std::string token = fmt::format("t{}", i);
    put(out, -static_cast<float>(i));
    put(out, static_cast<int32_t>(token.size()));
    out += token;
  }
  return out;
}

std::string safetensors_of(const TinyModel& m) { return safetensors_text(m.tensors); }

void write_folder(const TinyModel& m, const std::string& folder, size_t per_shard) {
  std::filesystem::create_directories(folder);
  const std::filesystem::path root(folder);
  write_file((root / "config.json").string(), config_of(m.shape));
  if (per_shard == 0) {
    write_file((root / "model.safetensors").string(), safetensors_text(m.tensors));
    return;
  }
  std::string map;
  for (auto at = m.tensors.begin(); at != m.tensors.end();) {
    Tensors shard;
    const std::string file = fmt::format("model-{}.safetensors", map.size());
    for (size_t n = 0; n < per_shard && at != m.tensors.end(); ++n, ++at) {
      shard.insert(*at);
      map += fmt::format(R"({}"{}":"{}")", map.empty() ? "" : ",", at->first, file);
    }
    write_file((root / file).string(), safetensors_text(shard));
  }
  write_file((root / "model.safetensors.index.json").string(),
             fmt::format(R"({{"metadata":{{}},"weight_map":{{{}}}}})", map));
}

std::string llama2c_of(const TinyModel& m) {
  const ModelShape& s = m.shape;
  std::string out;
  const int64_t vocabulary = s.tied ? s.vocabulary : -s.vocabulary;
  for (const int64_t v : {s.hidden, s.ffn, s.layers, s.heads, s.kv_heads, vocabulary, s.context}) {
    put(out, static_cast<int32_t>(v));
  }
  out += as_f32(m.at(Part::kEmbedding, 0));
  for (const Part part : {Part::kAttentionNorm, Part::kQ, Part::kK, Part::kV, Part::kO,
                          Part::kFfnNorm, Part::kGate, Part::kDown, Part::kUp}) {
    for (int64_t i = 0; i < s.layers; ++i) out += as_f32(m.at(part, i));
  }
  out += as_f32(m.at(Part::kNorm, 0));
  out.resize(out.size() + static_cast<size_t>(s.context * s.head_size * 4));
  if (!s.tied) out += as_f32(m.at(Part::kOutput, 0));
  return out;
}

}  // namespace pteryx::convert::testing
