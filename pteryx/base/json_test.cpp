// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/base/json.h"

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace pteryx {
namespace {

std::string nested(size_t levels) { return std::string(levels, '[') + std::string(levels, ']'); }

TEST(ParseJson, ReadsADocument) {
  const auto json = parse_json(R"({"a": [1, "\"[[[", null]})", "x.json");
  ASSERT_TRUE(json.ok()) << json.status().message();
  ASSERT_EQ((*json)["a"].size(), 3U);
  EXPECT_EQ(*(*json)["a"].array()->at(1).text(), "\"[[[");
  EXPECT_TRUE((*json)["a"].array()->at(2).is_null());
  EXPECT_TRUE((*json)["b"].is_null());
}

Json parsed(std::string_view text) {
  auto json = parse_json(text, "x.json");
  EXPECT_TRUE(json.ok()) << json.status().message();
  return json.ok() ? std::move(json).value() : Json();
}

TEST(ParseJson, ReadsNumbers) {
  EXPECT_EQ(parsed("0").whole(), 0U);
  EXPECT_EQ(parsed("-0").whole(), 0U);
  EXPECT_EQ(parsed(" 12 ").whole(), 12U);
  EXPECT_EQ(parsed("12").integer(), 12);
  EXPECT_EQ(parsed("12").number(), 12.0);
  EXPECT_EQ(parsed("-12").integer(), -12);
  EXPECT_EQ(parsed("-12").whole(), std::nullopt);
  EXPECT_EQ(parsed("18446744073709551615").whole(), UINT64_MAX);
  EXPECT_EQ(parsed("18446744073709551615").integer(), std::nullopt);
  EXPECT_EQ(parsed("18446744073709551616").whole(), std::nullopt);
  EXPECT_EQ(parsed("18446744073709551616").number(), 0x1p64);
  EXPECT_EQ(parsed("-9223372036854775808").integer(), INT64_MIN);
  EXPECT_EQ(parsed("-9223372036854775809").integer(), std::nullopt);
  EXPECT_EQ(parsed("-9223372036854775809").number(), -0x1p63);
  EXPECT_EQ(parsed("1.5").number(), 1.5);
  EXPECT_EQ(parsed("1.0").whole(), std::nullopt);
  EXPECT_EQ(parsed("-25e-1").number(), -2.5);
  EXPECT_EQ(parsed("1E+2").number(), 100.0);
  EXPECT_EQ(parsed("1e-999").number(), 0.0);
  EXPECT_EQ(parsed("true").number(), std::nullopt);
}

TEST(ParseJson, ReadsStrings) {
  EXPECT_EQ(*parsed(R"("\"\\\/\b\f\n\r\t")").text(), "\"\\/\b\f\n\r\t");
  EXPECT_EQ(*parsed(R"("\u0041\u00e9\u20AC\ud83d\uDE00")").text(),
            "A\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80");
  EXPECT_EQ(*parsed("\"\xC3\xA9 \xF0\x9F\x98\x80\x7F\"").text(), "\xC3\xA9 \xF0\x9F\x98\x80\x7F");
  EXPECT_EQ(*parsed(R"("\u0000")").text(), std::string(1, '\0'));
  EXPECT_EQ(*parsed("\xEF\xBB\xBF\"x\"").text(), "x");  // a byte order mark
}

