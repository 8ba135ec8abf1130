// Regular expressions, against cases that the scripts around a wasm module are held to as well.
// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/llm/tokenizer/regex.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "pteryx/llm/testing/fixtures.h"

namespace pteryx::llm {
namespace {

using nlohmann::json;

// What a pattern finds in a text; null if it is refused.
json found(const std::string& pattern, const std::string& text) {
  const auto regex = Regex::compile(pattern);
  if (!regex.ok()) return nullptr;
  std::vector<Span> matches;
  const Status status = regex->find_all(text, matches);
  EXPECT_TRUE(status.ok()) << status.message();
  json texts = json::array();
  for (const Span m : matches) texts.push_back(text.substr(m.begin, m.end - m.begin));
  return texts;
}

TEST(Regex, FindsWhatTheCasesSay) {
  const json cases = testing::read_json_fixture("regex/cases.json");
  ASSERT_GE(cases.size(), 100U);
  for (const json& each : cases) {
    EXPECT_EQ(found(each["pattern"], each["text"]), each["matches"]) << each.dump();
  }
}

}  // namespace
}  // namespace pteryx::llm
