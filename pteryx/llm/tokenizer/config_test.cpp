// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/llm/tokenizer/config.h"

#include <string_view>

#include <gtest/gtest.h>

#include "pteryx/llm/testing/fixtures.h"

namespace pteryx::llm {
namespace {

Result<TokenizerConfig> read(std::string_view json) {
  return read_tokenizer_config(testing::bytes_of_text(json));
}

TEST(TokenizerConfig, ReadsTokensInBothForms) {
  const auto c = read(R"({"bos_token": {"content": "<s>", "special": true}, "eos_token": "</s>",
                          "chat_template": "{{ x }}", "add_bos_token": true})");
  ASSERT_TRUE(c.ok()) << c.status().message();
  EXPECT_EQ(c->bos_token, "<s>");
  EXPECT_EQ(c->eos_token, "</s>");
  EXPECT_EQ(c->chat_template, "{{ x }}");
  EXPECT_EQ(c->add_bos, true);
  EXPECT_EQ(c->add_eos, std::nullopt);
}

TEST(TokenizerConfig, TakesTheDefaultOfSeveralTemplates) {
  const auto c = read(R"({"bos_token": null, "chat_template": [
      {"name": "tool_use", "template": "T"}, {"name": "default", "template": "D"}]})");
  ASSERT_TRUE(c.ok()) << c.status().message();
  EXPECT_EQ(c->bos_token, "");
  EXPECT_EQ(c->chat_template, "D");
}

TEST(TokenizerConfig, NamesWhatIsWrong) {
  const auto message = [](std::string_view json) {
    return std::string(read(json).status().message());
  };
  EXPECT_EQ(message("["), "tokenizer_config.json: not JSON at byte 2");
  EXPECT_EQ(message(R"({"eos_token": 5})"), "eos_token: expected a string, got number");
  EXPECT_EQ(message(R"({"chat_template": [{"name": "x"}]})"),
            "chat_template[0].template: expected a string, got null");
  EXPECT_EQ(message(R"({"add_bos_token": 1})"),
            "add_bos_token: expected true or false, got number");
}

}  // namespace
}  // namespace pteryx::llm