TEST(ParseJson, KeepsTheLastOfMembersWithOneName) {
  const Json json = parsed(R"({"b": [1, {"c": 2}], "a": 1, "b": {"d": {}}})");
  EXPECT_EQ(json.size(), 2U);
  EXPECT_EQ(json["b"].dump(), R"({"d":{}})");
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
      {"nul", "x.json: not JSON at byte 4"},
      {"nulL", "x.json: not JSON at byte 4"},
      {"truee", "x.json: not JSON at byte 5"},
      {"01", "x.json: not JSON at byte 2"},
      {"+1", "x.json: not JSON at byte 1"},
      {"-", "x.json: not JSON at byte 2"},
      {"1.", "x.json: not JSON at byte 3"},
      {".5", "x.json: not JSON at byte 1"},
      {"1e", "x.json: not JSON at byte 3"},
      {"1e+x", "x.json: not JSON at byte 4"},
      {"NaN", "x.json: not JSON at byte 1"},
      {"[1 2]", "x.json: not JSON at byte 4"},
      {"[1,]", "x.json: not JSON at byte 4"},
      {"[,1]", "x.json: not JSON at byte 2"},
      {"[1}", "x.json: not JSON at byte 3"},
      {"{1: 2}", "x.json: not JSON at byte 2"},
      {"{\"a\" 1}", "x.json: not JSON at byte 6"},
      {"{\"a\": }", "x.json: not JSON at byte 7"},
      {"{\"a\"}", "x.json: not JSON at byte 5"},
      {"{\"a\": 1 \"b\": 2}", "x.json: not JSON at byte 9"},
      {"\"a\nb\"", "x.json: not JSON at byte 3"},
      {R"("\x")", "x.json: not JSON at byte 3"},
      {R"("\u12g4")", "x.json: not JSON at byte 6"},
      {R"("\ud800")", "x.json: not JSON at byte 8"},
      {R"("\ud800\u0041")", "x.json: not JSON at byte 14"},
      {R"("\udc00")", "x.json: not JSON at byte 8"},
      {"\"\xC0\xAF\"", "x.json: not JSON at byte 2"},
      {"\"\xED\xA0\x80\"", "x.json: not JSON at byte 2"},
      {"\"\xE2\x82\"", "x.json: not JSON at byte 2"},
      {"// x", "x.json: not JSON at byte 1"},
      {std::string_view("1\0", 2), "x.json: not JSON at byte 2"},
  };
  for (const auto& c : cases) {
    const auto json = parse_json(c.text, "x.json");
    ASSERT_FALSE(json.ok()) << c.text;
    EXPECT_EQ(json.status().code(), Code::kInvalidProgram);
    EXPECT_EQ(json.status().message(), c.message) << c.text;
  }
  EXPECT_FALSE(parse_json(Bytes(), "x.json").ok());
}

TEST(Json, WritesWhatItReads) {
  const std::string text =
      R"({"a":[null,true,false,-1,18446744073709551615,0.5,1e+300],"b":{},"c":[],"d":"x\"\\\n\u0001\u007f"})";
  EXPECT_EQ(parsed(text).dump(), parsed(parsed(text).dump()).dump());
  EXPECT_EQ(parsed(R"({"b":[], "a":[ 1 , "x\n" ]})").dump(), R"({"a":[1,"x\n"],"b":[]})");
  EXPECT_EQ(parsed(R"({"a":[1,{}],"b":{"c":null}})").dump(2),
            "{\n  \"a\": [\n    1,\n    {}\n  ],\n  \"b\": {\n    \"c\": null\n  }\n}");
}

TEST(Json, WritesWhatJsonHasNoWordFor) {
  EXPECT_EQ(Json(std::numeric_limits<double>::infinity()).dump(), "null");
  EXPECT_EQ(Json("\xFFx\x1F").dump(), "\"\xEF\xBF\xBDx\\u001f\"");
}

TEST(Json, IsBuilt) {
  Json json;
  json.set("a", 1).set("b", "x").set("a", -2).set("c", Json::list(std::vector<uint32_t>{1, 2}));
  json.set("d", Json().push(0.5).push(true)).set("e", Json::Object());
  EXPECT_EQ(json.dump(), R"({"a":-2,"b":"x","c":[1,2],"d":[0.5,true],"e":{}})");
  EXPECT_TRUE(json.erase("a"));
  EXPECT_FALSE(json.erase("a"));
  EXPECT_FALSE(Json(1).erase("a"));
  EXPECT_EQ(json.size(), 4U);
  EXPECT_EQ(json["d"].type_name(), "array");
  EXPECT_TRUE(json["d"]["x"].is_null());
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
