// Building programs. SPDX-License-Identifier: BSD-3-Clause
#include "programs.h"

#include <atomic>
#include <cstdio>
#include <cstring>
#include <random>

#include <gtest/gtest.h>

#include "pteryx/gpu/testing/compute.h"

namespace pteryx::testing {
namespace {

using program::testing::ProgramBuilder;
using program::testing::TensorSpec;

// On the host 32-bit integers of a delegate are 64 bits wide.
pte::ScalarType host_type(vk::VkDataType t) {
  switch (t) {
    case vk::VkDataType::INT32: return pte::ScalarType::LONG;
    case vk::VkDataType::FLOAT16: return pte::ScalarType::HALF;
    default: return pte::ScalarType::FLOAT;
  }
}

}  // namespace

const std::shared_ptr<gpu::Device>& device() { return gpu::shared_device(); }

SavedFile::SavedFile(std::string_view content) {
  static std::atomic<int> count = 0;
  static const uint32_t run = std::random_device{}();
  path_ = ::testing::TempDir() + "pteryx_" + std::to_string(run) + "_" + std::to_string(++count) +
          ".pte";
  std::FILE* file = std::fopen(path_.c_str(), "wb");
  if (file == nullptr || std::fwrite(content.data(), 1, content.size(), file) != content.size())
    ADD_FAILURE() << "cannot write " << path_;
  if (file != nullptr) std::fclose(file);
}

SavedFile::~SavedFile() { std::remove(path_.c_str()); }

Result<Session> load_bytes(std::string_view content, LoadOptions options) {
  const SavedFile file(content);
  if (options.device == nullptr) options.device = device();
  return Session::load(file.path(), options);
}

int32_t DelegateProgram::tensor(vk::VkDataType dtype, const std::vector<int32_t>& dims) {
  BlobTensorSpec spec{.dtype = dtype, .dims = {dims.begin(), dims.end()}};
  const int32_t id = blob.add_tensor(spec);
  tensors_.resize(static_cast<size_t>(id) + 1);
  tensors_[static_cast<size_t>(id)] = {dtype, dims, Size::kStatic};
  return id;
}

int32_t DelegateProgram::input(vk::VkDataType dtype, const std::vector<int32_t>& dims, Size size) {
  const int32_t id = tensor(dtype, dims);
  tensors_[static_cast<size_t>(id)].size = size;
  inputs_.push_back(id);
  return id;
}

int32_t DelegateProgram::constant(vk::VkDataType dtype, const std::vector<int32_t>& dims,
                                  std::string_view bytes) {
  bytes_.resize(align_up(bytes_.size(), 16));
  const int32_t index = blob.add_inline_constant(bytes_.size(), bytes.size());
  bytes_ += bytes;
  return blob.add_tensor({.dtype = dtype, .dims = {dims.begin(), dims.end()}, .constant = index});
}

namespace {

size_t count(const std::vector<int32_t>& dims) {
  size_t n = 1;
  for (const int32_t d : dims) n *= static_cast<size_t>(d);
  return n;
}

}  // namespace

std::vector<float> repeated_weights(size_t count, uint32_t seed, float size) {
  std::mt19937 engine(seed);
  std::vector<float> values(count);
  for (float& v : values) v = size * (static_cast<float>(engine() % 2001) / 1000.0F - 1.0F);
  return values;
}

int32_t DelegateProgram::weights(const std::vector<int32_t>& dims, uint32_t seed, float size) {
  const std::vector<float> values = repeated_weights(count(dims), seed, size);
  return constant(vk::VkDataType::FLOAT32, dims,
                  {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)});
}

int32_t DelegateProgram::zeros(const std::vector<int32_t>& dims) {
  return constant(vk::VkDataType::FLOAT32, dims, std::string(count(dims) * 4, '\0'));
}

int32_t DelegateProgram::half_zeros(const std::vector<int32_t>& dims) {
  return constant(vk::VkDataType::FLOAT16, dims, std::string(count(dims) * 2, '\0'));
}

int32_t DelegateProgram::codes(const std::vector<int32_t>& dims, uint32_t seed) {
  std::mt19937 engine(seed);
  std::string bytes;
  for (size_t i = 0; i < count(dims); ++i) bytes += static_cast<char>(engine());
  return constant(vk::VkDataType::UINT8, dims, bytes);
}

int32_t DelegateProgram::prepacked(int32_t constant, const std::vector<int32_t>& dims) {
  const int32_t id = floats(dims);
  blob.add_call("et_vk.prepack.default", {constant, id});
  return id;
}

std::string DelegateProgram::finish() {
  blob.inputs.assign(inputs_.begin(), inputs_.end());
  if (blob.outputs.empty()) blob.outputs.assign(outputs_.begin(), outputs_.end());
  ProgramBuilder program;
  std::vector<int32_t> args;
  const auto add = [&](int32_t id, Size size) {
    const Io& io = tensors_[static_cast<size_t>(id)];
    TensorSpec spec{.dtype = host_type(io.dtype), .sizes = io.dims};
    if (size == Size::kDynamic) spec.dynamism = pte::TensorShapeDynamism::DYNAMIC_BOUND;
    args.push_back(program.add_tensor(spec));
    return args.back();
  };
  bool dynamic = false;
  for (const int32_t id : inputs_) {
    program.inputs.push_back(add(id, tensors_[static_cast<size_t>(id)].size));
    dynamic = dynamic || tensors_[static_cast<size_t>(id)].size == Size::kDynamic;
  }
  for (const int32_t id : outputs_)
    program.outputs.push_back(add(id, dynamic ? Size::kDynamic : Size::kStatic));
  program.add_delegate_call(program.add_delegate("VulkanBackend", blob.finish(bytes_)), args);
  return program.finish().text();
}

