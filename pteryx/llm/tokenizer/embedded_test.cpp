// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/llm/tokenizer/embedded.h"

#include <span>
#include <string>

#include <gtest/gtest.h>

#include "pteryx/program/vocabulary.h"

namespace pteryx::llm {
namespace {

program::Vocabulary vocabulary() {
  return {.model = "llama",
          .numbers = {{"bos_token_id", 1}, {"eos_token_id", 2}},
          .tokens = {"<unk>", "<s>", "</s>", "a"},
          .scores = {0, 0, 0, -1},
          .types = {2, 3, 3, 1}};
}

Result<TokenizerPtr> read(const program::Vocabulary& v) {
  const std::string blob = program::write_vocabulary(v);
  return read_embedded_tokenizer(std::as_bytes(std::span(blob)), "gguf");
}

TEST(EmbeddedTokenizer, VocabularyOfAGguf) {
  const auto t = read(vocabulary());
  ASSERT_TRUE(t.ok()) << t.status().message();
  EXPECT_EQ((*t)->vocabulary().bos, 1U);
  EXPECT_TRUE(check_fit(**t, 4).ok());
  EXPECT_TRUE(check_fit(**t, 8).ok());  // padded
  const Status other = check_fit(**t, 3);
  EXPECT_EQ(other.code(), Code::kInvalidProgram);
  EXPECT_EQ(other.message(),
            "the tokenizer has 4 tokens, the model's vocabulary 3: it belongs to another model");
}

TEST(EmbeddedTokenizer, IdsOutsideTheVocabulary) {
  for (const int64_t id : {int64_t{4}, int64_t{1} << 32 | 1}) {
    program::Vocabulary v = vocabulary();
    v.numbers["eos_token_id"] = id;
    const auto t = read(v);
    ASSERT_FALSE(t.ok()) << id;
    EXPECT_NE(t.status().message().find("expected below 4"), std::string_view::npos)
        << t.status().message();
  }
}

}  // namespace
}  // namespace pteryx::llm
