// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/convert/testing/tiny_model.h"

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <span>

#include <unistd.h>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace pteryx::convert::testing {
namespace {

// Small and the same everywhere.
class Random {
 public:
  explicit Random(uint32_t seed) : state_(seed) {}
  uint32_t below(uint32_t n) {
    state_ = state_ * 1664525U + 1013904223U;
    return static_cast<uint32_t>((static_cast<uint64_t>(state_ >> 4) * n) >> 28);
  }
  int range(int low, int high) {
    return low + static_cast<int>(below(static_cast<uint32_t>(high - low + 1)));
  }

 private:
  uint32_t state_;
};

std::vector<float> matrix_values(Random& r, const Dims& dims, Grid grid) {
  std::vector<float> v(static_cast<size_t>(numel(dims)));
  const auto cols = static_cast<size_t>(dims[1]);
  const size_t run = grid == Grid::kSigned8 ? cols : 32;
  float scale = 0;
  float minimum = 0;
  for (size_t i = 0; i < v.size(); ++i) {
    const bool first = i % run == 0;
    if (grid == Grid::kSigned4) {
      if (first) scale = r.below(2) == 0 ? 1.0F / 32 : 1.0F / 64;
      v[i] = static_cast<float>(first ? -8 : r.range(-8, 7)) * scale;
    } else if (grid == Grid::kWithMinimums) {
      if (first) scale = r.below(2) == 0 ? 1.0F / 32 : 1.0F / 64;
      if (first) minimum = static_cast<float>(r.range(-160, -40)) / 512;
      // The first two have the least and the largest code.
      const int code = i % 32 == 1 ? 15 : static_cast<int>(r.range(0, 15));
      v[i] = static_cast<float>(first ? 0 : code) * scale + minimum;
    } else {
      if (first) scale = r.below(2) == 0 ? 1.0F / 512 : 1.0F / 1024;
      v[i] = static_cast<float>(first ? 127 : r.range(-127, 127)) * scale;
    }
  }
  return v;
}

std::vector<float> vector_values(Random& r, int64_t size, float middle) {
  std::vector<float> v(static_cast<size_t>(size));
  for (float& x : v) x = middle + static_cast<float>(r.range(-64, 64)) / 256;
  return v;
}

struct PartDims {
  Part part;
  Dims dims;
};
std::vector<PartDims> layer_parts(const ModelShape& s) {
  std::vector<PartDims> parts = {
      {Part::kAttentionNorm, {s.hidden}},  {Part::kQ, {s.q_rows(), s.hidden}},
      {Part::kK, {s.kv_rows(), s.hidden}}, {Part::kV, {s.kv_rows(), s.hidden}},
      {Part::kO, {s.hidden, s.q_rows()}},  {Part::kFfnNorm, {s.hidden}},
      {Part::kGate, {s.ffn, s.hidden}},    {Part::kUp, {s.ffn, s.hidden}},
      {Part::kDown, {s.hidden, s.ffn}}};
  if (s.qk_norm) {
    parts.push_back({Part::kQNorm, {s.head_size}});
    parts.push_back({Part::kKNorm, {s.head_size}});
  }
  return parts;
}

std::string bias_name(Part part, int64_t layer) {
  std::string name = tensor_name(Naming::kHuggingFace, part, layer);
  return name.substr(0, name.size() - std::string_view("weight").size()) + "bias";
}

}  // namespace

ModelShape tiny_shape(std::string architecture, RopeLayout rope) {
  ModelShape s{.architecture = std::move(architecture),
               .hidden = 32,
               .layers = 2,
               .heads = 4,
               .kv_heads = 2,
               .head_size = 16,
               .ffn = 96,
               .vocabulary = 40,
               .context = 64,
               .norm_eps = 1e-5,
               .rope_theta = 10000,
               .rope = rope,
               .tied = true};
  s.qk_norm = s.architecture == "qwen3";
  return s;
}

TinyModel make_model(const ModelShape& s, Grid grid, Biases biases) {
  Random r(static_cast<uint32_t>(s.hidden * 7 + s.layers));
  TinyModel m{.shape = s, .tensors = {}};
  const auto add = [&](Part part, int64_t layer, const Dims& dims) {
    const bool bytes = grid == Grid::kWithMinimums && part == Part::kEmbedding;
    m.tensors[tensor_name(Naming::kHuggingFace, part, layer)] = {
        dims, dims.rank() == 2 ? matrix_values(r, dims, bytes ? Grid::kSigned8 : grid)
                               : vector_values(r, dims[0], 1)};
  };
  add(Part::kEmbedding, 0, {s.vocabulary, s.hidden});
  add(Part::kNorm, 0, {s.hidden});
  if (!s.tied) add(Part::kOutput, 0, {s.vocabulary, s.hidden});
  for (int64_t i = 0; i < s.layers; ++i) {
    for (const auto& [part, dims] : layer_parts(s)) add(part, i, dims);
    if (biases == Biases::kNone) continue;
    for (const Part part : {Part::kQ, Part::kK, Part::kV}) {
      const int64_t rows = part == Part::kQ ? s.q_rows() : s.kv_rows();
      m.tensors[bias_name(part, i)] = {{rows}, vector_values(r, rows, 0)};
    }
  }
  return m;
}

const std::vector<float>& TinyModel::at(Part part, int64_t layer) const {
  return tensors.at(tensor_name(Naming::kHuggingFace, part, layer)).second;
}
const std::vector<float>* TinyModel::bias(Part part, int64_t layer) const {
  const auto found = tensors.find(bias_name(part, layer));
  return found == tensors.end() ? nullptr : &found->second.second;
}

TempFolder::TempFolder() {
  std::string pattern = (std::filesystem::temp_directory_path() / "pteryx_XXXXXX").string();
  if (::mkdtemp(pattern.data()) == nullptr) std::abort();
  path_ = pattern;
}
TempFolder::~TempFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

SourcePtr source_of(const std::string& text, std::string name) {
  return std::make_shared<MemorySource>(std::move(name), std::as_bytes(std::span(text)));
}

SourceTensor tensor_of(std::string name, SourceType type, const Dims& dims,
                       const std::string& data) {
  return {.name = std::move(name),
          .type = type,
          .dims = dims,
          .file = source_of(data),
          .offset = 0,
          .size = data.size()};
}

void write_file(const std::string& path, std::string_view content) {
  std::ofstream out(path, std::ios::binary);
  out.write(content.data(), static_cast<std::streamsize>(content.size()));
  ASSERT_TRUE(out.good()) << path;
}
std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  EXPECT_TRUE(in.good()) << path;
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

}  // namespace pteryx::convert::testing