// What the layers share.
struct TinyModel::Parts {
  static constexpr int32_t kGroup = 16;
  DelegateProgram p;
  int32_t tokens = 0, none = 0, zero = 0, one = 0, yes = 0, group = 0;
  int32_t rows = 0, start = 0;  // live
  int32_t cos = 0, sin = 0;
};

std::string TinyModel::build() const {
  const int32_t s = longest;
  Parts m;
  DelegateProgram& p = m.p;
  BlobBuilder& b = p.blob;
  m.tokens = p.input(vk::VkDataType::INT32, {1, s}, DelegateProgram::Size::kDynamic);
  const int32_t position = p.input(vk::VkDataType::INT32, {1});
  m.none = b.add_null();
  m.zero = b.add_int(0);
  m.one = b.add_int(1);
  m.yes = b.add_bool(true);
  m.group = b.add_int(Parts::kGroup);
  m.rows = b.add_symint();
  m.start = b.add_symint();
  const int32_t end = b.add_symint();
  b.add_call("sym_size.int", {m.tokens, m.one, m.rows});
  b.add_call("et_vk.select_as_symint.default", {position, m.zero, b.add_int(-1), m.start});
  b.add_call("add", {m.start, m.rows, end});

  int32_t x = p.floats({1, s, width});
  b.add_call(
      "et_vk.embedding_q4gsw.default",
      {p.codes({vocabulary, width / 2}, 1), p.weights({vocabulary, width / Parts::kGroup}, 2, 0.1F),
       m.group, m.tokens, m.yes, x});
  const auto angles = [&](uint32_t seed) {
    // More rows than positions: files may have up to twice as many.
    const std::vector<int32_t> dims = {2 * capacity, width / heads / 2};
    const int32_t table = p.prepacked(p.weights(dims, seed), dims);
    const int32_t slice = p.floats({s, width / heads / 2});
    b.add_call("aten.slice_copy.Tensor", {table, m.zero, m.start, end, m.one, slice});
    return slice;
  };
  m.cos = angles(7);
  m.sin = angles(8);
  for (int32_t i = 0; i < layers; ++i) x = layer(m, x, i);
  p.output(x);
  return p.finish();
}

// x [1, longest, width] after one layer; each has weights of its own.
int32_t TinyModel::layer(Parts& m, int32_t x, int32_t number) const {
  const auto seed = static_cast<uint32_t>(100 * number);
  const int32_t size = width / heads;
  const int32_t s = longest;
  DelegateProgram& p = m.p;
  BlobBuilder& b = p.blob;
  const int32_t n = p.floats({1, s, width});
  b.add_call("et_vk.rms_norm.default",
             {x, p.weights({width}, seed + 3), b.add_double(9.999999747378752e-06), n});
  const auto project = [&](int32_t count, uint32_t own) {
    const int32_t flat = p.floats({1, s, count * size});
    b.add_call("aten.linear.default",
               {n, p.weights({count * size, width}, seed + own, 0.5F), m.none, flat});
    const int32_t split = p.floats({1, s, count, size});
    b.add_call("aten.view_copy.default",
               {flat, b.add_value_list({m.one, m.rows, b.add_int(count), b.add_int(size)}), split});
    return split;
  };
  const int32_t q = project(heads, 4);
  const int32_t k = project(kv_heads, 5);
  const int32_t v = project(kv_heads, 6);
  const int32_t q_turned = p.floats({1, s, heads, size});
  const int32_t k_turned = p.floats({1, s, kv_heads, size});
  b.add_call("et_vk.apply_rotary_emb.default",
             {q, k, m.cos, m.sin, b.add_value_list({q_turned, k_turned})});
  const int32_t attended = p.floats({1, s, heads, size});
  b.add_call("sdpa_with_kv_cache.default",
             {q_turned, k_turned, v, p.zeros({1, capacity, kv_heads, size}),
              p.zeros({1, capacity, kv_heads, size}), m.start, m.one, m.none, m.zero, m.yes, m.none,
              attended});
  const int32_t joined = p.floats({1, s, width});
  b.add_call("aten.view_copy.default",
             {attended, b.add_value_list({m.one, m.rows, b.add_int(width)}), joined});
  const int32_t group = number + 1 < layers ? m.group : b.add_int(last_group);
  const int32_t mixed = p.floats({1, s, width});
  b.add_call("et_vk.linear_q4gsw.default",
             {joined, p.codes({width, width / 2}, seed + 9),
              p.weights({width / Parts::kGroup, width}, seed + 10, 0.1F), group, m.none, mixed});
  const int32_t y = p.floats({1, s, width});
  b.add_call("aten.add.Tensor", {x, mixed, m.one, y});
  return y;
}

Result<Bits> run_step(Session& session, const Step& step) {
  std::vector<int64_t> tokens;
  for (int64_t i = 0; i < step.length; ++i)
    tokens.push_back(Step::token(step.position + i + step.shift));
  const std::vector<int64_t> position = {step.position};
  const Value inputs[] = {tensor<int64_t>({1, step.length}, tokens),
                          tensor<int64_t>({1}, position)};
  auto outputs = session.run("forward", inputs);
  if (!outputs.ok()) return std::move(outputs).status();
  const std::span<const float> y = outputs->front().tensor()->as<float>();
  Bits bits(y.size());
  if (!y.empty()) std::memcpy(bits.data(), y.data(), y.size_bytes());
  return bits;
}

}  // namespace pteryx::testing
