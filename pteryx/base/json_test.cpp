// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/base/json.h"

#include <string>
#include <string_view>

#include <gtest/gtest.h>

namespace pteryx {
namespace {

std::string nested(size_t levels) { return std::string(levels, '[') + std::string(levels, ']'); }

TEST(ParseJson, ReadsADocument) {
  const auto json = parse_json(R"({"a": [1, "\"[[[", null]})", "x.json");
  ASSERT_TRUE(json.ok()) << json.status().message();
  EXPECT_EQ((*json)["a"][1], "\"[[[");
}

TEST(ParseJson, BoundsNesting) {
  EXPECT_TRUE(parse_json(nested(64), "x.json").ok());
  EXPECT_TRUE(parse_json("\"" + nested(200) + "\"", "x.json").ok());
  const struct {
    std::string text;
    size_t deepest;
    std::string_view message;
  } cases[] = {
      {nested(65), kDeepestJson, "x.json: JSON is nested deeper than 64 levels at byte 65"},
      {std::string(10'000'000, '['), kDeepestJson,
       "x.json: JSON is nested deeper than 64 levels at byte 65"},
      {R"({"a": {"b": {}}})", 2, "x.json: JSON is nested deeper than 2 levels at byte 13"},
  };
  for (const auto& c : cases) {
    const auto json = parse_json(c.text, "x.json", {.deepest = c.deepest});
    ASSERT_FALSE(json.ok());
    EXPECT_EQ(json.status().code(), Code::kInvalidProgram);
    EXPECT_EQ(json.status().message(), c.message);
  }
}

TEST(ParseJson, NamesTheByteOfAnError) {
  const struct {
    std::string_view text, message;
  } cases[] = {
      {"", "x.json: not JSON at byte 1"},
      {"[1, 2", "x.json: not JSON at byte 6"},
      {"{\"a\": 1,}", "x.json: not JSON at byte 9"},
      {"[1] 2", "x.json: not JSON at byte 5"},
      {"[1e999]", "x.json: not JSON at byte 6"},
      {"[\"\xff\"]", "x.json: not JSON at byte 3"},
      {"]", "x.json: not JSON at byte 1"},
      {"\"\\", "x.json: not JSON at byte 3"},
  };
  for (const auto& c : cases) {
    const auto json = parse_json(c.text, "x.json");
    ASSERT_FALSE(json.ok()) << c.text;
    EXPECT_EQ(json.status().code(), Code::kInvalidProgram);
    EXPECT_EQ(json.status().message(), c.message) << c.text;
  }
  EXPECT_FALSE(parse_json(Bytes(), "x.json").ok());
}

TEST(Json, NamesAMemberThatIsThereTwice) {
  const std::string text = R"({"a": {"b": 1, "b": 2}, "c": 3, "a": 4})";
  EXPECT_TRUE(parse_json(text, "x.json").ok());
  const auto json = parse_json(text, "x.json", {.unique = true});
  ASSERT_FALSE(json.ok());
  EXPECT_EQ(json.status().message(), "x.json: 'a' occurs twice");
  EXPECT_TRUE(parse_json(R"({"a": {"b": 1, "b": 2}})", "x.json", {.unique = true}).ok());
}

}  // namespace
}  // namespace pteryx
