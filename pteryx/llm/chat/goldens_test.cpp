// Templates in the manner of model families, and small ones for one feature each, against Jinja.
// SPDX-License-Identifier: BSD-3-Clause
#include <ctime>
#include <string>
#include <string_view>
#include <utility>

#include <gtest/gtest.h>

#include "pteryx/llm/chat/template.h"
#include "pteryx/llm/testing/fixtures.h"

namespace pteryx::llm::chat {
namespace {

using nlohmann::json;

const json& goldens() {
  static const json kGoldens = testing::read_json_fixture("chat/goldens.json");
  return kGoldens;
}

RenderOptions at_that_time() {
  const json& now = goldens()["now"];
  std::tm tm = {};
  tm.tm_year = now[0].get<int>() - 1900;
  tm.tm_mon = now[1].get<int>() - 1;
  tm.tm_mday = now[2].get<int>();
  tm.tm_hour = now[3].get<int>();
  tm.tm_min = now[4].get<int>();
  tm.tm_sec = now[5].get<int>();
  return {.now = tm};
}

// The text of a member of the document, in its own order: a parsed document is sorted.
Value ordered(std::string_view pointer) {
  const auto file = testing::open_fixture("chat/goldens.json");
  auto all =
      value_of_json({reinterpret_cast<const char*>(file->bytes().data()), file->bytes().size()});
  EXPECT_TRUE(all.ok());
  return all.ok() ? *all->member(pointer) : Value();
}

void expect_as_jinja(const std::string& source, const Dict& variables, const json& expected,
                     const std::string& what) {
  auto parsed = Template::parse(source);
  auto text = parsed.ok() ? parsed->render(variables, at_that_time())
                          : Result<std::string>(std::move(parsed).status());
  if (expected.contains("text")) {
    ASSERT_TRUE(text.ok()) << what << ": " << text.status().message();
    EXPECT_EQ(*text, expected["text"].get<std::string>()) << what;
    return;
  }
  ASSERT_FALSE(text.ok()) << what << " expected an error, got: " << *text;
  EXPECT_TRUE(text.status().message().starts_with("template line ")) << text.status().message();
  if (expected.contains("raised")) {
    EXPECT_TRUE(text.status().message().ends_with(expected["raised"].get<std::string>()))
        << text.status().message();
  }
}

TEST(ChatGoldens, RenderFamiliesAsJinja) {
  const Value conversations = ordered("conversations");
  ASSERT_GE(goldens()["templates"].size(), 12U);
  for (const auto& [name, rendered] : goldens()["templates"].items()) {
    const auto file = testing::open_fixture("chat/" + name);
    const std::string source(reinterpret_cast<const char*>(file->bytes().data()),
                             file->bytes().size());
    for (size_t i = 0; i < rendered.size(); ++i) {
      const Dict& variables = *(*conversations.list())[i].dict();
      expect_as_jinja(source, variables, rendered[i], name + ", conversation " + std::to_string(i));
    }
  }
}

TEST(ChatGoldens, RenderFeaturesAsJinja) {
  const Value variables = ordered("variables");
  for (const json& feature : goldens()["features"]) {
    const auto source = feature["template"].get<std::string>();
    expect_as_jinja(source, *variables.dict(), feature, source);
  }
}

}  // namespace
}  // namespace pteryx::llm::chat
