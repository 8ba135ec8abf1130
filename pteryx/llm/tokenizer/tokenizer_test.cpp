// What all tokenizers share, and what their readers refuse. SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/llm/tokenizer/tokenizer.h"

#include <chrono>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "pteryx/llm/testing/fixtures.h"

namespace pteryx::llm {
namespace {

using testing::bytes_of_text;
using testing::load_tokenizer;

void expect_refused(const Result<TokenizerPtr>& result, Code code, std::string_view message) {
  ASSERT_FALSE(result.ok()) << "expected: " << message;
  EXPECT_EQ(name(result.status().code()), name(code));
  EXPECT_EQ(result.status().message(), message);
}

std::string hf(std::string_view model, std::string_view more = "") {
  return R"({"model": {"type": "BPE", )" + std::string(model) + "}" + std::string(more) + "}";
}

constexpr std::string_view kModel = R"("vocab": {"a": 0, "b": 1, "ab": 2}, "merges": ["a b"])";

TEST(HfTokenizer, ReadsTheSmallestFile) {
  const auto t = read_tokenizer(bytes_of_text(hf(kModel)));
  ASSERT_TRUE(t.ok()) << t.status().message();
  const auto ids = (*t)->encode("abba", {});
  ASSERT_TRUE(ids.ok());
  EXPECT_EQ(*ids, (std::vector<TokenId>{2, 1, 0}));
  EXPECT_EQ((*t)->size(), 3U);
  EXPECT_EQ((*t)->find("ab"), 2U);
  EXPECT_EQ((*t)->find("c"), std::nullopt);
}

TEST(HfTokenizer, RefusesWhatContradictsItself) {
  const std::pair<std::string, std::string_view> cases[] = {
      {"{", "tokenizer.json: not JSON at byte 2"},
      {"{}", "model: expected an object, got null"},
      {hf(kModel, ", \"normalizer\": " + std::string(99, '[') + std::string(99, ']')),
       "tokenizer.json: JSON is nested deeper than 64 levels at byte 160"},
      {hf(kModel, R"(, "pre_tokenizer": {"type": "Metaspace", "replacement": "__"})"),
       "pre_tokenizer.replacement: expected one character"},
      {hf(R"("vocab": [])"), "model.vocab: expected an object, got array"},
      {hf(R"("vocab": {"a": -1}, "merges": [])"),
       "model.vocab: token 'a': expected an id below 2097152, got -1"},
      {hf(R"("vocab": {"a": 0, "b": 0}, "merges": [])"),
       "model.vocab: tokens 'a' and 'b' have the same id 0"},
      {hf(R"("vocab": {"a": 0}, "merges": ["a z"])"),
       "merge 0 ('a' 'z'): token 'z' is not in the vocabulary"},
      {hf(R"("vocab": {"a": 0}, "merges": ["a a"])"),
       "merge 0 ('a' 'a'): token 'aa' is not in the vocabulary"},
      {hf(R"("vocab": {"a": 0}, "merges": ["a"])"),
       "model.merges[0]: expected two tokens, got 'a'"},
      {hf(R"("vocab": {"a": 0}, "merges": [["a"]])"),
       "model.merges[0]: expected two tokens, got 1"},
      {hf(R"("vocab": {"a": 0}, "merges": [], "unk_token": "u")"),
       "model.unk_token: 'u' is not in the vocabulary"},
      {hf(kModel, R"(, "added_tokens": [{"id": 3000000000, "content": "x"}])"),
       "tokenizer has 3000000001 tokens or more: expected at most 2097152"},
      {hf(kModel, R"(, "added_tokens": [{"id": "x", "content": "x"}])"),
       "added_tokens[0].id: expected a whole number below 2^32, got string"},
      {hf(kModel, R"(, "pre_tokenizer": {"type": "Split", "pattern": {"Regex": "(a"}})"),
       "regular expression '(a': missing closing parenthesis\n  while reading "
       "pre_tokenizer.pattern"},
      {hf(kModel,
          R"(, "pre_tokenizer": {"type": "Split", "pattern": {"String": "a"}, "behavior": "Odd"})"),
       "pre_tokenizer.behavior: 'Odd' is no behavior of a split"},
      {hf(kModel,
          R"(, "post_processor": {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "s"}}], "special_tokens": {"s": {"ids": [7]}}})"),
       "post_processor: token 7 is not in the vocabulary (size 3)"},
  };
  for (const auto& [text, message] : cases) {
    expect_refused(read_tokenizer(bytes_of_text(text)), Code::kInvalidProgram, message);
  }
}

TEST(HfTokenizer, NamesWhatItDoesNotKnow) {
  const std::string long_type = "decoder: '" + std::string(200, 'x') + "...' is not supported";
  const std::pair<std::string, std::string_view> cases[] = {
      {R"({"model": {"type": "WordPiece"}})",
       "model.type: 'WordPiece' is not supported (expected BPE or Unigram)"},
      {hf(kModel, R"(, "normalizer": {"type": "BertNormalizer"})"),
       "normalizer: 'BertNormalizer' is not supported"},
      {hf(kModel,
          R"(, "pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "UnicodeScripts"}]})"),
       "pre_tokenizer.pretokenizers[0]: 'UnicodeScripts' is not supported"},
      {hf(kModel, R"(, "decoder": {"type": "CTC"})"), "decoder: 'CTC' is not supported"},
      {hf(kModel, R"(, "decoder": {"type": "a\nb)" + std::string(9999, 'x') + "\"}"),
       "decoder: 'a...' is not supported"},
      {hf(kModel, R"(, "decoder": {"type": ")" + std::string(9999, 'x') + "\"}"), long_type},
      {hf(R"("vocab": {"a": 0}, "merges": [], "end_of_word_suffix": "</w>")"),
       "model.end_of_word_suffix is not supported"},
  };
  for (const auto& [text, message] : cases) {
    expect_refused(read_tokenizer(bytes_of_text(text)), Code::kUnsupported, message);
  }
}

