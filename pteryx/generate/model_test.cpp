// What is no language model, or has a tokenizer that is not its own. SPDX-License-Identifier:
// BSD-3-Clause
#include <string>
#include <string_view>
#include <utility>

#include <gtest/gtest.h>

#include "pteryx/gpu/testing/compute.h"
#include "pteryx/llm.h"

namespace pteryx::llm {
namespace {

constexpr std::string_view kFixtures = PTERYX_TEST_DATA "/fixtures/";

Status load(std::string_view name, ModelOptions options = {}) {
  options.load.device = gpu::shared_device();
  return Model::load(std::string(kFixtures).append(name), options).status();
}

TEST(Model, ATokenizerOfAnotherModelIsRefused) {
  auto tokenizer = open_source(std::string(kFixtures) + "tokenizers/gpt2.json");
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status().message();
  ModelOptions options;
  options.tokenizer = std::move(tokenizer).value();
  const Status s = load("llm/qwen3_like_q4.pte", options);
  EXPECT_EQ(s.code(), Code::kInvalidProgram);
  EXPECT_NE(s.message().find("tokens, the model's vocabulary 300"), std::string_view::npos)
      << s.message();
}

TEST(Model, AProgramThatIsNoLanguageModelIsRefused) {
  EXPECT_EQ(load("ops/add.pte").code(), Code::kUnsupported);
}

}  // namespace
}  // namespace pteryx::llm
