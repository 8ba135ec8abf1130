// The arrays of GGUF files against the tokenizers they stand for. SPDX-License-Identifier:
// BSD-3-Clause
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "pteryx/llm/testing/fixtures.h"
#include "pteryx/llm/tokenizer/tokenizer.h"

namespace pteryx::llm {
namespace {

using nlohmann::json;
using testing::tokenizer_goldens;

// The arrays that a converter would write for a tokenizer.json.
GgufVocabulary arrays_of(const std::string& name, const std::string& pre) {
  const json document = testing::read_json_fixture("tokenizers/" + name);
  GgufVocabulary g;
  g.model = "gpt2";
  g.pre = pre;
  const auto put = [&](const std::string& text, size_t id, int32_t type) {
    if (id >= g.tokens.size()) {
      g.tokens.resize(id + 1);
      g.types.resize(id + 1, 5);
    }
    g.tokens[id] = text;
    g.types[id] = type;
  };
  for (const auto& [text, id] : document["model"]["vocab"].items()) put(text, id.get<size_t>(), 1);
  for (const json& added : document["added_tokens"]) {
    put(added["content"].get<std::string>(), added["id"].get<size_t>(),
        added["special"].get<bool>() ? 3 : 4);
  }
  for (const json& merge : document["model"]["merges"]) {
    g.merges.push_back(merge[0].get<std::string>() + " " + merge[1].get<std::string>());
  }
  return g;
}

GgufVocabulary scored_arrays() {
  const json arrays = testing::read_json_fixture("tokenizers/spm_bpe.gguf.json");
  GgufVocabulary g;
  g.model = "llama";
  g.tokens = arrays["tokens"].get<std::vector<std::string>>();
  g.scores = arrays["scores"].get<std::vector<float>>();
  g.types = arrays["types"].get<std::vector<int32_t>>();
  g.bos = 1;
  g.eos = 2;
  return g;
}

void expect_golden(const GgufVocabulary& g, const std::string& golden) {
  const auto t = make_gguf_tokenizer(g);
  ASSERT_TRUE(t.ok()) << t.status().message();
  const json& texts = tokenizer_goldens()["texts"];
  for (const char* const mode : {"plain", "special"}) {
    const json& expected = tokenizer_goldens()["cases"][golden];
    if (!expected.contains(mode)) continue;
    for (size_t i = 0; i < texts.size(); ++i) {
      const auto ids = (*t)->encode(texts[i].get<std::string>(),
                                    {.parse_special = std::string_view(mode) == "special"});
      ASSERT_TRUE(ids.ok()) << ids.status().message();
      EXPECT_EQ(json(*ids), expected[mode][i]) << golden << ", " << mode << ": " << texts[i].dump();
    }
  }
}

TEST(Gguf, EncodesAsTheTokenizersItStandsFor) {
  expect_golden(arrays_of("gpt2.json", "gpt-2"), "gpt2.json");
  expect_golden(arrays_of("smollm.json", "smollm"), "smollm.json");
  expect_golden(arrays_of("llama3.json", "llama-bpe"), "llama3.json");
  expect_golden(scored_arrays(), "spm_bpe.model");
}

// GGUF files know no normalizer, so that only texts which are in normal form agree.
TEST(Gguf, EncodesAsQwen2) {
  const auto t = make_gguf_tokenizer(arrays_of("qwen2.json", "qwen2"));
  ASSERT_TRUE(t.ok()) << t.status().message();
  const json& texts = tokenizer_goldens()["texts"];
  for (size_t i = 4; i < 16; ++i) {
    const auto ids = (*t)->encode(texts[i].get<std::string>(), {.parse_special = true});
    ASSERT_TRUE(ids.ok());
    EXPECT_EQ(json(*ids), tokenizer_goldens()["cases"]["qwen2.json"]["special"][i])
        << texts[i].dump();
  }
}

TEST(Gguf, CutsByDefaultAtPunctuationAndThousands) {
  GgufVocabulary g = arrays_of("gpt2.json", "");
  const auto t = make_gguf_tokenizer(g);
  ASSERT_TRUE(t.ok()) << t.status().message();
  const auto ids = (*t)->encode("a --> 123456", {});
  ASSERT_TRUE(ids.ok());
  std::string cut;
  for (const TokenId id : *ids) cut += *(*t)->decode({&id, 1}, Specials::kShow) + "|";
  EXPECT_EQ(cut.find("-->"), std::string::npos);
  EXPECT_EQ(*(*t)->decode(*ids, Specials::kShow), "a --> 123456");
}

TEST(Gguf, AddsWhatTheFileSays) {
  GgufVocabulary g = scored_arrays();
  g.add_space_prefix = false;
  const auto t = make_gguf_tokenizer(g);
  ASSERT_TRUE(t.ok());
  EXPECT_EQ((*t)->vocabulary().bos, 1U);
  EXPECT_TRUE((*t)->ends_text(2));
  const auto ids = (*t)->encode("<s>", {.add_bos = true, .add_eos = true, .parse_special = true});
  ASSERT_TRUE(ids.ok());
  EXPECT_EQ(*ids, (std::vector<TokenId>{1, 1, 2}));
}

TEST(Gguf, RefusesArraysThatContradictEachOther) {
  const auto expect_refused = [](const GgufVocabulary& g, Code code, std::string_view message) {
    const auto t = make_gguf_tokenizer(g);
    ASSERT_FALSE(t.ok()) << message;
    EXPECT_EQ(name(t.status().code()), name(code));
    EXPECT_EQ(t.status().message(), message);
  };
  const GgufVocabulary good = {
      .model = "gpt2", .pre = "gpt-2", .tokens = {"a", "b"}, .types = {1, 1}};
  GgufVocabulary g = good;
  g.merges = {"a b"};
  expect_refused(g, Code::kInvalidProgram,
                 "merge 0 ('a' 'b'): token 'ab' is not in the vocabulary");
  g.merges = {"ab"};
  expect_refused(g, Code::kInvalidProgram, "GGUF tokenizer: merge 0 ('ab'): expected two tokens");
  g = good;
  g.bos = 2;
  expect_refused(g, Code::kInvalidProgram, "GGUF tokenizer: bos token 2: expected below 2");
  g = good;
  g.types = {1};
  expect_refused(g, Code::kInvalidProgram, "GGUF tokenizer: expected 2 token types, got 1");
  g.types = {1, 7};
  expect_refused(g, Code::kInvalidProgram,
                 "GGUF tokenizer: token 1 has the type 7: expected 1 to 6");
  g = good;
  g.pre = "nobody";
  expect_refused(g, Code::kUnsupported, "pre-tokenizer 'nobody' is not supported");
  g.model = "llama";
  expect_refused(g, Code::kInvalidProgram, "GGUF tokenizer: expected 2 scores, got 0");
  g.model = "bert";
  expect_refused(g, Code::kUnsupported,
                 "GGUF tokenizer 'bert' is not supported (expected gpt2 or llama)");
  expect_refused({}, Code::kInvalidProgram, "GGUF tokenizer has no tokens");
}

}  // namespace
}  // namespace pteryx::llm