// A pattern that tries every way to cut a text must give up, not hang.
TEST(HfTokenizer, GivesUpOnPatternsWithoutEnd) {
  const auto t = read_tokenizer(bytes_of_text(
      hf(kModel, R"(, "pre_tokenizer": {"type": "Split", "pattern": {"Regex": "(a|aa)+[x-z]"}})")));
  ASSERT_TRUE(t.ok()) << t.status().message();
  const auto ids = (*t)->encode(std::string(64, 'a') + "b", {});
  ASSERT_FALSE(ids.ok());
  EXPECT_EQ(ids.status().message(),
            "regular expression '(a|aa)+[x-z]' at byte 0 of 65: match limit exceeded");
}

TEST(HfTokenizer, BoundsHowLongATextBecomes) {
  const std::string twice = R"({"type": "Replace", "pattern": {"String": "a"}, "content": "aa"})";
  std::string steps = twice;
  for (int i = 0; i < 40; ++i) steps += "," + twice;
  const auto t = read_tokenizer(bytes_of_text(
      hf(kModel, R"(, "normalizer": {"type": "Sequence", "normalizers": [)" + steps + "]}")));
  ASSERT_TRUE(t.ok()) << t.status().message();
  const auto ids = (*t)->encode("aaa", {});
  ASSERT_FALSE(ids.ok());
  EXPECT_EQ(ids.status().message(), "text grows past 4144 bytes when it is normalised");
}

TEST(SentencePiece, RefusesBrokenModels) {
  expect_refused(read_sentencepiece(bytes_of_text("\n\x05zz")), Code::kInvalidProgram,
                 "SentencePiece model: the file is not a protocol buffer");
  expect_refused(read_sentencepiece({}), Code::kInvalidProgram, "tokenizer has no tokens");
  const std::string_view bad_type =
      "\n\x05\n\x01"
      "a\x18\x09";
  expect_refused(read_sentencepiece(bytes_of_text(bad_type)), Code::kInvalidProgram,
                 "token 0: type 9 is none of SentencePiece's");
  const std::string_view bad_byte =
      "\n\x05\n\x01"
      "a\x18\x06";
  expect_refused(read_sentencepiece(bytes_of_text(bad_byte)), Code::kInvalidProgram,
                 "token 0: expected a byte such as '<0x0A>', got 'a'");
}

TEST(Tiktoken, RefusesBrokenFiles) {
  expect_refused(read_tiktoken(bytes_of_text("YQ== 0\nYQ 1\n")), Code::kInvalidProgram,
                 "tiktoken file, line 2: expected a base64 token and its rank");
  expect_refused(read_tiktoken(bytes_of_text("YQ== 0\nYQ== 1\n")), Code::kInvalidProgram,
                 "tiktoken file, line 2: rank 1 or its token comes twice");
  expect_refused(read_tiktoken(bytes_of_text("YQ== 0\n")), Code::kInvalidProgram,
                 "tiktoken file has no token for the byte 0x00");
}

TEST(Tiktoken, NamesTheSpecialsOfLlama3) {
  const auto t = load_tokenizer("llama3.tiktoken");
  const auto first = static_cast<TokenId>(t->size()) - 256;
  EXPECT_EQ(t->find("<|begin_of_text|>"), first);
  EXPECT_EQ(t->find("<|eot_id|>"), first + 9);
  EXPECT_EQ(t->find("<|reserved_special_token_247|>"), first + 255);
  EXPECT_EQ(t->vocabulary().bos, first);
  EXPECT_TRUE(t->ends_text(first + 9));
}

