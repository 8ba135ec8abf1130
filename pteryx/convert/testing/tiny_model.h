// Small models with made-up weights for tests: as the files of each source, and what they compute,
// in double precision.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pteryx/base/dims.h"
#include "pteryx/convert/checkpoint.h"
#include "pteryx/convert/model.h"

namespace pteryx::convert::testing {

// Which values a matrix holds: such as a target can hold exactly.
enum class Grid : uint8_t {
  kSigned4,  // codes -8 to 7 times a power of two for each 32 of a row
  kSigned8,  // codes -127 to 127 times a power of two for each row
  // Codes 0 to 15 times a power of two, plus a minimum, for each 32 of a row; the embedding, whose
  // 4-bit form has no minimums, as kSigned8.
  kWithMinimums,
};

struct TinyModel {
  ModelShape shape;
  std::map<std::string, std::pair<Dims, std::vector<float>>> tensors;  // Hugging Face names

  const std::vector<float>& at(Part part, int64_t layer) const;
  const std::vector<float>* bias(Part part, int64_t layer) const;
};

enum class Biases : uint8_t { kNone, kQkv };
TinyModel make_model(const ModelShape& shape, Grid grid, Biases biases = Biases::kNone);
ModelShape tiny_shape(std::string architecture, RopeLayout rope);

// Logits of every position of a sequence, [tokens, vocabulary].
std::vector<double> reference_logits(const TinyModel& m, const std::vector<int64_t>& tokens);

// A folder that goes away with it.
class TempFolder {
 public:
  TempFolder();
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;
  ~TempFolder();
  std::string operator/(std::string_view name) const { return (path_ / name).string(); }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};
// A source of a text that outlives it, and a tensor that is all of one.
SourcePtr source_of(const std::string& text, std::string name = "x");
SourceTensor tensor_of(std::string name, SourceType type, const Dims& dims,
                       const std::string& data);

void write_file(const std::string& path, std::string_view content);
std::string read_file(const std::string& path);

// A GGUF file put together by hand.
class GgufBuilder {
 public:
  void text(std::string_view key, std::string_view value);
  void u32(std::string_view key, uint32_t value);
  void f32(std::string_view key, float value);
  void flag(std::string_view key, bool value);
  void texts(std::string_view key, const std::vector<std::string>& values);
  void floats(std::string_view key, const std::vector<float>& values);
  void integers(std::string_view key, const std::vector<int32_t>& values);
  void tensor(std::string_view name, uint32_t ggml_type, const Dims& dims, std::string_view data);
  void vocabulary(int64_t size);  // a tokenizer of "t0", "t1", ...
  std::string finish(uint32_t version = 3) const;

 private:
  void key(std::string_view key, uint32_t type);
  std::string metadata_, infos_, data_;
  uint64_t entries_ = 0, tensors_ = 0;
};

// Matrices as Q4_0 blocks, which is exact for Grid::kSigned4, as Q4_1, which is for kWithMinimums
// (the embedding as F32), or as F32.
enum class Blocks : uint8_t { kF32, kQ4_0, kQ4_1 };
enum class Texts : uint8_t { kVocabulary, kNone };
GgufBuilder gguf_of(const TinyModel& m, Blocks blocks, Texts texts = Texts::kVocabulary);
// The same over files: NAME-00001-of-00003.gguf and so on. All metadata is in the first.
std::vector<std::string> write_split_gguf(const TinyModel& m, const std::string& name,
                                          size_t parts);
// A llama2.c tokenizer of so many tokens.
std::string llama2c_tokenizer(size_t size);
// With a shard for every `per_shard` tensors; 0: one file.
void write_folder(const TinyModel& m, const std::string& folder, size_t per_shard = 0);
std::string safetensors_of(const TinyModel& m);
std::string llama2c_of(const TinyModel& m);

std::string as_f32(const std::vector<float>& values);
std::string as_q4_0(const std::vector<float>& values);  // multiples of 32
std::string as_q4_1(const std::vector<float>& values);

}  // namespace pteryx::convert::testing
