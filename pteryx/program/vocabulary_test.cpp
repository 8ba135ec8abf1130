// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/program/vocabulary.h"

#include <gtest/gtest.h>

namespace pteryx::program {
namespace {

Vocabulary sample() {
  return {.model = "gpt2",
          .pre = "smollm",
          .numbers = {{"bos_token_id", 1}, {"eos_token_id", -1}},
          .tokens = {"a", "", std::string("\0b", 2)},
          .scores = {0.5F, -1, 0},
          .types = {1, 3, 6},
          .merges = {"a b"}};
}
Result<Vocabulary> read(const std::string& s) {
  return read_vocabulary(std::as_bytes(std::span(s)));
}

TEST(Vocabulary, ComesBackAsItWas) {
  for (const Vocabulary& v : {sample(), Vocabulary{}}) {
    const auto got = read(write_vocabulary(v));
    ASSERT_TRUE(got.ok()) << got.status().message();
    EXPECT_EQ(*got, v);
  }
}

TEST(Vocabulary, EveryTruncationIsAnError) {
  const std::string s = write_vocabulary(sample());
  for (size_t n = 0; n < s.size(); ++n) {
    const auto got = read(s.substr(0, n));
    ASSERT_FALSE(got.ok()) << n;
    EXPECT_EQ(got.status().code(), Code::kInvalidProgram);
  }
  EXPECT_EQ(read(s + "x").status().message(), "vocabulary: bytes after its end");
}

TEST(Vocabulary, ListsMustFitTheTokens) {
  Vocabulary v = sample();
  v.scores.pop_back();
  EXPECT_EQ(read(write_vocabulary(v)).status().message(),
            "vocabulary: 3 tokens with 2 scores and 3 types");
}

}  // namespace
}  // namespace pteryx::program
