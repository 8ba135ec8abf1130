// Whole conversions: sources on disk to programs that run. SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/convert/convert.h"

#include <cmath>
#include <cstring>
#include <filesystem>

#include <gtest/gtest.h>

#include "pteryx/convert/testing/refusal.h"
#include "pteryx/convert/testing/tiny_model.h"
#include "pteryx/gpu/testing/compute.h"
#include "pteryx/program/program.h"
#include "pteryx/program/vocabulary.h"
#include "pteryx/pteryx.h"

namespace pteryx::convert {
namespace {

using testing::Biases;
using testing::Blocks;
using testing::expect_refused;
using testing::Grid;
using testing::TempFolder;
using testing::TinyModel;

const std::vector<int64_t> kTokens = {3, 17, 5, 29, 11, 2, 30, 8, 21, 14, 1, 9};

std::string fixture(const std::string& name) {
  return std::string(PTERYX_TEST_DATA) + "/fixtures/convert/" + name;
}

const std::shared_ptr<gpu::Device>& device() { return gpu::shared_device(); }

// Prompt, single tokens and a chunk further on; each answer is about its last token.
template <typename T>
void expect_logits(const std::string& path, const std::vector<int64_t>& tokens,
                   const std::vector<T>& want, double tolerance, LoadOptions options = {}) {
  options.device = device();
  auto session = Session::load(path, options);
  ASSERT_TRUE(session.ok()) << session.status().message();
  const size_t vocabulary = want.size() / tokens.size();
  int64_t position = 0;
  for (const int64_t n : {5, 1, 1, 5}) {
    const std::span<const int64_t> chunk(tokens.data() + position, static_cast<size_t>(n));
    const int64_t start[] = {position};
    const Value inputs[] = {tensor<int64_t>({1, n}, chunk),
                            tensor<int64_t>({1}, std::span<const int64_t>(start))};
    const auto out = session->run("forward", inputs);
    ASSERT_TRUE(out.ok()) << out.status().message();
    const TensorView* logits = out->front().tensor();
    ASSERT_EQ(logits->dims, (Dims{1, static_cast<int64_t>(vocabulary)}));
    position += n;
    const T* row = &want[(static_cast<size_t>(position) - 1) * vocabulary];
    for (size_t i = 0; i < vocabulary; ++i) {
      const auto w = static_cast<double>(row[i]);
      ASSERT_NEAR(logits->as<float>()[i], w, tolerance * (1 + std::fabs(w)))
          << path << ": position " << position << ", token " << i;
    }
  }
}

void expect_program(const std::string& source, const TinyModel& m, const ConvertOptions& o,
                    std::string_view target) {
  const TempFolder folder;
  const std::string path = folder / "m.pte";
  const auto report = convert(source, path, o);
  ASSERT_TRUE(report.ok()) << report.status().message();
  for (const TensorReport& t : report->tensors) {
    EXPECT_EQ(t.target, target) << t.name;
    EXPECT_LT(t.error, 1e-6) << t.name;
  }
  EXPECT_EQ(std::filesystem::file_size(path), report->file_bytes);
  expect_logits(path, kTokens, testing::reference_logits(m, kTokens),
                o.kv_type == DType::kF16 ? 5e-3 : 1e-3);
}

struct Source {
  std::string_view architecture;
  RopeLayout rope;
  Biases biases;
  bool tied;
};
constexpr Source kSources[] = {{"llama", RopeLayout::kHalves, Biases::kNone, false},
                               {"qwen2", RopeLayout::kHalves, Biases::kQkv, true},
                               {"qwen3", RopeLayout::kHalves, Biases::kNone, true}};

TEST(Convert, EveryFormatComputesWhatTheWeightsSay) {
  struct Format {
    Quantize quantize;
    Grid grid;
    std::string_view target;
    DType kv;
  };
  constexpr Format kFormats[] = {{Quantize::kNone, Grid::kSigned8, "f32", DType::kF32},
                                 {Quantize::kF16, Grid::kSigned8, "f16", DType::kF16},
                                 {Quantize::kQ8, Grid::kSigned8, "q8", DType::kF32},
                                 {Quantize::kQ4, Grid::kSigned4, "q4/32", DType::kF16},
                                 {Quantize::kAuto, Grid::kSigned4, "q4/32", DType::kF32},
                                 {Quantize::kAuto, Grid::kSigned8, "q8", DType::kF32}};
  for (const Source& s : kSources) {
    ModelShape shape = testing::tiny_shape(std::string(s.architecture), s.rope);
    shape.tied = s.tied;
    for (const Format& f : kFormats) {
      SCOPED_TRACE(std::string(s.architecture) + " to " + std::string(f.target));
      const TempFolder folder;
      const TinyModel m = testing::make_model(shape, f.grid, s.biases);
      testing::write_folder(m, folder / "hf");
      expect_program(folder / "hf", m, {.quantize = f.quantize, .kv_type = f.kv}, f.target);
    }
  }
}

TEST(Convert, GgufOfEveryArchitecture) {
  for (const auto& [architecture, rope, biases] :
       {std::tuple("llama", RopeLayout::kPairs, Biases::kNone),
        std::tuple("qwen2", RopeLayout::kHalves, Biases::kQkv),
        std::tuple("qwen3", RopeLayout::kHalves, Biases::kNone)}) {
    for (const bool tied : {true, false}) {
      SCOPED_TRACE(architecture);
      const TempFolder folder;
      ModelShape shape = testing::tiny_shape(architecture, rope);
      shape.tied = tied;
      const TinyModel m = testing::make_model(shape, Grid::kSigned4, biases);
      testing::write_file(folder / "m.gguf", testing::gguf_of(m, Blocks::kF32).finish());
      expect_program(folder / "m.gguf", m, {.quantize = Quantize::kNone}, "f32");
    }
  }
}

// Codes, scales and minimums of Q4_1, as one product or as the operators that the file has.
TEST(Convert, KeepsMinimumsOfFourBitSources) {
  for (const auto& [architecture, rope, biases, tied] :
       {std::tuple("llama", RopeLayout::kPairs, Biases::kNone, false),
        std::tuple("qwen2", RopeLayout::kHalves, Biases::kQkv, true),
        std::tuple("qwen3", RopeLayout::kHalves, Biases::kNone, false)}) {
    SCOPED_TRACE(architecture);
    const TempFolder folder;
    ModelShape shape = testing::tiny_shape(architecture, rope);
    shape.tied = tied;
    const TinyModel m = testing::make_model(shape, Grid::kWithMinimums, biases);
    testing::write_file(folder / "m.gguf", testing::gguf_of(m, Blocks::kQ4_1).finish());
    const auto report = convert(folder / "m.gguf", folder / "m.pte", {});
    ASSERT_TRUE(report.ok()) << report.status().message();
    for (const TensorReport& t : report->tensors) {
      EXPECT_EQ(t.target, t.source == "Q4_1" ? "q4/32+min" : "q8") << t.name;
      EXPECT_LT(t.error, 1e-6) << t.name;
    }
    const std::vector<double> want = testing::reference_logits(m, kTokens);
    expect_logits(folder / "m.pte", kTokens, want, 1e-3);
    expect_logits(folder / "m.pte", kTokens, want, 1e-3, {.testing = {.fuse = false}});
    expect_logits(folder / "m.pte", kTokens, want, 1e-2, {.precision = Precision::kF16});
  }
}

TEST(Convert, Llama2cWithAndWithoutItsOwnOutput) {
  for (const bool tied : {true, false}) {
    const TempFolder folder;
    ModelShape shape = testing::tiny_shape("llama", RopeLayout::kPairs);
    shape.head_size = 8;
    shape.tied = tied;
    const TinyModel m = testing::make_model(shape, Grid::kSigned4);
    testing::write_file(folder / "m.bin", testing::llama2c_of(m));
    expect_program(folder / "m.bin", m, {.quantize = Quantize::kNone}, "f32");
  }
}

TEST(Convert, ShardsAreOneModel) {
  const TempFolder folder;
  const TinyModel m =
      testing::make_model(testing::tiny_shape("qwen3", RopeLayout::kHalves), Grid::kSigned4);
  testing::write_folder(m, folder / "hf", 5);
  expect_program(folder / "hf", m, {.quantize = Quantize::kQ4}, "q4/32");
}

TEST(Convert, WidthsThatDoNotFillWordsOrGroups) {
  ModelShape shape = testing::tiny_shape("llama", RopeLayout::kPairs);
  shape.hidden = 36;  // not a multiple of 8, and 9 groups of 4
  shape.ffn = 44;
  shape.vocabulary = 41;
  const TinyModel m = testing::make_model(shape, Grid::kSigned8);
  const TempFolder folder;
  testing::write_file(folder / "m.gguf", testing::gguf_of(m, Blocks::kF32).finish());
  const auto report =
      convert(folder / "m.gguf", folder / "m.pte", {.quantize = Quantize::kQ4, .group_size = 4});
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_EQ(report->tensors.front().target, "q8");  // an embedding of 36 elements
  EXPECT_EQ(report->tensors[1].target, "q4/4");
  auto session = Session::load(folder / "m.pte", {.device = device()});
  ASSERT_TRUE(session.ok()) << session.status().message();
}

// The committed models and their logits come from transformers and the gguf package.
void expect_golden(const std::string& source, const std::string& expected) {
  const std::string file = testing::read_file(fixture(expected));
  uint32_t count = 0;
  uint32_t vocabulary = 0;
  std::memcpy(&count, file.data(), 4);
  std::memcpy(&vocabulary, file.data() + 4, 4);
  std::vector<int64_t> tokens(count);
  std::vector<float> logits(size_t{count} * vocabulary);
  ASSERT_EQ(file.size(), 8 + tokens.size() * 8 + logits.size() * 4);
  std::memcpy(tokens.data(), file.data() + 8, tokens.size() * 8);
  std::memcpy(logits.data(), file.data() + 8 + tokens.size() * 8, logits.size() * 4);
  const TempFolder folder;
  const auto report = convert(fixture(source), folder / "m.pte", {.quantize = Quantize::kNone});
  ASSERT_TRUE(report.ok()) << report.status().message();
  expect_logits(folder / "m.pte", tokens, logits, 1e-3);
}
TEST(Convert, LlamaWithScaledRopeMatchesTransformers) {
  expect_golden("llama3", "llama3/expected.bin");
}
TEST(Convert, Qwen2MatchesTransformers) { expect_golden("qwen2", "qwen2/expected.bin"); }
TEST(Convert, Qwen3InShardsMatchesTransformers) { expect_golden("qwen3", "qwen3/expected.bin"); }
TEST(Convert, GgufMatchesTransformers) { expect_golden("llama.gguf", "llama.expected.bin"); }

TEST(Convert, KeepsFourBitSourcesBitForBit) {
  const TempFolder folder;
  const auto report = convert(fixture("llama.gguf"), folder / "m.pte", {});
  ASSERT_TRUE(report.ok()) << report.status().message();
  const auto program = program::Program::open(folder / "m.pte");
  ASSERT_TRUE(program.ok()) << program.status().message();
  for (const TensorReport& t : report->tensors) {
    EXPECT_EQ(t.target, t.source == "Q4_0" ? "q4/32" : "q8") << t.name;
    if (t.source == "Q4_0") {
      EXPECT_EQ(t.error, 0) << t.name;
    }
  }
  // Every nibble of the source, in the order of the target.
  auto model = open_model(fixture("llama.gguf"));
  ASSERT_TRUE(model.ok());
  const SourceTensor* q = model->weights.find("blk.1.attn_q.weight");
  ASSERT_NE(q, nullptr);
  std::string want;
  std::vector<std::byte> row(q->row_bytes());
  for (int64_t r = 0; r < q->rows(); ++r) {
    ASSERT_TRUE(q->read_bytes(r, row).ok());
    for (int64_t b = 0; b < q->cols() / 32; ++b) {
      const Bytes block = Bytes(row).subspan(static_cast<size_t>(b) * 18 + 2, 16);
      std::vector<int> codes(32);
      for (size_t j = 0; j < 16; ++j) {
        codes[j] = std::to_integer<int>(block[j]) & 15;
        codes[j + 16] = std::to_integer<int>(block[j]) >> 4;
      }
      for (size_t j = 0; j < 32; j += 2) want += static_cast<char>(codes[j + 1] << 4 | codes[j]);
    }
  }
  bool found = false;
  for (const auto& [key, blob] : program->named_data()) {
    const Bytes bytes = *program->sources()[0]->view(blob.data.offset, blob.data.size);
    found = found || std::ranges::equal(bytes, std::as_bytes(std::span(want)));
  }
  EXPECT_TRUE(found);
}

TEST(Convert, TokenizerAndTemplateGoAlong) {
  const TempFolder folder;
  ASSERT_TRUE(convert(fixture("llama.gguf"), folder / "m.pte", {}).ok());
  const auto program = program::Program::open(folder / "m.pte");
  ASSERT_TRUE(program.ok()) << program.status().message();
  const auto text = [&](std::string_view key) {
    const auto at = program->named_data().find(key);
    if (at == program->named_data().end()) return std::string("absent");
    const ByteRange& data = at->second.data;
    const RangeSource source(program->sources()[0], data.offset, data.size);
    return *read_all(source, data.size);
  };
  EXPECT_EQ(text(program::kTokenizerKindKey), "gguf");
  EXPECT_EQ(text(program::kChatTemplateKey), "{{ messages }}");
  const std::string packed = text(program::kTokenizerKey);
  const auto v = program::read_vocabulary(std::as_bytes(std::span(packed)));
  ASSERT_TRUE(v.ok()) << v.status().message();
  EXPECT_EQ(v->model, "gpt2");
  EXPECT_EQ(v->pre, "smollm");
  ASSERT_EQ(v->tokens.size(), 64U);
  EXPECT_EQ(v->tokens[63], "abc");
  EXPECT_EQ(v->types[2], 3);
  EXPECT_EQ(v->merges, (std::vector<std::string>{"a b", "ab c"}));
  EXPECT_EQ(v->numbers.at("eos_token_id"), 2);
  EXPECT_EQ(v->numbers.at("add_bos_token"), 0);
}

constexpr std::string_view kTokenizerJson =
    R"({"model":{"type":"BPE","vocab":{"a":0,"b":1,"ab":2},"merges":["a b"]}})";

TEST(Convert, FilesOfAFolderGoAlong) {
  const TempFolder folder;
  testing::write_folder(
      testing::make_model(testing::tiny_shape("llama", RopeLayout::kHalves), Grid::kSigned4),
      folder / "hf");
  testing::write_file(folder / "hf/tokenizer.json", kTokenizerJson);
  testing::write_file(
      folder / "hf/tokenizer_config.json",
      R"({"chat_template":[{"name":"other","template":"no"},{"name":"default","template":"yes"}]})");
  testing::write_file(folder / "hf/generation_config.json", R"({"eos_token_id":[7,8]})");
  const auto model = open_model(folder / "hf");
  ASSERT_TRUE(model.ok()) << model.status().message();
  EXPECT_EQ(model->bos, 1);
  EXPECT_EQ(model->eos, (std::vector<int64_t>{7, 8}));
  EXPECT_EQ(model->texts.tokenizer, kTokenizerJson);
  EXPECT_EQ(model->texts.tokenizer_kind, "tokenizer.json");
  EXPECT_EQ(model->texts.chat_template, "yes");
}

TEST(Convert, BadSourcesLeaveNothingBehind) {
  const TempFolder folder;
  const TinyModel m =
      testing::make_model(testing::tiny_shape("llama", RopeLayout::kHalves), Grid::kSigned4);
  expect_refused(folder / "absent", {}, Code::kIo, "No such file or directory");
  expect_refused(folder.path().string(), {}, Code::kInvalidProgram,
                 "is a folder without config.json");

  TinyModel missing = m;
  missing.tensors.erase("model.layers.1.mlp.up_proj.weight");
  testing::write_folder(missing, folder / "missing");
  expect_refused(folder / "missing", {}, Code::kInvalidProgram,
                 "tensor 'model.layers.1.mlp.up_proj.weight' [96, 32] is missing");

  TinyModel other = m;
  other.tensors["model.norm.weight"] = {{16}, std::vector<float>(16, 1)};
  testing::write_folder(other, folder / "other");
  expect_refused(folder / "other", {}, Code::kInvalidProgram,
                 "tensor 'model.norm.weight' shape: expected [32], got [16]");

  const std::string gguf = testing::gguf_of(m, Blocks::kF32).finish();
  testing::write_file(folder / "cut.gguf", std::string_view(gguf).substr(0, gguf.size() / 2));
  expect_refused(folder / "cut.gguf", {}, Code::kInvalidProgram, "while reading");
}

// Found while the output is being written.
TEST(Convert, ValuesThatAreNotFiniteLeaveNothingBehind) {
  for (const Quantize q : {Quantize::kNone, Quantize::kQ8, Quantize::kQ4, Quantize::kAuto}) {
    const TempFolder folder;
    TinyModel m =
        testing::make_model(testing::tiny_shape("llama", RopeLayout::kHalves), Grid::kSigned4);
    m.tensors["model.layers.1.mlp.up_proj.weight"].second[70] = NAN;
    testing::write_folder(m, folder / "hf");
    expect_refused(
        folder / "hf", {.quantize = q}, Code::kInvalidProgram,
        "tensor 'model.layers.1.mlp.up_proj.weight' row 2 holds a value that is not finite");
  }
}

TEST(Convert, OptionsThatCannotBe) {
  const std::string source = fixture("qwen2");
  expect_refused(source, {.group_size = 0}, Code::kInvalidArgument,
                 "group size: expected 1 to 65536, got 0");
  expect_refused(source, {.max_context = 1000}, Code::kInvalidArgument,
                 "context: expected 1 to 128, got 1000");
  expect_refused(source, {.max_tokens = 1}, Code::kInvalidArgument,
                 "tokens of a call: expected 2 or more, got 1");
  expect_refused(source, {.tokenizer = "/nonexistent"}, Code::kIo, "/nonexistent");
}

TEST(Convert, StoppingLeavesNothingBehind) {
  expect_refused(fixture("qwen2"), {.progress = [](uint64_t, uint64_t) { return false; }},
                 Code::kCancelled, "interrupted");
}

TEST(Convert, OutputThatCannotBeWritten) {
  const TempFolder folder;
  for (const std::string& path : {folder / "no/such.pte", folder.path().string()}) {
    const auto r = convert(fixture("qwen2"), path, {});
    ASSERT_FALSE(r.ok());
    EXPECT_EQ(r.status().code(), Code::kIo) << r.status().message();
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(Convert, UnsupportedModelsAreNamed) {
  const TempFolder folder;
  testing::GgufBuilder b;
  b.text("general.architecture", "mamba");
  testing::write_file(folder / "m.gguf", b.finish());
  expect_refused(folder / "m.gguf", {}, Code::kUnsupported,
                 "architecture 'mamba' is not supported (llama, qwen2, qwen3 are)");
  std::filesystem::create_directory(folder / "hf");
  testing::write_file(folder / "hf/config.json", R"({"architectures":["GemmaForCausalLM"]})");
  expect_refused(folder / "hf", {}, Code::kUnsupported,
                 "architecture 'GemmaForCausalLM' is not supported");
}

}  // namespace
}  // namespace pteryx::convert
