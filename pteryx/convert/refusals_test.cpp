// What generate would refuse, convert refuses; and sources that change meanwhile.
// SPDX-License-Identifier: BSD-3-Clause
#include <cstring>
#include <filesystem>
#include <functional>

#include <gtest/gtest.h>

#include "pteryx/base/dtype.h"
#include "pteryx/convert/convert.h"
#include "pteryx/convert/testing/refusal.h"
#include "pteryx/convert/testing/tiny_model.h"

namespace pteryx::convert {
namespace {

using testing::Blocks;
using testing::expect_converted;
using testing::expect_refused;
using testing::GgufBuilder;
using testing::Grid;
using testing::TempFolder;
using testing::TinyModel;

std::string tokenizer_fixture(const std::string& name) {
  return std::string(PTERYX_TEST_DATA) + "/fixtures/tokenizers/" + name;
}

TinyModel tiny(RopeLayout rope = RopeLayout::kHalves) {
  ModelShape s = testing::tiny_shape("llama", rope);
  s.head_size = 8;  // what llama2.c can say
  return testing::make_model(s, Grid::kSigned4);
}

// A folder whose config.json has a member replaced or added.
void write_folder_with(const std::string& folder, const std::string& from, const std::string& to) {
  testing::write_folder(tiny(), folder);
  const std::string path = folder + "/config.json";
  std::string config = testing::read_file(path);
  const size_t at = config.find(from);
  ASSERT_NE(at, std::string::npos) << from << " in " << config;
  testing::write_file(path, config.replace(at, from.size(), to));
}

struct ScaledFormat {
  uint32_t ggml_type;
  size_t block_elems, block_bytes, scale_at;
};
constexpr ScaledFormat kScaled[] = {
    {2, 32, 18, 0},                                             // Q4_0
    {3, 32, 20, 0},    {3, 32, 20, 2},                          // Q4_1: scale, minimum
    {6, 32, 22, 0},                                             // Q5_0
    {7, 32, 24, 0},    {7, 32, 24, 2},                          // Q5_1
    {8, 32, 34, 0},                                             // Q8_0
    {12, 256, 144, 0}, {12, 256, 144, 2},   {13, 256, 176, 0},  // Q4_K, Q5_K: scale, minimum
    {13, 256, 176, 2}, {14, 256, 210, 208},                     // Q6_K
};

TEST(Refusals, ScalesThatAreNotFinite) {
  constexpr std::string_view kName = "model.layers.1.mlp.up_proj.weight";
  ModelShape shape = testing::tiny_shape("llama", RopeLayout::kPairs);
  shape.hidden = 256;
  TinyModel m = testing::make_model(shape, Grid::kSigned4);
  const Dims dims = m.tensors.at(std::string(kName)).first;
  m.tensors.erase(std::string(kName));
  for (const ScaledFormat& f : kScaled) {
    for (const uint16_t bad : std::initializer_list<uint16_t>{0x7e00, 0x7c00, 0xfc00}) {
      const size_t row = static_cast<size_t>(dims[1]) / f.block_elems * f.block_bytes;
      std::string data(row * static_cast<size_t>(dims[0]), '\0');
      std::memcpy(&data[2 * row + f.scale_at], &bad, sizeof(bad));
      GgufBuilder b = testing::gguf_of(m, Blocks::kQ4_0);
      b.tensor("blk.1.ffn_up.weight", f.ggml_type, dims, data);
      const TempFolder folder;
      testing::write_file(folder / "m.gguf", b.finish());
      for (const Quantize q : {Quantize::kAuto, Quantize::kNone, Quantize::kQ4}) {
        SCOPED_TRACE(f.ggml_type);
        expect_refused(folder / "m.gguf", {.quantize = q}, Code::kInvalidProgram,
                       "tensor 'blk.1.ffn_up.weight' row 2 holds a ");
      }
    }
  }
}

TEST(Refusals, TokenizersThatCannotBeRead) {
  const TempFolder folder;
  testing::write_folder(tiny(), folder / "hf");
  const auto given = [&](std::string_view content, std::string_view message) {
    testing::write_file(folder / "t", content);
    expect_refused(folder / "hf", {.tokenizer = folder / "t"}, Code::kInvalidProgram, message);
  };
  given("", "tokenizer file is empty");
  given("{\"model\":", "not JSON at byte");
  given("{}", "model");
  given(std::string(100, '\x01'), "while reading the tokenizer of " + (folder / "t"));
  const std::string table = testing::llama2c_tokenizer(40);
  given(std::string_view(table).substr(0, table.size() - 1), "while reading the tokenizer of");
  const std::string gpt2 = testing::read_file(tokenizer_fixture("gpt2.json"));
  given(std::string_view(gpt2).substr(0, gpt2.size() / 2), "not JSON at byte");
  const std::string spm = testing::read_file(tokenizer_fixture("spm_bpe.model"));
  given(std::string_view(spm).substr(0, spm.size() / 2 + 1), "while reading the tokenizer of");
  given(testing::llama2c_tokenizer(41),
        "the tokenizer has 41 tokens, the model's vocabulary 40: it belongs to another model");
  testing::write_file(folder / "t", testing::safetensors_of(tiny()));
  expect_refused(folder / "hf", {.tokenizer = folder / "t"}, Code::kInvalidArgument,
                 (folder / "t") + " is a safetensors file: expected a tokenizer");
  testing::write_file(folder / "t", table);
  expect_converted(folder / "hf", {.tokenizer = folder / "t"});
}

TEST(Refusals, TheSourcesOwnTokenizer) {
  const TempFolder folder;
  testing::write_folder(tiny(), folder / "hf");
  expect_converted(folder / "hf");  // ids work without one
  testing::write_file(folder / "table", testing::llama2c_tokenizer(40));
  for (const char* file : {"hf/tokenizer.model", "hf/tokenizer.json"}) {
    testing::write_file(folder / file, R"({"model":{"type":"BPE"}})");
    expect_refused(folder / "hf", {}, Code::kInvalidProgram, "while reading the tokenizer of");
    expect_converted(folder / "hf", {.tokenizer = folder / "table"});
  }

  GgufBuilder large =
      testing::gguf_of(tiny(RopeLayout::kPairs), Blocks::kF32, testing::Texts::kNone);
  large.vocabulary(41);
  testing::write_file(folder / "large.gguf", large.finish());
  expect_refused(folder / "large.gguf", {}, Code::kInvalidProgram, "the tokenizer has 41 tokens");
  expect_converted(folder / "large.gguf", {.tokenizer = folder / "table"});

  const GgufBuilder none =
      testing::gguf_of(tiny(RopeLayout::kPairs), Blocks::kF32, testing::Texts::kNone);
  testing::write_file(folder / "none.gguf", none.finish());
  expect_refused(folder / "none.gguf", {}, Code::kInvalidProgram,
                 "no vocabulary ('tokenizer.ggml.tokens'): give one with --tokenizer");
  expect_converted(folder / "none.gguf", {.tokenizer = folder / "table"});
}

TEST(Refusals, KindOfATokenizerIsItsContents) {
  const TempFolder folder;
  const TinyModel m = testing::make_model(
      [] {
        ModelShape s = testing::tiny_shape("llama", RopeLayout::kHalves);
        s.vocabulary = 4096;
        return s;
      }(),
      Grid::kSigned4);
  testing::write_folder(m, folder / "hf");
  for (const auto& [fixture, kind] :
       {std::pair("gpt2.json", "tokenizer.json"), std::pair("spm_bpe.model", "sentencepiece"),
        std::pair("llama3.tiktoken", "tiktoken"), std::pair("llama2c.bin", "llama2c")}) {
    for (const char* name : {"a.json", "b.model", "c.bin", "d"}) {
      testing::write_file(folder / name, testing::read_file(tokenizer_fixture(fixture)));
      const auto model = open_model(folder / "hf", folder / name);
      ASSERT_TRUE(model.ok()) << fixture << ": " << model.status().message();
      EXPECT_EQ(model->texts.tokenizer_kind, kind);
    }
  }
}

TEST(Refusals, ChatTemplates) {
  const TempFolder folder;
  testing::write_folder(tiny(), folder / "hf");
  testing::write_file(folder / "hf/chat_template.jinja", "a\n{% if x %}");
  expect_refused(folder / "hf", {}, Code::kInvalidProgram, "template line 2");
  expect_refused(folder / "hf", {}, Code::kInvalidProgram, "while reading the chat template");
  // Ours does not know it: generate still works.
  testing::write_file(folder / "hf/chat_template.jinja", "{% include 'x' %}");
  const auto r = convert(folder / "hf", folder / "m.pte", {});
  ASSERT_TRUE(r.ok()) << r.status().message();
  EXPECT_EQ(r->warnings, (std::vector<std::string>{"chat will refuse this model: template line 1: "
                                                   "tag 'include' is not supported"}));
}

TEST(Refusals, ConfigJson) {
  struct Case {
    std::string from, to, message;
  };
  const std::string rope = R"("rope_theta":10000)";
  const Case cases[] = {
      {R"("rms_norm_eps":1e-05)", R"("rms_norm_eps":"x")",
       "rms_norm_eps: expected a number, got string\n  while reading"},
      {R"("hidden_size":32)", R"("hidden_size":32.5)",
       "hidden_size: expected an integer, got number"},
      {R"("hidden_size":32,)", "", "hidden_size is missing"},
      {R"("vocab_size":40)", R"("vocab_size":[40])", "vocab_size: expected an integer, got array"},
      {R"("head_dim":8)", R"("head_dim":true)", "head_dim: expected an integer, got boolean"},
      {R"("num_key_value_heads":2)", R"("num_key_value_heads":"2")",
       "num_key_value_heads: expected an integer, got string"},
      {R"("max_position_embeddings":64)", R"("max_position_embeddings":{})",
       "max_position_embeddings: expected an integer, got object"},
      {R"("tie_word_embeddings":true)", R"("tie_word_embeddings":1)",
       "tie_word_embeddings: expected true or false, got number"},
      {R"("hidden_act":"silu")", R"("hidden_act":3)", "hidden_act: expected a string, got number"},
      {R"(["LlamaForCausalLM"])", R"("LlamaForCausalLM")",
       "architectures: expected an array, got string"},
      {R"(["LlamaForCausalLM"])", "[]", "architectures: expected a name, got none"},
      {rope, R"("rope_theta":"x")", "rope_theta: expected a number, got string"},
      {rope, R"("rope_scaling":"llama3")", "rope_scaling: expected an object, got string"},
      {rope, R"("rope_scaling":{"rope_type":7})", "rope_scaling.rope_type: expected a string"},
      {rope, R"("rope_scaling":{"rope_type":"llama3"})", "rope_scaling.factor is missing"},
      {rope, R"("rope_scaling":{"rope_type":"llama3","factor":8})",
       "rope_scaling.low_freq_factor is missing"},
      {rope, R"("rope_scaling":{"rope_type":"llama3","factor":8,"low_freq_factor":1})",
       "rope_scaling.high_freq_factor is missing"},
      {rope,
       R"("rope_scaling":{"rope_type":"llama3","factor":8,"low_freq_factor":1,"high_freq_factor":4})",
       "rope_scaling.original_max_position_embeddings is missing"},
      {rope, R"("rope_parameters":{"rope_type":"linear"})", "rope_parameters.factor is missing"},
      {R"("bos_token_id":1)", R"("bos_token_id":40)",
       "bos_token_id: expected a token below 40, the vocabulary, got 40"},
      {R"("bos_token_id":1)", R"("bos_token_id":-1)",
       "bos_token_id: expected a token below 40, the vocabulary, got -1"},
      {R"("eos_token_id":[2,3])", R"("eos_token_id":[2,4000])",
       "eos_token_id[1]: expected a token below 40, the vocabulary, got 4000"},
      {R"("eos_token_id":[2,3])", R"("eos_token_id":"</s>")",
       "eos_token_id: expected an integer, got string"},
  };
  for (const Case& c : cases) {
    const TempFolder folder;
    write_folder_with(folder / "hf", c.from, c.to);
    expect_refused(folder / "hf", {}, Code::kInvalidProgram, c.message);
  }
  const TempFolder folder;
  write_folder_with(folder / "hf", rope, R"("rope_scaling":{"rope_type":"yarn","factor":8})");
  expect_refused(folder / "hf", {}, Code::kUnsupported,
                 "rope_scaling: rope type 'yarn' is not supported (default, linear, llama3 are)");
  testing::write_folder(tiny(), folder / "ids");
  testing::write_file(folder / "ids/generation_config.json", R"({"eos_token_id":40})");
  expect_refused(folder / "ids", {}, Code::kInvalidProgram,
                 "eos_token_id: expected a token below 40");
}

TEST(Refusals, GgufMetadata) {
  struct Case {
    std::function<void(GgufBuilder&)> add;
    std::string message;
  };
  const std::vector<Case> cases = {
      {[](GgufBuilder& b) { b.text("llama.expert_count", "x"); },
       "'llama.expert_count': expected an integer, got the string 'x'"},
      {[](GgufBuilder& b) { b.f32("llama.rope.dimension_count", 8); },
       "'llama.rope.dimension_count': expected an integer, got 8"},
      {[](GgufBuilder& b) { b.u32("llama.rope.scaling.type", 1); },
       "'llama.rope.scaling.type': expected a string, got 1"},
      {[](GgufBuilder& b) { b.text("llama.rope.scaling.type", "linear"); },
       "'llama.rope.scaling.factor' is missing"},
      {[](GgufBuilder& b) { b.u32("tokenizer.ggml.bos_token_id", 40); },
       "tokenizer.ggml.bos_token_id: expected a token below 40, the vocabulary, got 40"},
      {[](GgufBuilder& b) { b.u32("tokenizer.ggml.eos_token_id", 0xffffffff); },
       "tokenizer.ggml.eos_token_id: expected a token below 40, the vocabulary, got 4294967295"},
      {[](GgufBuilder& b) { b.f32("tokenizer.ggml.eot_token_id", 1); },
       "'tokenizer.ggml.eot_token_id': expected an integer, got 1"},
      {[](GgufBuilder& b) { b.text("tokenizer.ggml.add_bos_token", "yes"); },
       "'tokenizer.ggml.add_bos_token': expected true or false, got the string 'yes'"},
      {[](GgufBuilder& b) { b.integers("tokenizer.ggml.merges", {1}); },
       "'tokenizer.ggml.merges': expected an array of strings, got an array of numbers"},
      {[](GgufBuilder& b) {
         b.integers("tokenizer.ggml.token_type", std::vector<int32_t>(40, 900));
       },
       "token 0 has the type -1: expected 1 to 6"},
      {[](GgufBuilder& b) { b.floats("tokenizer.ggml.scores", {1, 2}); },
       "'tokenizer.ggml.scores': expected 40 items, one per token, got 2"},
      {[](GgufBuilder& b) { b.texts("tokenizer.ggml.merges", {"x y"}); },
       "while reading the tokenizer"},
      {[](GgufBuilder& b) { b.u32("tokenizer.chat_template", 1); },
       "'tokenizer.chat_template': expected a string, got 1"},
      {[](GgufBuilder& b) { b.text("general.alignment", "x"); },
       "'general.alignment': expected an integer, got the string 'x'"},
  };
  for (const Case& c : cases) {
    GgufBuilder b = testing::gguf_of(tiny(RopeLayout::kPairs), Blocks::kF32);
    c.add(b);
    const TempFolder folder;
    testing::write_file(folder / "m.gguf", b.finish());
    expect_refused(folder / "m.gguf", {}, Code::kInvalidProgram, c.message);
  }
  TinyModel m = tiny(RopeLayout::kPairs);
  m.tensors.erase("model.embed_tokens.weight");
  GgufBuilder b = testing::gguf_of(m, Blocks::kF32);
  b.tensor("token_embd.weight", 10, {40, 256}, std::string(84, '\0'));
  const TempFolder unreadable;
  testing::write_file(unreadable / "m.gguf", b.finish());
  expect_refused(unreadable / "m.gguf", {}, Code::kUnsupported,
                 "tensor 'token_embd.weight': ggml type 10 is not supported");
  // Keys that have to be there.
  for (const std::string key :
       {"llama.block_count", "llama.embedding_length", "llama.attention.head_count",
        "llama.feed_forward_length", "general.architecture"}) {
    std::string file = testing::gguf_of(tiny(RopeLayout::kPairs), Blocks::kF32).finish();
    file[file.find(key)] = 'X';
    const TempFolder folder;
    testing::write_file(folder / "m.gguf", file);
    expect_refused(folder / "m.gguf", {}, Code::kInvalidProgram, "'" + key + "' is missing");
  }
}

// Calls `change` when a conversion says how far it is for the n-th time.
Progress at_call(int n, std::function<void()> change) {
  return [n, change = std::move(change), calls = 0](uint64_t, uint64_t) mutable {
    if (calls++ == n) change();
    return true;
  };
}

TEST(Refusals, SourcesThatShrinkMeanwhile) {
  const TempFolder folder;
  for (const char* source : {"m.gguf", "m.bin", "hf"}) {
    const bool hf = std::string_view(source) == "hf";
    for (const int call : {0, 5, 16}) {
      testing::write_file(folder / "m.gguf",
                          testing::gguf_of(tiny(RopeLayout::kPairs), Blocks::kQ4_0).finish());
      testing::write_file(folder / "m.bin", testing::llama2c_of(tiny(RopeLayout::kPairs)));
      testing::write_folder(tiny(), folder / "hf");
      const std::string file = folder / (hf ? "hf/model.safetensors" : source);
      const auto shrink = [&] { std::filesystem::resize_file(file, 3000); };
      SCOPED_TRACE(source);
      expect_refused(folder / source,
                     {.quantize = Quantize::kQ4, .progress = at_call(call, shrink)}, Code::kIo,
                     file + ": ended at byte 3000, expected ");
    }
  }
}

TEST(Refusals, OutputThatIsAnInput) {
  const TempFolder folder;
  const auto refused = [](const std::string& source, const std::string& output,
                          const ConvertOptions& o, const std::string& message) {
    const std::string before = testing::read_file(output);
    const auto r = convert(source, output, o);
    ASSERT_FALSE(r.ok()) << output;
    EXPECT_EQ(r.status().code(), Code::kInvalidArgument);
    EXPECT_EQ(r.status().message(), message);
    EXPECT_EQ(testing::read_file(output), before);
  };
  const std::string gguf = folder / "m.gguf";
  testing::write_file(gguf, testing::gguf_of(tiny(RopeLayout::kPairs), Blocks::kF32).finish());
  std::filesystem::create_symlink(gguf, folder / "symbolic");
  std::filesystem::create_hard_link(gguf, folder / "hard");
  for (const std::string& output :
       {gguf, folder / "symbolic", folder / "hard", folder / "./m.gguf"}) {
    refused(gguf, output, {}, "the output " + output + " is the source itself");
  }
  testing::write_folder(tiny(), folder / "hf");
  const std::string weights = folder / "hf/model.safetensors";
  refused(folder / "hf", weights, {},
          "the output " + weights + " is " + weights + ", a file of the source");
  const std::string table = folder / "table";
  testing::write_file(table, testing::llama2c_tokenizer(40));
  refused(gguf, table, {.tokenizer = table}, "the output " + table + " is the tokenizer");
  const auto parts = testing::write_split_gguf(tiny(RopeLayout::kPairs), folder / "s", 3);
  refused(parts[0], parts[2], {},
          "the output " + parts[2] + " is " + parts[2] + ", a file of the source");
}

}  // namespace
}  // namespace pteryx::convert