TEST(Llama2c, RefusesBrokenTables) {
  expect_refused(read_llama2c_tokenizer(bytes_of_text("abc")), Code::kInvalidProgram,
                 "tokenizer.bin has 3 bytes: expected a header of 16");
  const std::string table(40, '\x01');
  expect_refused(read_llama2c_tokenizer(bytes_of_text(table)), Code::kInvalidProgram,
                 "tokenizer has 16843009 tokens or more: expected at most 2097152");
}

TEST(Tokenizer, RefusesIdsOutOfRange) {
  const auto t = load_tokenizer("gpt2.json");
  const std::vector<TokenId> ids = {0, 700};
  const auto text = t->decode(ids, Specials::kShow);
  ASSERT_FALSE(text.ok());
  EXPECT_EQ(text.status().code(), Code::kInvalidArgument);
  EXPECT_EQ(text.status().message(), "token 700 is not in the vocabulary: expected below 700");
  StreamDecoder stream(*t, Specials::kSkip, TextStart::kNew);
  EXPECT_FALSE(stream.push(701).ok());
}

// Vocabularies of bytes take a text back as it was, whatever it holds.
TEST(Tokenizer, RoundTripsAnyBytes) {
  std::string all;
  for (int repeat = 0; repeat < 3; ++repeat) {
    for (int b = 0; b < 256; ++b) all += static_cast<char>(b * (repeat + 1) + repeat);
  }
  for (const char* const file : {"gpt2.json", "llama3.json", "llama3.tiktoken", "deepseek.json"}) {
    const auto t = load_tokenizer(file);
    const auto ids = t->encode(all, {});
    ASSERT_TRUE(ids.ok()) << ids.status().message();
    const auto text = t->decode(*ids, Specials::kShow);
    ASSERT_TRUE(text.ok());
    EXPECT_EQ(*text, all) << file;
  }
}

TEST(StreamDecoder, NeverSplitsACharacter) {
  const auto t = load_tokenizer("spm_bpe.model");
  const auto ids = t->encode("a\xF0\x92\x80\x80z", {});
  ASSERT_TRUE(ids.ok());
  ASSERT_GE(ids->size(), 6U);  // U+12000 has no token, so that its bytes are four
  StreamDecoder stream(*t, Specials::kSkip, TextStart::kNew);
  std::vector<std::string> shown;
  for (const TokenId id : *ids) {
    auto piece = stream.push(id);
    ASSERT_TRUE(piece.ok());
    if (!piece->empty()) shown.push_back(*piece);
  }
  EXPECT_EQ(shown, (std::vector<std::string>{"a", "\xF0\x92\x80\x80", "z"}));
  EXPECT_EQ(stream.finish(), "");
  ASSERT_TRUE(stream.push((*ids)[1]).ok());
  EXPECT_EQ(stream.finish(), "\xEF\xBF\xBD");
}

TEST(StreamDecoder, KeepsTheSpaceOfAContinuedText) {
  const auto t = load_tokenizer("spm_bpe.model");
  const auto ids = t->encode("the", {});
  ASSERT_TRUE(ids.ok());
  StreamDecoder fresh(*t, Specials::kSkip, TextStart::kNew);
  StreamDecoder continued(*t, Specials::kSkip, TextStart::kContinued);
  std::string texts[2];
  for (const TokenId id : *ids) {
    texts[0] += *fresh.push(id);
    texts[1] += *continued.push(id);
  }
  EXPECT_EQ(texts[0], "the");
  EXPECT_EQ(texts[1], " the");
}

// Some tenths of a second where nothing else runs; the bound is for a machine with much else to do.
TEST(Tokenizer, EncodesAMegabyteQuickly) {
  std::string text;
  const auto& texts = testing::tokenizer_goldens()["texts"];
  for (size_t i = 0; text.size() < 900'000; ++i) {
    text += texts[i % texts.size()].get<std::string>() + " " + std::to_string(i * 7919) + "\n";
  }
  text += std::string(50'000, ' ') + std::string(50'000, 'x');
  for (const char* const file :
       {"llama3.json", "qwen2.json", "llama2.json", "mistral.json", "spm_bpe.model",
        "spm_unigram.model", "llama3.tiktoken", "llama2c.bin"}) {
    const auto t = load_tokenizer(file);
    const auto start = std::chrono::steady_clock::now();
    const auto ids = t->encode(text, {.parse_special = true});
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    ASSERT_TRUE(ids.ok()) << ids.status().message();
    EXPECT_LT(seconds.count(), 10) << file;
    RecordProperty(std::string(file), std::to_string(seconds.count()));
  }
}

}  // namespace
}  // namespace pteryx::llm
