// Whole programs for tests: one method that is one delegate call, put together in memory and saved
// where a session can open it; and the small language model that the replays run.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "pteryx/gpu/cpu_device.h"
#include "pteryx/gpu/device.h"
#include "pteryx/gpu/testing/compute.h"
#include "pteryx/program/testing/build.h"
#include "pteryx/pteryx.h"

namespace pteryx::testing {

using program::testing::BlobBuilder;
using program::testing::BlobTensorSpec;
using program::testing::FileBytes;

// The one device of a test program.
const std::shared_ptr<gpu::Device>& device();

// A file that goes when this does.
class SavedFile {
 public:
  explicit SavedFile(std::string_view content);
  ~SavedFile();
  SavedFile(const SavedFile&) = delete;
  SavedFile& operator=(const SavedFile&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};
Result<Session> load_bytes(std::string_view content, LoadOptions options = {});

// The numbers of a constant that DelegateProgram::weights makes.
std::vector<float> repeated_weights(size_t count, uint32_t seed, float size = 1);

// One delegate call. Inputs and outputs come in the order they are added; members of `blob` may be
// changed up to finish().
class DelegateProgram {
 public:
  enum class Size : uint8_t { kStatic, kDynamic };

  int32_t input(vk::VkDataType dtype, const std::vector<int32_t>& dims, Size size = Size::kStatic);
  int32_t tensor(vk::VkDataType dtype, const std::vector<int32_t>& dims);
  int32_t floats(const std::vector<int32_t>& dims) { return tensor(vk::VkDataType::FLOAT32, dims); }
  void output(int32_t id) { outputs_.push_back(id); }
  // A constant that repeats from the seed.
  int32_t weights(const std::vector<int32_t>& dims, uint32_t seed, float size = 1);
  int32_t zeros(const std::vector<int32_t>& dims);
  int32_t half_zeros(const std::vector<int32_t>& dims);
  int32_t codes(const std::vector<int32_t>& dims, uint32_t seed);  // u8
  int32_t prepacked(int32_t constant, const std::vector<int32_t>& dims);
  std::string finish();

  BlobBuilder blob;

 private:
  struct Io {
    vk::VkDataType dtype;
    std::vector<int32_t> dims;
    Size size;
  };
  int32_t constant(vk::VkDataType dtype, const std::vector<int32_t>& dims, std::string_view bytes);

  std::vector<Io> tensors_;  // by id; others are empty
  std::vector<int32_t> inputs_;
  std::vector<int32_t> outputs_;
  std::string bytes_;
};

// tokens [1, S] and position [1] to [1, S, width]: a 4-bit embedding, and in each layer a norm,
// projections, rotary embedding of a slice of the table, attention over caches, a 4-bit projection,
// a residual.
struct TinyModel {
  int32_t vocabulary = 40;
  int32_t width = 32;
  int32_t heads = 4;
  int32_t kv_heads = 2;
  int32_t longest = 300;   // tokens of one call
  int32_t capacity = 512;  // rows of the caches
  int32_t layers = 1;
  int32_t last_group = 16;  // columns that share a scale in the last layer
  std::string build() const;

 private:
  struct Parts;
  int32_t layer(Parts& parts, int32_t x, int32_t number) const;
};

// A call of a language model; logits as bits, so that equal means equal.
using Bits = std::vector<uint32_t>;
struct Step {
  int64_t length = 1;
  int64_t position = 0;
  int64_t shift = 0;  // of the text: other tokens than those that belong there
  // Token i of the text all replays read; a token of the smallest vocabulary wherever i is.
  static int64_t token(int64_t i) { return ((i * 7 + i / 5) % 39 + 39) % 39; }
};
Result<Bits> run_step(Session& session, const Step& step);

}  // namespace pteryx::testing
